// Lists of ranks as text: how traces write them, how users do, how reports show them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commlens {

// Ranks beyond this are no ranks, and a list of more would only fill memory.
inline constexpr std::int64_t kMostRanks = 1'000'000;

// Global ranks as a trace writes them, "[0, 1, 2]" (array or text): sorted, each once. Empty where
// the list is cut
// ("...") or is none.
std::vector<int> parse_rank_list(std::string_view text);

// "0-3,7" for 0 1 2 3 7.
std::string format_ranks(std::span<const int> ranks);
std::string format_ranks(std::span<const std::int64_t> ranks);

// What a user writes for --ranks and --steps: "0-3,7", "2..5", "4". Throws Error(usage), naming
// `option`.
std::vector<std::int64_t> parse_ranges(std::string_view text, std::string_view option);

}  // namespace commlens
