#include "ingest/nccl_log_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace commlens {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f";

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> decimal_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> hex_number(std::string_view text) {
  if (text == "(nil)") return 0;
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlank) + 1 - from);
}

std::vector<std::string_view> words_of_line(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t from = text.find_first_not_of(kBlank); from < text.size();) {
    const std::size_t to = std::min(text.find_first_of(kBlank, from), text.size());
    words.push_back(text.substr(from, to - from));
    from = text.find_first_not_of(kBlank, to);
  }
  return words;
}

std::vector<std::int64_t> number_list(std::string_view text) {
  std::vector<std::int64_t> numbers;
  std::size_t at = 0;
  while (at < text.size() && numbers.size() < 65536) {
    if (std::string_view(" ,[").find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    const std::size_t to = std::min(text.find_first_not_of("0123456789", at), text.size());
    const auto number = decimal_number(text.substr(at, to - at));
    if (!number) break;
    numbers.push_back(*number);
    at = to;
  }
  return numbers;
}

bool contains_word(std::string_view text, std::string_view lower_case_words) {
  const auto same = [](char a, char b) { return lower(a) == b; };
  return std::search(text.begin(), text.end(), lower_case_words.begin(), lower_case_words.end(),
                     same) != text.end();
}

std::optional<std::string_view> LogText::value(std::string_view key,
                                               std::string_view closers) const {
  for (std::size_t at = text_.find(key); at != std::string_view::npos;
       at = text_.find(key, at + 1)) {
    if (at > 0 && is_word(text_[at - 1]) && is_word(key.front())) continue;
    const std::size_t from = at + key.size();
    std::size_t to = from;
    while (to < text_.size() && text_[to] != ' ' &&
           closers.find(text_[to]) == std::string_view::npos)
      ++to;
    if (to == text_.size() && !ended_) return std::nullopt;
    if (to == from) return std::nullopt;
    return text_.substr(from, to - from);
  }
  return std::nullopt;
}

std::optional<std::int64_t> LogText::number(std::string_view key, std::string_view closers) const {
  const auto found = value(key, closers);
  return found ? decimal_number(*found) : std::nullopt;
}

std::optional<std::uint64_t> LogText::hex(std::string_view key, std::string_view closers) const {
  const auto found = value(key, closers);
  return found ? hex_number(*found) : std::nullopt;
}

std::optional<double> LogText::real(std::string_view key, std::string_view closers) const {
  const auto found = value(key, closers);
  if (!found) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), number);
  if (error != std::errc() || end != found->data() + found->size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

LogText LogText::behind(std::string_view key) const {
  const std::size_t at = text_.find(key);
  if (at == std::string_view::npos) return *this;
  return {text_.substr(at + key.size()), ended_};
}

}  // namespace commlens
