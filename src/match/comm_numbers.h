// Every communication of a job by one number, for flat tables over all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/job.h"

namespace commlens {

class CommNumbers {
 public:
  explicit CommNumbers(const Job& job) {
    for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
      first_.emplace_back();
      const auto& devices = job.ranks[rank].devices;
      for (std::uint32_t device = 0; device < devices.size(); ++device) {
        first_.back().push_back(static_cast<std::uint32_t>(parts_.size()));
        for (std::uint32_t op = 0; op < devices[device].comm.size(); ++op)
          parts_.push_back({rank, device, op});
      }
    }
  }
  std::size_t size() const { return parts_.size(); }
  std::uint32_t of(const Part& part) const { return first_[part.rank][part.device] + part.op; }
  const Part& part(std::uint32_t number) const { return parts_[number]; }

 private:
  std::vector<std::vector<std::uint32_t>> first_;
  std::vector<Part> parts_;
};

inline const DeviceTimeline& device_of(const Job& job, const Part& part) {
  return job.ranks[part.rank].devices[part.device];
}
inline const CommOp& comm_of(const Job& job, const Part& part) {
  return device_of(job, part).comm[part.op];
}

}  // namespace commlens
