// From a GPU activity to the communication that the host was asking for when it launched it.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "model/job.h"
#include "model/operation.h"

namespace commlens {

// What the host says about one activity.
struct HostLink {
  Op op = Op::unknown;
  MetaId meta;                          // of the call's record, where it has one
  bool linked = false;                  // by external id: sure; else by nesting in time
  std::optional<std::uint32_t> record;  // row of that record, where it has metadata
  std::optional<std::uint32_t> range;   // row of the innermost range, by nesting
};

class HostLinks {
 public:
  // Needs the launches of `rank`, which must outlive this.
  explicit HostLinks(const RankTimeline& rank);

  // The record with this external id; nothing where it is none or says nothing.
  std::optional<HostLink> by_external_id(std::uint64_t external_id) const;
  // The record whose operation launched an activity, by the external id on its launch.
  std::optional<HostLink> by_launch(std::uint64_t correlation) const;
  // The innermost communication range on a thread around an instant.
  std::optional<HostLink> around(ThreadId thread, Ns at) const;
  // The innermost communication range around the launch of an activity.
  std::optional<HostLink> by_nesting(std::size_t activity) const;

 private:
  Op op_of(const HostRange& range) const;
  HostLink link_to(std::uint32_t row) const;

  const RankTimeline& rank_;
  const Recording& recording_;
  // The communication ranges of one thread, by start.
  struct ThreadRanges {
    std::vector<std::uint32_t> rows;  // of host_ranges
    std::vector<Ns> latest_end;       // of a range and all before it: where looking back can stop
  };
  std::vector<ThreadRanges> by_thread_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_external_id_;
  std::unordered_map<std::uint64_t, std::uint32_t>
      by_correlation_;  // of launches by an operation with a record
};

}  // namespace commlens
