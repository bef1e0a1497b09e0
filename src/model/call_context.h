// What a host thread was in at an instant, as far as the recording tells.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.h"

namespace commlens {

// A host thread's instant, in the recording's own clock. `thread` is the operating system's id.
struct CallPlace {
  Ns time = 0;
  std::int64_t thread = 0;
};

// The innermost of each kind; empty: none, or not recorded.
struct CallContext {
  std::string operation;   // of the framework: "aten::mm"
  std::string module;      // "nn.Module: Linear_3"
  std::string function;    // of Python: "train.py(12): step"
  std::string annotation;  // of the user: "## forward ##"; steps and collectives do not count

  bool empty() const {
    return operation.empty() && module.empty() && function.empty() && annotation.empty();
  }
};

}  // namespace commlens
