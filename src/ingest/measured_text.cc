#include "ingest/measured_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ingest/witness_lines.h"
#include "ingest/witness_secrets.h"

namespace commlens {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::size_t kLongestExample = 120;

}  // namespace

void read_measured_lines(Source& source, std::string_view head, Measured& measured,
                         const std::function<void(std::string_view, std::int64_t)>& line) {
  for_each_line(source, head, line);
  note_measured_end(source, measured);
}

void note_measured_end(const Source& source, Measured& measured) {
  const std::string& why = source.trouble();
  if (source.end() == SourceEnd::truncated) measured.notes.add(Note::truncated, why);
  if (source.end() == SourceEnd::corrupt) measured.notes.add(Note::corrupt_compression, why);
  if (source.end() == SourceEnd::failed) measured.notes.add(Note::read_failed, why);
}

std::uint32_t GroupIndex::add(const MeasuredGroup& group) {
  // The same one is asked for again and again.
  if (last_ < measured_.groups.size() && measured_.groups[last_] == group) return last_;
  const auto next = static_cast<std::uint32_t>(measured_.groups.size());
  const auto [place, is_new] =
      index_.try_emplace(Key{group.id, group.name, group.size, group.nodes, group.ranks}, next);
  if (is_new) measured_.groups.push_back(group);
  return last_ = place->second;
}

std::string example_line(std::int64_t number, std::string_view text) {
  // Values of keys can be secrets: where there are keys, only the place is said.
  if (text.find_first_of("{\"=") != std::string_view::npos) return "line " + std::to_string(number);
  return "line " + std::to_string(number) + ": " +
         without_secrets(text.substr(0, 2 * kLongestExample)).substr(0, kLongestExample);
}

std::vector<std::string_view> blank_separated(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t from = line.find_first_not_of(kBlanks); from < line.size();) {
    const std::size_t to = std::min(line.find_first_of(kBlanks, from), line.size());
    words.push_back(line.substr(from, to - from));
    from = line.find_first_not_of(kBlanks, to);
  }
  return words;
}

std::string_view trimmed_text(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::optional<double> printed_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<Ns> milliseconds_to_ns(std::string_view text) {
  constexpr double kLongest = 1e12;  // thirty years: sums of such stay in range
  const auto number = printed_number(text);
  if (!number || !(*number >= 0) || *number > kLongest) return std::nullopt;
  return static_cast<Ns>(std::llround(*number * 1e6));
}

std::optional<PrintedSize> printed_size(std::string_view text) {
  constexpr std::string_view kUnits = "BKMGTP";
  text = trimmed_text(text);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.e+"), text.size());
  const auto number = printed_number(text.substr(0, digits));
  std::string_view unit = trimmed_text(text.substr(digits));
  if (!number || *number < 0 || unit.empty()) return std::nullopt;
  const std::size_t power = kUnits.find(unit.front());
  if (power == std::string_view::npos || unit.back() != 'B' || unit.size() != (power == 0 ? 1 : 2))
    return std::nullopt;
  const double bytes = *number * std::pow(1024.0, static_cast<double>(power));
  if (bytes > static_cast<double>(kLargestMessage)) return std::nullopt;
  return PrintedSize{static_cast<std::int64_t>(std::llround(bytes)), power == 0};
}

}  // namespace commlens
