#include "model/clocks.h"

#include <algorithm>

namespace commlens {

std::string_view clock_method_name(ClockMethod method) {
  switch (method) {
    case ClockMethod::reference: return "reference";
    case ClockMethod::same_host: return "same_host";
    case ClockMethod::end_differences: return "end_differences";
    case ClockMethod::none: return "none";
  }
  return "";
}

namespace {

// Absurd times of a damaged file stay where sums and differences of a few do not leave 64 bits.
constexpr Ns kFarthest = Ns{1} << 61U;
Ns near(Ns time) { return std::clamp(time, -kFarthest, kFarthest); }

// Clocks drift by up to 200 parts per million, each.
constexpr Ns kOneInDrift = 2500;  // 400 parts per million

Ns share(double rate, Ns elapsed) { return static_cast<Ns>(rate * static_cast<double>(elapsed)); }

// What is added to a row's own time that `common` puts at common time `at`: own times pass at
// 1 / (1 + drift) of common time.
Ns added_at(const Clocks& clocks, std::size_t row, Ns at) {
  const ClockLine& line = clocks.lines[row];
  const double rate = line.drift_ppm * 1e-6;
  return near(line.assumed) + share(rate / (1 + rate), near(at) - near(clocks.origin));
}

}  // namespace

Ns Clocks::common(std::size_t row, Ns own) const {
  const ClockLine& line = lines[row];
  const Ns shifted = near(near(own) + near(base[row])) + near(line.assumed);
  if (line.drift_ppm == 0) return near(shifted);
  return near(shifted + share(line.drift_ppm * 1e-6, near(shifted) - near(origin)));
}

Ns Clocks::own(std::size_t row, Ns common) const {
  return near(near(common) - near(base[row]) - added_at(*this, row, common));
}

ClockError Clocks::error(std::size_t a, std::size_t b, Ns at) const {
  if (a == b) return {};
  if (domain[a] == domain[b]) return {-skew, skew};
  ClockError bounds{-ClockError::kUnbounded, ClockError::kUnbounded};
  if (most.empty() || domain[a] >= domains || domain[b] >= domains) return bounds;

  const auto bins = static_cast<Ns>(most.size());
  const Ns since = near(at) - near(origin);
  const auto bin = static_cast<std::size_t>(std::clamp(since / bin_length, Ns{0}, bins - 1));
  const Ns outside = std::max({Ns{0}, -since, since - bins * bin_length});
  const std::vector<Ns>& matrix = most[bin];
  const Ns largest = matrix[domain[a] * domains + domain[b]];
  const Ns opposite = matrix[domain[b] * domains + domain[a]];

  // Where the estimate is off by some time, the other rank's instant was looked up that far from
  // its own: drift over that time, and over what lies outside of the bins, comes on top.
  const Ns estimate = added_at(*this, a, at) - added_at(*this, b, at);
  const auto loose = [outside](Ns bound) {
    return bound + (std::max<Ns>(0, bound) + outside) / kOneInDrift;
  };
  if (largest < ClockError::kUnbounded)
    bounds.upper = std::clamp(loose(largest - estimate), Ns{0}, ClockError::kUnbounded);
  if (opposite < ClockError::kUnbounded)
    bounds.lower = -std::clamp(loose(opposite + estimate), Ns{0}, ClockError::kUnbounded);
  return bounds;
}

std::optional<Ns> Clocks::spread(std::size_t a, std::size_t b) const {
  std::uint32_t x = domain[a];
  std::uint32_t y = domain[b];
  if (x == y) return 0;
  if (x >= links.size() || y >= links.size()) return std::nullopt;
  Ns sum = 0;
  for (std::uint32_t way = 0; x != y; ++way) {
    std::uint32_t& deeper = links[x].depth >= links[y].depth ? x : y;
    if (way == kLongestWay || links[deeper].depth == 0) return std::nullopt;
    sum += links[deeper].spread;
    deeper = links[deeper].parent;
  }
  return sum;
}

}  // namespace commlens
