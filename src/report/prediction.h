// Prints the answer to a "what if" question.
#pragma once

#include <string_view>

#include "base/sink.h"
#include "model/question.h"

namespace commlens {

// `format`: "text" or "json" (schema commlens.whatif/1, docs/json.md).
void write_prediction(const Prediction& prediction, std::string_view format, Sink& sink);

}  // namespace commlens
