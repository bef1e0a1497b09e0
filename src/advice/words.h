// Figures as findings print them.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.h"

namespace commlens {

std::string time_words(Ns time);             // "3.4 ms"
std::string size_words(std::int64_t bytes);  // "25.0 MB", of 1e6 bytes
std::string share_words(double share);       // "12.5 %"
std::string number_words(double value);      // "1.25"
// "1 message", "2 messages".
std::string count_words(std::int64_t count, const std::string& noun);

}  // namespace commlens
