#include "replay/common_time.h"

#include <utility>

namespace commlens {

void place_on_common_time(Job& job) {
  if (!job.clocks.known) return;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    Work& work = job.ranks[row].work;
    const auto place = [&](Ns& time) { time = job.clocks.common(row, time); };
    const auto place_all = [&](Packed<Ns>& times) {
      Packed<Ns> placed;
      for (const Ns time : times)
        placed.push_back(time == kNoLaunch ? kNoLaunch : job.clocks.common(row, time));
      times = std::move(placed);
    };
    place_all(work.start);
    place_all(work.end);
    place_all(work.launch);
    for (HostStretch& stretch : work.stretches) {
      place(stretch.start);
      place(stretch.call);
      if (stretch.other != kNoNode) place(stretch.other_at);
    }
  }
}

}  // namespace commlens
