#include "model/joined.h"

namespace commlens {

std::string_view joined_by_name(JoinedBy by) {
  switch (by) {
    case JoinedBy::communicator: return "communicator";
    case JoinedBy::sequence: return "sequence";
    case JoinedBy::order: return "order";
    case JoinedBy::members: return "members";
  }
  return "";
}

}  // namespace commlens
