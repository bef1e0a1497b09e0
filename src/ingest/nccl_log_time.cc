#include "ingest/nccl_log_time.h"

#include <array>
#include <chrono>
#include <optional>

#include "ingest/nccl_log_fields.h"

namespace commlens {
namespace {

constexpr Ns kSecond = 1'000'000'000;

// `digits` digits at `at`.
std::optional<std::int64_t> fixed(std::string_view text, std::size_t at, std::size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (!is_digit(text[i])) return std::nullopt;
  }
  return decimal_number(text.substr(at, digits));
}

// Nothing for a day that the month does not have. `leap`: or may be one, where no year is said.
std::optional<Ns> day_start(std::int64_t month, std::int64_t day, bool leap) {
  constexpr std::array<int, 12> kBefore = {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335};
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return std::nullopt;
  const auto place = static_cast<std::size_t>(month - 1);
  if (day < 1 || day > kDays[place] || (month == 2 && day == 29 && !leap)) return std::nullopt;
  return (kBefore[place] + day - 1) * 86'400 * kSecond;
}

// "11:56:57.642" or "12:54" at `at`.
std::optional<Ns> clock_at(std::string_view text, std::size_t at) {
  const auto hours = fixed(text, at, 2);
  const auto minutes = fixed(text, at + 3, 2);
  if (!hours || !minutes || text[at + 2] != ':' || *hours > 23 || *minutes > 59)
    return std::nullopt;
  Ns time = (*hours * 3600 + *minutes * 60) * kSecond;
  at += 5;
  const auto seconds = at < text.size() && text[at] == ':' ? fixed(text, at + 1, 2) : std::nullopt;
  if (!seconds) return time;
  time += *seconds * kSecond;
  at += 3;
  if (at >= text.size() || (text[at] != '.' && text[at] != ',')) return time;
  Ns unit = kSecond / 10;
  for (++at; at < text.size() && is_digit(text[at]) && unit > 0; ++at, unit /= 10)
    time += (text[at] - '0') * unit;
  return time;
}

Ns days_before(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  return std::chrono::sys_days(date).time_since_epoch().count() * Ns{86'400} * kSecond;
}

// "2025-02-18 12:54:31" at `at`.
std::optional<LogTime> dated_at(std::string_view text, std::size_t at) {
  const auto month = fixed(text, at + 5, 2);
  const auto day = fixed(text, at + 8, 2);
  const auto year = fixed(text, at, 4);
  if (!year || !month || !day || at + 11 >= text.size()) return std::nullopt;
  if (text[at + 4] != text[at + 7] || (text[at + 4] != '-' && text[at + 4] != '/'))
    return std::nullopt;
  // Nanoseconds of a later year than this do not fit; no log was written before.
  if (*year < 1970 || *year >= 2262) return std::nullopt;
  const bool leap = std::chrono::year(static_cast<int>(*year)).is_leap();
  const auto start = day_start(*month, *day, leap);
  const auto clock = clock_at(text, at + 11);
  if (!start || !clock) return std::nullopt;
  return LogTime{*start + *clock, days_before(*year, *month, *day) + *clock};
}

// "E1129 11:56:57.6" at its number.
std::optional<LogTime> c10_at(std::string_view text, std::size_t at) {
  for (const std::size_t digits : {std::size_t{4}, std::size_t{3}}) {
    const auto number = fixed(text, at, digits);
    if (!number || at + digits >= text.size() || text[at + digits] != ' ') continue;
    const auto start = day_start(*number / 100, *number % 100, true);
    const auto clock = clock_at(text, at + digits + 1);
    if (start && clock) return LogTime{*start + *clock, -1};
  }
  return std::nullopt;
}

}  // namespace

LogTime find_log_time(std::string_view text) {
  for (std::size_t at = 0; at + 8 < text.size() && at < 400; ++at) {
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) continue;
    const bool c10 = at > 1 && text[at - 2] == '[' &&
                     std::string_view("EWIF").find(text[at - 1]) != std::string_view::npos;
    auto time = c10 ? c10_at(text, at) : dated_at(text, at);
    if (!time) continue;
    time->leads = at == 0 || text[at - 1] == '[' ||
                  text.substr(0, at).find_first_not_of(" \t") == std::string_view::npos;
    return *time;
  }
  return {};
}

}  // namespace commlens
