#include "match/event_sources.h"

#include <algorithm>
#include <tuple>

namespace commlens {
namespace {

// More are not followed: what a stream waits for between two of its own activities.
constexpr std::size_t kMostSources = 16;

}  // namespace

EventSources::EventSources(const RankTimeline& rank, const WorkNodes& nodes)
    : nodes_(nodes), by_stream_(nodes.streams()) {
  std::vector<const SyncRecord*> records;
  for (const SyncRecord& record : rank.recording.sync_records) {
    if (record.kind == SyncKind::stream_wait) records.push_back(&record);
  }
  std::stable_sort(records.begin(), records.end(), [](const SyncRecord* a, const SyncRecord* b) {
    return std::tuple(a->start, a->correlation) < std::tuple(b->start, b->correlation);
  });
  for (const SyncRecord* record : records) {
    const auto waits = nodes.find_stream(record->stream);
    const auto source = nodes.find_stream(record->source);
    if (!waits || !source || *waits == *source) continue;
    const bool known = record->record_correlation != 0;
    EventWait wait{.correlation = record->correlation,
                   .start = record->start,
                   .stream = *waits,
                   .record_known = known,
                   .sources = of(*source, known ? record->record_correlation : record->correlation,
                                 record->start)};
    by_stream_[*waits].push_back(static_cast<std::uint32_t>(waits_.size()));
    waits_.push_back(std::move(wait));
  }
}

std::vector<std::uint32_t> EventSources::of(std::size_t stream, std::uint64_t correlation,
                                            Ns start) const {
  std::vector<std::uint32_t> sources;
  const auto add = [&sources](std::uint32_t node) {
    if (sources.size() < kMostSources &&
        std::find(sources.begin(), sources.end(), node) == sources.end())
      sources.push_back(node);
  };
  const std::uint32_t last = nodes_.last_launched_before(stream, correlation, start);
  if (last != kNoNode) add(last);
  const std::vector<std::uint32_t>& own = by_stream_[stream];
  for (std::size_t i = own.size(); i-- > 0;) {
    const EventWait& wait = waits_[own[i]];
    if (wait.correlation >= correlation && correlation != 0) continue;
    // The last work was launched behind this wait: it has waited already.
    if (last != kNoNode && nodes_.correlation(last) > wait.correlation) break;
    for (const std::uint32_t node : wait.sources) add(node);
  }
  return sources;
}

}  // namespace commlens
