// What all witnesses say about each group, side by side: the ground on which verdicts about calls
// stand.
//
// Problem: a dump tells what one rank called and has not completed. That a rank is missing from an
// operation only shows against the others, and an absent entry can mean that the rank never called
// it, that it completed it long ago (dumps can leave completed calls out), that the entry was
// overwritten, or that the file was cut. Method: for each rank and group the highest number called
// and the highest completed are found from the entries and from the rank's own counters; a rank is
// taken to have not called an operation only where one of them says so. Where neither does, it is
// unknown, and nobody is accused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"

namespace commlens {

using Ranks = std::vector<std::int64_t>;

// Where a rank stands with one operation of a group.
enum class Standing : std::uint8_t {
  absent,      // nothing speaks for this rank
  unknown,     // its witness cannot tell
  not_called,  // the rank has not called it
  waiting,     // called, not completed
  completed,
};

// One call with the file that tells it.
struct SeenCall {
  const Witness* witness = nullptr;
  const WitnessCall* call = nullptr;
  std::string_view text(StringId id) const { return witness->text(id); }
};

// What is known of one rank in one group. Numbers are those of collectives.
struct RankInGroup {
  static constexpr std::int64_t kUnknown = -2;
  const Witness* witness = nullptr;                     // null: nothing speaks for this rank
  std::map<std::int64_t, std::vector<SeenCall>> calls;  // collectives by number, in their order
  std::vector<SeenCall> p2p;                            // sends and receives, in their order
  std::int64_t called = kUnknown;                       // highest number; -1: none
  std::int64_t completed = kUnknown;                    // highest number; -1: none
  const WitnessProgress* counter = nullptr;  // the rank's own, where it is of collectives
  // `called` rests on an empty list, or on a witness of a job that may go on.
  bool inferred = false;

  Standing at(std::int64_t number) const;
};

struct JointGroup {
  std::string name;
  std::string description;
  std::vector<int> members;  // global ranks in the order of the group; empty: unknown
  std::map<std::int64_t, RankInGroup> ranks;  // all members, and whoever else called
  bool has_p2p = false;                       // sends or receives were seen in it
  bool numbers_mixed = false;  // one counter for both kinds: numbers differ between ranks

  std::string label() const;
  std::vector<std::int64_t> ranks_at(std::int64_t number, Standing standing) const;
  // When the first of those who called it did; 0: unknown.
  std::int64_t since(std::int64_t number) const;
  // The operation, as most of those who call it say; empty where nobody does.
  std::string op(std::int64_t number) const;
  // Numbers that are pending somewhere, ascending.
  std::vector<std::int64_t> pending() const;
  // A finding with what is known of the operation.
  DiagnosisFinding finding(DiagnosisKind kind, std::int64_t number) const;
};

// One call that a rank made and has not completed.
struct PendingCall {
  const JointGroup* group = nullptr;
  SeenCall seen;
  // Global rank of the other side; -1: no send or receive, or not known.
  std::int64_t peer() const;
};

struct JointCalls {
  std::vector<JointGroup> groups;                            // by name, then members
  std::map<std::int64_t, const Witness*> witnesses;          // those of one rank each
  std::map<std::int64_t, std::vector<PendingCall>> pending;  // by rank, in the order of the calls
  // By rank, the latest time that its own file speaks of, and whether any call timed out
  // (joint_hangs.h).
  std::map<std::int64_t, std::int64_t> latest;
  std::map<std::int64_t, std::int64_t>
      went_on;  // by rank, the last record that completed; -1: none
  bool timed_out = false;

  bool is_idle(std::int64_t rank) const { return !pending.contains(rank); }
  // The ranks that have a call pending together with one of these, or with one who has, and so on;
  // without these.
  std::vector<std::int64_t> held_by(const std::vector<std::int64_t>& ranks) const;
  // A send or receive whose other side tells all that it has pending, and has no counterpart there.
  bool lacks_other_side(const PendingCall& call) const;
};

// Witnesses of one job each: all of them, unless a rank has several in different folders; then
// folders are taken for jobs. Of several in one folder the one with most entries counts.
std::vector<JointCalls> join_calls(const std::vector<Witness>& witnesses);

// Ranks of which one folder holds several witnesses: they may be of different hangs, so that
// nothing about such a rank is certain.
std::set<std::int64_t> repeated_ranks(const std::vector<Witness>& witnesses);

// Ascending, each once.
Ranks merged_ranks(Ranks a, const Ranks& b);

// "all_reduce", or as recorded where that is not known.
std::string op_word(const SeenCall& seen);

}  // namespace commlens
