// Problem: each piece of advice alone may promise half of the step; together they cannot keep it.
//
//   rank 5 is slow: -8 ms     the all-reduce is exposed: -10 ms     step: 15 ms
//
// Method: every candidate is a change of the dependency graph. Each is replayed alone; then one
// after another, each on top of those before it: those that name a cause first, bounds last (the
// order of finders()), of one kind the one first that gains most. What a finding is said to recover
// is what its replay is shorter by than the one before: these differences sum to what all of them
// together gain.
//
// Cost: two replays for each candidate that the critical path leaves room for, of which at most
// kMostReplayed are looked at.
//
// When it is wrong: as the replay is (replay/replay.cc). A finding whose place in the order is
// behind another that covers it shows only what is left: `alone` has the rest.
#include "advice/advice.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "advice/candidate.h"
#include "base/parallel.h"

namespace commlens {
namespace {

// Less of a step is no advice.
constexpr double kWorthSaying = 0.005;
constexpr double kMedium = 1.0 / 30;
constexpr double kHigh = 0.1;
constexpr std::size_t kMostReplayed = 16;

struct Weighed {
  Candidate candidate;
  std::size_t place = 0;  // of its finder
  Ns most = 0;            // that it can gain of the window
  Ns alone = 0;           // that it gains
};

FindingSeverity severity_of(double share) {
  if (share >= kHigh) return FindingSeverity::high;
  return share >= kMedium ? FindingSeverity::medium : FindingSeverity::low;
}

class Adviser {
 public:
  Adviser(const Graph& graph, unsigned threads)
      : scene_(graph), threads_(threads), window_(graph.job().path.window.length()) {}

  Findings run() {
    found_.known = true;
    found_.step = scene_.step();
    collect();
    if (!weighed_.empty()) {  // made here: finders need memory of their own
      constraints_.emplace(scene_.graph(), threads_);
      replay_alone();
      replay_together();
    }
    std::stable_sort(
        found_.rows.begin(), found_.rows.end(),
        [](const Finding& a, const Finding& b) { return a.recoverable > b.recoverable; });
    return std::move(found_);
  }

 private:
  bool is_worth_saying(Ns gain) const {
    return gain > 0 && static_cast<double>(gain) >= kWorthSaying * static_cast<double>(window_);
  }

  void collect() {
    std::vector<std::vector<Weighed>> found(finders().size());
    for_each_parallel(found.size(), threads_, [&](std::size_t place) {
      for (Candidate& candidate : finders()[place]->find(scene_)) {
        candidate.finding.id = finders()[place]->id;
        const Ns most = candidate.hidden ? window_ : most_gain(scene_.graph(), candidate.change);
        if (is_worth_saying(most)) found[place].push_back({std::move(candidate), place, most, 0});
      }
    });
    for (std::vector<Weighed>& of_one : found)
      std::move(of_one.begin(), of_one.end(), std::back_inserter(weighed_));
    keep_most(&Weighed::most);
  }

  void keep_most(Ns Weighed::* figure) {
    if (weighed_.size() <= kMostReplayed) return;
    std::stable_sort(
        weighed_.begin(), weighed_.end(),
        [figure](const Weighed& a, const Weighed& b) { return a.*figure > b.*figure; });
    found_.left_out += static_cast<std::int64_t>(weighed_.size() - kMostReplayed);
    weighed_.resize(kMostReplayed);
  }

  void replay_alone() {
    // Outcomes are large: each thread fills its own again and again, and one rank of a long run,
    // whose memory must not outgrow what reading it took, has one thread.
    const auto ranks = static_cast<unsigned>(scene_.job().ranks.size());
    for_each_parallel(
        weighed_.size(), std::min(threads_, ranks), [] { return Outcome(); },
        [&](std::size_t i, Outcome& outcome) {
          replay(*constraints_, weighed_[i].candidate.change, outcome);
          weighed_[i].alone = std::max<Ns>(0, window_ - outcome.window.length());
        });
    std::erase_if(weighed_, [this](const Weighed& one) {
      if (one.candidate.hidden) return false;
      const double least = finders()[one.place]->least * static_cast<double>(window_);
      return !is_worth_saying(one.alone) || static_cast<double>(one.alone) < least;
    });
    std::stable_sort(weighed_.begin(), weighed_.end(), [](const Weighed& a, const Weighed& b) {
      return a.place != b.place ? a.place < b.place : a.alone > b.alone;
    });
  }

  void replay_together() {
    Assumption all;
    Outcome outcome;
    Ns gained = 0;
    for (Weighed& one : weighed_) {
      const Assumption with = combined(all, one.candidate.change);
      Ns gain = one.alone;
      if (!found_.rows.empty()) {  // the first stands on nothing but itself
        replay(*constraints_, with, outcome);
        gain = window_ - outcome.window.length();
      }
      if (!is_worth_saying(gain - gained)) {
        ++found_.left_out;
        continue;
      }
      add(std::move(one.candidate.finding), gain - gained, one.alone);
      all = with;
      gained = gain;
    }
  }

  void add(Finding finding, Ns gain, Ns alone) {
    finding.recoverable = scene_.per_step(gain);
    finding.alone = scene_.per_step(alone);
    finding.severity = severity_of(static_cast<double>(gain) / static_cast<double>(window_));
    const CriticalPath& path = scene_.job().path;
    if (!path.sure) {
      finding.confidence = Confidence::undecidable;
      finding.evidence += std::string(kDoubtWords) + path.doubt;
    }
    found_.rows.push_back(std::move(finding));
  }

  const Scene scene_;
  std::optional<Constraints> constraints_;
  const unsigned threads_;
  const Ns window_;
  std::vector<Weighed> weighed_;
  Findings found_;
};

}  // namespace

Findings find_advice(const Graph& graph, unsigned threads) { return Adviser(graph, threads).run(); }

}  // namespace commlens
