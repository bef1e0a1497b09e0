// What of a job's timelines witnesses are asked about, part by part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "match/pair_choice.h"
#include "model/job.h"
#include "model/matching.h"

namespace commlens {

// One rank's collectives of one group, or of one stream where the group is not known.
struct CollectivePart {
  std::size_t row = 0;         // of Job::ranks
  std::int32_t group = -1;     // -1: not known
  std::int32_t inferred = -1;  // row of Matching::groups, whose streams end together; -1: none
  std::string label;           // of the group; empty: not known
  std::vector<Part> places;
  std::string kind = {};    // of a stream that was taken apart: what tells this part of it
  std::string shared = {};  // why a stream of several communicators was not; empty: it is none
};

// One rank's sends, receives and exchanges of one group.
struct PairPart {
  std::size_t row = 0;
  std::int32_t group = -1;
  std::string label;
  std::vector<Part> places;
  std::vector<PairOp> ops;  // by place
};

struct JoinedParts {
  using RowAndGroup = std::pair<std::size_t, std::int32_t>;
  std::vector<CollectivePart> collectives;
  std::vector<PairPart> pairs;
  // Where those of a rank's group stand.
  std::map<RowAndGroup, std::size_t> collectives_of;
  std::map<RowAndGroup, std::size_t> pairs_of;
};

JoinedParts find_joined_parts(const Job& job);

// Operations that can be among a CollectivePart's. Exchanges are among these and among pairs'.
bool is_joined_collective(const CommOp& op);
// Others that can be among a PairPart's.
bool is_joined_pair(const CommOp& op);

}  // namespace commlens
