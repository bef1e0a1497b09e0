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
// Of two ranks that are equally late, neither gains anything before the other one is mended: named
// culprits that gain nothing stay open and are tried again together with the next. What they gain
// together is shared out equally among those that it takes.
//
// Cost: two replays for each candidate that the critical path leaves room for (one for the first),
// of which at most kMostReplayed are looked at.
//
// When it is wrong: as the replay is (replay/replay.cc). A finding whose place in the order is
// behind another that covers it shows only what is left: `alone` has the rest.
#include "advice/advice.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

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

// Empty: none.
std::string doubt_of(const Job& job) {
  if (!job.path.sure) return job.path.doubt;
  if (job.ranks.size() == 1 && job.world_size > 1)
    return "one rank of several: its waiting for others counts as transfer";
  return {};
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
        const Ns most = candidate.culprit ? window_ : most_gain(scene_.graph(), candidate.change);
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
          const Ns least = weighed_[i].candidate.least_window;
          weighed_[i].alone = std::max<Ns>(0, window_ - std::max(least, outcome.window.length()));
        });
    std::erase_if(weighed_, [this](const Weighed& one) {
      if (one.candidate.culprit) return false;
      const double least = finders()[one.place]->least * static_cast<double>(window_);
      return !is_worth_saying(one.alone) || static_cast<double>(one.alone) < least;
    });
    std::stable_sort(weighed_.begin(), weighed_.end(), [](const Weighed& a, const Weighed& b) {
      return a.place != b.place ? a.place < b.place : a.alone > b.alone;
    });
  }

  // What `changes` gain on top of `all`.
  Ns gain_of(const Assumption& all, const std::vector<Weighed>& changes, Outcome& outcome) const {
    Assumption with = all;
    Ns least = least_;
    for (const Weighed& one : changes) {
      with = combined(with, one.candidate.change);
      least = std::max(least, one.candidate.least_window);
    }
    replay(*constraints_, with, outcome);
    return window_ - std::max(least, outcome.window.length());
  }

  // Culprits of `together` (the last of which made the gain) without which as much is gained go
  // back to `open`. Whether any did.
  bool keep_needed(const Assumption& all, Ns gain, std::vector<Weighed>& together,
                   std::vector<Weighed>& open, Outcome& outcome) const {
    for (std::size_t i = 0; i + 1 < together.size();) {
      std::vector<Weighed> without = together;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_worth_saying(gain - gain_of(all, without, outcome))) {
        ++i;
        continue;
      }
      open.push_back(std::move(together[i]));
      together = std::move(without);
    }
    return !open.empty();
  }

  void replay_together() {
    Assumption all;
    Outcome outcome;
    Ns gained = 0;
    std::vector<Weighed> open;  // culprits that gained nothing so far
    for (Weighed& one : weighed_) {
      std::vector<Weighed> together = std::exchange(open, {});
      if (!one.candidate.culprit) {
        found_.left_out += static_cast<std::int64_t>(together.size());
        together.clear();
      }
      together.push_back(std::move(one));
      // What comes first was replayed already.
      Ns gain = gained == 0 && together.size() == 1 ? together.front().alone
                                                    : gain_of(all, together, outcome);
      // No more than the recorded path holds of it, though more of it comes to light behind what
      // those before it take away.
      const Ns most = together.back().candidate.culprit ? window_ : together.back().most;
      if (!is_worth_saying(std::min(gain - gained, most))) {
        if (together.back().candidate.culprit) {
          open = std::move(together);
        } else {
          ++found_.left_out;
        }
        continue;
      }
      if (keep_needed(all, gain, together, open, outcome)) gain = gain_of(all, together, outcome);
      share(std::min(gain - gained, most), together);
      for (const Weighed& each : together) {
        all = combined(all, each.candidate.change);
        least_ = std::max(least_, each.candidate.least_window);
      }
      gained = gain;
    }
    found_.left_out += static_cast<std::int64_t>(open.size());
  }

  // Several gain only together: as much each.
  void share(Ns gain, std::vector<Weighed>& together) {
    const auto count = static_cast<Ns>(together.size());
    for (std::size_t i = 0; i < together.size(); ++i) {
      Weighed& one = together[i];
      const Ns part = gain / count + (i == 0 ? gain % count : 0);
      if (one.candidate.culprit && 4 * one.alone < part)
        one.candidate.finding.title += count > 1 ? "; others are as late" : ", behind a later rank";
      add(std::move(one.candidate.finding), part, one.alone);
    }
  }

  void add(Finding finding, Ns gain, Ns alone) {
    finding.recoverable = scene_.per_step(gain);
    finding.alone = scene_.per_step(alone);
    finding.severity = severity_of(static_cast<double>(gain) / static_cast<double>(window_));
    const std::string doubt = doubt_of(scene_.job());
    if (!doubt.empty()) {
      finding.confidence = Confidence::undecidable;
      finding.evidence += std::string(kDoubtWords) + doubt;
    }
    found_.rows.push_back(std::move(finding));
  }

  const Scene scene_;
  std::optional<Constraints> constraints_;
  const unsigned threads_;
  const Ns window_;
  Ns least_ = 0;  // that the run takes with all that was found so far
  std::vector<Weighed> weighed_;
  Findings found_;
};

}  // namespace

Findings find_advice(const Graph& graph, unsigned threads) { return Adviser(graph, threads).run(); }

}  // namespace commlens
