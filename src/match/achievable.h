// In what time each communication could have moved its data.
#pragma once

#include <optional>
#include <vector>

#include "match/transfer_fits.h"
#include "model/ledger.h"
#include "model/rates.h"

namespace commlens {

class Achievable {
 public:
  // By the first of these that knows: the user's peaks, the user's tables, the job's own fits, a
  // model of the hardware.
  // Throws Error(usage) where a peak names a group that the job does not have.
  Achievable(const Job& job, const CommNumbers& numbers, const RateOptions& options);

  struct Time {
    Ns time = -1;           // -1: not known
    bool measured = false;  // by the user's word: it holds for operations that are not matched too
  };
  Time of(std::uint32_t number) const { return times_[number]; }
  // What was used, by kind.
  const std::vector<AchievableRate>& rates() const { return rates_; }

 private:
  struct Question;
  void answer(std::uint32_t number, const Question& question);
  bool by_peak(const Question& question, AchievableRate& rate, double& time) const;
  bool by_table(const Question& question, AchievableRate& rate, double& time) const;
  bool by_fit(const Question& question, AchievableRate& rate, double& time) const;
  static bool by_model(const Question& question, AchievableRate& rate, double& time);

  const Job& job_;
  const RateOptions& options_;
  std::vector<Time> times_;  // by number
  std::vector<AchievableRate> rates_;
};

}  // namespace commlens
