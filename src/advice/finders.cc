#include <iterator>

#include "advice/candidate.h"

namespace commlens {

// One line a finder. What has a cause comes first, bounds last: each gains what those before it
// leave. One launch that comes late is told before hosts that are slow with all of them.
extern const Finder kSlowRank;
extern const Finder kLateHost;
extern const Finder kUnequalSharding;
extern const Finder kSlowLink;
extern const Finder kSynchronisation;
extern const Finder kStartEarlier;
extern const Finder kHostBound;
extern const Finder kContention;
extern const Finder kPlacement;
extern const Finder kAnotherStream;
extern const Finder kLargerBuckets;
extern const Finder kSmallMessages;
extern const Finder kSmallerBuckets;
extern const Finder kExposed;
extern const Finder kPipelineBubble;

namespace {

constexpr const Finder* kFinders[] = {
    &kSlowRank,      &kLateHost,      &kUnequalSharding, &kSlowLink,  &kSynchronisation,
    &kStartEarlier,  &kHostBound,     &kContention,      &kPlacement, &kAnotherStream,
    &kLargerBuckets, &kSmallMessages, &kSmallerBuckets,  &kExposed,   &kPipelineBubble};

}  // namespace

std::span<const Finder* const> finders() { return kFinders; }

}  // namespace commlens
