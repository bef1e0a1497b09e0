// Values inside a line of a log, by the key before them.
//
// A log line can stop anywhere, even inside a number, so a value counts only where something closes
// it: a blank, a bracket, or the end of a line that was really ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace commlens {

class LogText {
 public:
  // `ended`: a line break stood behind the text; without one its last value may be cut.
  LogText(std::string_view text, bool ended) : text_(text), ended_(ended) {}

  std::string_view text() const { return text_; }
  bool ended() const { return ended_; }
  bool has(std::string_view words) const { return text_.find(words) != std::string_view::npos; }
  bool begins(std::string_view words) const { return text_.starts_with(words); }

  // What stands behind the first `key` up to a blank or one of `closers`. The key must begin a
  // word.
  std::optional<std::string_view> value(std::string_view key, std::string_view closers = {}) const;
  std::optional<std::int64_t> number(std::string_view key, std::string_view closers = {}) const;
  // With or without 0x; "(nil)" is 0.
  std::optional<std::uint64_t> hex(std::string_view key, std::string_view closers = {}) const;
  std::optional<double> real(std::string_view key, std::string_view closers = {}) const;
  // What stands behind `key`; the whole text again where it is absent.
  LogText behind(std::string_view key) const;

 private:
  std::string_view text_;
  bool ended_;
};

bool is_digit(char c);
// Whole texts only.
std::optional<std::int64_t> decimal_number(std::string_view text);
std::optional<std::uint64_t> hex_number(std::string_view text);
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> words_of_line(std::string_view text);
// All numbers in "[0, 3,5]", or in "1, 2" up to a word that is none.
std::vector<std::int64_t> number_list(std::string_view text);
// Without letters of either case.
bool contains_word(std::string_view text, std::string_view lower_case_words);

}  // namespace commlens
