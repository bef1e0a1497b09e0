// What the step time of a job is made of, without remainder (docs/ledger.md).
//
// match/ledger fills this.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "model/transfer_fit.h"

namespace commlens {

enum class LedgerRow : std::uint8_t {
  compute,         // compute ran
  transfer,        // exposed communication that moved data, at the achievable rate
  link_deficit,    // the same, beyond the achievable time for its size
  wait_compute,    // exposed waiting, by why somebody was late
  wait_host,       //
  wait_link,       //
  wait_imbalance,  //
  wait_undecided,  // exposed waiting that cannot be followed, and what may be waiting or transfer
  memory,          // copies alone
  host,            // nothing ran and nothing was queued
  unexplained,     // nothing ran, although something was queued or it is not known
};
inline constexpr std::size_t kLedgerRowCount = static_cast<std::size_t>(LedgerRow::unexplained) + 1;

// How it is known what links can do.
enum class RateSource : std::uint8_t { none, peak, calibration, fit, model };
std::string_view rate_source_name(RateSource source);  // "peak", "calibration", "fit", "model"

// What was taken as achievable for one kind of operation.
struct AchievableRate {
  TransferKind kind;
  RateSource from = RateSource::none;
  // Of a peak: its group, where it has one; of a table: its file; of a model: the GPU.
  std::string detail;
  std::int64_t operations = 0;  // communications that it was used for
  double algbw_gbs = 0;         // that large messages approach; 0: not known
  TransferFit fit;              // of RateSource::fit
};

struct Ledger {
  bool known = false;
  Ns step = 0;                             // the mean step: the rows sum to it exactly
  std::array<Ns, kLedgerRowCount> rows{};  // by LedgerRow
  Ns wait_or_transfer = 0;                 // of wait_undecided: not known which of the two
  Ns window = 0;                           // of all ranks, in common time
  std::int64_t steps = 0;                  // 0: not known, and the window counts as one
  std::int64_t gpus = 0;                   // that the mean is over
  std::int64_t gpus_placed = 0;            // of these, with a clock that is related to the others'
  std::vector<AchievableRate> rates;       // by kind

  Ns of(LedgerRow row) const { return rows[static_cast<std::size_t>(row)]; }
};

}  // namespace commlens
