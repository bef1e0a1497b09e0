// What a verdict is to the rest of the program: a name, the question it answers, and a function
// from everything that was told to findings. A verdict knows no files, formats or other verdicts.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"

namespace commlens {

struct Verdict {
  std::string_view name;
  std::string_view summary;
  std::vector<DiagnosisFinding> (*find)(const std::vector<Witness>& witnesses);
};

// All verdicts; order.h says which of their findings stands first.
std::span<const Verdict* const> verdicts();

}  // namespace commlens
