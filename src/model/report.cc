#include "model/report.h"

#include <algorithm>
#include <utility>

namespace commlens {

std::vector<NoteLine> collect_notes(const Report& report) {
  std::vector<NoteLine> lines;
  for (std::size_t i = 0; i < Notes::kCount; ++i) {
    NoteLine line{.note = static_cast<Note>(i), .example = {}};
    const auto take = [&line](const Notes& notes, std::string_view where) {
      if (notes.count(line.note) == 0) return;
      line.count += notes.count(line.note);
      ++line.inputs;
      if (!line.example.empty()) return;
      const std::string& example = notes.example(line.note);
      // An example that names its file already needs no other.
      const bool names_file = where.empty() || example.find(where) != std::string::npos;
      line.example = names_file        ? example
                     : example.empty() ? std::string(where)
                                       : std::string(where) + ": " + example;
    };
    take(report.notes, "");
    for (const InputReport& input : report.inputs) take(input.notes, input.path);
    if (line.count > 0) lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const NoteLine& a, const NoteLine& b) {
    return note_info(a.note).severity > note_info(b.note).severity;
  });
  return lines;
}

}  // namespace commlens
