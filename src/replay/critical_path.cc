// Problem: which activities would have to be shorter for the job to end earlier?
//
//   rank 0  [= a =]               [ar ]        the path goes back from the end: the all-reduce from
//   rank 1  [======= b =======]   [ar ]        its last arrival (rank 1), the gap before it, b;
//                              ^gap            a and rank 0's waiting are not on it
//
// Method: from the last end backwards. At each instant the path is in one activity of one rank; at
// its start it goes on to what bound that start: of all its dependencies the one whose end plus
// latency is latest. A matched communication is on the path from its last arrival on; then the path
// is on the rank that came last. A start that comes later than all its dependencies explain leaves
// the rest unexplained. Segments tile the window, so their sums are exact whatever was recorded.
//
// Cost: proportional to the length of the path, but for finding the end.
//
// When it is wrong: dependencies that were not recorded and not inferred are taken over by the next
// best one. Times of two hosts are as good as their clocks; an arrival that they place behind the
// end of its operation is taken to be at that end.
#include "replay/critical_path.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace commlens {
namespace {

// What a start may come later than its dependencies and still be explained: scatter of latencies.
constexpr Ns kScatter = 5'000;
// Share of a path that may be unexplained or go along inferred dependencies before its figures are
// called doubtful: one in twenty.
constexpr Ns kDoubtfulOf = 20;

class PathFinder {
 public:
  explicit PathFinder(const Graph& graph) : graph_(graph) {}
  CriticalPath find();

 private:
  std::optional<ItemId> find_window();
  void follow_node(ItemId node);
  void follow_stretch(ItemId stretch);
  std::optional<ItemId> leave_communication(ItemId node, const Graph::Membership& in);
  void go_back_from_start(ItemId node);
  void add(Ns from, std::uint32_t rank, std::uint32_t node, PathClass kind);
  void finish();
  void judge();
  Ns unmatched_transfer() const;
  Ns instant(const Dependency& dependency) const;
  std::optional<Ns> recorded_since(std::uint32_t rank) const;

  Ns start(ItemId node) const {
    const std::uint32_t rank = graph_.rank_of_node(node);
    return graph_.work(rank).start[graph_.local(rank, node)];
  }
  Ns end(ItemId node) const {
    const std::uint32_t rank = graph_.rank_of_node(node);
    return graph_.work(rank).end[graph_.local(rank, node)];
  }
  bool at_begin() const { return now_ <= path_.window.start; }

  const Graph& graph_;
  CriticalPath path_;
  Ns now_ = 0;  // the path is known from here on
  ItemId next_ = 0;
  enum class At : std::uint8_t { node, stretch, nowhere } at_ = At::nowhere;
  std::uint32_t rank_ = 0;
  std::optional<std::uint32_t> unrecorded_;  // rank on whose host the path left its recording
};

// The node that ends last; of several, the lowest rank's.
std::optional<ItemId> PathFinder::find_window() {
  std::optional<ItemId> last;
  Interval window{std::numeric_limits<Ns>::max(), std::numeric_limits<Ns>::min()};
  for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank) {
    const Work& work = graph_.work(rank);
    for (std::uint32_t node = 0; node < work.size(); ++node) {
      window.start = std::min(window.start, work.start[node]);
      if (work.end[node] <= window.end) continue;
      window.end = work.end[node];
      last = graph_.node(rank, node);
    }
  }
  if (last) path_.window = window;
  return last;
}

// The path from `from` to where it is known already; pieces of one kind are put together later.
void PathFinder::add(Ns from, std::uint32_t rank, std::uint32_t node, PathClass kind) {
  from = std::max(from, path_.window.start);
  if (from >= now_) return;
  path_.segments.push_back({.time = {from, now_}, .rank = rank, .node = node, .kind = kind});
  now_ = from;
}

Ns PathFinder::instant(const Dependency& dependency) const {
  return dependency.of == Dependency::Of::node_end
             ? end(dependency.item)
             : graph_.stretch(dependency.item).start + dependency.offset;
}

PathClass class_of(ActivityClass kind) {
  switch (kind) {
    case ActivityClass::compute: return PathClass::compute;
    case ActivityClass::memory: return PathClass::memory;
    case ActivityClass::communication: return PathClass::transfer;
  }
  return PathClass::unexplained;
}

// The part of a matched communication behind its last arrival; whose arrival that was, if
// another's.
std::optional<ItemId> PathFinder::leave_communication(ItemId node, const Graph::Membership& in) {
  const auto members = graph_.members(static_cast<std::size_t>(in.op));
  const Graph::Range needed = graph_.needed(static_cast<std::size_t>(in.op), in.part);
  ItemId last = node;
  for (std::uint32_t i = needed.first; i < needed.last; ++i) {
    // Of several at one instant the own rank's, then the lowest: members come by rank.
    if (members[i] != kNoNode && start(members[i]) > start(last)) last = members[i];
  }
  const std::uint32_t rank = graph_.rank_of_node(node);
  add(std::min(start(last), now_), rank, graph_.local(rank, node), PathClass::transfer);
  return last == node ? std::nullopt : std::optional(last);
}

// The path is in this node, at `now_`.
void PathFinder::follow_node(ItemId node) {
  const std::uint32_t rank = graph_.rank_of_node(node);
  const std::uint32_t local = graph_.local(rank, node);
  const ActivityClass kind = graph_.work(rank).kind[local];
  if (kind == ActivityClass::communication) {
    const Graph::Membership in = graph_.membership(rank, local);
    if (in.op >= 0) {
      if (const auto last = leave_communication(node, in)) {
        node = *last;
        // Clocks that are a little off can place the arrival behind the end.
        now_ = std::min(now_, std::max(start(node), path_.window.start));
        return go_back_from_start(node);
      }
    }
  }
  add(start(node), rank, local, class_of(kind));
  go_back_from_start(node);
}

void PathFinder::go_back_from_start(ItemId node) {
  const std::uint32_t rank = graph_.rank_of_node(node);
  std::optional<Dependency> binding;
  Ns bound = std::numeric_limits<Ns>::min();
  graph_.start_dependencies(node, [&](const Dependency& dependency) {
    const Ns reached = instant(dependency) + dependency.latency;
    if (reached <= bound) return;
    bound = reached;
    binding = dependency;
  });
  at_ = At::nowhere;
  rank_ = rank;
  if (at_begin() || !binding) return;
  // Whatever it comes later than that has no explanation, and nothing but that is left out.
  const Ns late = now_ - bound;
  if (late > kScatter) add(bound, rank, kNoNode, PathClass::unexplained);
  add(instant(*binding), rank, kNoNode, PathClass::host);
  if (binding->reason == Reason::inferred) ++path_.inferred_on_path;
  next_ = binding->item;
  at_ = binding->of == Dependency::Of::node_end ? At::node : At::stretch;
}

// The begin of a rank's recording, in common time.
std::optional<Ns> PathFinder::recorded_since(std::uint32_t rank) const {
  const Job& job = graph_.job();
  const Recording& recording = job.ranks[rank].recording;
  if (!recording.span) return std::nullopt;
  return job.clocks.known ? job.clocks.common(rank, recording.span->start) : recording.span->start;
}

// The path is on a host thread, at `now_`, in this stretch.
void PathFinder::follow_stretch(ItemId id) {
  const HostStretch& stretch = graph_.stretch(id);
  const std::uint32_t rank = graph_.rank_of_stretch(id);
  rank_ = rank;
  add(stretch.start, rank, kNoNode, PathClass::host);
  std::optional<Dependency> binding;
  Ns bound = std::numeric_limits<Ns>::min();
  graph_.stretch_dependencies(id, [&](const Dependency& dependency) {
    const Ns reached = instant(dependency) + dependency.latency;
    if (reached <= bound) return;
    bound = reached;
    binding = dependency;
  });
  at_ = At::nowhere;
  if (at_begin()) return;
  if (!binding) {
    // Before its first call the thread had nothing for the GPU, as long as it was recorded.
    const auto since = recorded_since(rank);
    if (since) add(*since, rank, kNoNode, PathClass::host);
    if (!at_begin()) unrecorded_ = rank;
    return;
  }
  add(instant(*binding), rank, kNoNode, PathClass::host);
  if (binding->reason == Reason::inferred_sync) ++path_.inferred_on_path;
  next_ = binding->item;
  at_ = binding->of == Dependency::Of::node_end ? At::node : At::stretch;
}

void PathFinder::finish() {
  add(path_.window.start, rank_, kNoNode, PathClass::unexplained);
  std::reverse(path_.segments.begin(), path_.segments.end());
  path_.by_rank.assign(graph_.job().ranks.size(), 0);
  std::vector<PathSegment> merged;
  for (const PathSegment& segment : path_.segments) {
    path_.sums[static_cast<std::size_t>(segment.kind)] += segment.time.length();
    path_.by_rank[segment.rank] += segment.time.length();
    if (!merged.empty() && merged.back().rank != segment.rank) ++path_.rank_changes;
    const bool same = !merged.empty() && merged.back().rank == segment.rank &&
                      merged.back().node == segment.node && merged.back().kind == segment.kind;
    if (same) {
      merged.back().time.end = segment.time.end;
    } else {
      merged.push_back(segment);
    }
  }
  path_.segments = std::move(merged);
  for (const RankTimeline& rank : graph_.job().ranks)
    path_.inferred_edges += rank.work.inferred_edges;
  path_.contradictions = graph_.contradictions();
}

CriticalPath PathFinder::find() {
  const std::optional<ItemId> last = find_window();
  if (!last) {
    path_.missing = "there is no GPU work in these inputs";
    return std::move(path_);
  }
  path_.known = true;
  now_ = path_.window.end;
  next_ = *last;
  at_ = At::node;
  // Each step goes to an item that the graph has before it: no more steps than items, unless
  // contradictory times lead in a circle.
  const std::size_t most = 2 * (graph_.order().size() + 1);
  for (std::size_t step = 0; step < most && at_ != At::nowhere && !at_begin(); ++step) {
    if (at_ == At::node) {
      follow_node(next_);
    } else {
      follow_stretch(next_);
    }
  }
  finish();
  judge();
  return std::move(path_);
}

// The part of the path that is communication of which some rank's part is not known: it was not
// recorded, or nothing tells that they are one operation.
Ns PathFinder::unmatched_transfer() const {
  const Job& job = graph_.job();
  Ns sum = 0;
  for (const PathSegment& segment : path_.segments) {
    if (segment.kind != PathClass::transfer || segment.node == kNoNode) continue;
    const std::int32_t op = graph_.membership(segment.rank, segment.node).op;
    if (op < 0 || !job.matching.ops[static_cast<std::size_t>(op)].whole)
      sum += segment.time.length();
  }
  return sum;
}

// Whether its figures can be relied on.
void PathFinder::judge() {
  const Job& job = graph_.job();
  const auto doubt = [this](std::string why) {
    path_.sure = false;
    path_.doubt += (path_.doubt.empty() ? "" : "; ") + std::move(why);
  };
  for (std::size_t row = 0; row < job.ranks.size() && job.clocks.known; ++row) {
    if (job.ranks[row].work.size() == 0 || job.clocks.lines[row].method != ClockMethod::none)
      continue;
    doubt("nothing tells the clock of rank " + std::to_string(job.ranks[row].rank));
    break;
  }
  const Ns length = path_.window.length();
  const Ns unexplained = path_.sums[static_cast<std::size_t>(PathClass::unexplained)];
  // Waiting for a rank that has no trace cannot be told from its transfer.
  const bool missing =
      !job.missing_ranks.empty() || job.world_size > static_cast<std::int64_t>(job.ranks.size());
  if (missing && path_.sums[static_cast<std::size_t>(PathClass::transfer)] > length / kDoubtfulOf)
    doubt("ranks are missing, and waiting for them counts as transfer");
  // Of one rank alone nothing can be matched, nor told from each other.
  const Ns alone = has_several_ranks(job) ? unmatched_transfer() : 0;
  if (!missing && alone > length / kDoubtfulOf)
    doubt(std::to_string(100 * alone / std::max<Ns>(1, length)) +
          " % of it is communication of which not every rank's part is matched, and waiting in it "
          "counts as transfer");
  if (unexplained <= length / kDoubtfulOf) return;
  doubt(unrecorded_ ? "the recording of rank " + std::to_string(job.ranks[*unrecorded_].rank) +
                          " begins later than those that it must be compared with"
                    : "much of it has no explanation");
}

}  // namespace

CriticalPath find_critical_path(const Graph& graph) { return PathFinder(graph).find(); }

}  // namespace commlens
