// What matching reads of communications: one rank's operations of one group, in order, with times
// that can be compared with other recordings'.
//
// Made for one group at a time and let go again: a job of a thousand ranks has millions of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace commlens {

// One communication as matching sees it.
struct CommEvent {
  Ns start = 0;  // with the recording's clock_base: since the epoch where its clock is known
  Ns end = 0;
  std::int64_t bytes = kUnknown;  // of those whose size is the same on all ranks; else unknown
  std::int64_t seq = kUnknown;
  std::int64_t step = kUnknown;
  std::uint64_t comms_id = 0;
  std::uint32_t row = 0;    // of DeviceTimeline::comm
  std::uint32_t dtype = 0;  // one number for one text in the whole job; 0: not known
  Op op = Op::unknown;
  bool any_op = false;  // what ran is not known for certain: agrees with every operation
};

// One rank's operations of a group.
struct Member {
  std::size_t row = 0;     // of Job::ranks
  std::size_t device = 0;  // of its devices
  std::int64_t rank = 0;
  std::string_view host;     // empty: not known
  bool clock_known = false;  // times are since the epoch, by the host's clock
  std::vector<CommEvent> events;
};

// Whether every rank that takes part leaves such an operation at the same time.
bool synchronises(Op op);
// Whether ranks may differ in the size that they write of one such operation.
bool size_may_differ(Op op);
// Whether two events can be of one operation, as far as is known of either.
bool fits(const CommEvent& a, const CommEvent& b);
// Whether times of the two can be compared as they stand.
bool share_clock(const Member& a, const Member& b);

// The member with the most events; of several the lowest rank. `members` are by rank.
std::size_t longest_member(const std::vector<Member>& members);

// Makes events of communications.
class EventReader {
 public:
  explicit EventReader(const Job& job) : job_(job), dtypes_by_row_(job.ranks.size()) {}
  Member member(std::size_t row, std::size_t device) const;
  CommEvent event(std::size_t row, std::size_t device, std::uint32_t op);

 private:
  std::uint32_t dtype(std::size_t row, StringId id);

  const Job& job_;
  std::map<std::string, std::uint32_t, std::less<>> dtypes_;
  std::vector<std::vector<std::uint32_t>> dtypes_by_row_;  // by StringId; 0: not asked yet
};

}  // namespace commlens
