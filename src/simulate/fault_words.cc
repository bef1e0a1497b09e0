#include "simulate/fault_words.h"

#include <string>

#include "base/decimal.h"
#include "base/error.h"
#include "model/rank_list.h"

namespace commlens::simulate {
namespace {

// What an option's words look like, to say so where they do not.
struct Form {
  std::string_view option;
  std::string_view form;
  std::string_view example;
};

[[noreturn]] void refuse(const Form& form, std::string_view text) {
  throw Error(ErrorKind::usage, std::string(form.option) + ": \"" + std::string(text) +
                                    "\" is not " + std::string(form.form) + ", such as " +
                                    std::string(form.example));
}

// What stands before and behind the first `mark`; nothing behind it where it is not there.
struct Halves {
  std::string_view before;
  std::optional<std::string_view> behind;
};
Halves split(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

class Words {
 public:
  Words(const Form& form, std::string_view text) : form_(form), text_(text) {}

  int index(std::string_view word) const {
    const auto value = parse_int(word);
    if (!value || *value < 0 || *value >= kMaxRanks) refuse(form_, text_);
    return static_cast<int>(*value);
  }
  // In thousandths: microseconds to nanoseconds, millionths to billionths.
  std::int64_t thousandths(std::string_view word) const {
    const auto value = microseconds_to_ns(word);
    if (!value) refuse(form_, text_);
    return *value;
  }
  // In millionths; the sixth decimal is the last that counts.
  std::int64_t factor(std::string_view word) const {
    const auto [whole, fraction] = split(word, '.');
    std::string digits(fraction.value_or(""));
    digits.resize(6, '0');
    const auto wholes = parse_int(whole.empty() ? "0" : whole);
    const auto parts = parse_int(digits);
    constexpr std::int64_t kMost = 1'000'000;
    if (word.empty() || !wholes || !parts || *wholes < 0 || *wholes > kMost || *parts < 0)
      refuse(form_, text_);
    return *wholes * kMillion + *parts;
  }
  // Both halves of the text at its first `mark`.
  std::pair<std::string_view, std::string_view> halves(std::string_view text, char mark) const {
    const auto [before, behind] = split(text, mark);
    if (!behind) refuse(form_, text_);
    return {before, *behind};
  }
  std::vector<std::int64_t> steps(std::optional<std::string_view> words) const {
    return words ? parse_ranges(*words, form_.option) : std::vector<std::int64_t>();
  }

 private:
  const Form& form_;
  std::string_view text_;
};

Fault parse_factor(FaultKind kind, const Form& form, std::string_view text) {
  const Words words(form, text);
  const auto [main, steps] = split(text, '@');
  const auto [rank, factor] = words.halves(main, ':');
  return {.kind = kind,
          .rank = words.index(rank),
          .factor_ppm = words.factor(factor),
          .steps = words.steps(steps)};
}

bool parse_full_or_none(std::string_view option, std::string_view text) {
  if (text == "full") return true;
  if (text == "none") return false;
  refuse({option, "full or none", "none"}, text);
}

}  // namespace

Fault parse_slow(std::string_view text) {
  return parse_factor(FaultKind::slow, {"--slow", "RANK:FACTOR[@STEPS]", "3:1.3 or 3:2@12..14"},
                      text);
}

Fault parse_unequal(std::string_view text) {
  return parse_factor(FaultKind::unequal, {"--unequal", "RANK:FACTOR[@STEPS]", "1:2"}, text);
}

Fault parse_late(std::string_view text) {
  const Form form{"--late", "RANK:US[@STEPS]", "5:800 or 5:800@12,14"};
  const Words words(form, text);
  const auto [main, steps] = split(text, '@');
  const auto [rank, time] = words.halves(main, ':');
  return {.kind = FaultKind::late,
          .rank = words.index(rank),
          .amount_ns = words.thousandths(time),
          .steps = words.steps(steps)};
}

Fault parse_slow_link(std::string_view text) {
  const Form form{"--slow-link", "A-B:FACTOR[@STEPS]", "2-3:4"};
  const Words words(form, text);
  const auto [main, steps] = split(text, '@');
  const auto [link, factor] = words.halves(main, ':');
  const auto [a, b] = words.halves(link, '-');
  return {.kind = FaultKind::slow_link,
          .rank = words.index(a),
          .peer = words.index(b),
          .factor_ppm = words.factor(factor),
          .steps = words.steps(steps)};
}

Fault parse_clock(std::string_view text) {
  const Form form{"--clock", "HOST:OFFSET_US[,PPM]", "1:250,20"};
  const Words words(form, text);
  const auto [host, clock] = words.halves(text, ':');
  const auto [offset, drift] = split(clock, ',');
  return {.kind = FaultKind::clock,
          .host = words.index(host),
          .amount_ns = words.thousandths(offset),
          .drift_ppb = words.thousandths(drift.value_or("0"))};
}

Fault parse_lose(std::string_view text) {
  const Form form{"--lose", "RANK:N[@start|@end|@random]", "0:5@start"};
  const Words words(form, text);
  const auto [main, place] = split(text, '@');
  const auto [rank, count] = words.halves(main, ':');
  const std::string_view where = place.value_or("random");
  if (where != "start" && where != "end" && where != "random") refuse(form, text);
  return {.kind = FaultKind::lose,
          .rank = words.index(rank),
          .count = words.thousandths(count) / 1000,
          .place = where == "start" ? LosePlace::start
                   : where == "end" ? LosePlace::end
                                    : LosePlace::random};
}

Fault parse_window_shift(std::string_view text) {
  const Form form{"--window-shift", "RANK:US", "2:3000"};
  const Words words(form, text);
  const auto [rank, time] = words.halves(text, ':');
  return {.kind = FaultKind::window_shift,
          .rank = words.index(rank),
          .amount_ns = words.thousandths(time)};
}

Fault parse_missing(std::string_view text) {
  const Form form{"--missing", "RANK", "3"};
  return {.kind = FaultKind::missing, .rank = Words(form, text).index(text)};
}

SeqKind parse_seq(std::string_view text) {
  if (text == "group") return SeqKind::group;
  if (text == "wrong") return SeqKind::process;
  if (text == "none") return SeqKind::none;
  refuse({"--seq", "group, wrong or none", "none"}, text);
}

bool parse_metadata(std::string_view text) { return parse_full_or_none("--metadata", text); }
bool parse_sync_records(std::string_view text) {
  return parse_full_or_none("--sync-records", text);
}

Ns parse_microseconds(std::string_view option, std::string_view text) {
  return Words({option, "a number of microseconds", "3"}, text).thousandths(text);
}

}  // namespace commlens::simulate
