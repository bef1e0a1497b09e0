#include "analysis/analysis.h"

namespace commlens {

// One line an analysis.
extern const Analysis kStragglers;
extern const Analysis kExplain;
extern const Analysis kLedger;
extern const Analysis kBreakdown;
extern const Analysis kOperations;
extern const Analysis kGroups;
extern const Analysis kSizes;
extern const Analysis kSlices;
extern const Analysis kEvidenceCounts;
extern const Analysis kCollectives;
extern const Analysis kClocks;
extern const Analysis kWaits;
extern const Analysis kCriticalPath;

namespace {

constexpr const Analysis* kAnalyses[] = {
    &kStragglers, &kExplain, &kLedger,         &kCriticalPath, &kBreakdown, &kOperations, &kGroups,
    &kSizes,      &kSlices,  &kEvidenceCounts, &kCollectives,  &kClocks,    &kWaits};

constexpr std::string_view kAbsentParts[] = {"findings"};

}  // namespace

std::span<const Analysis* const> analyses() { return kAnalyses; }
std::span<const std::string_view> parts_without_analysis() { return kAbsentParts; }

}  // namespace commlens
