// The tables that nccl-tests prints (all_reduce_perf and its like): what links can reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/rates.h"

namespace commlens {

// `word`: FILE, or OP=FILE where the file does not name the operation. A file can hold several
// runs. Throws Error(usage) with file and line.
std::vector<CalibrationTable> read_nccl_tests(const std::string& word);

// The same for a text; `file` only names it. `op` is used where the text names none.
std::vector<CalibrationTable> parse_nccl_tests(std::string_view text, const std::string& file,
                                               std::optional<Op> op);

}  // namespace commlens
