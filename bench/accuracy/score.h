// One job's truth against one answer.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "grid.h"
#include "model/job.h"
#include "simulate/fault_truth.h"
#include "simulate/truth.h"

namespace commlens::accuracy {

// Everything that is known about a simulated job.
struct Case {
  simulate::Scenario scenario;
  simulate::SimulatedJob job;
  simulate::Truth truth;
  std::vector<simulate::FaultTruth> faults;
};
Case make_case(const CaseKey& key);
// The recordings of the ranks that have a trace.
std::vector<Recording> record(const Case& made);

// Why a fault's culprit need not be found; `none`: it must be.
enum class Excuse : std::uint8_t {
  none,
  small,      // it costs less than 2 % of its steps
  hidden,     // nobody could tell (simulate/hidden.h)
  unexposed,  // a rank's: its waiting lies under compute, but for less than 1 % of the GPU time
  clocks,     // it costs less than the clocks are known
};
inline constexpr std::size_t kExcuses = 5;

// A fault that has a culprit.
struct FaultScore {
  std::string kind;
  Excuse excuse = Excuse::none;
  bool found = false;    // named with its cause, `certain` or `likely`
  bool certain = false;  // found, and `certain`
  bool pointed = false;  // named with its cause in any way, `undecidable` too
};

// Rows of the answer of one confidence.
struct RowScore {
  std::int64_t right = 0;
  std::int64_t wrong_cause = 0;  // the culprit of a fault, for another cause
  std::int64_t wrong_culprit = 0;
};

struct RunScore {
  CaseKey key;
  std::vector<FaultScore> faults;
  std::array<RowScore, 3> rows{};  // by Confidence
  bool waits_known = false;
  bool waits_must_hold =
      false;                // no fault of clocks, hosts, metadata; nothing that is not recorded
  double wait_error = 0;    // of the total, as a part of the truth
  std::int64_t bounds = 0;  // pairs of ranks and instants that were looked at
  std::int64_t bounds_missed = 0;
  Ns time = 0;
};

RunScore score(const CaseKey& key, const Case& made, const Job& answer);

}  // namespace commlens::accuracy
