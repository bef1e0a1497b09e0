#include "match/work_nodes.h"

#include <algorithm>

namespace commlens {

WorkNodes::WorkNodes(const RankTimeline& rank, Work& work) : rank_(rank), work_(work) {
  sort_rows();
  fill_columns();
  by_correlation_ = correlations_ascend();
}

// By stream, then start; a recording's rows are mostly sorted already within each stream.
void WorkNodes::sort_rows() {
  const GpuActivities& gpu = rank_.recording.gpu;
  std::vector<std::uint32_t> begins(rank_.recording.streams.size() + 1, 0);
  for (std::size_t i = 0; i < gpu.size(); ++i) ++begins[gpu.stream[i].index() + 1];
  for (std::size_t s = 1; s < begins.size(); ++s) begins[s] += begins[s - 1];
  rows_.resize(gpu.size());
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
  for (std::size_t i = 0; i < gpu.size(); ++i)
    rows_[next[gpu.stream[i].index()]++] = static_cast<std::uint32_t>(i);
  const auto earlier = [&gpu](std::uint32_t a, std::uint32_t b) {
    const Ns start_a = gpu.start[a];
    const Ns start_b = gpu.start[b];
    return start_a != start_b ? start_a < start_b : gpu.end[a] < gpu.end[b];
  };
  work_.stream_begins.push_back(0);
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    if (begins[s] == begins[s + 1]) continue;
    const auto first = rows_.begin() + begins[s];
    const auto last = rows_.begin() + begins[s + 1];
    if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
    work_.stream_begins.push_back(begins[s + 1]);
    stream_id_.push_back(static_cast<std::uint32_t>(s));
  }
}

void WorkNodes::fill_columns() {
  const GpuActivities& gpu = rank_.recording.gpu;
  for (std::uint32_t node = 0; node < rows_.size(); ++node) {
    const std::size_t row = rows_[node];
    work_.start.push_back(gpu.start[row]);
    work_.end.push_back(gpu.end[row]);
    work_.name.push_back(gpu.name[row]);
    work_.kind.push_back(rank_.classes[row]);
    const auto call = launch(node);
    work_.launch.push_back(call ? rank_.recording.launches.start[*call] : kNoLaunch);
  }
}

// A profiler numbers the calls of a process as they come, and a stream runs in that order.
bool WorkNodes::correlations_ascend() const {
  std::size_t falls = 0;
  for (std::size_t s = 0; s < streams(); ++s) {
    for (std::uint32_t node = begin(s); node < end(s); ++node) {
      const bool falls_here =
          correlation(node) == 0 || (node > begin(s) && correlation(node) < correlation(node - 1));
      falls += falls_here ? 1 : 0;
    }
  }
  constexpr std::size_t kStrayOf = 100;  // work without an id, or of a profiler that was restarted
  return falls * kStrayOf <= size();
}

std::size_t WorkNodes::stream_of(std::uint32_t node) const {
  const auto& begins = work_.stream_begins;
  return static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), node) -
                                  begins.begin()) -
         1;
}

std::optional<std::size_t> WorkNodes::find_stream(const Stream& stream) const {
  for (std::size_t s = 0; s < stream_id_.size(); ++s) {
    const Stream& own = rank_.recording.streams[stream_id_[s]];
    if (own.device == stream.device && own.stream == stream.stream &&
        (own.context == stream.context || stream.context == kUnknown))
      return s;
  }
  return std::nullopt;
}

std::int64_t WorkNodes::device_of(std::size_t stream) const {
  return rank_.recording.streams[stream_id_[stream]].device;
}

// Its own start says it where no launch was recorded.
Ns WorkNodes::launched_at(std::uint32_t node) const {
  const Ns launch = work_.launch[node];
  return launch != kNoLaunch ? launch : work_.start[node];
}

std::uint32_t WorkNodes::first_not_before(std::size_t stream, std::uint64_t id, Ns start) const {
  const bool by_id = by_correlation_ && id != 0;
  std::uint32_t low = begin(stream);
  std::uint32_t high = end(stream);
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (by_id ? correlation(middle) < id : launched_at(middle) < start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::uint32_t WorkNodes::last_launched_before(std::size_t stream, std::uint64_t id,
                                              Ns start) const {
  const std::uint32_t behind = first_not_before(stream, id, start);
  return behind > begin(stream) ? behind - 1 : kNoNode;
}

std::uint32_t WorkNodes::first_launched_after(std::size_t stream, std::uint64_t id,
                                              Ns start) const {
  const std::uint32_t behind = first_not_before(stream, id, start);
  return behind < end(stream) ? behind : kNoNode;
}

}  // namespace commlens
