#include "model/operation.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/bandwidth.h"
#include "model/comm_stats.h"

namespace commlens {
namespace {

TEST(OpName, IsItsOwnInverse) {
  for (int index = 0; index < kOpCount; ++index) {
    const Op op = static_cast<Op>(index);
    EXPECT_FALSE(op_name(op).empty());
    EXPECT_EQ(op_from_name(op_name(op)), op);
  }
  EXPECT_EQ(op_name(Op::all_reduce), "all_reduce");
  EXPECT_EQ(op_name(Op::send_recv), "send_recv");
  EXPECT_EQ(op_name(Op::unknown), "unknown");
  EXPECT_EQ(op_from_name("allreduce"), std::nullopt);
  EXPECT_EQ(op_from_name(""), std::nullopt);
}

struct Named {
  std::string_view name;
  Op op;
};

TEST(OpFromCollectiveName, KnowsEverySpellingOfPyTorch) {
  constexpr Named kNames[] = {
      {"allreduce", Op::all_reduce},
      {"allreduce_coalesced", Op::all_reduce},
      {"allreduce_sparse", Op::all_reduce},
      {"all_reduce", Op::all_reduce},
      {"broadcast", Op::broadcast},
      {"_broadcast_oop", Op::broadcast},
      {"reduce", Op::reduce},
      {"_reduce_oop", Op::reduce},
      {"all_gather", Op::all_gather},
      {"_allgather_base", Op::all_gather},
      {"_all_gather_base", Op::all_gather},
      {"allgather_into_tensor_coalesced", Op::all_gather},
      {"all_gather_into_tensor_coalesced", Op::all_gather},
      {"reduce_scatter", Op::reduce_scatter},
      {"_reduce_scatter_base", Op::reduce_scatter},
      {"reduce_scatter_tensor_coalesced", Op::reduce_scatter},
      {"all_to_all", Op::all_to_all},
      {"all_to_allv", Op::all_to_all},
      {"gather", Op::gather},
      {"scatter", Op::scatter},
      {"send", Op::send},
      {"recv", Op::recv},
      {"send 0->1", Op::send},
      {"recv 0<-1", Op::recv},
      {"recv 3<-0", Op::recv},
      {"barrier", Op::barrier},
      {"all_reduce_barrier", Op::barrier},
      {"coalesced", Op::unknown},
      {"c10d::allreduce_", Op::all_reduce},
      {"c10d::_allgather_base_", Op::all_gather},
      {"c10d::_reduce_scatter_base_", Op::reduce_scatter},
      {"c10d::alltoall_base_", Op::all_to_all},
      {"c10d::alltoall_", Op::all_to_all},
      {"c10d::send", Op::send},
      {"c10d::recv_", Op::recv},
      {"c10d::recv_any_source_", Op::recv},
      {"c10d::broadcast_", Op::broadcast},
      {"c10d::barrier", Op::barrier},
      {"c10d::monitored_barrier_", Op::barrier},
      {"_c10d_functional::all_reduce", Op::all_reduce},
      {"_c10d_functional::all_reduce_", Op::all_reduce},
      {"_c10d_functional::all_gather_into_tensor", Op::all_gather},
      {"_c10d_functional::all_gather_into_tensor_out", Op::all_gather},
      {"_c10d_functional::reduce_scatter_tensor", Op::reduce_scatter},
      {"_c10d_functional::all_to_all_single", Op::all_to_all},
      {"_c10d_functional_autograd::all_to_all_single", Op::all_to_all},
  };
  for (const Named& row : kNames) EXPECT_EQ(op_from_collective_name(row.name), row.op) << row.name;
}

TEST(OpFromCollectiveName, IsNothingForWhatIsNoCommunication) {
  for (std::string_view name :
       {"wait", "init", "", "_", "__", "_base", "c10d::", "_c10d_functional::wait_tensor",
        "allreduced", "sender", "Broadcast", "forward", "all_reduce (bucket 3)",
        "_c10d_functional::"}) {
    EXPECT_EQ(op_from_collective_name(name), std::nullopt) << name;
  }
}

TEST(ElementBytes, AreThoseOfC10) {
  EXPECT_EQ(element_bytes("Byte"), 1);
  EXPECT_EQ(element_bytes("Char"), 1);
  EXPECT_EQ(element_bytes("Bool"), 1);
  EXPECT_EQ(element_bytes("Float8_e4m3fn"), 1);
  EXPECT_EQ(element_bytes("Float8_e8m0fnu"), 1);
  EXPECT_EQ(element_bytes("Short"), 2);
  EXPECT_EQ(element_bytes("UInt16"), 2);
  EXPECT_EQ(element_bytes("Half"), 2);
  EXPECT_EQ(element_bytes("BFloat16"), 2);
  EXPECT_EQ(element_bytes("Int"), 4);
  EXPECT_EQ(element_bytes("UInt32"), 4);
  EXPECT_EQ(element_bytes("Float"), 4);
  EXPECT_EQ(element_bytes("Long"), 8);
  EXPECT_EQ(element_bytes("UInt64"), 8);
  EXPECT_EQ(element_bytes("Double"), 8);
  EXPECT_EQ(element_bytes("ComplexFloat"), 8);
  EXPECT_EQ(element_bytes("ComplexDouble"), 16);
  EXPECT_EQ(element_bytes("Undefined"), std::nullopt);
  EXPECT_EQ(element_bytes("float"), std::nullopt);
  EXPECT_EQ(element_bytes(""), std::nullopt);
}

constexpr std::int64_t kUnknown = -1;

TEST(MessageBytes, IsTheTotalThatNcclTestsDividesBy) {
  // Of 4 ranks: the all-gather's output and the reduce-scatter's input are four times the other
  // side.
  EXPECT_EQ(message_bytes(Op::all_reduce, 1000, 1000, 4), 4000);
  EXPECT_EQ(message_bytes(Op::all_gather, 1000, 4000, 2), 8000);
  EXPECT_EQ(message_bytes(Op::reduce_scatter, 4000, 1000, 2), 8000);
  EXPECT_EQ(message_bytes(Op::all_to_all, 700, 900, 1), 900);
  EXPECT_EQ(message_bytes(Op::gather, 10, 40, 8), 320);
  EXPECT_EQ(message_bytes(Op::scatter, 40, 10, 8), 320);
  EXPECT_EQ(message_bytes(Op::send, 5, 5, 16), 80);
  EXPECT_EQ(message_bytes(Op::broadcast, 0, 0, 4), 0);
}

TEST(MessageBytes, KnowsWhichSideIsEnough) {
  EXPECT_EQ(message_bytes(Op::all_gather, kUnknown, 4000, 2), 8000);
  EXPECT_EQ(message_bytes(Op::all_gather, 1000, kUnknown, 2), std::nullopt);
  EXPECT_EQ(message_bytes(Op::reduce_scatter, 4000, kUnknown, 2), 8000);
  EXPECT_EQ(message_bytes(Op::reduce_scatter, kUnknown, 1000, 2), std::nullopt);
  EXPECT_EQ(message_bytes(Op::all_reduce, kUnknown, 1000, 4), 4000);
  EXPECT_EQ(message_bytes(Op::all_reduce, 1000, -7, 4), 4000);
  EXPECT_EQ(message_bytes(Op::all_to_all, 1000, kUnknown, 4), std::nullopt);
  EXPECT_EQ(message_bytes(Op::all_reduce, kUnknown, kUnknown, 4), std::nullopt);
}

TEST(MessageBytes, IsNothingWhereItCannotBeKnown) {
  EXPECT_EQ(message_bytes(Op::barrier, 0, 0, 1), std::nullopt);
  EXPECT_EQ(message_bytes(Op::all_reduce, 10, 10, 0), std::nullopt);
  EXPECT_EQ(message_bytes(Op::all_reduce, 10, 10, -4), std::nullopt);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(message_bytes(Op::all_reduce, kMost, kMost, 1), kMost);
  EXPECT_EQ(message_bytes(Op::all_reduce, kMost, kMost, 2), std::nullopt);
}

TEST(CommStats, ASumBeyond64BitsIsOfUnknownSize) {
  CommStats stats;
  for (const std::int64_t bytes : {std::int64_t{40}, std::numeric_limits<std::int64_t>::max()}) {
    CommOp op{};
    op.time = {0, 10};
    op.bytes = bytes;
    stats.add(op, {.in_window = true, .starts_inside = true}, {});
  }
  std::vector<Cell> cells;
  stats.append_cells(cells);
  EXPECT_EQ(std::get<std::int64_t>(cells.at(1)), 40);
  EXPECT_EQ(std::get<std::int64_t>(cells.at(2)), 1);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 4).value(), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_gather, 4).value(), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::reduce_scatter, 8).value(), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_to_all, 2).value(), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::gather, 2).value(), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::scatter, 2).value(), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::moe_dispatch, 8).value(), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Op::broadcast, 8).value(), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Op::reduce, 8).value(), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Op::send, 8).value(), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 1).value(), 0.0);
}

TEST(BusFactor, NeedsTheRanksOnlyWhereTheyCount) {
  EXPECT_EQ(bus_factor(Op::all_reduce, 0), std::nullopt);
  EXPECT_EQ(bus_factor(Op::all_to_all, -1), std::nullopt);
  EXPECT_DOUBLE_EQ(bus_factor(Op::send_recv, 0).value(), 1.0);
  EXPECT_EQ(bus_factor(Op::unknown, 8), std::nullopt);
  EXPECT_EQ(bus_factor(Op::barrier, 8), std::nullopt);
}

TEST(GigabytesPerSecond, AreOf1e9Bytes) {
  EXPECT_DOUBLE_EQ(gigabytes_per_second(1'000'000'000, 1'000'000'000).value(), 1.0);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(1 << 20, 1000).value(), 1048.576);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(0, 5).value(), 0.0);
  EXPECT_EQ(gigabytes_per_second(1, 0), std::nullopt);
  EXPECT_EQ(gigabytes_per_second(1, -1), std::nullopt);
  EXPECT_EQ(gigabytes_per_second(-1, 1), std::nullopt);
}

}  // namespace
}  // namespace commlens
