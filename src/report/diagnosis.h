// Prints what is wrong with a job.
#pragma once

#include <string_view>

#include "base/sink.h"
#include "model/diagnosis.h"

namespace commlens {

// `format`: "text" or "json" (schema commlens.diagnosis/1, docs/json.md).
void write_diagnosis(const Diagnosis& diagnosis, std::string_view format, Sink& sink);

}  // namespace commlens
