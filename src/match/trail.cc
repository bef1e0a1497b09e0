// Problem: the sums of match/origin say where all waiting came from; somebody who doubts them wants
// to follow one wait by hand. Method: from a wait to its culprit, to what the culprit had most more
// of; where that is waiting, on to the longest of the culprit's own waits. When it is wrong: it
// shows the largest share at each hop and leaves the smaller ones out; the sums do not.
#include "match/trail.h"

#include <algorithm>
#include <array>

#include "match/comm_numbers.h"
#include "match/comparison.h"

namespace commlens {
namespace {

constexpr int kMostHops = 16;

class Tracker {
 public:
  explicit Tracker(const Job& job) : job_(job), tables_(job, job.waits, 1), comparison_(tables_) {
    find_groups();
  }
  Trail follow(Part part);

 private:
  const Wait& wait(const Part& part) const {
    return job_.waits.of[part.rank][part.device][part.op];
  }
  void find_groups();
  TrailHop hop(const Part& part) const;

  const Job& job_;
  ComparisonTables tables_;
  Comparison comparison_;
  std::map<Part, std::int32_t> groups_;  // of parts in matched operations
};

void Tracker::find_groups() {
  for (const MatchedOp& op : job_.matching.ops) {
    for (std::uint32_t i = 0; i < op.count; ++i)
      groups_.emplace(job_.matching.parts[op.first + i], op.group);
  }
}

TrailHop Tracker::hop(const Part& part) const {
  const Wait& wait = this->wait(part);
  const CommOp& op = comm_of(job_, part);
  TrailHop hop{.waiter = job_.ranks[part.rank].rank,
               .culprit = job_.ranks[wait.culprit->rank].rank,
               .op = op.op,
               .group = {},
               .step = op.step,
               .waited = wait.wait,
               .exposed = wait.exposed,
               .because = "unknown",
               .more = 0,
               .confidence = wait.certain  ? "certain"
                             : wait.likely ? "likely"
                                           : "undecidable"};
  if (const auto group = groups_.find(part); group != groups_.end())
    hop.group = job_.matching.groups[static_cast<std::size_t>(group->second)].label;
  return hop;
}

Trail Tracker::follow(Part part) {
  Trail trail;
  while (trail.size() < kMostHops && wait(part).wait > 0 && wait(part).culprit) {
    const Part culprit = *wait(part).culprit;
    trail.push_back(hop(part));
    const auto excess = wait(part).known ? comparison_.compare(culprit, part) : std::nullopt;
    if (!excess || excess->sum() == 0) break;
    const std::array<std::pair<Ns, std::string_view>, 5> classes{
        {{excess->compute, excess->unequal ? "imbalance" : "compute"},
         {excess->host, "host"},
         {excess->waiting, "waiting"},
         {excess->transfer, "transfer"},
         {excess->unknown, "unknown"}}};
    const auto largest = std::max_element(classes.begin(), classes.end(),
                                          [](auto a, auto b) { return a.first < b.first; });
    trail.back().because = largest->second;
    trail.back().more = largest->first;
    if (largest->second != "waiting") break;
    const auto waited = comparison_.parts(excess->since, culprit);
    const auto longest =
        std::max_element(waited.begin(), waited.end(),
                         [](const auto& a, const auto& b) { return a.waiting < b.waiting; });
    if (longest == waited.end()) break;
    part = {culprit.rank, culprit.device, longest->op};
  }
  return trail;
}

}  // namespace

std::vector<Trail> trails_of(const Job& job, std::size_t row, std::size_t most) {
  if (!job.waits.known) return {};
  std::vector<std::pair<Ns, Part>> longest;
  for (std::uint32_t device = 0; device < job.waits.of[row].size(); ++device) {
    const std::vector<Wait>& waits = job.waits.of[row][device];
    for (std::uint32_t op = 0; op < waits.size(); ++op) {
      if (waits[op].exposed > 0)
        longest.push_back({-waits[op].exposed, {static_cast<std::uint32_t>(row), device, op}});
    }
  }
  const std::size_t count = std::min(most, longest.size());
  std::partial_sort(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(count),
                    longest.end());
  Tracker tracker(job);
  std::vector<Trail> trails;
  for (std::size_t i = 0; i < count; ++i) trails.push_back(tracker.follow(longest[i].second));
  return trails;
}

}  // namespace commlens
