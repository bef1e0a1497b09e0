// Problem: a timeline that names no group has one stream with the operations of several
// communicators, as programs make that call all of them on one stream. Laid beside one
// communicator's calls, half of them have none.
//
//   stream        A G A A G A          calls of 0x10   A A A A A A
//                                               0x20   G G G
//
// Method: an operation (with its size, where that is known) that only one communicator of the
// process ever calls is that one's. This holds where the log has every call of each of them since
// its initialisation. It is done where each operation of the stream has one such communicator, and
// where those of each are calls of it in a row: else nothing is assigned at all. When it is wrong:
// a log that has lost every line of a kind, of one communicator, without a sign.
#include "match/joined_split.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace commlens {
namespace {

constexpr std::string_view kSharedStream =
    "the timeline does not name its group, and its stream holds operations of several "
    "communicators";

using Candidates = std::vector<const CallSequence*>;

// What a communicator calls, each kind once.
std::vector<CommEvent> kinds_called(const CallSequence& sequence) {
  std::vector<CommEvent> kinds;
  std::set<std::pair<Op, std::int64_t>> known;
  for (const CommEvent& call : sequence.calls) {
    if (known.insert({call.op, call.bytes}).second) kinds.push_back(call);
  }
  return kinds;
}

bool are_calls_in_a_row(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls) {
  for (std::size_t from = 0; from + ops.size() <= calls.size(); ++from) {
    const auto same = std::mismatch(ops.begin(), ops.end(),
                                    calls.begin() + static_cast<std::ptrdiff_t>(from), fits);
    if (same.first == ops.end()) return true;
  }
  return false;
}

// "all_reduce 1024": the least of them. Sizes that ranks may differ in say nothing.
std::string least_kind(const std::vector<CommEvent>& ops) {
  std::pair<Op, std::int64_t> least{ops.front().op, ops.front().bytes};
  for (const CommEvent& op : ops) least = std::min(least, {op.op, op.bytes});
  return std::string(op_name(least.first)) + " " + std::to_string(least.second);
}

class StreamSplitter {
 public:
  StreamSplitter(const Job& job, const CallSequences& calls, JoinedParts& parts)
      : job_(job), calls_(calls), parts_(parts) {}

  void run() {
    const std::size_t before = parts_.collectives.size();
    for (std::size_t i = 0; i < before; ++i) {
      if (parts_.collectives[i].group < 0) split(i);
    }
  }

 private:
  struct Share {
    std::vector<Part> places;
    std::vector<CommEvent> ops;
  };

  Candidates candidates_of(std::size_t row) const {
    Candidates candidates;
    for (const CallSequence& sequence : calls_.of_rank[row]) {
      if (sequence.facts != nullptr && sequence.size != 1) candidates.push_back(&sequence);
    }
    return candidates;
  }

  void split(std::size_t index) {
    const CollectivePart& part = parts_.collectives[index];
    const Candidates candidates = candidates_of(part.row);
    std::map<const CallSequence*, Share> shares;
    std::size_t of_several = 0;
    if (!assign(part, candidates, shares, of_several)) return;
    // Where one communicator calls all of them, the order decides.
    if (shares.size() < 2) return;
    if (of_several > 0) {
      parts_.collectives[index].shared = std::string(kSharedStream) + ", " +
                                         std::to_string(of_several) +
                                         " of which are called by more than one";
      return;
    }
    const bool whole = std::all_of(
        candidates.begin(), candidates.end(),
        [](const CallSequence* sequence) { return sequence->numbered && sequence->lost == 0; });
    const bool in_a_row = std::all_of(shares.begin(), shares.end(), [](const auto& share) {
      return are_calls_in_a_row(share.second.ops, share.first->calls);
    });
    if (!whole || !in_a_row) {
      parts_.collectives[index].shared =
          std::string(kSharedStream) + (whole ? ", whose calls are others between these"
                                              : ", and calls of these may be missing");
      return;
    }
    bool first = true;
    for (auto& [sequence, share] : shares) {
      CollectivePart own = parts_.collectives[index];
      own.kind = least_kind(share.ops);
      own.places = std::move(share.places);
      if (first) {
        first_ = std::move(own);
      } else {
        parts_.collectives.push_back(std::move(own));
      }
      first = false;
    }
    parts_.collectives[index] = std::move(first_);
  }

  // False where an operation is no communicator's, or not known for certain. Those that several can
  // have called are counted, and are nobody's.
  bool assign(const CollectivePart& part, const Candidates& candidates,
              std::map<const CallSequence*, Share>& shares, std::size_t& of_several) {
    if (candidates.size() < 2) return false;
    std::vector<std::vector<CommEvent>> kinds;
    for (const CallSequence* candidate : candidates) kinds.push_back(kinds_called(*candidate));
    std::map<std::pair<Op, std::int64_t>, std::vector<std::size_t>> callers_of;
    for (const Part& place : part.places) {
      const CommEvent op = as_called(reader_.event(part.row, place.device, place.op));
      if (op.any_op) return false;
      const auto [known, is_new] = callers_of.try_emplace({op.op, op.bytes});
      for (std::size_t c = 0; is_new && c < kinds.size(); ++c) {
        if (std::any_of(kinds[c].begin(), kinds[c].end(),
                        [&op](const CommEvent& call) { return fits(op, call); }))
          known->second.push_back(c);
      }
      if (known->second.empty()) return false;
      if (known->second.size() > 1) {
        ++of_several;
        continue;
      }
      Share& share = shares[candidates[known->second.front()]];
      share.places.push_back(place);
      share.ops.push_back(op);
    }
    return true;
  }

  const Job& job_;
  const CallSequences& calls_;
  JoinedParts& parts_;
  EventReader reader_{job_};
  CollectivePart first_;
};

}  // namespace

void split_shared_streams(const Job& job, const CallSequences& calls, JoinedParts& parts) {
  StreamSplitter(job, calls, parts).run();
}

}  // namespace commlens
