#include "model/rates.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"

namespace commlens {
namespace {

[[noreturn]] void refuse_rate(std::string_view part, const std::string& why) {
  throw Error(ErrorKind::usage, "--peak: \"" + printable(part) + "\" " + why +
                                    "; write a bus bandwidth in GB/s such as 180, "
                                    "all_reduce=180 or dp:all_reduce=40");
}

double parse_rate(std::string_view text, std::string_view part) {
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(rate))
    refuse_rate(part, "holds no number");
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  if (rate < kLeast || rate > kMost) refuse_rate(part, "is no bandwidth that links have");
  return rate;
}

PeakRate parse_peak(std::string_view part) {
  PeakRate peak;
  const std::size_t equals = part.rfind('=');
  if (equals == std::string_view::npos) {
    peak.gbs = parse_rate(part, part);
    return peak;
  }
  peak.gbs = parse_rate(part.substr(equals + 1), part);
  const std::string_view of = part.substr(0, equals);
  if (of.empty()) refuse_rate(part, "names nothing before the =");
  if (const auto op = op_from_name(of)) {
    peak.op = op;
    return peak;
  }
  const std::size_t colon = of.rfind(':');
  if (colon == std::string_view::npos) {
    peak.group = of;
    return peak;
  }
  peak.op = op_from_name(of.substr(colon + 1));
  if (!peak.op) refuse_rate(part, "names no operation behind the :");
  peak.group = of.substr(0, colon);
  return peak;
}

}  // namespace

std::vector<PeakRate> parse_peaks(std::string_view text) {
  std::vector<PeakRate> peaks;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    peaks.push_back(parse_peak(text.substr(0, comma)));
    if (comma == text.size()) return peaks;
    text.remove_prefix(comma + 1);
  }
}

double CalibrationTable::time_of(std::int64_t bytes) const {
  const auto above = std::partition_point(rows.begin(), rows.end(),
                                          [bytes](Row row) { return row.bytes < bytes; });
  if (above == rows.begin()) return rows.front().ns;
  const Row& low = *(above - 1);
  const auto size = static_cast<double>(bytes);
  const auto low_size = static_cast<double>(low.bytes);
  if (above == rows.end()) return low_size > 0 ? low.ns * size / low_size : low.ns;
  const auto high_size = static_cast<double>(above->bytes);
  if (low_size <= 0) return low.ns + (above->ns - low.ns) * size / high_size;
  const double way = std::log(size / low_size) / std::log(high_size / low_size);
  return low.ns * std::pow(above->ns / low.ns, way);
}

}  // namespace commlens
