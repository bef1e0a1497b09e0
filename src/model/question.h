// What a user asks a run: "what if ...?", and what the replay answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/interval_set.h"
#include "model/stragglers.h"

namespace commlens {

// One change to some of the communication. A speed of 2 halves the transfers.
struct SpeedChange {
  std::string what;  // an op's name; a group's label, description or role ("dp"); a kind of link
  double speed = 1;  // > 0; infinite: removed, nobody waits for it any more
};

// All changes at once. Nothing set: as recorded.
struct Question {
  double comm_speed = 1;
  std::vector<SpeedChange> ops;
  std::vector<SpeedChange> groups;
  std::vector<SpeedChange> links;       // "ib": between hosts, "nvlink": inside one
  std::vector<std::int64_t> fix_ranks;  // their kernels take what their peers' take
  bool perfect_overlap = false;         // no communication is waited for: a bound
  bool no_host_delay = false;           // every launch has come in time
  std::optional<std::int64_t> bucket;   // bytes that one message of a data-parallel group has
};

struct RankPrediction {
  std::int64_t rank = 0;
  Ns window = 0;     // first GPU start to last GPU end, as recorded
  Ns predicted = 0;  // the same, replayed
};

struct Prediction {
  std::string question;  // in words
  std::int64_t steps = 1;
  Ns step = 0;       // recorded window of the job / steps
  Ns predicted = 0;  // replayed window / steps
  Ns lower = 0;
  Ns upper = 0;
  Confidence confidence = Confidence::undecidable;
  std::vector<RankPrediction> by_rank;
  std::vector<std::string> remarks;  // what bounds the answer, most important first
};

}  // namespace commlens
