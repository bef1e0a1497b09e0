#include "cli/question_words.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "study/catalog.h"

namespace commlens::cli {
namespace {

// Beyond these nothing is learnt, and products stay numbers.
constexpr double kSlowest = 1e-6;
constexpr double kFastest = 1e6;

Error not_understood(const std::string& option, std::string_view text) {
  return {ErrorKind::usage, option + ": \"" + std::string(text) +
                                "\" is not NAME=TIMES (0 removes it, 0.5 halves its time) or "
                                "NAME:speed=K (2 halves its time), with 0.000001 to 1000000"};
}

}  // namespace

SpeedChange parse_speed_change(const std::string& option, std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) throw not_understood(option, text);
  std::string_view name = text.substr(0, equals);
  const std::string_view digits = text.substr(equals + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value >= 0))
    throw not_understood(option, text);
  constexpr std::string_view kSpeed = ":speed";
  const bool as_speed = name.ends_with(kSpeed);
  if (as_speed) name.remove_suffix(kSpeed.size());
  if (name.empty() || (as_speed && value == 0)) throw not_understood(option, text);
  const double speed = as_speed     ? value
                       : value == 0 ? std::numeric_limits<double>::infinity()
                                    : 1 / value;
  if (!std::isinf(speed) && (speed < kSlowest || speed > kFastest))
    throw not_understood(option, text);
  return {.what = std::string(name), .speed = speed};
}

void check_question(const Question& question) {
  if (!(question.comm_speed >= kSlowest && question.comm_speed <= kFastest))
    throw Error(ErrorKind::usage,
                "--comm-speed: must be from 0.000001 to 1000000, such as 2 for twice as fast");
  for (const SpeedChange& link : question.links)
    require_name("--links", link.what, {"ib", "nvlink"});
}

}  // namespace commlens::cli
