// The activities of a recording in the order in which streams ran them, with their launches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

// The nodes of a rank while its recording's columns are at hand.
class WorkNodes {
 public:
  // Fills the columns of `work` but for `stretch`. Both must outlive this.
  WorkNodes(const RankTimeline& rank, Work& work);

  std::size_t size() const { return rows_.size(); }
  // Row of the recording's activities.
  std::size_t row(std::uint32_t node) const { return rows_[node]; }
  // Row of the launch; nothing where it was not recorded.
  std::optional<std::size_t> launch(std::uint32_t node) const {
    return rank_.launch_of(rows_[node]);
  }
  std::uint64_t correlation(std::uint32_t node) const {
    return rank_.recording.gpu.correlation[rows_[node]];
  }

  std::size_t streams() const { return work_.stream_begins.size() - 1; }
  std::uint32_t begin(std::size_t stream) const { return work_.stream_begins[stream]; }
  std::uint32_t end(std::size_t stream) const { return work_.stream_begins[stream + 1]; }
  std::size_t stream_of(std::uint32_t node) const;
  // Position of a queue of the GPU among the streams; nothing where it had no work.
  std::optional<std::size_t> find_stream(const Stream& stream) const;
  // Device of a stream by position.
  std::int64_t device_of(std::size_t stream) const;

  // The last of a stream's nodes that was launched before a call, told by its correlation id, or
  // by its start where those ids do not ascend with time; kNoNode for none.
  std::uint32_t last_launched_before(std::size_t stream, std::uint64_t correlation, Ns start) const;
  // The first that was launched after it.
  std::uint32_t first_launched_after(std::size_t stream, std::uint64_t correlation, Ns start) const;

 private:
  void sort_rows();
  void fill_columns();
  bool correlations_ascend() const;
  Ns launched_at(std::uint32_t node) const;
  std::uint32_t first_not_before(std::size_t stream, std::uint64_t correlation, Ns start) const;

  const RankTimeline& rank_;
  Work& work_;
  std::vector<std::uint32_t> rows_;       // by node
  std::vector<std::uint32_t> stream_id_;  // by position: StreamId
  bool by_correlation_ = true;
};

}  // namespace commlens
