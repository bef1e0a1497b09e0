// Sentences that several verdicts share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/joint_calls.h"

namespace commlens {

// "rank 3", "ranks 1-7".
std::string rank_words(const std::vector<std::int64_t>& ranks);
// "is", "are".
std::string_view is_or_are(const std::vector<std::int64_t>& ranks);
// ", since 2026-01-01 00:08:33.125 UTC"; empty where the time is not known.
std::string since_words(std::int64_t ns);
// "all_to_all 44791 of group 72 (EXPERT_MODEL_PARALLEL_GROUP)".
std::string operation_words(const JointGroup& group, std::int64_t number);

// The line that shows what a rank says of an operation: its entry, or its counters.
std::string evidence_line(const RankInGroup& rank, std::int64_t number);
std::string evidence_line(const SeenCall& seen);
// Those of several ranks, at most a handful.
std::vector<std::string> evidence_lines(const JointGroup& group,
                                        const std::vector<std::int64_t>& ranks,
                                        std::int64_t number);

}  // namespace commlens
