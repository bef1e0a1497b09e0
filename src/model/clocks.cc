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

// Parts per million of an interval, without leaving integers for what is long.
Ns drifted(double ppm, Ns elapsed) {
  return static_cast<Ns>(ppm * 1e-6 * static_cast<double>(elapsed));
}

Ns added(const Clocks& clocks, std::size_t row, Ns absolute) {
  const ClockLine& line = clocks.lines[row];
  return line.assumed + drifted(line.drift_ppm, absolute + line.assumed - clocks.origin);
}

}  // namespace

Ns Clocks::common(std::size_t row, Ns own) const {
  const Ns absolute = own + base[row];
  return absolute + added(*this, row, absolute);
}

ClockError Clocks::error(std::size_t a, std::size_t b, Ns at) const {
  if (domain[a] == domain[b]) return {};
  ClockError bounds{-ClockError::kUnbounded, ClockError::kUnbounded};
  if (most.empty()) return bounds;
  const auto last = static_cast<Ns>(most.size()) - 1;
  const auto bin = static_cast<std::size_t>(std::clamp((at - origin) / bin_length, Ns{0}, last));
  const std::vector<Ns>& matrix = most[bin];
  const Ns largest = matrix[domain[a] * domains + domain[b]];
  const Ns opposite = matrix[domain[b] * domains + domain[a]];
  const Ns estimate = added(*this, a, at) - added(*this, b, at);
  if (largest < ClockError::kUnbounded) bounds.upper = std::max<Ns>(0, largest - estimate);
  if (opposite < ClockError::kUnbounded) bounds.lower = std::min<Ns>(0, -opposite - estimate);
  return bounds;
}

std::optional<Ns> Clocks::spread(std::size_t a, std::size_t b) const {
  if (domain[a] == domain[b]) return 0;
  if (!lines[a].offset || !lines[b].offset) return std::nullopt;
  return lines[a].spread + lines[b].spread;
}

}  // namespace commlens
