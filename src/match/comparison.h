// Why one rank was later than another: what it did more of since both last left an operation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "match/common_op.h"
#include "match/stretch.h"

namespace commlens {

// What the late rank has more of than the one that waited; only what is more counts.
struct Excess {
  Ns compute = 0;
  Ns host = 0;              // idle with nothing queued, and copies
  Ns waiting = 0;           // exposed waiting of its own
  Ns transfer = 0;          // exposed transfer
  Ns unknown = 0;           // what stands in no class
  bool unequal = false;     // it had more bytes to exchange, and computes on them
  std::uint32_t since = 0;  // row of the late rank's communication that the stretch follows
  Ns sum() const { return compute + host + waiting + transfer + unknown; }
  std::array<Ns, 5> weights() const { return {compute, host, waiting, transfer, unknown}; }
};

// What all comparisons of a job's ranks are made from: read by several threads at once.
class ComparisonTables {
 public:
  // `waits` must hold every communication's wait, and both must outlive this.
  ComparisonTables(const Job& job, const Waits& waits, unsigned threads);

  const Job& job() const { return job_; }
  const CommonOps& common() const { return common_; }
  const StretchIndex& stretches(const Part& part) const {
    return *stretches_[part.rank][part.device];
  }
  // Whether that device has any all-to-all.
  bool exchanges(const Part& part) const { return exchanges_[part.rank][part.device] != 0; }

 private:
  const Job& job_;
  CommonOps common_;
  std::vector<std::vector<std::optional<StretchIndex>>> stretches_;  // by rank, device
  std::vector<std::vector<char>> exchanges_;                         // by rank, device
};

// Of one thread: remembers its last answers.
class Comparison {
 public:
  explicit Comparison(const ComparisonTables& tables) : tables_(tables), job_(tables.job()) {}

  // Nothing where the two have no earlier operation in common.
  std::optional<Excess> compare(const Part& late, const Part& waiter);
  // The late rank's communications in the stretch before `part`.
  std::vector<StretchPart> parts(std::uint32_t since, const Part& part) {
    return tables_.stretches(part).parts(since, part.op);
  }

 private:
  bool had_more_bytes(const CommonOps::Found& since, const Part& late, const Part& waiter);
  std::int64_t exchanged_bytes(std::uint32_t since, const Part& part);
  const Stretch& stretch_of_late(const Part& late, std::uint32_t since);

  const ComparisonTables& tables_;
  const Job& job_;
  CommonOps::Cache common_groups_;
  // The last answer: those who waited for one rank in one operation are asked for in a row.
  Part late_{};
  std::uint32_t since_ = 0;
  std::optional<Stretch> stretch_;
};

}  // namespace commlens
