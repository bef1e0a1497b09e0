#include "match/end_line.h"

#include <algorithm>
#include <cstdlib>

namespace commlens {
namespace {

// Fewer differences than this say nothing of a drift.
constexpr std::size_t kEnoughForDrift = 12;
// Distances of hostile times stay so far inside 64 bits (a year) that small multiples do too.
constexpr Ns kFarthest = Ns{1} << 55;

// From the medians of the first and the last third.
double slope_of(const std::vector<EndDifference>& differences) {
  const std::size_t third = differences.size() / 3;
  const auto middle = [](const EndDifference* from, std::size_t count) {
    std::vector<Ns> times;
    std::vector<Ns> values;
    for (std::size_t i = 0; i < count; ++i) {
      times.push_back(from[i].own);
      values.push_back(from[i].difference);
    }
    return EndDifference{median_in_place(times), median_in_place(values)};
  };
  const EndDifference first = middle(differences.data(), third);
  const EndDifference last = middle(differences.data() + differences.size() - third, third);
  const auto run = static_cast<double>(last.own - first.own);
  if (run <= 0) return 0;
  const double slope = static_cast<double>(last.difference - first.difference) / run;
  return std::clamp(slope, -kMostDrift, kMostDrift);
}

Ns grown(double slope, Ns since) {
  if (slope == 0) return 0;
  return static_cast<Ns>(slope * static_cast<double>(since));
}

}  // namespace

Ns median_in_place(std::vector<Ns>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Ns EndLine::to_reference(Ns own) const { return own + offset + grown(slope, own - at); }

Ns EndLine::from_reference(Ns reference) const {
  const Ns since = reference - offset - at;
  return at + since - grown(slope / (1 + slope), since);
}

Ns distance(const EndLine& line, const EndDifference& of) {
  return std::min(std::abs(of.difference - line.offset - grown(line.slope, of.own - line.at)),
                  kFarthest);
}

EndFit fit_line(const std::vector<EndDifference>& differences) {
  EndLine line{.at = differences[differences.size() / 2].own, .offset = 0, .slope = 0};
  if (differences.size() >= kEnoughForDrift) line.slope = slope_of(differences);
  std::vector<Ns> level;
  level.reserve(differences.size());
  for (const auto& [own, difference] : differences)
    level.push_back(difference - grown(line.slope, own - line.at));
  line.offset = median_in_place(level);
  return {line, spread_around(line, differences)};
}

Ns spread_around(const EndLine& line, const std::vector<EndDifference>& differences) {
  std::vector<Ns> distances;
  distances.reserve(differences.size());
  for (const EndDifference& of : differences) distances.push_back(distance(line, of));
  return median_in_place(distances);
}

}  // namespace commlens
