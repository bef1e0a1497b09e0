#include "model/rank_list.h"

#include <algorithm>
#include <charconv>

#include "base/decimal.h"
#include "base/error.h"

namespace commlens {
namespace {

template <class Number>
std::string format(std::span<const Number> ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ",") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

[[noreturn]] void refuse(std::string_view part, std::string_view option) {
  throw Error(ErrorKind::usage,
              std::string(option) + ": \"" + std::string(part) +
                  "\" is no number or range; write 3, 0-7 or 2..5, several with commas");
}

std::int64_t parse_number(std::string_view text, std::string_view part, std::string_view option) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0)
    refuse(part, option);
  return value;
}

void append_range(std::string_view part, std::string_view option, std::vector<std::int64_t>& out) {
  const std::size_t dots = part.find("..");
  const std::size_t split = dots != std::string_view::npos ? dots : part.find('-');
  const std::size_t width = dots != std::string_view::npos ? 2 : 1;
  const std::int64_t first = parse_number(part.substr(0, split), part, option);
  const std::int64_t last = split == std::string_view::npos
                                ? first
                                : parse_number(part.substr(split + width), part, option);
  if (last < first || last - first >= kMostRanks) refuse(part, option);
  for (std::int64_t i = 0; i <= last - first; ++i) out.push_back(first + i);
}

}  // namespace

std::vector<int> parse_rank_list(std::string_view text) {
  std::vector<int> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  while (!text.empty()) {
    const std::size_t from = text.find_first_of("0123456789-");
    if (from == std::string_view::npos) break;
    text.remove_prefix(from);
    const std::size_t length = std::min(text.find_first_not_of("0123456789-"), text.size());
    const auto rank = parse_int(text.substr(0, length));
    if (!rank || *rank < 0 || *rank >= kMostRanks) return {};
    ranks.push_back(static_cast<int>(*rank));
    text.remove_prefix(length);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string format_ranks(std::span<const int> ranks) { return format(ranks); }
std::string format_ranks(std::span<const std::int64_t> ranks) { return format(ranks); }

std::vector<std::int64_t> parse_ranges(std::string_view text, std::string_view option) {
  std::vector<std::int64_t> values;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    append_range(text.substr(from, comma - from), option, values);
    from = comma + 1;
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace commlens
