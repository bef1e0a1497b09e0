// Operations that some ranks of a group have called and others have not: where a missing rank can
// be.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/joint_calls.h"

namespace commlens {

struct WaitCandidate {
  const JointGroup* group = nullptr;
  std::int64_t number = 0;
  Ranks waiting;
  Ranks not_called;
  Ranks unseen;  // no witness, or one that cannot tell
  Ranks absent;  // of these: no witness
  std::int64_t since = 0;
  const PendingCall* p2p = nullptr;  // a send or receive that has no other side
  bool called = false;  // those of `not_called` have called it; their devices are not there
  bool proven = false;  // something shows that the job hangs (joint_hangs.h)
};

// Each list by time.
struct WaitCandidates {
  std::vector<WaitCandidate> collectives;  // at most one a group
  std::vector<WaitCandidate> unseen;       // those that only lack members who were not seen
  std::vector<WaitCandidate> p2p;
  std::vector<WaitCandidate> stalled;  // all called; some devices are behind
  bool mismatched = false;             // some group's calls disagree: another verdict's work
};

// They point into `job`.
WaitCandidates find_candidates(const JointCalls& job);

// Its oldest pending call was completed by others: nobody but its own device holds it.
bool is_stalled(const JointCalls& job, std::int64_t rank);

// Its dump holds pending calls alone, as tools ask for that look into a hang, and several of them
// were completed by others. No proof, yet more than a file that was written a moment earlier.
bool lags(const JointCalls& job, std::int64_t rank);

}  // namespace commlens
