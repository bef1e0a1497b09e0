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
    const Arg known = static_cast<Arg>(arg);
    if (has(known) && known != Arg::none) ++duplicates_;
    said_ |= bit(known);
    walker.value(tokens_[static_cast<std::size_t>(arg)]);
  }
}

// Told by length first: two dozen keys a kernel, two thirds of which are wanted. Both generations
// of names are known.
Arg KinetoArguments::arg_of(std::string_view key) {
  switch (key.size()) {
    case 3: return key == "Seq" ? Arg::seq : Arg::none;
    case 4: return key == "Rank" ? Arg::rank : Arg::none;
    case 5: return key == "dtype" ? Arg::dtype : Arg::none;
    case 6: return key == "stream" ? Arg::stream : key == "device" ? Arg::device : Arg::none;
    case 7: return key == "context" ? Arg::context : Arg::none;
    case 8:
      if (key == "inDevice") return Arg::in_device;
      if (key == "Src Rank") return Arg::source;
      if (key == "Dst Rank") return Arg::destination;
      return key == "Comms Id" ? Arg::comms_id : Arg::none;
    case 9: return key == "inContext" ? Arg::in_context : Arg::none;
    case 10: return key == "Group size" ? Arg::group_size : Arg::none;
    case 11:
      if (key == "correlation") return Arg::correlation;
      if (key == "External id" || key == "external id") return Arg::external_id;
      return key == "In msg size" ? Arg::in_elements : Arg::none;
    case 12: return key == "Out msg size" ? Arg::out_elements : Arg::none;
    case 13:
      if (key == "In msg nelems") return Arg::in_elements;
      return key == "In split size" ? Arg::in_split : Arg::none;
    case 14:
      if (key == "Out msg nelems") return Arg::out_elements;
      if (key == "wait_on_stream") return Arg::wait_on_stream;
      return key == "Out split size" ? Arg::out_split : Arg::none;
    case 15: return key == "Collective name" ? Arg::collective : Arg::none;
    case 16: return key == "Process Group ID" ? Arg::group_name : Arg::none;
    case 17: return key == "Global rank start" ? Arg::group_start : Arg::none;
    case 18:
      if (key == "Process Group Name") return Arg::group_name;
      return key == "Global rank stride" ? Arg::group_stride : Arg::none;
    case 19: return key == "Process Group Ranks" ? Arg::group_ranks : Arg::none;
    case 25: return key == "Process Group Description" ? Arg::group_description : Arg::none;
    case 33:
      return key == "wait_on_cuda_event_record_corr_id" ? Arg::record_correlation : Arg::none;
    default: return Arg::none;
  }
}

}  // namespace commlens
