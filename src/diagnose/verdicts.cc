#include <array>

#include "diagnose/verdict.h"

namespace commlens {

// One line a verdict.
extern const Verdict kFingerprints;
extern const Verdict kMismatches;
extern const Verdict kMissingRanks;
extern const Verdict kP2pSizes;
extern const Verdict kStates;
extern const Verdict kTimeouts;

namespace {

constexpr std::array kVerdicts = {&kFingerprints, &kMismatches, &kMissingRanks,
                                  &kP2pSizes,     &kStates,     &kTimeouts};

}  // namespace

std::span<const Verdict* const> verdicts() { return kVerdicts; }

}  // namespace commlens
