// The nearest name for a misspelled one.
#pragma once

#include <span>
#include <string_view>

namespace commlens {

// The candidate with the smallest edit distance, or empty when none is near (more than a third of
// the letters differ).
std::string_view nearest_name(std::string_view misspelled,
                              std::span<const std::string_view> candidates);

}  // namespace commlens
