// How long operations of one kind usually take to move their data, once everyone is there.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "match/comm_numbers.h"

namespace commlens {

class UsualTransfer {
 public:
  // `waits` must hold every communication's wait; all must outlive this.
  UsualTransfer(const Job& job, const CommNumbers& numbers, const Waits& waits);

  // How much of `transfer`, a part of a communication's transfer, is more than is usual for its
  // kind (operation, size, number of ranks and of hosts).
  Ns beyond(const Part& part, Ns transfer) const;
  // Whether this rank had more bytes to move than the others in the same operation.
  bool more_bytes(const Part& part) const;
  // The group of its operation, as a row of Matching::groups; -1 where it is in none.
  std::int32_t group_of(const Part& part) const;

 private:
  using Kind = std::tuple<Op, std::int64_t, std::uint32_t, std::size_t>;
  void find_kinds();
  Kind kind_of(const MatchedOp& op, std::vector<std::int64_t>& bytes,
               std::vector<std::uint32_t>& hosts) const;
  Ns shortest(const MatchedOp& op) const;

  const Job& job_;
  const Waits& waits_;
  const CommNumbers& numbers_;
  std::vector<std::uint32_t> host_of_;  // by row of job.ranks: equal numbers, equal host names
  std::vector<std::uint32_t> op_of_;    // by number: row of Matching::ops; ~0: none
  std::vector<Ns> usual_;  // by row of Matching::ops; -1: no operation of its kind is whole
  std::vector<std::int64_t> median_bytes_;  // by row of Matching::ops: of its parts
};

}  // namespace commlens
