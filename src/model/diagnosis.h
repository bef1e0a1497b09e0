// What is wrong with a job: verdicts, each with the lines that prove it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.h"
#include "model/result.h"
#include "model/stragglers.h"

namespace commlens {

// The names are those of the JSON. Graver and better-known causes first: where two findings explain
// the same ranks and nothing else tells them apart, the earlier kind stands first.
#define COMMLENS_DIAGNOSES(X) \
  X(duplicate_gpu)            \
  X(out_of_memory)            \
  X(crash)                    \
  X(separate_jobs)            \
  X(misconfiguration)         \
  X(concurrent_use)           \
  X(order_mismatch)           \
  X(op_mismatch)              \
  X(size_mismatch)            \
  X(dtype_mismatch)           \
  X(missing_rank)             \
  X(rank_ahead)               \
  X(state_mismatch)           \
  X(transport_error)          \
  X(slow_init)                \
  X(timeout)

enum class DiagnosisKind : std::uint8_t {
#define COMMLENS_DIAGNOSIS_ENUM(name) name,
  COMMLENS_DIAGNOSES(COMMLENS_DIAGNOSIS_ENUM)
#undef COMMLENS_DIAGNOSIS_ENUM
};
std::string_view diagnosis_name(DiagnosisKind kind);

// One odd rank out: what it has, and what most have.
struct DifferingRank {
  std::int64_t rank = 0;
  std::string field;  // "op", "input_sizes", "dtype", "state", "seq", ...
  std::string value;
  std::string expected;
};

struct DiagnosisFinding {
  DiagnosisKind kind = DiagnosisKind::timeout;
  std::string group;                        // "72", as processes name it; empty: not of one group
  std::string group_description;            // "EXPERT_MODEL_PARALLEL_GROUP"; empty: none
  std::vector<int> group_ranks;             // its members, ascending; empty: unknown
  std::optional<std::int64_t> seq;          // number of the operation in its group
  std::string op;                           // op_name(); empty: not of one operation
  std::vector<std::int64_t> missing_ranks;  // ascending, root causes only
  std::vector<DifferingRank> differing;     // the odd ones out only, by rank
  std::vector<std::int64_t> consequences;   // ranks that are held by it, directly or not
  std::string message;                      // one sentence: who, what, since when
  std::vector<std::string> evidence;        // lines: file, place, what stands there
  Confidence confidence = Confidence::undecidable;
  std::string advice;  // what to try
  // For the order of findings and for what follows from what; not printed.
  std::int64_t since_ns = 0;       // when it began, since the epoch; 0: unknown
  std::vector<std::int64_t> held;  // ranks that wait in this operation
  // What `message` ends with where no other finding explains this one: "..., so that nothing here
  // tells who is behind it".
  std::string reservation;
  bool momentary = false;  // what counters or answers said at one moment, no call that waits
  // Ranks are those of `group`; they are the job's if `group_ranks` is given.
  bool ranks_of_group = false;
};

struct Diagnosis {
  std::vector<DiagnosisFinding> findings;   // root causes first
  std::vector<InputReport> inputs;          // those that were used or should have been
  std::vector<std::string> open_questions;  // what the inputs leave open, and what would settle it
  std::vector<Table> logs;                  // what logs say, right or wrong; empty: there are none
  Notes notes;                              // about the inputs as a whole
  std::vector<std::string> troubles;        // one sentence for each input that could not be used
  bool any_input_unusable = false;
};

// The kind of the first finding, or "none".
std::string_view verdict_of(const Diagnosis& diagnosis);

}  // namespace commlens
