#include "replay/common_time.h"

namespace commlens {

void place_on_common_time(Job& job) {
  if (!job.clocks.known) return;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    Work& work = job.ranks[row].work;
    const auto place = [&](Ns& time) { time = job.clocks.common(row, time); };
    for (std::size_t i = 0; i < work.size(); ++i) {
      place(work.start[i]);
      place(work.end[i]);
      if (work.launch[i] != kNoLaunch) place(work.launch[i]);
    }
    for (HostStretch& stretch : work.stretches) {
      place(stretch.start);
      place(stretch.call);
      if (stretch.other != kNoNode) place(stretch.other_at);
    }
  }
}

}  // namespace commlens
