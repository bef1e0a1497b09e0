#include "model/witness.h"

#include "model/witness_log.h"
#include "model/witness_ras.h"
#include "model/witness_trace.h"

namespace commlens {

Witness::Witness() = default;
Witness::Witness(Witness&&) noexcept = default;
Witness& Witness::operator=(Witness&&) noexcept = default;
Witness::~Witness() = default;

std::string_view state_name(CallState state) {
  switch (state) {
    case CallState::unknown: return "unknown";
    case CallState::scheduled: return "scheduled";
    case CallState::started: return "started";
    case CallState::completed: return "completed";
  }
  return "";
}

}  // namespace commlens
