// From a GPU activity to the communication that the host was asking for when it launched it.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/job.h"
#include "model/operation.h"

namespace commlens {

// Which ids may be in a table. Most activities are compute, whose ids are in none: this says so at
// less than a look into a table that is larger than the cache.
class MaybeIds {
 public:
  void add(std::uint64_t id) { bits_[word(id)] |= bit(id); }
  bool may_hold(std::uint64_t id) const { return (bits_[word(id)] & bit(id)) != 0; }

 private:
  static constexpr std::size_t kWords = 2048;  // 16 KB
  static std::size_t word(std::uint64_t id) { return id / 64 % kWords; }
  static std::uint64_t bit(std::uint64_t id) { return std::uint64_t{1} << (id % 64); }
  std::array<std::uint64_t, kWords> bits_{};
};

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
  MaybeIds external_ids_;
  std::unordered_map<std::uint64_t, std::uint32_t>
      by_correlation_;  // of launches by an operation with a record
  MaybeIds correlations_;
};

}  // namespace commlens
