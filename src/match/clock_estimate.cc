// Problem: causality alone leaves an offset open by about what a transfer takes. Method: nobody
// leaves an all-reduce before everybody's data have come, and then all leave within microseconds.
// So the ends of one operation, each by its own clock, differ by the clocks' offset:
//
//   host A  [========]                      own ends       107   209   311
//   host B      [====]                                     ---   ---   ---
//           entries say nothing,            of B            95   197   299.2
//           exits agree                     add to B        12    12    11.8   => 12, spread 1 us
//
// The mean of the middle half of the operations is the estimate (as little moved by the odd one as
// the median, and nearer by a fifth where exits scatter evenly); how far the middle nine tenths of
// them scatter is its spread. One clock that runs faster shows as a slope of the differences over
// time.
//
// Which pairs: a tree that prefers pairs with many operations in common. In each group one domain
// stands for all as its hub, so that a group of n clocks costs n differences, not n * n.
//
// A clock that is stepped while it is recorded shows as two levels with a jump between them: no
// line describes it, and the jump is reported.
//
// When it is wrong: where ends differ by a constant for another reason (one host always leaves
// 20 us later) that is taken for an offset. The bounds, which this estimate must lie in, do not
// rest on it, and only they make a verdict certain.
#include "match/clock_estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace commlens {
namespace {

constexpr std::size_t kFewestSamples = 3;  // fewer agree by chance
constexpr Ns kLeastSpread = 1'000;         // resolution of microsecond files
// A jump is looked for between the medians of so many samples before and behind an instant.
constexpr std::size_t kBesideStep = 6;
constexpr std::size_t kBesideStepOfFew = 3;
constexpr Ns kLeastStep = 5'000;

// The middle one; reorders.
template <class Values>
auto middle_of(Values& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Ns percentile(const std::vector<Ns>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// Half of the range of the middle nine tenths.
Ns half_range(const std::vector<Ns>& sorted) {
  return (percentile(sorted, 0.95) - percentile(sorted, 0.05)) / 2;
}

// Sorted.
std::vector<Ns> residuals(const std::vector<ClockSample>& samples, const EstimatedLine& line) {
  std::vector<Ns> rest;
  rest.reserve(samples.size());
  for (const ClockSample& sample : samples)
    rest.push_back(sample.at + sample.ahead - line.common(sample.at));
  std::sort(rest.begin(), rest.end());
  return rest;
}

// The mean of the middle half.
Ns middle_mean(const std::vector<Ns>& sorted) {
  const std::size_t cut = sorted.size() / 4;
  const Ns middle = sorted[sorted.size() / 2];
  // From the middle on: sums of times since the epoch would not fit.
  double sum = 0;
  for (std::size_t i = cut; i < sorted.size() - cut; ++i)
    sum += static_cast<double>(sorted[i] - middle);
  return middle + std::llround(sum / static_cast<double>(sorted.size() - 2 * cut));
}

struct Slope {
  double rate = 0;   // 0 where it could as well be scatter, or is too much for drift
  double error = 0;  // how far off it may be
};

// The median slope of pairs that lie half of the samples apart: each sample counts once or twice,
// and up to a quarter of them can be anything.
Slope slope_of(const std::vector<ClockSample>& samples) {
  const std::size_t half = samples.size() / 2;
  std::vector<double> slopes;
  std::vector<Ns> gaps;
  for (std::size_t i = 0; i + half < samples.size(); ++i) {
    const ClockSample& late = samples[i + half];
    if (late.at <= samples[i].at) continue;
    gaps.push_back(late.at - samples[i].at);
    slopes.push_back(static_cast<double>(late.ahead - samples[i].ahead) /
                     static_cast<double>(gaps.back()));
  }
  if (gaps.empty()) return {.error = kLargestDrift};
  const auto gap = static_cast<double>(middle_of(gaps));
  const double rate = middle_of(slopes);
  const EstimatedLine line{.anchor = samples.front().at, .rate = rate};
  const auto scatter =
      static_cast<double>(std::max(kLeastSpread, half_range(residuals(samples, line))));
  const double by_chance = 3 * scatter / std::sqrt(static_cast<double>(half));
  const bool is_drift = std::abs(rate) <= kLargestDrift && std::abs(rate) * gap > by_chance;
  return {is_drift ? rate : 0, std::min(kLargestDrift, by_chance / gap)};
}

// By how much neighbours differ, but for the largest tenth.
Ns scatter_of_neighbours(const std::vector<ClockSample>& samples, Ns ClockSample::* ahead) {
  std::vector<Ns> changes;
  for (std::size_t i = 1; i < samples.size(); ++i)
    changes.push_back(std::abs(near_time(samples[i].*ahead) - near_time(samples[i - 1].*ahead)));
  std::sort(changes.begin(), changes.end());
  return percentile(changes, 0.9);
}

ClockSample middle_of(const std::vector<ClockSample>& samples, std::size_t first,
                      std::size_t count) {
  std::vector<Ns> times;
  std::vector<Ns> values;
  for (std::size_t i = first; i < first + count; ++i) {
    times.push_back(samples[i].at);
    values.push_back(samples[i].ahead);
  }
  return {middle_of(times), middle_of(values)};
}

// Several ranks on one clock leave a little apart. Where the data come at once and ranks notice
// late, the first exit tells best when they came; where ranks are early as often as late, the
// middle of the exits does: whichever scatters less from operation to operation. Returns by how
// much.
Ns choose_exits(std::vector<ClockSample>& samples) {
  const Ns by_first = scatter_of_neighbours(samples, &ClockSample::ahead);
  if (std::all_of(samples.begin(), samples.end(),
                  [](const ClockSample& s) { return s.ahead == s.middle_ahead; }))
    return by_first;
  const Ns by_middle = scatter_of_neighbours(samples, &ClockSample::middle_ahead);
  if (by_middle >= by_first) return by_first;
  for (ClockSample& sample : samples) sample.ahead = sample.middle_ahead;
  return by_middle;
}

// The largest jump between neighbouring windows that is more than scatter (of neighbours) and
// drift.
Ns step_in(const std::vector<ClockSample>& samples, Ns scatter) {
  const std::size_t count = samples.size() >= 4 * kBesideStep ? kBesideStep : kBesideStepOfFew;
  if (samples.size() < 2 * count) return 0;
  const Ns by_chance = kLeastStep + 3 * scatter;
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(),
      [](const ClockSample& a, const ClockSample& b) { return a.ahead < b.ahead; });
  if (near_time(most->ahead) - near_time(least->ahead) <= by_chance) return 0;  // as mostly
  Ns largest = 0;
  for (std::size_t i = count; i + count <= samples.size(); ++i) {
    const ClockSample before = middle_of(samples, i - count, count);
    const ClockSample behind = middle_of(samples, i, count);
    const Ns jump = std::abs(near_time(behind.ahead) - near_time(before.ahead));
    const auto drifted =
        static_cast<Ns>(kLargestDrift * static_cast<double>(behind.at - before.at));
    if (jump > by_chance + drifted) largest = std::max(largest, jump);
  }
  return largest;
}

}  // namespace

ClockFit fit_samples(std::vector<ClockSample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const ClockSample& a, const ClockSample& b) { return a.at < b.at; });
  const Ns scatter_by_turns = choose_exits(samples);
  ClockFit fit;
  fit.line.anchor = samples[samples.size() / 2].at;
  const Slope slope = slope_of(samples);
  fit.line.rate = slope.rate;
  fit.observed = {samples.front().at, samples.back().at, slope.error};
  const std::vector<Ns> rest = residuals(samples, fit.line);
  // Few samples can agree by chance.
  const double chance = 1 + 6 / static_cast<double>(samples.size());
  const Ns scatter = near_time(std::max(kLeastSpread, half_range(rest)));
  fit.spread = static_cast<Ns>(chance * static_cast<double>(scatter));
  fit.line.offset = near_time(middle_mean(rest));
  fit.step = step_in(samples, scatter_by_turns);
  return fit;
}

namespace {

struct Edge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  bool inferred = false;  // from groups that were inferred: only where nothing else joins the two
  std::size_t operations = 0;
};

// How many operations each domain is in, for one group's operations [first, last).
class Hubs {
 public:
  Hubs(const ClockEvidence& evidence, std::size_t domains)
      : evidence_(evidence), count_(domains, 0) {}

  void add_group(std::size_t first, std::size_t last) {
    members_.clear();
    const bool inferred = evidence_.ops[first].inferred;  // all of one group are, or none
    for (std::size_t i = first; i < last; ++i) {
      const ClockOp& op = evidence_.ops[i];
      if (!op.together) continue;
      for (std::size_t s = op.first; s < op.first + op.count; ++s) {
        const std::uint32_t domain = evidence_.spans[s].domain;
        if (count_[domain]++ == 0) members_.push_back(domain);
      }
    }
    std::sort(members_.begin(), members_.end());
    // The reference is a good hub unless it is hardly there.
    std::uint32_t hub = 0;
    std::size_t most = 0;
    for (const std::uint32_t member : members_) {
      const std::size_t weight = count_[member] * (member == 0 ? 2 : 1);
      if (weight <= most) continue;
      most = weight;
      hub = member;
    }
    for (const std::uint32_t member : members_) {
      if (member == hub) continue;
      const auto [a, b] = std::minmax(hub, member);
      edges_[{inferred, a, b}] += std::min(count_[hub], count_[member]);
    }
    for (const std::uint32_t member : members_) count_[member] = 0;
  }

  // Those with enough operations, the best first.
  std::vector<Edge> edges() const {
    std::vector<Edge> edges;
    for (const auto& [key, operations] : edges_) {
      const auto [inferred, a, b] = key;
      if (operations >= kFewestSamples) edges.push_back({a, b, inferred, operations});
    }
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
      return x.inferred != y.inferred ? y.inferred : x.operations > y.operations;
    });
    return edges;
  }

 private:
  const ClockEvidence& evidence_;
  std::vector<std::size_t> count_;  // by domain
  std::vector<std::uint32_t> members_;
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::size_t> edges_;  // Edge, by parts
};

// Neighbours in the forest of the heaviest edges.
std::vector<std::vector<std::uint32_t>> heaviest_forest(const std::vector<Edge>& edges,
                                                        std::size_t domains) {
  std::vector<std::uint32_t> leader(domains);
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&leader](std::uint32_t domain) {
    while (leader[domain] != domain) domain = leader[domain] = leader[leader[domain]];
    return domain;
  };
  std::vector<std::vector<std::uint32_t>> neighbours(domains);
  for (const Edge& edge : edges) {
    const std::uint32_t a = find(edge.a);
    const std::uint32_t b = find(edge.b);
    if (a == b) continue;
    leader[std::max(a, b)] = std::min(a, b);
    neighbours[edge.a].push_back(edge.b);
    neighbours[edge.b].push_back(edge.a);
  }
  return neighbours;
}

// Every domain behind its parent; roots are their own parents.
struct Tree {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> parent;
};

Tree root_forest(const std::vector<std::vector<std::uint32_t>>& neighbours) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  Tree tree;
  tree.parent.assign(neighbours.size(), kNone);
  for (std::uint32_t root = 0; root < neighbours.size(); ++root) {
    if (tree.parent[root] != kNone) continue;
    tree.parent[root] = root;
    tree.order.push_back(root);
    for (std::size_t i = tree.order.size() - 1; i < tree.order.size(); ++i) {
      for (const std::uint32_t next : neighbours[tree.order[i]]) {
        if (tree.parent[next] != kNone) continue;
        tree.parent[next] = tree.order[i];
        tree.order.push_back(next);
      }
    }
  }
  return tree;
}

struct Samples {
  std::vector<ClockSample> close;   // of balanced operations
  std::vector<ClockSample> others;  // ends of unequal shares agree less
  std::vector<ClockSample> inferred;

  std::vector<ClockSample>& best() {
    if (close.size() >= kFewestSamples) return close;
    return others.size() >= kFewestSamples ? others : inferred;
  }
};

Ns middle_exit(const ClockSpan& span) { return span.left + (span.all_left - span.left) / 2; }

// By domain: what its ends differ from its parent's.
std::vector<Samples> collect_samples(const ClockEvidence& evidence, const Tree& tree) {
  std::vector<Samples> samples(tree.parent.size());
  std::vector<const ClockSpan*> here(tree.parent.size(), nullptr);
  for (const ClockOp& op : evidence.ops) {
    if (!op.together) continue;
    const ClockSpan* spans = &evidence.spans[op.first];
    for (std::uint32_t i = 0; i < op.count; ++i) here[spans[i].domain] = &spans[i];
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const ClockSpan* parent = here[tree.parent[spans[i].domain]];
      if (parent == nullptr || parent == &spans[i]) continue;
      Samples& of = samples[spans[i].domain];
      (op.inferred   ? of.inferred
       : op.balanced ? of.close
                     : of.others)
          .push_back({.at = spans[i].left,
                      .ahead = parent->left - spans[i].left,
                      .middle_ahead = middle_exit(*parent) - middle_exit(spans[i])});
    }
    for (std::uint32_t i = 0; i < op.count; ++i) here[spans[i].domain] = nullptr;
  }
  return samples;
}

// `line` leads to a clock that `next` leads on from.
EstimatedLine joined(const EstimatedLine& line, const EstimatedLine& next) {
  const Ns between = line.anchor + line.offset;
  return {.anchor = line.anchor,
          .offset = near_time(line.offset + (next.common(between) - between)),
          .rate = line.rate + next.rate + line.rate * next.rate};
}

}  // namespace

ClockEstimate estimate_offsets(const ClockEvidence& evidence, std::size_t domains) {
  Hubs hubs(evidence, domains);
  for (std::size_t first = 0, last = 0; first < evidence.ops.size(); first = last) {
    while (last < evidence.ops.size() && evidence.ops[last].group == evidence.ops[first].group)
      ++last;
    hubs.add_group(first, last);
  }
  const Tree tree = root_forest(heaviest_forest(hubs.edges(), domains));
  std::vector<Samples> samples = collect_samples(evidence, tree);

  ClockEstimate estimate;
  estimate.lines.resize(domains);
  estimate.links.resize(domains);
  estimate.observed.resize(domains);
  estimate.root.resize(domains);
  estimate.step.resize(domains);
  for (const std::uint32_t domain : tree.order) {
    const std::uint32_t parent = tree.parent[domain];
    std::vector<ClockSample>& best = samples[domain].best();
    if (parent == domain || best.size() < kFewestSamples) {
      estimate.links[domain].parent = estimate.root[domain] = domain;
      continue;
    }
    const ClockFit fit = fit_samples(std::move(best));
    estimate.links[domain] = {parent, estimate.links[parent].depth + 1, fit.spread};
    estimate.observed[domain] = fit.observed;
    estimate.step[domain] = fit.step;
    estimate.root[domain] = estimate.root[parent];
    estimate.lines[domain] = joined(fit.line, estimate.lines[parent]);
  }
  return estimate;
}

}  // namespace commlens
