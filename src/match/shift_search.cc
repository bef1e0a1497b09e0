// Problem: a training loop repeats itself, so operations and sizes alone fit at every step's
// distance, and hosts' clocks differ by an amount that is not known.
//
//   reference   A B B C   A B  B C   A B B C        steps of slightly different length
//   own                   A B  B C   A B B C
//               shift by one step: ends differ by   5, 5, 6, 5, 5 ...   microseconds of scatter
//               no shift:                           5, 5, 90, 85, 85 .. the jitter of the steps
//
// Method: the operations of a short stretch vote for the difference of the clocks: each with every
// operation of the other rank that it can be, within a bound. Where votes crowd is a candidate;
// lost events take away votes and shift nothing. The best candidates are tried by time, around the
// stretch first and then, once a drift is known, on the whole. The scatter of the ends decides.
// Where a second candidate scatters about as little, the shift is undecidable.
// When it is wrong: steps that repeat to the microsecond and a shift of more than kMostSearched
// operations, or of two thirds of what was recorded.
#include "match/shift_search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

namespace commlens {
namespace {

constexpr std::size_t kStretch = 12;  // operations that vote
constexpr std::int64_t kMostSearched =
    256;  // to each side of "starts together" and "ends together"
constexpr std::size_t kMostCandidates = 24;  // that are tried around their stretch
constexpr std::size_t kMostTried = 8;        // that are tried on the whole
constexpr std::size_t kTriedAround = 64;     // operations around a stretch
constexpr Ns kEndsTogether = 100'000;        // of one operation, on real machines
constexpr Ns kRefined = 50'000;              // what a trial looks at is never less
constexpr Ns kSearchNoise = 5'000;
constexpr Ns kHopeless = 10;  // times the scatter of the best around its stretch
constexpr Ns kFirstTolerance = 300'000;
constexpr Ns kTimesSpread = 10;
constexpr Ns kVotesTogether = 100'000;
constexpr Ns kPartOfUsualGap =
    4;  // of the usual time between operations: nearer than its neighbour
constexpr std::size_t kFewestToShift = 3;  // operations that a shift can be told from
constexpr std::size_t kFewestSure = 6;     // and for certain

struct Vote {
  Ns difference = 0;
  std::size_t voter = 0;
};

struct Candidate {
  EndLine line;
  std::size_t position = 0;  // of the stretch's middle, in the own order
  std::size_t votes = 0;
};

struct Tried {
  Candidate candidate;
  Relation relation;
  std::vector<TimePair> pairs;
};

class ShiftSearch {
 public:
  ShiftSearch(const EventsByEnd& reference, const EventsByEnd& own)
      : reference_(reference), own_(own), gap_(own.usual_gap()) {}

  std::optional<Relation> run() {
    find_candidates();
    std::vector<Tried> all = try_around();
    for (Tried& tried : all) extend(tried);
    std::erase_if(all, [](const Tried& tried) { return tried.pairs.empty(); });
    keep_different(all);
    return decide(all);
  }

 private:
  // Stretches at the start, in the middle and at the end vote.
  void find_candidates() {
    const std::size_t length = std::min(kStretch, own_.size());
    std::vector<std::size_t> starts = {0};
    if (own_.size() > 2 * kStretch) starts.push_back((own_.size() - length) / 2);
    if (own_.size() > kStretch) starts.push_back(own_.size() - length);
    for (const std::size_t from : starts) {
      std::vector<Candidate> found = candidates_of(from, length);
      std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
        return std::tuple(b.votes, std::abs(a.line.offset), a.line.offset) <
               std::tuple(a.votes, std::abs(b.line.offset), b.line.offset);
      });
      found.resize(std::min(found.size(), kMostCandidates / starts.size()));
      std::erase_if(found, [most = found.empty() ? 0 : found.front().votes](const Candidate& of) {
        return 3 * of.votes < 2 * most;
      });
      candidates_.insert(candidates_.end(), found.begin(), found.end());
    }
  }

  std::vector<Vote> votes_of(std::size_t from, std::size_t length) const {
    const auto size = static_cast<std::int64_t>(reference_.size());
    const std::int64_t longer = size - static_cast<std::int64_t>(own_.size());
    std::vector<Vote> votes;
    for (std::size_t k = from; k < from + length; ++k) {
      const auto at = static_cast<std::int64_t>(k);
      const auto vote = [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t there = std::max<std::int64_t>(first, 0); there < std::min(last, size);
             ++there) {
          const CommEvent& other = reference_.at(static_cast<std::size_t>(there));
          if (can_be_one(own_.at(k), other)) votes.push_back({other.end - own_.at(k).end, k});
        }
      };
      const std::int64_t low = at + std::min<std::int64_t>(0, longer);
      const std::int64_t high = at + std::max<std::int64_t>(0, longer);
      if (high - low <= 2 * kMostSearched) {
        vote(low - kMostSearched, high + kMostSearched);
      } else {
        vote(low - kMostSearched, low + kMostSearched);
        vote(high - kMostSearched, high + kMostSearched);
      }
    }
    std::sort(votes.begin(), votes.end(), [](const Vote& a, const Vote& b) {
      return std::tie(a.difference, a.voter) < std::tie(b.difference, b.voter);
    });
    return votes;
  }

  // Crowds of votes, each of many voters, that do not overlap.
  std::vector<Candidate> candidates_of(std::size_t from, std::size_t length) const {
    const std::vector<Vote> votes = votes_of(from, length);
    const Ns stretch = own_.at(from + length - 1).end - own_.at(from).end;
    const Ns width =
        std::min(std::max<Ns>(gap_ / 8, 1'000),
                 kVotesTogether + static_cast<Ns>(kMostDrift * static_cast<double>(stretch)));
    std::vector<Candidate> found;
    std::vector<std::size_t> count(length, 0);
    std::size_t voters = 0;
    std::size_t first = 0;
    Candidate best;
    Ns best_start = 0;
    const auto finish = [&] {
      if (2 * best.votes >= length) found.push_back(best);
      best = {};
    };
    for (std::size_t last = 0; last < votes.size(); ++last) {
      voters += count[votes[last].voter - from]++ == 0 ? 1 : 0;
      while (votes[last].difference - votes[first].difference > width) {
        voters -= --count[votes[first].voter - from] == 0 ? 1 : 0;
        ++first;
      }
      if (best.votes > 0 && votes[first].difference - best_start > width) finish();
      if (voters <= best.votes) continue;
      best_start = votes[first].difference;
      best.votes = voters;
      best.position = from + length / 2;
      best.line = {.at = own_.at(best.position).end,
                   .offset = votes[first + (last - first) / 2].difference,
                   .slope = 0};
    }
    finish();
    return found;
  }

  // Around their stretches; the best few go on.
  std::vector<Tried> try_around() const {
    std::vector<Tried> all;
    const Ns tolerance = first_tolerance(own_);
    for (const Candidate& candidate : candidates_) {
      Tried tried{.candidate = candidate, .relation = {.line = candidate.line}, .pairs = {}};
      const std::size_t half = kTriedAround / 2;
      const OrderRange range{candidate.position - std::min(candidate.position, half),
                             std::min(own_.size(), candidate.position + half)};
      refine(tried, tolerance, range);
      refine(tried, tolerance, range);
      if (!tried.pairs.empty()) all.push_back(std::move(tried));
    }
    keep_different(all);
    std::stable_sort(all.begin(), all.end(), [](const Tried& a, const Tried& b) {
      return a.relation.spread < b.relation.spread;
    });
    if (all.size() > kMostTried) all.resize(kMostTried);
    std::erase_if(all, [&all](const Tried& tried) {
      return tried.relation.spread > kHopeless * all.front().relation.spread + kEndsTogether;
    });
    return all;
  }

  // One more round: pairs by the line, and the line by the pairs.
  void refine(Tried& tried, Ns tolerance, OrderRange range) const {
    if (tried.relation.spread > 0)
      tolerance = std::min(tolerance, std::max(kTimesSpread * tried.relation.spread, kRefined));
    tried.pairs = match_by_time(reference_, own_, tried.relation.line, tolerance, range);
    if (tried.pairs.empty()) return;
    const EndFit fit = fit_line(end_differences(reference_, own_, tried.pairs));
    tried.relation.line = fit.line;
    tried.relation.spread = fit.spread;
  }

  // To the whole, in rounds: each reaches so far that what it does not know of the drift stays
  // below the tolerance.
  void extend(Tried& tried) const {
    const Ns tolerance = first_tolerance(own_);
    const auto whole = static_cast<double>(own_.at(own_.size() - 1).end - own_.at(0).end);
    for (double reach = static_cast<double>(tolerance) / kMostDrift / 4; reach < whole;
         reach *= 4) {
      const Ns at = tried.candidate.line.at;
      const auto span = static_cast<Ns>(reach);
      refine(tried, tolerance, own_.between(at - span, at + span));
      if (tried.pairs.empty()) return;
    }
    refine(tried, tolerance, {0, own_.size()});
  }

  // Of candidates that pair the same, the one that pairs most.
  static void keep_different(std::vector<Tried>& all) {
    std::vector<Tried> kept;
    for (Tried& tried : all) {
      const auto same = std::find_if(kept.begin(), kept.end(), [&tried](const Tried& other) {
        return std::abs(tried.relation.line.to_reference(tried.candidate.line.at) -
                        other.relation.line.to_reference(tried.candidate.line.at)) <=
               kSearchNoise + tried.relation.spread + other.relation.spread;
      });
      if (same == kept.end()) {
        kept.push_back(std::move(tried));
      } else if (tried.pairs.size() > same->pairs.size()) {
        *same = std::move(tried);
      }
    }
    all = std::move(kept);
  }

  // Of what both recorded, by this line, the greater part is paired.
  bool most_paired(const Tried& tried) const {
    const EndLine& line = tried.relation.line;
    const OrderRange mine =
        own_.between(line.from_reference(reference_.at(0).end) - kEndsTogether,
                     line.from_reference(reference_.at(reference_.size() - 1).end) + kEndsTogether);
    const OrderRange theirs =
        reference_.between(line.to_reference(own_.at(0).end) - kEndsTogether,
                           line.to_reference(own_.at(own_.size() - 1).end) + kEndsTogether);
    return 5 * tried.pairs.size() >=
           3 * std::min(mine.last - mine.first, theirs.last - theirs.first);
  }

  std::optional<Relation> decide(const std::vector<Tried>& all) const {
    if (all.empty()) return std::nullopt;
    std::size_t most = 0;
    for (const Tried& tried : all) most = std::max(most, tried.pairs.size());
    const std::size_t enough = std::min(most, std::max(kFewestToShift, most / 3));
    Ns least = std::numeric_limits<Ns>::max() / 8;
    for (const Tried& tried : all) {
      if (tried.pairs.size() >= enough) least = std::min(least, tried.relation.spread);
    }
    const auto rank_of = [](const Tried& of) {
      return std::tuple(-static_cast<std::int64_t>(of.pairs.size()), of.relation.spread,
                        std::abs(of.relation.line.offset), of.relation.line.offset);
    };
    const Tried* best = nullptr;
    std::size_t as_good = 0;
    for (const Tried& tried : all) {
      if (tried.pairs.size() < enough || tried.relation.spread > 3 * least + kSearchNoise) continue;
      ++as_good;
      if (best == nullptr || rank_of(tried) < rank_of(*best)) best = &tried;
    }
    Relation relation = best->relation;
    relation.sure = as_good == 1 && best->pairs.size() >= kFewestSure && most_paired(*best);
    return relation;
  }

  const EventsByEnd& reference_;
  const EventsByEnd& own_;
  Ns gap_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Tolerance tolerance_of(Ns spread, const EventsByEnd& own) {
  const Ns part = own.usual_gap() / kPartOfUsualGap;
  const Ns usual = kTimesSpread * spread + kSearchNoise;
  return {.scatter = usual,
          .sure = std::max(usual, std::min(kEndsTogether, part)),
          .most = std::max(usual, std::min(kFirstTolerance, part))};
}

Ns first_tolerance(const EventsByEnd& own) {
  return std::max(kFirstTolerance, own.usual_gap() / kPartOfUsualGap);
}

std::optional<Relation> search_shift(const EventsByEnd& reference, const EventsByEnd& own) {
  if (reference.size() == 0 || own.size() == 0) return std::nullopt;
  return ShiftSearch(reference, own).run();
}

}  // namespace commlens
