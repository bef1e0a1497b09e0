// Faults as a user of `commlens simulate` writes them.
#pragma once

#include <string_view>

#include "simulate/faults.h"

namespace commlens::simulate {

// Each throws Error(usage), with what was expected, for words that are not understood.
Fault parse_slow(std::string_view text);          // RANK:FACTOR[@STEPS]: "3:1.3", "3:2@12..14"
Fault parse_late(std::string_view text);          // RANK:US[@STEPS]: "5:800", "5:800@11,13"
Fault parse_slow_link(std::string_view text);     // A-B:FACTOR[@STEPS]: "2-3:4"
Fault parse_unequal(std::string_view text);       // RANK:FACTOR[@STEPS]: "1:2"
Fault parse_clock(std::string_view text);         // HOST:US[,PPM]: "1:250", "1:-40.5,20"
Fault parse_lose(std::string_view text);          // RANK:N[@start|@end|@random]: "0:5@start"
Fault parse_window_shift(std::string_view text);  // RANK:US: "2:3000"
Fault parse_missing(std::string_view text);       // RANK: "3"

// "group", "wrong", "none".
SeqKind parse_seq(std::string_view text);
// "full", "none".
bool parse_metadata(std::string_view text);
bool parse_sync_records(std::string_view text);
// "3", "0.5".
Ns parse_microseconds(std::string_view option, std::string_view text);

}  // namespace commlens::simulate
