#include "study/contexts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "ingest/format.h"

namespace commlens {
namespace {

// Of each rank, no more than can end up among the top contributors.
constexpr std::size_t kMostPlaces = 64;

// Segments that are one contributor on their rank.
using Kind = std::tuple<PathClass, StringId, Op, std::int32_t>;  // its group

struct Longest {
  std::size_t segment = 0;
  Ns length = 0;
  Ns sum = 0;
};

const CommOp* communication_of(const RankTimeline& rank, const PathSegment& segment) {
  if (segment.kind != PathClass::transfer) return nullptr;
  const std::vector<CommNode>& comm = rank.work.comm;
  const auto found =
      std::lower_bound(comm.begin(), comm.end(), segment.node,
                       [](const CommNode& c, std::uint32_t node) { return c.node < node; });
  if (found == comm.end() || found->node != segment.node) return nullptr;
  return &rank.devices[found->device].comm[found->op];
}

Kind kind_of(const RankTimeline& rank, const PathSegment& segment) {
  if (segment.node == kNoNode) return {segment.kind, StringId::none(), Op::unknown, -2};
  if (const CommOp* op = communication_of(rank, segment))
    return {segment.kind, StringId::none(), op->op, op->group};
  return {segment.kind, rank.work.name[segment.node], Op::unknown, -2};
}

// By row of the job's ranks: the longest segment of each kind, those of the costliest kinds first.
std::vector<std::vector<Longest>> longest_segments(const Job& job) {
  std::vector<std::map<Kind, Longest>> kinds(job.ranks.size());
  for (std::size_t i = 0; i < job.path.segments.size(); ++i) {
    const PathSegment& segment = job.path.segments[i];
    Longest& longest = kinds[segment.rank][kind_of(job.ranks[segment.rank], segment)];
    const Ns length = segment.time.length();
    longest.sum += length;
    if (length <= longest.length) continue;
    longest.length = length;
    longest.segment = i;
  }
  std::vector<std::vector<Longest>> rows;
  for (const auto& by_kind : kinds) {
    std::vector<Longest>& row = rows.emplace_back();
    for (const auto& [kind, longest] : by_kind) row.push_back(longest);
    std::stable_sort(row.begin(), row.end(),
                     [](const Longest& a, const Longest& b) { return a.sum > b.sum; });
    if (row.size() > kMostPlaces) row.resize(kMostPlaces);
  }
  return rows;
}

// The thread that launched what a segment belongs to: of host time, what comes next on that rank.
std::optional<CallPlace> place_of(const Job& job, std::size_t row) {
  const PathSegment& segment = job.path.segments[row];
  const Work& work = job.ranks[segment.rank].work;
  std::size_t launched = row;
  while (launched < job.path.segments.size() && job.path.segments[launched].node == kNoNode)
    ++launched;
  if (launched == job.path.segments.size()) return std::nullopt;
  const PathSegment& activity = job.path.segments[launched];
  if (activity.rank != segment.rank || work.stretch[activity.node] == kNoNode ||
      work.launch[activity.node] == kNoLaunch)
    return std::nullopt;
  const std::uint32_t thread = work.stretches[work.stretch[activity.node]].thread;
  const auto& threads = job.ranks[segment.rank].recording.threads;
  if (thread >= threads.size()) return std::nullopt;
  const Ns common = segment.node == kNoNode ? segment.time.start + segment.time.length() / 2
                                            : work.launch[activity.node];
  const Ns own = job.clocks.known ? job.clocks.own(segment.rank, common) : common;
  return CallPlace{.time = own, .thread = threads[thread].second};
}

std::vector<CallContext> read_again(const Recording& recording,
                                    const std::vector<CallPlace>& places) {
  const Format* format = find_format(recording.format);
  if (format == nullptr || format->read_contexts == nullptr || places.empty()) return {};
  try {
    Source source = Source::open(recording.path);
    return format->read_contexts(source, places);
  } catch (const Error&) {
    return {};  // it could be read before: whatever is wrong now, figures do not depend on it
  }
}

}  // namespace

void find_path_contexts(Job& job, bool all, unsigned threads) {
  const auto longest = longest_segments(job);
  std::vector<std::map<std::size_t, CallContext>> found(job.ranks.size());
  for_each_parallel(job.ranks.size(), threads, [&](std::size_t row) {
    const Recording& recording = job.ranks[row].recording;
    if (recording.path == "-" || (!all && recording.events > kEasilyReadAgain)) return;
    std::vector<CallPlace> places;
    std::vector<std::size_t> segments;
    for (const Longest& one : longest[row]) {
      if (const auto place = place_of(job, one.segment)) {
        places.push_back(*place);
        segments.push_back(one.segment);
      }
    }
    std::vector<CallContext> contexts = read_again(recording, places);
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      if (!contexts[i].empty()) found[row].emplace(segments[i], std::move(contexts[i]));
    }
  });
  for (auto& contexts : found) job.path.contexts.merge(contexts);
}

}  // namespace commlens
