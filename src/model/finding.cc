#include "model/finding.h"

namespace commlens {

std::string_view severity_name(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::high: return "high";
    case FindingSeverity::medium: return "medium";
    case FindingSeverity::low: return "low";
  }
  return {};
}

}  // namespace commlens
