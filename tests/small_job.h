// A job of a few ranks, written down in a test: who computes when, who is in which operation when.
//
//   SmallJob job(4);                                   // four ranks on one host
//   job.compute(1, 0, 14);                             // rank 1 computes in [0, 14)
//   job.together(Op::all_reduce, {0, 1}, {{10, 16}, {14, 16}});   // one operation of ranks 0 and 1
//   Job result = job.done();                           // matched, clocks equal, own times filled
//
// Times are nanoseconds, all instants below `SmallJob::kEnd`. What is neither compute nor
// communication is idle with nothing queued.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"

namespace commlens::notation {

class SmallJob {
 public:
  static constexpr Ns kEnd = 4096;

  explicit SmallJob(std::size_t ranks);

  void compute(std::size_t rank, Ns start, Ns end);
  // One operation: its ranks, and when each of them is in it. `root` is a position in `ranks`.
  // Returns its row, until done() sorts them.
  MatchedOp& together(Op op, std::vector<std::int64_t> ranks, std::vector<Interval> times,
                      std::int32_t root = -1);
  // A send with its receive.
  MatchedOp& pair(std::int64_t source, std::int64_t destination, Interval sends, Interval receives);
  // Puts a rank's own times `by` later, as a clock that is ahead would write them.
  void shift_clock(std::size_t rank, Ns by);

  Job done();

 private:
  struct Entry {
    std::size_t op = 0;
    std::size_t index = 0;  // of its parts
    CommOp comm;
  };
  std::int32_t group_of(const std::vector<std::int64_t>& ranks, bool pair);
  void add_part(std::size_t op, std::size_t index, std::int64_t rank, Interval time, Op kind);
  void finish_rank(std::size_t rank);

  Job job_;
  std::vector<std::vector<Interval>> compute_;
  std::vector<std::vector<Entry>> entries_;
  std::vector<MatchedOp> ops_;
  std::vector<std::vector<Part>> parts_;
  std::vector<Ns> clock_;
};

}  // namespace commlens::notation
