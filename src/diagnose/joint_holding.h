// Operations that hold others: who is missing from one operation mostly stands in another.
//
// Problem: ranks 2 and 3 wait in all_reduce 4 of group 0 for ranks 0 and 1, and these stand in
// all_reduce 4 of group 1, which both of them have called and which does not end. Both operations
// hang, and both time out; the second is the cause. Method: from an operation to the one that is
// the oldest pending call of those of its members who are elsewhere, until all who are in it have
// nothing older. Times do not decide: they are those of different hosts.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/joint_calls.h"

namespace commlens {

struct HoldingCall {
  const JointGroup* group = nullptr;
  std::int64_t number = 0;
  const PendingCall* p2p = nullptr;  // where it is a send or receive
  // Nobody in it has an older call pending. Else the ranks hold each other in a circle, and this is
  // the earliest of it that all members called.
  bool is_head = true;
};

// Null where somebody who has not called an operation on the way has nothing pending: then it is
// this rank that others wait for.
std::optional<HoldingCall> find_holding_call(const JointCalls& job, const JointGroup& group,
                                             std::int64_t number);

// That it holds those who wait in it, and that nobody can be named. What it was found by, as
// "longer than its timeout", stands in it where it is so.
DiagnosisFinding held_finding(const JointCalls& job, const HoldingCall& call);

}  // namespace commlens
