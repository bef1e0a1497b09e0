// What PyTorch says with TORCH_DISTRIBUTED_DEBUG=DETAIL where two ranks call different things; such
// lines stand in files of their own and in logs.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/witness.h"

namespace commlens {

inline constexpr std::string_view kFingerprintLine =
    "Detected mismatch between collectives on ranks";

// Adds the two calls that the line speaks of to `witness.contradictions`, once however many ranks
// repeat it. False where the line holds none, or is cut before both are known.
bool add_fingerprints(std::string_view line, std::int64_t number, Witness& witness);

}  // namespace commlens
