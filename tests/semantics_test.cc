// What each kind of operation makes a rank need.
#include "model/semantics.h"

#include <gtest/gtest.h>

namespace commlens {
namespace {

MatchedOp operation(Op op, std::uint32_t count, std::int32_t root = -1) {
  MatchedOp matched;
  matched.op = op;
  matched.count = count;
  matched.root = root;
  return matched;
}

TEST(Semantics, EverybodyNeedsEverybody) {
  for (const Op op :
       {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::barrier}) {
    for (std::uint32_t part = 0; part < 3; ++part)
      EXPECT_EQ(needs_of(operation(op, 3), part, false), Needs::everyone) << op_name(op);
    EXPECT_TRUE(synchronises_everyone(operation(op, 3), false));
  }
}

TEST(Semantics, WhereSomebodyMovesNothingNobodyIsCertain) {
  EXPECT_EQ(needs_of(operation(Op::all_to_all, 3), 1, true), Needs::unknown);
  EXPECT_FALSE(synchronises_everyone(operation(Op::all_to_all, 3), true));
  EXPECT_EQ(needs_of(operation(Op::barrier, 3), 1, true), Needs::everyone);
}

TEST(Semantics, FromTheRoot) {
  for (const Op op : {Op::broadcast, Op::scatter}) {
    EXPECT_EQ(needs_of(operation(op, 3, 1), 0, false), Needs::root);
    EXPECT_EQ(needs_of(operation(op, 3, 1), 1, false), Needs::nobody);
    EXPECT_EQ(needs_of(operation(op, 3, 1), 2, false), Needs::root);
    EXPECT_FALSE(synchronises_everyone(operation(op, 3, 1), false));
  }
}

TEST(Semantics, ToTheRoot) {
  for (const Op op : {Op::reduce, Op::gather}) {
    EXPECT_EQ(needs_of(operation(op, 3, 0), 0, false), Needs::everyone);
    EXPECT_EQ(needs_of(operation(op, 3, 0), 1, false), Needs::nobody);
    EXPECT_FALSE(synchronises_everyone(operation(op, 3, 0), false));
  }
}

TEST(Semantics, UnknownRoot) {
  for (const Op op : {Op::broadcast, Op::scatter, Op::reduce, Op::gather}) {
    EXPECT_EQ(needs_of(operation(op, 3), 0, false), Needs::unknown);
    EXPECT_EQ(needs_of(operation(op, 3, 3), 0, false), Needs::unknown) << "no such part";
  }
}

TEST(Semantics, PairNeedsItsSource) {
  MatchedOp pair = operation(Op::send_recv, 2);
  EXPECT_EQ(needs_of(pair, 1, false), Needs::unknown) << "direction not known";
  pair.pair = true;
  EXPECT_EQ(needs_of(pair, 0, false), Needs::nobody);
  EXPECT_EQ(needs_of(pair, 1, false), Needs::source);
  EXPECT_FALSE(synchronises_everyone(pair, false));
}

TEST(Semantics, ProtocolsOfTheirOwnSayNothing) {
  for (const Op op :
       {Op::send, Op::recv, Op::moe_dispatch, Op::moe_combine, Op::put_get, Op::copy, Op::unknown})
    EXPECT_EQ(needs_of(operation(op, 3, 0), 1, false), Needs::unknown) << op_name(op);
}

}  // namespace
}  // namespace commlens
