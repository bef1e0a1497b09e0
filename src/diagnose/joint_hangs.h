// Whether anything proves that a job hangs: dumps are also written on request, while all is well.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/joint_calls.h"

namespace commlens {

// Fills `latest`, `went_on` and `timed_out`; the rest is there. `others_say`: others_show_hang.
void find_hang_signs(JointCalls& job, bool others_say);
// A call that was given up, or is older than its timeout by its own rank's file: the next one may
// have been written minutes later. A receive that is old is none where its rank went on.
bool timed_out(const JointCalls& job, const SeenCall& seen);
// Whether a log beside the dumps says that a watchdog gave up, or timelines show that an operation
// stood open for more than a moment.
bool others_show_hang(const std::vector<Witness>& witnesses);
// Whether more than a moment lies between the last call of an operation and what one of those who
// wait in it did later, or some call of the job timed out: dumps of a running job, written one
// after the other, show ranks at different points too.
bool shows_hang(const JointCalls& job, const JointGroup& group, std::int64_t number);

}  // namespace commlens
