// Problem: a few transfers are slow (a congested link, a first call), sizes lie between kilobytes
// and gigabytes, and neither may bend the line. Method: of each size the lower median of its times,
// then the line with the least sum of relative errors over these, each weighed by its operations.
//
//   time |            . x   <- slow ones: above the median of their size, without effect
//        |        ..*
//        |    .*'
//        | *'               * median of one size
//        +---------------- bytes
//
// Least absolute errors are reached by a line through two of the points (or one point and a bound:
// neither alpha nor the rate is negative), so all such lines are tried. Errors are relative because
// the scatter of a transfer grows with its length: otherwise 2 % of a large one would outweigh all
// of alpha. More than `kMostPoints` sizes are put together with their neighbours first.
// Where the scatter leaves open whether there is an alpha (sizes that are nearly equal), none is
// taken.
// When it is wrong: where half of all operations of a kind are slow, the line is theirs.
#include "model/transfer_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace commlens {
namespace {

constexpr std::size_t kMostPoints = 48;

struct Point {
  double bytes = 0;
  double time = 0;
  double weight = 0;
};

struct Line {
  double alpha = 0;
  double slope = 0;
};

template <class Value>
Value lower_median(std::vector<Value>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Point point_of(const std::vector<TransferSample>& samples, std::size_t from, std::size_t to) {
  std::vector<Ns> times;
  for (std::size_t i = from; i < to; ++i) times.push_back(samples[i].time);
  const std::size_t middle = from + (to - from - 1) / 2;
  return {.bytes = static_cast<double>(samples[middle].bytes),
          .time = static_cast<double>(lower_median(times)),
          .weight = static_cast<double>(to - from)};
}

// `starts`: where each distinct size begins among the sorted samples.
std::vector<Point> points_of(const std::vector<TransferSample>& samples,
                             const std::vector<std::size_t>& starts) {
  const std::size_t count = std::min(starts.size(), kMostPoints);
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) * starts.size() / count;
    const std::size_t to = next < starts.size() ? starts[next] : samples.size();
    points.push_back(point_of(samples, starts[i * starts.size() / count], to));
  }
  return points;
}

double error_of(const std::vector<Point>& points, Line line) {
  double sum = 0;
  for (const Point& point : points) {
    sum += point.weight * std::abs(line.alpha + line.slope * point.bytes - point.time) / point.time;
  }
  return sum;
}

Line best_line(const std::vector<Point>& points) {
  Line best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](Line line) {
    if (line.alpha < 0 || line.slope < 0) return;
    const double error = error_of(points, line);
    if (error >= least) return;
    least = error;
    best = line;
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      if (points[j].bytes <= points[i].bytes) continue;
      const double slope = (points[j].time - points[i].time) / (points[j].bytes - points[i].bytes);
      consider({points[i].time - slope * points[i].bytes, slope});
    }
    if (points[i].bytes > 0) consider({0, points[i].time / points[i].bytes});
    consider({points[i].time, 0});
  }
  return best;
}

// One size: its median, and nothing is known of any other.
Line line_through(const Point& point) {
  return point.bytes > 0 ? Line{0, point.time / point.bytes} : Line{point.time, 0};
}

// The best without alpha.
Line proportional_line(const std::vector<Point>& points) {
  Line best;
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : points) {
    if (point.bytes <= 0) continue;
    const Line line{0, point.time / point.bytes};
    const double error = error_of(points, line);
    if (error >= least) continue;
    least = error;
    best = line;
  }
  return best;
}

TransferFit fit_of(const std::vector<TransferSample>& samples, Line line, std::int64_t sizes) {
  TransferFit fit{.alpha_ns = std::llround(line.alpha),
                  .ns_per_byte = line.slope,
                  .samples = static_cast<std::int64_t>(samples.size()),
                  .sizes = sizes};
  std::vector<double> away;
  for (const TransferSample& sample : samples) {
    const double usual = line.alpha + line.slope * static_cast<double>(sample.bytes);
    if (usual > 0) away.push_back(std::abs(static_cast<double>(sample.time) - usual) / usual);
  }
  if (!away.empty()) fit.spread = lower_median(away);
  return fit;
}

// Of least squares with relative errors: what the scatter of single times leaves open of where the
// line begins.
Ns alpha_error(const std::vector<Point>& points, double spread) {
  constexpr double kDeviation = 1.4826;  // standard deviation by the median of what lies away
  double sum = 0;
  double bytes = 0;
  double squares = 0;
  for (const Point& point : points) {
    const double weight = point.weight / (point.time * point.time);
    sum += weight;
    bytes += weight * point.bytes;
    squares += weight * point.bytes * point.bytes;
  }
  const double apart = sum * squares - bytes * bytes;
  constexpr Ns kMost = 1'000'000'000;
  if (apart <= 0 || points.size() < 2) return kMost;
  const double error = kDeviation * spread * std::sqrt(squares / apart);
  return error < static_cast<double>(kMost) ? std::llround(error) : kMost;
}

}  // namespace

Ns TransferFit::at(std::int64_t bytes) const {
  constexpr double kMost = 4e18;
  const double time = static_cast<double>(alpha_ns) + ns_per_byte * static_cast<double>(bytes);
  return static_cast<Ns>(std::llround(std::min(time, kMost)));
}

std::optional<std::int64_t> TransferFit::half_bandwidth_bytes() const {
  if (!tells_alpha() || ns_per_byte <= 0) return std::nullopt;
  const double bytes = static_cast<double>(alpha_ns) / ns_per_byte;
  if (bytes > 4e18) return std::nullopt;
  return std::llround(bytes);
}

std::optional<TransferFit> fit_transfers(std::vector<TransferSample> samples) {
  std::erase_if(samples, [](const TransferSample& sample) { return sample.time <= 0; });
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end(), [](const TransferSample& a, const TransferSample& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
  });
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].bytes != samples[i - 1].bytes) starts.push_back(i);
  }
  const std::vector<Point> points = points_of(samples, starts);
  const Line line = points.size() == 1 ? line_through(points.front()) : best_line(points);
  TransferFit fit = fit_of(samples, line, static_cast<std::int64_t>(starts.size()));
  if (points.size() == 1) return fit;
  const Ns error = alpha_error(points, fit.spread);
  // What cannot be told from nothing is nothing: sizes a few per cent apart would give it any
  // value, and the rate with it. A line without it that misses the samples is no line, though.
  if (2 * error > fit.alpha_ns) {
    const TransferFit without = fit_of(samples, proportional_line(points), fit.sizes);
    if (without.spread <= 1.5 * fit.spread + 0.005) fit = without;
  }
  fit.alpha_error_ns = error;
  return fit;
}

}  // namespace commlens
