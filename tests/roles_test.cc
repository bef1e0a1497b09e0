// What groups are for, told by what they do.
#include <gtest/gtest.h>

#include "made_job.h"
#include "match/group_roles.h"

namespace commlens {
namespace {

// Rank 0 of four, in the groups [0,1] and [0,2]; what it does is a list of steps, each a word:
// a letter each for an operation, one after another.
//   t, T  all-reduce of [0,1], of one size and of another each time
//   d     all-reduce of [0,2], of another size each time
//   g, r  all-gather and reduce-scatter of [0,2]
std::pair<GroupRole, GroupRole> roles(const std::vector<std::string>& steps,
                                      const std::string& description = "") {
  made::Rank rank{.rank = 0, .host = "a", .groups = {}, .comm = {}};
  rank.groups = {{.name = "1", .description = description, .size = 2, .ranks = {0, 1}},
                 {.name = "2", .description = "", .size = 2, .ranks = {0, 2}}};
  Ns at = 0;
  std::int64_t number = 0;
  for (const std::string& step : steps) {
    for (const char c : step) {
      made::Comm comm{.start = at, .end = at + 5, .step = number};
      comm.bytes = c == 't' ? 1'000 : 1'000 + at;
      comm.op = c == 'g' ? Op::all_gather : c == 'r' ? Op::reduce_scatter : Op::all_reduce;
      comm.group = c == 't' || c == 'T' ? 0 : 1;
      rank.comm.push_back(comm);
      at += 10;
    }
    ++number;
  }
  Job job = made::job({rank}, 4);
  assign_group_roles(job);
  return {job.ranks[0].groups[0].role, job.ranks[0].groups[1].role};
}

using Roles = std::pair<GroupRole, GroupRole>;
const Roles kNothing{GroupRole::unknown, GroupRole::unknown};

TEST(GroupRoles, LayersAmongNeighboursThenGradients) {
  const Roles both{GroupRole::tensor, GroupRole::data};
  EXPECT_EQ(roles({"ttttttdttd", "ttttttdttd"}), both);
  // Parameters that are sharded over the outer group are gathered before.
  EXPECT_EQ(roles({"gttgttgttrttr", "gttgttgttrttr"}), both);
  // A recording that begins in the middle of a step.
  EXPECT_EQ(roles({"td", "ttttttdttd", "ttttttdttd", "ttttttdttd"}), both);
}

TEST(GroupRoles, OtherNestedGroupsAreNotTold) {
  // Gradients summed inside the host, then between hosts: as many sizes as messages.
  EXPECT_EQ(roles({"TdTdTdTdTdTd", "TdTdTdTdTdTd"}), kNothing);
  EXPECT_EQ(roles({"tdtdtdtdtd", "tdtdtdtdtd"}), kNothing);
  // Sharded over one group and repeated over the other: gradients are scattered first.
  EXPECT_EQ(roles({"ggggrtrtrtrt", "ggggrtrtrtrt"}), kNothing);
}

TEST(GroupRoles, TheOnlyGroupMaySumLayersOrGradients) {
  EXPECT_EQ(roles({"dddd", "dddd"}), (Roles{GroupRole::unknown, GroupRole::data}));
  EXPECT_EQ(roles({"ggrr", "ggrr"}), (Roles{GroupRole::unknown, GroupRole::data}));
  EXPECT_EQ(roles({"TTTTTTTTTT"}), (Roles{GroupRole::data, GroupRole::unknown}));
  EXPECT_EQ(roles({"tttttttttt", "tttttttttt"}), kNothing);
  EXPECT_EQ(roles({"t", "t", "t"}), (Roles{GroupRole::data, GroupRole::unknown}));
}

TEST(GroupRoles, DescriptionsAreBelieved) {
  EXPECT_EQ(roles({"dddd"}, "mesh_tp"), (Roles{GroupRole::tensor, GroupRole::data}));
  EXPECT_EQ(roles({"tttttttttt"}, "mesh_dp"), (Roles{GroupRole::data, GroupRole::unknown}));
}

}  // namespace
}  // namespace commlens
