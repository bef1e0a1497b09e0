// One rank's recording to what can be related to others.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/perf.h"
#include "match/windows.h"
#include "model/job.h"
#include "model/kernel_name.h"

namespace commlens {

// Room for the work of all ranks together, in activities: 33 bytes each, and as much again for the
// graph. What does not fit is given up for all, so that the answer does not depend on the order in
// which files are read.
class WorkRoom {
 public:
  // Whether what was taken so far fits, with these.
  bool take(std::size_t activities) { return (taken_ += activities) <= kMost; }
  bool fits() const { return taken_ <= kMost; }

 private:
  static constexpr std::size_t kMost = 6'000'000;
  std::atomic<std::size_t> taken_{0};
};

// What is the same for every rank.
struct Settings {
  unsigned threads = 1;
  std::vector<NameRule> rules;
  WindowOptions windows;
  bool keep_activities = false;
  WorkRoom* room = nullptr;  // none: nobody asks for the critical path
};

template <class Work>
void timed(Stage stage, Work work) {
  const PerfScope perf(stage);
  work();
}

// To communications, windows and figures; on two threads where more than one is given.
void prepare(RankTimeline& rank, const Settings& settings, unsigned threads);

}  // namespace commlens
