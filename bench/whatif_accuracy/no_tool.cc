// Stands in where the tool is not there to be built.
#include "tool.h"

namespace commlens::whatif_accuracy {

struct Tool::State {};

bool has_tool() { return false; }
Tool::Tool(std::vector<Recording>) : state_(std::make_unique<State>()) {}
Tool::Tool(Tool&&) noexcept = default;
Tool& Tool::operator=(Tool&&) noexcept = default;
Tool::~Tool() = default;

PathComposition Tool::composition() const { return {}; }
Answer Tool::predict(const std::vector<simulate::Change>&) const {
  return {.trouble = "there is no tool in this build"};
}

}  // namespace commlens::whatif_accuracy
