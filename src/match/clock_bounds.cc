// Problem: rank j enters at s, rank i, who needs it, leaves at e, each by its own clock. With
// offsets o added, s + o_j <= e + o_i: the difference o_j - o_i is at most e - s. Every operation
// gives such bounds, in both directions where both need each other:
//
//   own times   j [5 .. 7)    i [2 .. 12)
//   5 + o_j <= 12 + o_i   and   2 + o_i <= 7 + o_j     =>   -5 <= o_j - o_i <= 7
//
// The tightest of all operations would be the bound, were it not for drift: offsets change by up to
// 200 parts per million of time, for each clock, and what held then need not hold now.
//
// Method: bins of time, with the tightest bound on each pair in each, valid anywhere in the bin:
//
//   ops      |  x      |     x  x|         |  x     |     one op lands in its bin, loosened by the
//   bound    |  6      |  4      |  -      |  5     |     drift from it to the bin's far end
//   forward  |  6      |  4  ->  |4+d  ->  |4+2d, 5 |     then goes on to its neighbours, d looser
//   backward |4+d <-   |  4  <-  |4+d  <-  |        |     each
//
// and last, in each bin, shortest ways through other domains. No line is fitted: bounds hold for
// any clocks that stay within the drift, however they wander.
//
// Cost: an operation of n clocks gives n * n bounds. Where many large operations fall into one bin,
// each domain takes part in full only with those few that it was shortest in: there it came last,
// and its entry bounds everybody else best. The others may be tighter by microseconds; leaving them
// out is safe.
#include "match/clock_bounds.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

constexpr Ns kUnbounded = ClockError::kUnbounded;
constexpr Ns kShortestBin = 1'000'000;
constexpr std::size_t kMostEntries = 8'400'000;  // of all matrices: 64 MiB
constexpr std::size_t kMostBins = 100'000;
static_assert(kMostBoundedClocks * kMostBoundedClocks <= kMostEntries);
constexpr std::size_t kMostClosureSteps = 600'000'000;
constexpr std::size_t kWayRounds = 8;  // of ways from the reference, where all ways are too many
// Operations with more clocks than this are thinned out, to so many for each clock, group and bin.
constexpr std::size_t kManyClocks = 64;
constexpr std::size_t kKeptOps = 8;
// Sums of bounds along any way stay inside 64 bits: 13 days.
constexpr Ns kLowest = -(Ns{1} << 50U);

// What one operation says of one domain, in a bin: times with the line's offset at origin added,
// loosened by drift.
struct Moment {
  std::uint32_t domain = 0;
  bool needed = false;
  bool needs = false;
  Ns entered = 0;
  Ns left = 0;
};

class Builder {
 public:
  Builder(const ClockEvidence& evidence, const ClockPlacement& placement, Ns epsilon)
      : evidence_(evidence), placement_(placement), epsilon_(epsilon) {
    const std::size_t domains = placement.lines.size();
    bounds_.domains = domains;
    if (domains < 2 || domains > kMostBoundedClocks) return;
    // A few bins for each operation are enough.
    const auto length = static_cast<std::size_t>(placement.end - placement.origin);
    const std::size_t bins =
        std::clamp<std::size_t>(std::min({kMostEntries / (domains * domains),
                                          length / kShortestBin + 1, 4 * evidence.ops.size()}),
                                1, kMostBins);
    bounds_.bin_length = static_cast<Ns>(length / bins + 1);
    bounds_.most.assign(bins, std::vector<Ns>(domains * domains, kUnbounded));
    kept_.resize(domains);
  }

  ClockBounds run() {
    if (bounds_.most.empty()) return std::move(bounds_);
    const std::vector<ClockOp>& ops = evidence_.ops;
    for (std::size_t first = 0, last = 0; first < ops.size(); first = last) {
      while (last < ops.size() && ops[last].group == ops[first].group) ++last;
      add_group(first, last);
    }
    spread_to_neighbours();
    for (std::vector<Ns>& matrix : bounds_.most) {
      for (std::size_t x = 0; x < bounds_.domains; ++x) matrix[x * bounds_.domains + x] = 0;
    }
    return std::move(bounds_);
  }

 private:
  struct Placed {
    std::size_t bin = 0;
    const ClockOp* op = nullptr;
  };

  std::size_t bin_of(const ClockOp& op) const {
    const ClockSpan& span = evidence_.spans[op.first];
    const Ns at = placement_.lines[span.domain].common(
        span.left == ClockSpan::kNobody ? span.entered : span.left);
    const Ns bin = (near_time(at) - near_time(placement_.origin)) / bounds_.bin_length;
    return static_cast<std::size_t>(
        std::clamp(bin, Ns{0}, static_cast<Ns>(bounds_.most.size()) - 1));
  }

  // A group's operations, bin by bin.
  void add_group(std::size_t first, std::size_t last) {
    placed_.clear();
    for (std::size_t i = first; i < last; ++i) {
      if (!evidence_.ops[i].inferred)
        placed_.push_back({bin_of(evidence_.ops[i]), &evidence_.ops[i]});
    }
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const Placed& a, const Placed& b) { return a.bin < b.bin; });
    for (std::size_t from = 0, to = 0; from < placed_.size(); from = to) {
      std::size_t large = 0;
      for (; to < placed_.size() && placed_[to].bin == placed_[from].bin; ++to)
        large += is_large(*placed_[to].op) ? 1 : 0;
      if (large > kKeptOps) choose(from, to);
      for (std::size_t i = from; i < to; ++i)
        add(placed_[i], large > kKeptOps && is_large(*placed_[i].op) ? &kept_ : nullptr);
    }
  }

  // How short a domain was in an operation.
  struct Kept {
    Ns length = 0;
    const ClockOp* op = nullptr;
    friend bool operator<(const Kept& a, const Kept& b) { return a.length < b.length; }
  };
  struct KeptOps {
    std::array<Kept, kKeptOps> ops;  // a heap: the longest first
    std::size_t count = 0;
    void offer(const Kept& candidate) {
      if (count == kKeptOps) {
        if (!(candidate < ops[0])) return;
        std::pop_heap(ops.begin(), ops.end());
        --count;
      }
      ops[count++] = candidate;
      std::push_heap(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(count));
    }
    bool has(const ClockOp* op) const {
      return std::any_of(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(count),
                         [op](const Kept& kept) { return kept.op == op; });
    }
  };

  static bool is_large(const ClockOp& op) { return op.together && op.count > kManyClocks; }

  // For each domain, the large operations of a run in which it was shortest.
  void choose(std::size_t from, std::size_t to) {
    for (KeptOps& kept : kept_) kept.count = 0;
    for (std::size_t i = from; i < to; ++i) {
      if (!is_large(*placed_[i].op)) continue;
      const ClockSpan* spans = &evidence_.spans[placed_[i].op->first];
      for (std::uint32_t s = 0; s < placed_[i].op->count; ++s)
        kept_[spans[s].domain].offer({spans[s].left - spans[s].entered, placed_[i].op});
    }
  }

  Ns drift_to_bin(Ns at, Ns start) const {
    const Ns end = start + bounds_.bin_length;
    return drift_of_one(std::max({Ns{0}, near_time(end) - at, at - near_time(start)}));
  }

  Moment moment(const ClockSpan& span, Ns bin_start) const {
    Moment moment{.domain = span.domain};
    const EstimatedLine& line = placement_.lines[span.domain];
    const Ns offset = placement_.at_origin[span.domain];
    if (span.entered != ClockSpan::kNobody) {
      moment.needed = true;
      moment.entered = near_time(span.entered + offset) -
                       drift_to_bin(near_time(line.common(span.entered)), bin_start);
    }
    if (span.left != ClockSpan::kNobody) {
      moment.needs = true;
      moment.left = near_time(span.left + offset) + epsilon_ +
                    drift_to_bin(near_time(line.common(span.left)), bin_start);
    }
    return moment;
  }

  // `kept`: whose entries to use; null: everybody's.
  void add(const Placed& placed, const std::vector<KeptOps>* kept) {
    const Ns bin_start = placement_.origin + static_cast<Ns>(placed.bin) * bounds_.bin_length;
    moments_.clear();
    for (std::uint32_t i = 0; i < placed.op->count; ++i)
      moments_.push_back(moment(evidence_.spans[placed.op->first + i], bin_start));
    std::vector<Ns>& matrix = bounds_.most[placed.bin];
    for (const Moment& in : moments_) {
      if (!in.needed || (kept != nullptr && !(*kept)[in.domain].has(placed.op))) continue;
      Ns* row = &matrix[in.domain * bounds_.domains];
      for (const Moment& out : moments_) {
        if (!out.needs) continue;
        const Ns most = std::max(kLowest, out.left - in.entered);
        row[out.domain] = std::min(row[out.domain], most);
      }
    }
  }

  // Bounds of one bin hold in the next, looser by what clocks drift in its length.
  void spread_to_neighbours() {
    const Ns step = drift_of_two(bounds_.bin_length);
    const auto pass_on = [step](const std::vector<Ns>& from, std::vector<Ns>& to) {
      for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::min(to[i], from[i] + step);
    };
    std::vector<std::vector<Ns>>& most = bounds_.most;
    for (std::size_t bin = 1; bin < most.size(); ++bin) pass_on(most[bin - 1], most[bin]);
    for (std::size_t bin = most.size() - 1; bin > 0; --bin) pass_on(most[bin], most[bin - 1]);
  }

  const ClockEvidence& evidence_;
  const ClockPlacement& placement_;
  Ns epsilon_;
  ClockBounds bounds_;
  std::vector<Placed> placed_;
  std::vector<Moment> moments_;
  std::vector<KeptOps> kept_;  // by domain, of the run at hand
};

// Floyd and Warshall's; false as soon as a way leads back to its start below 0.
bool close_matrix(std::vector<Ns>& matrix, std::size_t domains, Contradiction& contradiction) {
  for (std::size_t via = 0; via < domains; ++via) {
    const Ns* second = &matrix[via * domains];
    for (std::size_t from = 0; from < domains; ++from) {
      Ns* row = &matrix[from * domains];
      const Ns first = row[via];
      if (first >= kUnbounded / 2 || from == via) continue;
      for (std::size_t to = 0; to < domains; ++to) row[to] = std::min(row[to], first + second[to]);
      if (row[from] >= 0) continue;
      contradiction.partners.assign(domains, 0);
      contradiction.partners[from] = contradiction.partners[via] = 1;
      contradiction.worst = -row[from];
      return false;
    }
  }
  // An unbounded part of a way, made a little shorter by the other, is unbounded still.
  for (Ns& entry : matrix) {
    if (entry >= kUnbounded / 2) entry = kUnbounded;
  }
  return true;
}

// Shortest ways of a few parts, from domain 0 and to it.
void close_to_reference(std::vector<Ns>& matrix, std::size_t domains,
                        Contradiction& contradiction) {
  for (std::size_t round = 0; round < kWayRounds; ++round) {
    bool changed = false;
    const auto shorten = [&changed](Ns& way, Ns first, Ns second) {
      if (first >= kUnbounded || second >= kUnbounded || first + second >= way) return;
      way = std::max(kLowest, first + second);
      changed = true;
    };
    for (std::size_t via = 1; via < domains; ++via) {
      for (std::size_t end = 1; end < domains; ++end) {
        shorten(matrix[end], matrix[via], matrix[via * domains + end]);
        shorten(matrix[end * domains], matrix[end * domains + via], matrix[via * domains]);
      }
    }
    if (!changed) break;
  }
  contradiction.partners.assign(domains, 0);
  for (std::size_t domain = 1; domain < domains; ++domain) {
    const Ns there_and_back = matrix[domain] + matrix[domain * domains];
    if (there_and_back >= 0) continue;
    contradiction.partners[domain] = 1;
    contradiction.worst = std::max(contradiction.worst, -there_and_back);
  }
}

}  // namespace

ClockBounds bound_offsets(const ClockEvidence& evidence, const ClockPlacement& placement,
                          Ns epsilon) {
  return Builder(evidence, placement, epsilon).run();
}

Contradiction find_contradiction(const ClockBounds& bounds) {
  const std::size_t domains = bounds.domains;
  std::vector<Ns> least(domains * domains, 0);  // of going there and back, in any bin
  for (const std::vector<Ns>& matrix : bounds.most) {
    for (std::size_t x = 0; x < domains; ++x) {
      for (std::size_t y = x + 1; y < domains; ++y) {
        Ns& of_pair = least[x * domains + y];
        of_pair = std::min(of_pair, matrix[x * domains + y] + matrix[y * domains + x]);
      }
    }
  }
  Contradiction found;
  found.partners.assign(domains, 0);
  for (std::size_t i = 0; i < least.size(); ++i) {
    if (least[i] == 0) continue;
    ++found.partners[i / domains];
    ++found.partners[i % domains];
    found.worst = std::max(found.worst, -least[i]);
  }
  return found;
}

Contradiction close_bounds(ClockBounds& bounds) {
  Contradiction contradiction;
  const std::size_t domains = bounds.domains;
  if (bounds.most.empty()) return contradiction;
  if (domains * domains * domains * bounds.most.size() > kMostClosureSteps) {
    close_to_reference(bounds.most.front(), domains, contradiction);
    return contradiction;
  }
  for (std::vector<Ns>& matrix : bounds.most) {
    if (!close_matrix(matrix, domains, contradiction)) break;
  }
  return contradiction;
}

}  // namespace commlens
