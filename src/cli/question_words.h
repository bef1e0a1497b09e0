// The words of `commlens whatif`.
#pragma once

#include <string>
#include <string_view>

#include "model/question.h"

namespace commlens::cli {

// "all_reduce=0" (removed), "all_reduce=0.5" (half the time), "dp:speed=2", "ib:speed=0.5".
// Throws Error(usage) that names `option`.
SpeedChange parse_speed_change(const std::string& option, std::string_view text);

// Throws Error(usage) for ops and links that do not exist and speeds that are none.
void check_question(const Question& question);

}  // namespace commlens::cli
