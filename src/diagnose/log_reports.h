// Who did not come, where a log says so itself: PyTorch's desync report, a monitored barrier,
// Horovod, the store through which a group comes up.
#pragma once

#include <optional>

#include "diagnose/log_view.h"
#include "model/diagnosis.h"

namespace commlens {

// "[0,1] joined but didn't finish ...", "[2] finished ..., but didn't join ...": PyTorch's own
// answer.
std::optional<DiagnosisFinding> find_desync(const LogView& view);
// "Ranks 1, 2 failed to pass monitoredBarrier"
std::optional<DiagnosisFinding> find_barrier(const LogView& view);
// "2: [allreduce.x]" behind Horovod's "Missing ranks:"
std::optional<DiagnosisFinding> find_stalled(const LogView& view);
// A communicator's first rank gives out its id through the store; the others wait for it.
std::optional<DiagnosisFinding> find_no_id(const LogView& view);
// Rendezvous and key-value store: communication never began.
std::optional<DiagnosisFinding> find_store(const LogView& view);

}  // namespace commlens
