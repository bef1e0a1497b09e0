// Which experts the tokens of one layer go to, and so how much each rank of an expert group gets.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/job.h"

namespace commlens::simulate {

// One pass of one microbatch through one layer; all members of the group ask for the same and get
// the same answer.
struct RoutingKey {
  int group = -1;
  int step = 0;
  int microbatch = 0;
  int layer = 0;
};

struct Routing {
  // Rows that every member sends to each member. All senders see the same popularity, so a receiver
  // gets rows[receiver] from each.
  std::vector<std::int64_t> rows{};

  // `time` is what the mean share of the tokens takes.
  Ns share_of_work(int member, Ns time) const;
};

Routing route_tokens(const JobSpec& spec, const RoutingKey& key);

}  // namespace commlens::simulate
