// The last operation that two ranks left before one kept the other waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "match/comm_numbers.h"

namespace commlens {

class CommonOps {
 public:
  explicit CommonOps(const Job& job);

  struct Attended {
    Ns end = 0;
    std::uint32_t op = 0;    // row of Matching::ops
    std::uint32_t part = 0;  // row of Matching::parts
  };
  // Of one rank in one group, in the group's order: those that its compute waited for.
  using List = std::vector<Attended>;

  // Remembers answers that are asked for again; each thread has its own.
  struct Cache {
    std::unordered_map<std::uint64_t, std::vector<std::int32_t>> groups;  // of pairs of ranks
    // Of the last late communication, for everybody who waited for it.
    struct Left {
      std::int32_t group = -1;
      const List* attended = nullptr;  // by its rank
      std::size_t count = 0;           // of these that it had left before it entered
    };
    Part late{};
    std::vector<Left> left;
  };
  struct Found {
    Part a, b;  // their parts in it
  };
  // Of operations that both ranks left together before they entered `a` and `b`, the last.
  // Together: it let both go at about the same time (`tolerance` is how far their ends may lie
  // apart), and neither computed meanwhile. Nothing where there is none.
  std::optional<Found> before(const Part& a, const Part& b, Ns tolerance, Cache& cache) const;

 private:
  const std::vector<std::int32_t>& common_groups(std::uint32_t a, std::uint32_t b,
                                                 Cache& cache) const;
  const List* list(std::uint32_t rank, std::int32_t group) const;
  std::optional<Found> before_in(std::int32_t group, const Part& a, const Part& b, Ns tolerance,
                                 Cache& cache) const;
  std::optional<Found> before_in_any(const Part& a, const Part& b, Ns tolerance) const;
  // How many of `attended` ended before `a` began.
  std::size_t left_before(const List& attended, const Part& a) const;
  const Cache::Left& left_in(std::int32_t group, const Part& a, Cache& cache) const;
  // The last of `attended` before row `behind`, of so many at most.
  std::optional<Found> last_of(const List& attended, std::size_t behind, int most, const Part& a,
                               const Part& b, Ns tolerance) const;
  bool together(const MatchedOp& op, const Part& a, const Part& b, Ns tolerance) const;
  bool held_compute(const Part& part) const;

  const Job& job_;
  std::vector<bool> held_;                         // by row of Matching::parts: held_compute()
  std::vector<std::vector<std::int32_t>> groups_;  // by rank, sorted
  std::unordered_map<std::uint64_t, List> lists_;  // by rank and group
  std::vector<List> all_;  // by rank, by end; empty where it is in few groups
};

}  // namespace commlens
