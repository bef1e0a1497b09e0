// How near the tool's answers are to what happened, case by case.
#pragma once

#include <array>
#include <string>

#include "cases.h"
#include "tool.h"

namespace commlens::whatif_accuracy {

// One job's critical path.
struct PathScore {
  std::size_t layout = 0;
  std::uint64_t number = 0;
  bool sync_records = true;
  bool one_clock = true;
  bool known = false;
  bool sure = false;
  // Answer less truth as a part of the window, by simulate::PathClass; then what is unexplained.
  std::array<double, simulate::kPathClasses + 1> off{};
  double worst() const;  // of the classes, without regard to sign
  double most_by_rank = 0;
};

PathScore score_path(std::size_t layout, std::uint64_t number, bool sync_records);

// One question.
struct WhatIfScore {
  std::uint64_t number = 0;
  std::string kind{};
  std::string words{};
  bool known = false;
  std::string trouble{};
  Ns before = 0;  // step time of the job as recorded
  Ns truth = 0;   // of the changed job
  Ns predicted = 0;
  Ns lower = 0;
  Ns upper = 0;
  double error() const;   // of the truth
  double change() const;  // how far the truth is from the recording, of the truth
  bool inside() const { return lower <= truth && truth <= upper; }
};

WhatIfScore score_question(std::uint64_t number);

}  // namespace commlens::whatif_accuracy
