// Problem: a table of waits is no answer. Method: for each rank (or all ranks of a host, or each
// link) and each cause, the waiting that came from it, step by step, is judged (match/suspicion),
// and the rank's own time has to show the cause: compute longer than that of ranks with the same
// work, idle with nothing queued, more bytes. When it is wrong: two ranks of a job of two differ by
// less than noise; a pipeline of single ranks has no peers, and only the pace of equal kernels
// tells.
#include "match/stragglers.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "match/comm_numbers.h"
#include "match/kernel_pace.h"
#include "match/peers.h"
#include "match/slow_links.h"
#include "match/step_table.h"
#include "match/straggler_words.h"
#include "match/suspicion.h"

namespace commlens {
namespace {

using RankRows = std::vector<std::uint32_t>;

// The same kernels take this much longer: a slow GPU, not noise.
constexpr double kSlowPace = 1.03;
// A rank exchanged this much more than its peers: unequal work.
constexpr double kUnequalBytes = 1.08;
// Own time beyond the peers' that counts as a sign of the cause, of the step.
constexpr double kLeastExtra = 0.003;
constexpr double kPlainExtra = 0.02;
// The same, of one whose delay others hide, and as many of these as are looked at.
constexpr double kHiddenExtra = 0.01;
constexpr std::size_t kMostHidden = 4;
// Waiting, of the GPU time, that is worth a word.
constexpr double kMuch = 0.01;
// Of the GPU time in exposed transfers of a group like no other: less is what transfers cost.
constexpr double kMuchOfOneGroup = 0.2;
// Ranks whose numbers of events in a step differ by more than one in this many did not record
// alike.
constexpr std::int64_t kEventsApart = 50;

class StragglerFinder {
 public:
  explicit StragglerFinder(const Job& job)
      : job_(job), table_(job), peers_(job), paces_(kernel_paces(job)) {}
  Stragglers run();

 private:
  std::optional<std::pair<Cause, Verdict>> verdict_of(std::uint32_t rank,
                                                      const RankRows& peers) const;
  void suspect_ranks();
  void suspect_hosts(Cause cause);
  void suspect_links();
  void find_hidden();
  Ns steady_extra(std::uint32_t rank, Cause cause) const;
  void say_what_is_open();
  void say_where_no_link_can_be_told();
  Suspicion of_rank(std::uint32_t rank, Cause cause, const RankRows& peers) const;
  std::optional<Suspicion> of_host(const std::string& host, const RankRows& rows,
                                   Cause cause) const;
  Suspicion of_groups(const std::set<std::int32_t>& groups) const;
  bool shows(std::uint32_t rank, Cause cause, const RankRows& peers, std::size_t step,
             Ns originated) const;
  Ns own_time(std::uint32_t rank, Cause cause, std::size_t step) const;
  WaitSums own_origin(std::uint32_t rank, std::size_t step) const;
  Ns usual(const RankRows& rows, std::size_t step) const;
  RankRows comparable(std::uint32_t rank, const RankRows& peers, std::size_t step) const;
  Ns extra(std::uint32_t rank, Cause cause, const RankRows& peers, std::size_t step) const;
  bool experts(std::uint32_t rank, Cause cause, std::size_t step) const;
  bool shows_plainly(std::uint32_t rank, Cause cause, const RankRows& peers,
                     std::size_t step) const;
  RankRows like(std::uint32_t rank) const;
  Straggler row(const Verdict& verdict, Cause cause, std::size_t ranks) const;
  RankEvidence evidence(std::uint32_t rank, Cause cause, const RankRows& peers,
                        const Verdict& verdict) const;
  void add(Straggler straggler) { found_.rows.push_back(std::move(straggler)); }

  const Job& job_;
  StepTable table_;
  Peers peers_;
  std::vector<std::optional<double>> paces_;
  std::set<std::uint32_t> named_;  // as part of a host
  Stragglers found_;
};

// Ranks to compare with: its peers, else all others.
RankRows StragglerFinder::like(std::uint32_t rank) const {
  if (!peers_.of(rank).empty()) return peers_.of(rank);
  RankRows others;
  std::copy_if(table_.ranks().begin(), table_.ranks().end(), std::back_inserter(others),
               [rank](std::uint32_t other) { return other != rank; });
  return others;
}

Ns StragglerFinder::own_time(std::uint32_t rank, Cause cause, std::size_t step) const {
  const RankStep& cell = table_.at(rank, step);
  if (cause == Cause::imbalance) return cell.bytes;
  return cause == Cause::host ? cell.host : cell.compute;
}

// What came from a rank's own work and host in a step. By which of them a wait was late is told by
// the rank's own time over the step, not wait by wait: a launch that comes late while the GPU still
// computes looks like compute.
WaitSums StragglerFinder::own_origin(std::uint32_t rank, std::size_t step) const {
  WaitSums sums;
  for (const Cause cause : {Cause::compute, Cause::host, Cause::imbalance})
    sums += table_.at(rank, step).originated[static_cast<std::size_t>(cause)];
  return sums;
}

// What comes from the median of these ranks in a step.
Ns StragglerFinder::usual(const RankRows& rows, std::size_t step) const {
  std::vector<Ns> values;
  for (const std::uint32_t rank : rows) values.push_back(own_origin(rank, step).exposed);
  return median_of(std::move(values));
}

// Those of its peers whose record of the step is as full: where events were lost, less compute is
// no sign of speed.
RankRows StragglerFinder::comparable(std::uint32_t rank, const RankRows& peers,
                                     std::size_t step) const {
  const std::int64_t own = table_.at(rank, step).events;
  RankRows rows;
  std::copy_if(peers.begin(), peers.end(), std::back_inserter(rows), [&](std::uint32_t peer) {
    const std::int64_t theirs = table_.at(peer, step).events;
    return std::abs(own - theirs) * kEventsApart <= std::max(own, theirs);
  });
  return rows;
}

Ns StragglerFinder::extra(std::uint32_t rank, Cause cause, const RankRows& peers,
                          std::size_t step) const {
  std::vector<Ns> theirs;
  for (const std::uint32_t peer : comparable(rank, peers, step))
    theirs.push_back(own_time(peer, cause, step));
  if (theirs.empty()) return 0;
  return own_time(rank, cause, step) - median_of(std::move(theirs));
}

// Whether the rank's own time has the cause in it. Nobody waits longer for it than it is late, so
// its extra time is at least its share of what it caused.
bool StragglerFinder::shows(std::uint32_t rank, Cause cause, const RankRows& peers,
                            std::size_t step, Ns originated) const {
  const bool alike = !comparable(rank, peers, step).empty();
  if (cause == Cause::compute && (peers_.of(rank).empty() || !alike))
    return paces_[rank] && *paces_[rank] >= kSlowPace;
  const Ns extra = this->extra(rank, cause, peers, step);
  const Ns own = own_time(rank, cause, step);
  if (cause == Cause::imbalance)
    return static_cast<double>(own) >= kUnequalBytes * static_cast<double>(own - extra) && own > 0;
  const auto waiters = static_cast<Ns>(std::max<std::size_t>(1, table_.ranks().size() - 1));
  const Ns window = table_.at(rank, step).window;
  return extra >= originated / waiters / 2 &&
         static_cast<double>(extra) >= kLeastExtra * static_cast<double>(window);
}

// Whether more compute may be no more than more tokens: experts' work differs, also by host.
bool StragglerFinder::experts(std::uint32_t rank, Cause cause, std::size_t step) const {
  const bool slow = paces_[rank] && *paces_[rank] >= kSlowPace;
  return cause == Cause::compute && table_.at(rank, step).exchanges > 0 && !slow;
}

// Experts' work differs from step to step in the healthiest job.
bool StragglerFinder::shows_plainly(std::uint32_t rank, Cause cause, const RankRows& peers,
                                    std::size_t step) const {
  const RankStep& cell = table_.at(rank, step);
  if (cause == Cause::imbalance || (cause == Cause::compute && cell.exchanges > 0)) return false;
  return static_cast<double>(extra(rank, cause, peers, step)) >=
         kPlainExtra * static_cast<double>(cell.window);
}

Suspicion StragglerFinder::of_rank(std::uint32_t rank, Cause cause, const RankRows& peers) const {
  Suspicion suspicion;
  for (std::size_t step = 0; step < table_.steps().size(); ++step) {
    const WaitSums sums = own_origin(rank, step);
    suspicion.originated.push_back(sums);
    suspicion.usual.push_back(usual(peers, step));
    const bool seen = sums.exposed > 0 && shows(rank, cause, peers, step, sums.exposed);
    suspicion.seen.push_back(seen);
    suspicion.plain.push_back(seen && shows_plainly(rank, cause, peers, step));
  }
  return suspicion;
}

// `ranks` are the suspect's: the others wait for it.
Straggler StragglerFinder::row(const Verdict& verdict, Cause cause, std::size_t ranks) const {
  Straggler straggler;
  straggler.cause = cause;
  straggler.originated = verdict.originated;
  straggler.share = verdict.share;
  straggler.recurrence = verdict.recurrence;
  straggler.burst = verdict.burst;
  straggler.confidence = verdict.confidence;
  for (const std::size_t step : verdict.steps) {
    if (table_.steps()[step] != kUnknown) straggler.steps.push_back(table_.steps()[step]);
  }
  straggler.per_step =
      verdict.originated_in_steps / static_cast<Ns>(std::max<std::size_t>(1, verdict.steps.size()));
  const std::size_t others = table_.ranks().size() - std::min(ranks, table_.ranks().size() - 1);
  straggler.per_step /= static_cast<Ns>(others);
  return straggler;
}

RankEvidence StragglerFinder::evidence(std::uint32_t rank, Cause cause, const RankRows& peers,
                                       const Verdict& verdict) const {
  RankEvidence evidence{.cause = cause,
                        .own = 0,
                        .usual = 0,
                        .pace = paces_[rank],
                        .more_kernels = has_more_kernels(job_, rank, peers),
                        .has_peers = !peers_.of(rank).empty(),
                        .peers = peers_.group_of(rank)};
  for (const std::size_t step : verdict.steps) {
    evidence.own += own_time(rank, cause, step);
    evidence.usual += own_time(rank, cause, step) - extra(rank, cause, peers, step);
  }
  const auto steps = static_cast<Ns>(std::max<std::size_t>(1, verdict.steps.size()));
  evidence.own /= steps;
  evidence.usual /= steps;
  return evidence;
}

// The cause that its own time shows in most steps; of several, more bytes explain more compute,
// else the larger extra time counts.
std::optional<std::pair<Cause, Verdict>> StragglerFinder::verdict_of(std::uint32_t rank,
                                                                     const RankRows& peers) const {
  std::optional<std::pair<Cause, Verdict>> best;
  Ns most = 0;
  for (const Cause cause : {Cause::imbalance, Cause::compute, Cause::host}) {
    const auto verdict = judge(of_rank(rank, cause, peers), table_);
    if (!verdict) continue;
    Ns extra = 0;
    for (const std::size_t step : verdict->steps) extra += this->extra(rank, cause, peers, step);
    const bool better = !best || (best->first != Cause::imbalance && extra > most) ||
                        verdict->steps.size() > best->second.steps.size();
    if (!better) continue;
    best = {cause, *verdict};
    most = extra;
  }
  return best;
}

void StragglerFinder::suspect_ranks() {
  for (const std::uint32_t rank : table_.ranks()) {
    if (named_.contains(rank)) continue;
    const RankRows peers = like(rank);
    const auto verdict = verdict_of(rank, peers);
    if (!verdict) continue;
    Straggler straggler = row(verdict->second, verdict->first, 1);
    straggler.rank = job_.ranks[rank].rank;
    straggler.evidence = describe(straggler, evidence(rank, verdict->first, peers, verdict->second),
                                  table_.steps().size());
    add(std::move(straggler));
  }
}

// All ranks of a host against ranks with the same work elsewhere: a step counts where each of them
// shows the cause, to about the same extent.
std::optional<Suspicion> StragglerFinder::of_host(const std::string& host, const RankRows& rows,
                                                  Cause cause) const {
  const std::size_t steps = table_.steps().size();
  Suspicion sum{.originated = std::vector<WaitSums>(steps),
                .usual = std::vector<Ns>(steps, 0),
                .seen = std::vector<bool>(steps, true),
                .plain = std::vector<bool>(steps, false)};
  std::vector<Ns> least(steps, std::numeric_limits<Ns>::max());
  std::vector<Ns> most(steps, 0);
  for (const std::uint32_t rank : rows) {
    RankRows outside = like(rank);
    std::erase_if(outside, [&](std::uint32_t other) { return job_.ranks[other].host == host; });
    if (outside.empty()) return std::nullopt;
    const Suspicion one = of_rank(rank, cause, outside);
    for (std::size_t step = 0; step < steps; ++step) {
      sum.originated[step] += one.originated[step];
      sum.usual[step] += one.usual[step];
      // Of equally late ranks any may be the last: its own time tells, not what it is charged with.
      sum.seen[step] =
          sum.seen[step] && shows(rank, cause, outside, step, 0) && !experts(rank, cause, step);
      const Ns extra = this->extra(rank, cause, outside, step);
      least[step] = std::min(least[step], extra);
      most[step] = std::max(most[step], extra);
    }
  }
  for (std::size_t step = 0; step < steps; ++step)
    sum.seen[step] = sum.seen[step] && 2 * least[step] >= most[step];
  return sum;
}

void StragglerFinder::suspect_hosts(Cause cause) {
  std::map<std::string, RankRows> hosts;
  for (const std::uint32_t rank : table_.ranks()) hosts[job_.ranks[rank].host].push_back(rank);
  if (hosts.size() < 2 || hosts.contains("")) return;
  for (const auto& [host, rows] : hosts) {
    const bool some_named = std::any_of(
        rows.begin(), rows.end(), [this](std::uint32_t rank) { return named_.contains(rank); });
    if (rows.size() < 2 || some_named) continue;
    const auto suspicion = of_host(host, rows, cause);
    const auto verdict = suspicion ? judge(*suspicion, table_) : std::nullopt;
    if (!verdict || verdict->burst) continue;
    Straggler straggler = row(*verdict, cause, rows.size());
    straggler.host = host;
    straggler.evidence = describe_host(straggler, rows.size(), table_.steps().size());
    named_.insert(rows.begin(), rows.end());
    add(std::move(straggler));
  }
}

// By how much the rank's own time is longer than its peers' in the median step; 0 where that is
// too little, or where no ranks do the same work.
Ns StragglerFinder::steady_extra(std::uint32_t rank, Cause cause) const {
  const RankRows& peers = peers_.of(rank);
  if (peers.size() < 2) return 0;
  std::vector<Ns> extras;
  std::vector<Ns> windows;
  for (std::size_t step = 0; step < table_.steps().size(); ++step) {
    extras.push_back(comparable(rank, peers, step).empty() ? 0 : extra(rank, cause, peers, step));
    windows.push_back(table_.at(rank, step).window);
  }
  const Ns late = median_of(std::move(extras));
  const auto least = kHiddenExtra * static_cast<double>(median_of(std::move(windows)));
  return late > 0 && static_cast<double>(late) >= least ? late : 0;
}

// Those that would be next, were the stragglers mended, and those whose delay shows in no wait: in
// a job that hides its communication all of it is late, and nobody waits longer. A slow GPU, a late
// host; more work is not told here: it may change from step to step.
void StragglerFinder::find_hidden() {
  const auto is_named = [this](std::uint32_t rank, Cause cause) {
    return std::any_of(found_.rows.begin(), found_.rows.end(), [&](const Straggler& row) {
      return row.cause == cause && row.rank && *row.rank == job_.ranks[rank].rank;
    });
  };
  for (const std::uint32_t rank : table_.ranks()) {
    for (const Cause cause : {Cause::compute, Cause::host}) {
      if (named_.contains(rank) || is_named(rank, cause)) continue;
      const bool slow = paces_[rank] && *paces_[rank] >= kSlowPace;
      if (cause == Cause::compute && !slow) continue;
      Straggler hidden;
      hidden.rank = job_.ranks[rank].rank;
      hidden.cause = cause;
      hidden.per_step = steady_extra(rank, cause);
      if (hidden.per_step == 0) continue;
      hidden.confidence = Confidence::likely;
      Verdict all_steps;
      for (std::size_t step = 0; step < table_.steps().size(); ++step)
        all_steps.steps.push_back(step);
      hidden.evidence = describe_hidden(hidden, evidence(rank, cause, peers_.of(rank), all_steps));
      found_.hidden.push_back(std::move(hidden));
    }
  }
  std::stable_sort(found_.hidden.begin(), found_.hidden.end(),
                   [](const Straggler& a, const Straggler& b) { return a.per_step > b.per_step; });
  if (found_.hidden.size() > kMostHidden) found_.hidden.resize(kMostHidden);
}

Suspicion StragglerFinder::of_groups(const std::set<std::int32_t>& groups) const {
  Suspicion suspicion;
  suspicion.originated.resize(table_.steps().size());
  suspicion.usual.resize(table_.steps().size(), 0);
  suspicion.seen.resize(table_.steps().size(), true);
  suspicion.plain.resize(table_.steps().size(), true);
  for (const auto& [origin, sums] : job_.waits.origins) {
    if (origin.cause != Cause::link || !groups.contains(origin.group)) continue;
    const auto step = table_.steps().front() == kUnknown ? std::optional<std::size_t>(0)
                                                         : table_.position(origin.step);
    if (step) suspicion.originated[*step] += sums;
  }
  return suspicion;
}

void StragglerFinder::suspect_links() {
  const std::vector<LinkGroup> links = link_groups(job_);
  const std::optional<std::int64_t> adapter = slow_rank(links);
  std::set<std::int32_t> of_adapter;
  double pace = 1;
  for (const LinkGroup& link : links) {
    if (!link.comparable || link.pace < commlens::kSlowPace) continue;
    if (adapter) {
      of_adapter.insert(link.groups.begin(), link.groups.end());
      pace = std::max(pace, link.pace);
      continue;
    }
    const auto verdict = judge(of_groups({link.groups.begin(), link.groups.end()}), table_);
    if (!verdict) continue;
    Straggler straggler = row(*verdict, Cause::link, link.ranks.size());
    if (link.ranks.size() == 2) {
      straggler.link = link.ranks;
      straggler.groups = link.groups;
      straggler.pace = link.pace;
      straggler.evidence = describe_link(straggler, link.pace, table_.steps().size());
      add(std::move(straggler));
    } else {
      found_.remarks.push_back(describe_group(straggler, link));
    }
  }
  if (!adapter) return;
  const auto verdict = judge(of_groups(of_adapter), table_);
  if (!verdict) return;
  Straggler straggler = row(*verdict, Cause::link, 1);
  straggler.rank = adapter;
  straggler.groups.assign(of_adapter.begin(), of_adapter.end());
  straggler.pace = pace;
  straggler.evidence = describe_link(straggler, pace, table_.steps().size());
  add(std::move(straggler));
}

// Nobody named is not the same as nobody there: where much of the waiting has no sure order, or
// came from transfers that cannot be compared, that is said, and where nothing can be said, nothing
// is.
void StragglerFinder::say_what_is_open() {
  const auto share = [this](Ns time) {
    return static_cast<double>(time) / static_cast<double>(table_.gpu_time());
  };
  Ns undecided = 0;
  Ns links = 0;
  const auto add = [&](std::size_t step, std::uint32_t rank) {
    for (const WaitSums& sums : table_.at(rank, step).originated)
      undecided += sums.exposed - sums.likely;
    links += table_.at(rank, step).originated[static_cast<std::size_t>(Cause::link)].exposed;
  };
  for (std::size_t step = 0; step < table_.steps().size(); ++step) {
    for (const std::uint32_t rank : table_.ranks()) add(step, rank);
  }
  Ns doubtful = 0;  // no order is known at all: a member is missing, or the match is not sure
  for (const std::uint32_t rank : table_.ranks()) {
    for (const auto& device : job_.waits.of[rank]) {
      for (const Wait& wait : device) doubtful += wait.likely || wait.certain ? 0 : wait.exposed;
    }
  }
  undecided = std::max(undecided, doubtful);
  if (share(undecided) >= kMuch) {
    found_.known = false;
    found_.remarks.push_back(describe_undecided(share(undecided), job_));
  }
  const Ns unattributed = job_.waits.unattributed_sums.exposed;
  if (share(links) >= kMuch && found_.remarks.empty())
    found_.remarks.push_back(describe_open_links(share(links), job_));
  if (share(unattributed) >= kMuch && found_.remarks.empty())
    found_.remarks.push_back(describe_unattributed(share(unattributed), job_));
  if (found_.remarks.empty()) say_where_no_link_can_be_told();
}

// A slow link makes all of its group's transfers longer alike; only another group of as many ranks
// would show that they are.
void StragglerFinder::say_where_no_link_can_be_told() {
  const std::vector<MatchGroup>& groups = job_.matching.groups;
  std::map<std::size_t, std::size_t> alike;  // by size: how many groups
  for (const MatchGroup& group : groups) ++alike[group.ranks.size()];
  std::vector<Ns> exposed(groups.size());
  for (const MatchedOp& op : job_.matching.ops) {
    if (op.pair || op.group < 0) continue;
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = job_.matching.parts[op.first + i];
      const bool looked_at = table_.steps().front() == kUnknown ||
                             table_.position(comm_of(job_, part).step).has_value();
      if (!looked_at) continue;
      const Exposure& exposure = job_.ranks[part.rank].devices[part.device].exposures[part.op];
      const Wait& wait = job_.waits.of[part.rank][part.device][part.op];
      if (wait.known)
        exposed[static_cast<std::size_t>(op.group)] +=
            std::max<Ns>(0, exposure.exclusive - wait.exposed);
    }
  }
  const auto most = std::max_element(exposed.begin(), exposed.end());
  if (most == exposed.end()) return;
  const MatchGroup& group = groups[static_cast<std::size_t>(most - exposed.begin())];
  const double share = static_cast<double>(*most) / static_cast<double>(table_.gpu_time());
  if (group.ranks.size() > 2 && alike[group.ranks.size()] == 1 && share >= kMuchOfOneGroup)
    found_.remarks.push_back(describe_lone_transfers(share, group.label));
}

Stragglers StragglerFinder::run() {
  if (!job_.waits.known || table_.ranks().size() < 2 || table_.gpu_time() <= 0) return {};
  found_.known = true;
  if (table_.steps().front() != kUnknown) found_.steps = table_.steps();
  found_.left_out = table_.left_out();
  for (const Cause cause : {Cause::imbalance, Cause::compute, Cause::host}) suspect_hosts(cause);
  suspect_ranks();
  suspect_links();
  find_hidden();
  if (found_.rows.empty()) say_what_is_open();
  std::stable_sort(
      found_.rows.begin(), found_.rows.end(),
      [](const Straggler& a, const Straggler& b) { return a.originated > b.originated; });
  return std::move(found_);
}

}  // namespace

Stragglers find_stragglers(const Job& job) { return StragglerFinder(job).run(); }

}  // namespace commlens
