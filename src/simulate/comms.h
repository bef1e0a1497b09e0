// What the framework says about one rank's part in a communication: the collective arguments of
// record_param_comms and of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulate/simulated_job.h"

namespace commlens::simulate {

struct CommsRecord {
  const SimulatedJob& job;
  const Collective& collective;
  const Member& member;
  std::size_t index = 0;  // of the member
  bool with_seq = true;   // the recorder numbers operations
  std::int64_t seq = 0;   // as it does

  const Group& group() const {
    return job.layout.groups[static_cast<std::size_t>(collective.group)];
  }
  // Of point-to-point.
  int source() const { return collective.members[0].rank; }
  int destination() const { return collective.members[1].rank; }
  int other_rank() const { return member.op == Op::send ? destination() : source(); }

  // Positions in the group: the own one, of point-to-point the other's.
  int rank_in_group() const;
  int group_stride() const;
  // Whether a list of splits holds a zero beside other sizes, or is cut.
  bool may_have_zero_split() const;

  std::string ranks_text() const;  // "[0, 1, 2]", cut after 30 as Kineto does
  std::string in_splits() const;   // empty list where the operation has none
  std::string out_splits() const;
  // As torch does it: a hash that is equal for all participants, and uses all 64 bits. For a pair
  // only the counts of the two sides go in, which need not agree.
  std::uint64_t comms_id() const;
};

inline constexpr std::string_view kDtype = "BFloat16";  // of all data

}  // namespace commlens::simulate
