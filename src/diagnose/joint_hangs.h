// Whether anything proves that a job hangs: dumps are also written on request, while all is well.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/joint_calls.h"

namespace commlens {

// Fills `latest` and `timed_out`; the rest is there. `logs_say`: logs_time_out.
void find_hang_signs(JointCalls& job, bool logs_say);
// The latest time that any witness of the job speaks of; 0: none does.
std::int64_t latest_time(const JointCalls& job);
// A call that was given up, or is older than its timeout.
bool timed_out(const SeenCall& seen, std::int64_t latest);
// Whether a log beside the dumps says that a watchdog gave up.
bool logs_time_out(const std::vector<Witness>& witnesses);
// Whether more than a moment lies between the last call of an operation and what one of those who
// wait in it did later, or some call of the job timed out: dumps of a running job, written one
// after the other, show ranks at different points too.
bool shows_hang(const JointCalls& job, const JointGroup& group, std::int64_t number);

}  // namespace commlens
