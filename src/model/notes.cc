#include "model/notes.h"

#include <algorithm>

#include "base/utf8.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestExample = 200;

constexpr NoteInfo kNotes[] = {
#define COMMLENS_NOTE_ROW(code, severity, message, advice) \
  {#code, Severity::severity, message, advice},
    COMMLENS_NOTES(COMMLENS_NOTE_ROW)
#undef COMMLENS_NOTE_ROW
};

}  // namespace

std::span<const NoteInfo> all_notes() { return kNotes; }

const NoteInfo& note_info(Note note) { return kNotes[static_cast<std::size_t>(note)]; }

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "?";
}

void Notes::add(Note note, std::string_view example, std::int64_t count) {
  counts_[index(note)] += count;
  std::string& kept = examples_[index(note)];
  if (!kept.empty()) return;
  kept = printable(example.substr(0, kLongestExample));
  if (example.size() > kLongestExample) kept += "...";
}

void Notes::merge(const Notes& other) {
  for (std::size_t i = 0; i < kCount; ++i) {
    counts_[i] += other.counts_[i];
    if (examples_[i].empty()) examples_[i] = other.examples_[i];
  }
}

bool Notes::any() const {
  return std::any_of(counts_.begin(), counts_.end(), [](std::int64_t count) { return count != 0; });
}

}  // namespace commlens
