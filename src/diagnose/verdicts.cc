#include <array>

#include "diagnose/verdict.h"

namespace commlens {

// One line a verdict.
extern const Verdict kFingerprints;
extern const Verdict kGroupOrder;
extern const Verdict kLogAdapters;
extern const Verdict kLogCalls;
extern const Verdict kLogDuplicates;
extern const Verdict kLogErrors;
extern const Verdict kLogFabric;
extern const Verdict kLogGdr;
extern const Verdict kLogInit;
extern const Verdict kLogJobs;
extern const Verdict kLogP2p;
extern const Verdict kLogSettings;
extern const Verdict kLogTimeouts;
extern const Verdict kMismatches;
extern const Verdict kMissingRanks;
extern const Verdict kP2pSizes;
extern const Verdict kRasCounts;
extern const Verdict kRasStates;
extern const Verdict kStates;
extern const Verdict kTimeouts;
extern const Verdict kTraceWaits;

namespace {

constexpr std::array kVerdicts = {
    &kFingerprints, &kMismatches, &kGroupOrder,  &kMissingRanks,  &kP2pSizes, &kStates,
    &kTimeouts,     &kLogErrors,  &kLogTimeouts, &kLogCalls,      &kLogJobs,  &kLogSettings,
    &kLogAdapters,  &kLogFabric,  &kLogGdr,      &kLogDuplicates, &kLogP2p,   &kLogInit,
    &kTraceWaits,   &kRasCounts,  &kRasStates};

}  // namespace

std::span<const Verdict* const> verdicts() { return kVerdicts; }

}  // namespace commlens
