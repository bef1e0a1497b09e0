// What the tool says of recordings: their critical path, and what a change would gain. The only
// part of this program that knows the tool.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/trace.h"
#include "simulate/change.h"
#include "simulate/path_truth.h"

namespace commlens::whatif_accuracy {

// Whether this build has a tool to ask. Without, nothing is known of any recording.
bool has_tool();

struct PathComposition {
  bool known = false;
  bool sure = false;  // else the tool itself calls it of low confidence
  Ns window = 0;
  std::array<Ns, simulate::kPathClasses> sums{};  // by simulate::PathClass
  Ns unexplained = 0;
  std::vector<Ns> by_rank{};
};

struct Answer {
  bool known = false;
  std::string trouble{};  // why not
  Ns step = 0;            // as recorded
  Ns predicted = 0;
  Ns lower = 0;
  Ns upper = 0;
};

// One run, analysed once.
class Tool {
 public:
  explicit Tool(std::vector<Recording> recordings);
  Tool(Tool&&) noexcept;
  Tool& operator=(Tool&&) noexcept;
  ~Tool();

  PathComposition composition() const;
  Answer predict(const std::vector<simulate::Change>& changes) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace commlens::whatif_accuracy
