#include "model/matching.h"

namespace commlens {

std::string_view matched_by_name(MatchedBy by) {
  switch (by) {
    case MatchedBy::comms_id: return "comms_id";
    case MatchedBy::sequence: return "sequence";
    case MatchedBy::steps: return "steps";
    case MatchedBy::alignment: return "alignment";
    case MatchedBy::inferred: return "inferred";
  }
  return "";
}

}  // namespace commlens
