// A job for tests of clocks: what happened in true time, written down by clocks that are wrong.
//
//   ClockJob job({"a", "a", ""});             // three ranks; the third one's host is not known
//   job.set_clock(2, 5'000'000, 100);         // 5 ms ahead at true time 0, 100 ppm fast
//   job.together(Op::all_reduce, {0, 2}, {{0, 12}, {1, 12}});
//   Job result = job.done();                  // matched, clocks not related yet
#pragma once

#include <string>
#include <vector>

#include "model/job.h"

namespace commlens::notation {

class ClockJob {
 public:
  // One rank for each host; an empty name is a host that is not known.
  explicit ClockJob(const std::vector<std::string>& hosts);

  void set_clock(std::size_t rank, Ns ahead, double ppm = 0);
  // What a rank's clock shows at a true time.
  Ns own(std::size_t rank, Ns true_time) const;
  // The true time when it shows that.
  Ns true_time(std::size_t rank, Ns own) const;

  // One operation; times are true. `root` is a position in `ranks`. Matched by sequence numbers.
  MatchedOp& together(Op op, const std::vector<std::uint32_t>& ranks,
                      const std::vector<Interval>& times, std::int32_t root = -1);
  MatchedOp& pair(std::uint32_t source, std::uint32_t destination, Interval sends,
                  Interval receives);
  // The communication of the operation that came last.
  CommOp& last_comm(std::uint32_t rank) { return job_.ranks[rank].devices[0].comm.back(); }

  // Operations in the order of their groups, as matching leaves them.
  Job done() const;

 private:
  std::int32_t group_of(const std::vector<std::uint32_t>& ranks, bool pair);
  MatchedOp& add(Op op, const std::vector<std::uint32_t>& ranks, const std::vector<Interval>& times,
                 bool pair);

  struct Clock {
    Ns ahead = 0;
    double ppm = 0;
  };
  Job job_;
  std::vector<Clock> clocks_;
  std::vector<std::pair<std::vector<std::uint32_t>, bool>> groups_;
};

}  // namespace commlens::notation
