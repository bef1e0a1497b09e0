// Jobs made by hand or by chance for tests of what relates ranks: each communication knows which
// operation it truly is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job.h"

namespace commlens::made {

// One operation as one rank has it.
struct Comm {
  Op op = Op::all_reduce;
  Ns start = 0;
  Ns end = 0;
  std::int64_t bytes = 1024;
  std::int64_t seq = kUnknown;
  std::int64_t step = kUnknown;
  std::uint64_t comms_id = 0;
  std::int32_t group = 0;  // row of the rank's groups; -1: none
  std::string dtype = "Float";
  std::int64_t stream = 0;
  bool name_may_lie = false;
  std::vector<Peer> peers = {};
  std::int64_t truth = -1;  // which operation it truly is
};

struct Rank {
  std::int64_t rank = 0;
  std::string host;
  std::vector<GroupIdentity> groups;
  std::vector<Comm> comm;
  int run = 0;
  bool clock_known = true;
};

// `source` of each CommOp is its truth.
inline Job job(const std::vector<Rank>& ranks, std::int64_t world_size = 0) {
  Job made;
  made.world_size = world_size;
  for (const Rank& rank : ranks) {
    RankTimeline& timeline = made.ranks.emplace_back();
    timeline.rank = rank.rank;
    timeline.run = rank.run;
    timeline.host = rank.host;
    timeline.groups = rank.groups;
    timeline.recording.clock = rank.clock_known ? ClockBase::epoch : ClockBase::unknown;
    DeviceTimeline& device = timeline.devices.emplace_back();
    device.device = 0;
    for (const Comm& comm : rank.comm) {
      CommOp op;
      op.op = comm.op;
      op.time = {comm.start, comm.end};
      op.bytes = comm.bytes < 0 ? std::optional<std::int64_t>() : comm.bytes;
      op.seq = comm.seq;
      op.step = comm.step;
      op.comms_id = comm.comms_id;
      op.group = comm.group;
      op.stream = StreamId::from(static_cast<std::size_t>(comm.stream));
      op.name_may_lie = comm.name_may_lie;
      if (!comm.dtype.empty()) op.dtype = timeline.recording.strings.intern(comm.dtype);
      op.first_peer = static_cast<std::uint32_t>(timeline.peers.size());
      op.peers = static_cast<std::uint32_t>(comm.peers.size());
      timeline.peers.insert(timeline.peers.end(), comm.peers.begin(), comm.peers.end());
      op.source = static_cast<std::size_t>(comm.truth);
      device.comm.push_back(op);
    }
    std::stable_sort(device.comm.begin(), device.comm.end(),
                     [](const CommOp& a, const CommOp& b) { return a.time.start < b.time.start; });
  }
  return made;
}

inline const CommOp& comm_of(const Job& job, const Part& part) {
  return job.ranks[part.rank].devices[part.device].comm[part.op];
}

}  // namespace commlens::made
