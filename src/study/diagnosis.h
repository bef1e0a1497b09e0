// The recipe of `commlens diagnose`: paths in, a diagnosis out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sink.h"
#include "model/diagnosis.h"

namespace commlens {

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::string input_format;  // --input-format; empty: told by content
  unsigned jobs = 0;         // --jobs; 0: all cores
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Throws Error(input) when no input at all could be used.
Diagnosis diagnose(const DiagnoseOptions& options);

// "text" or "json" (schema commlens.diagnosis/1).
void render_diagnosis(const Diagnosis& diagnosis, std::string_view format, Sink& sink);

}  // namespace commlens
