#include "ingest/kineto_arguments.h"

namespace commlens {

void KinetoArguments::read(Walker& walker, std::size_t kind) {
  clear();
  KeyHabit& habit = habits_[kind];
  habit.restart();
  const auto meaning_of = [](std::string_view key) { return static_cast<int>(arg_of(key)); };
  for (int arg = habit.next(walker, meaning_of); arg != KeyHabit::kEnd;
       arg = habit.next(walker, meaning_of)) {
    // What is not read goes to the place of Arg::none, which nobody asks for.
    Token& token = tokens_[static_cast<std::size_t>(arg)];
    if (token.kind != TokenKind::none && arg != static_cast<int>(Arg::none)) ++duplicates_;
    token = walker.value();
  }
}

// Told by length first: seventeen keys a kernel, a third of which are wanted. Both generations of
// names are known.
Arg KinetoArguments::arg_of(std::string_view key) {
  switch (key.size()) {
    case 5: return key == "dtype" ? Arg::dtype : Arg::none;
    case 6: return key == "stream" ? Arg::stream : key == "device" ? Arg::device : Arg::none;
    case 7: return key == "context" ? Arg::context : Arg::none;
    case 8: return key == "inDevice" ? Arg::in_device : Arg::none;
    case 9: return key == "inContext" ? Arg::in_context : Arg::none;
    case 10: return key == "Group size" ? Arg::group_size : Arg::none;
    case 11:
      if (key == "correlation") return Arg::correlation;
      if (key == "External id" || key == "external id") return Arg::external_id;
      return key == "In msg size" ? Arg::in_elements : Arg::none;
    case 12: return key == "Out msg size" ? Arg::out_elements : Arg::none;
    case 13: return key == "In msg nelems" ? Arg::in_elements : Arg::none;
    case 14: return key == "Out msg nelems" ? Arg::out_elements : Arg::none;
    case 15: return key == "Collective name" ? Arg::collective : Arg::none;
    case 16: return key == "Process Group ID" ? Arg::group_name : Arg::none;
    case 18: return key == "Process Group Name" ? Arg::group_name : Arg::none;
    case 19: return key == "Process Group Ranks" ? Arg::group_ranks : Arg::none;
    case 25: return key == "Process Group Description" ? Arg::group_description : Arg::none;
    default: return Arg::none;
  }
}

}  // namespace commlens
