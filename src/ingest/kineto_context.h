// The ranges around some instants of a Kineto trace.
#pragma once

#include <span>
#include <vector>

#include "base/source.h"
#include "model/call_context.h"

namespace commlens {

// One pass over the trace. In the order of `places`; as far as the text is sound.
std::vector<CallContext> read_kineto_contexts(Source& source, std::span<const CallPlace> places);

}  // namespace commlens
