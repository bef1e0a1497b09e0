#include "analysis/analysis.h"

namespace commlens {

// One line an analysis.
extern const Analysis kStragglers;
extern const Analysis kExplain;
extern const Analysis kLedger;
extern const Analysis kBreakdown;
extern const Analysis kMeasured;
extern const Analysis kOperations;
extern const Analysis kGroups;
extern const Analysis kSizes;
extern const Analysis kSlices;
extern const Analysis kEvidenceCounts;
extern const Analysis kCollectives;
extern const Analysis kJoined;
extern const Analysis kClocks;
extern const Analysis kWaits;
extern const Analysis kCriticalPath;
extern const Analysis kFindings;

namespace {

constexpr const Analysis* kAnalyses[] = {
    &kStragglers, &kExplain, &kLedger, &kFindings, &kCriticalPath,   &kBreakdown,
    &kOperations, &kGroups,  &kSizes,  &kSlices,   &kEvidenceCounts, &kCollectives,
    &kJoined,     &kClocks,  &kWaits,  &kMeasured};

}  // namespace

std::span<const Analysis* const> analyses() { return kAnalyses; }

}  // namespace commlens
