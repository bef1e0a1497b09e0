// Problem: each host has its own clock. Compared as they stand, times of two hosts blame whoever's
// clock is ahead. Method, in this order:
//
//   domains      ranks known to share a host share a clock          clock_domains
//   evidence     each operation's last entry and first exit          clock_evidence
//                by domain
//   estimate     ends of operations agree: median differences        clock_estimate
//   placement    roughly when each operation was, by one clock       clock_placement
//   bounds       nobody leaves before whom it needs has entered      clock_bounds
//
// The estimate is a best guess with its scatter, the bounds are what must be so. Bounds that
// contradict each other show that something is not as believed: the domains with the most
// contradictions lose first what was matched by likeness alone, then all of their evidence (as if
// their clock had been stepped). What is left is bounded without them.
// A step that is smaller than the bounds are wide contradicts none of them, but makes them wrong:
// what bounded the clock before it is carried on to behind it. So a domain whose ends jump at an
// instant loses its evidence, too; and where an estimate lies outside of the bounds one of the two
// is wrong, and nothing is certain by these bounds.
#include "match/clocks.h"

#include <algorithm>
#include <set>

#include "match/clock_bounds.h"
#include "match/clock_domains.h"
#include "match/clock_placement.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr Ns kResolution = 1'000;  // of microsecond files
// So many times the domain in most contradictions is left out; then all that are in any.
constexpr int kMostClockRounds = 8;
// An estimate may lie this, and its scatter, outside of the bounds.
constexpr Ns kOutside = 5'000;

// What is believed of a domain's operations.
enum class Trust : std::uint8_t {
  all,   // every one
  firm,  // those matched by an identifier or a counter
  none,
};

// Evidence that each domain's trust leaves.
ClockEvidence trusted_evidence(const ClockEvidence& evidence, const std::vector<Trust>& trust) {
  ClockEvidence trusted;
  for (ClockOp op : evidence.ops) {
    const std::size_t first = trusted.spans.size();
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const ClockSpan& span = evidence.spans[op.first + i];
      const Trust of = trust[span.domain];
      if (of == Trust::all || (of == Trust::firm && op.firm)) trusted.spans.push_back(span);
    }
    op.first = first;
    op.count = static_cast<std::uint32_t>(trusted.spans.size() - first);
    if (op.count > 0) trusted.ops.push_back(op);
  }
  return trusted;
}

class Relating {
 public:
  explicit Relating(const Job& job) : job_(job), shared_(find_shared_clocks(job)) {
    trust_.assign(shared_.domains.count, Trust::all);
    epsilon_ = std::max(kResolution, shared_.skew);
  }

  Clocks run() {
    if (domains().count > 0) relate();
    for (int round = 0;; ++round) {
      if (contradiction_.any()) {
        distrust(round >= kMostClockRounds);
      } else if (!distrust_steps()) {
        break;
      }
      shared_.evidence = trusted_evidence(shared_.evidence, trust_);
      relate();
    }
    start_clocks();
    find_outside();
    assume();
    report_bounds();
    fill_lines();
    take_bounds_away();
    clocks_.known = anything_known();
    doubt_operations();
    clocks_.infeasible = contradictions_in_words();
    return std::move(clocks_);
  }

 private:
  const ClockDomains& domains() const { return shared_.domains; }

  // One round; domain 0 is the reference's.
  void relate() {
    estimate_ = estimate_offsets(shared_.evidence, domains().count);
    placement_ = place_clocks(job_, domains(), shared_.evidence, estimate_);
    widen_spreads();
    bounds_ = bound_offsets(shared_.evidence, placement_, epsilon_);
    contradiction_ = find_contradiction(bounds_);
    if (!contradiction_.any()) contradiction_ = close_bounds(bounds_);
  }

  // By what the drift may be off, over the part of the window that no sample is from.
  void widen_spreads() {
    for (std::size_t domain = 0; domain < domains().count; ++domain) {
      const ObservedTime& observed = estimate_.observed[domain];
      const EstimatedLine& line = placement_.lines[domain];
      const Ns unobserved =
          std::max({Ns{0}, near_time(line.common(observed.first)) - placement_.origin,
                    placement_.end - near_time(line.common(observed.last))});
      estimate_.links[domain].spread +=
          static_cast<Ns>(observed.drift_error * static_cast<double>(unobserved));
    }
  }

  // Takes trust from the domains in most contradictions, or from all in any.
  void distrust(bool all) {
    worst_ = std::max(worst_, contradiction_.worst);
    const std::vector<std::uint32_t>& partners = contradiction_.partners;
    const std::uint32_t most = *std::max_element(partners.begin(), partners.end());
    std::vector<bool> has_likeness(domains().count);
    for (const ClockOp& op : shared_.evidence.ops) {
      for (std::uint32_t i = 0; i < op.count && !op.firm; ++i)
        has_likeness[shared_.evidence.spans[op.first + i].domain] = true;
    }
    for (std::size_t domain = 0; domain < partners.size(); ++domain) {
      if (partners[domain] == 0 || (partners[domain] < most && !all)) continue;
      trust_[domain] = has_likeness[domain] && !all ? Trust::firm : Trust::none;
    }
  }

  // Takes trust from domains whose ends jump. Says whether there are any.
  bool distrust_steps() {
    bool any = false;
    for (std::size_t domain = 1; domain < domains().count; ++domain) {
      if (estimate_.step[domain] == 0 || trust_[domain] == Trust::none) continue;
      trust_[domain] = Trust::none;
      stepped_.insert(domain);
      largest_step_ = std::max(largest_step_, estimate_.step[domain]);
      any = true;
    }
    return any;
  }

  void find_outside() {
    outside_.assign(domains().count, 0);
    for (std::size_t domain = 1; domain < domains().count; ++domain)
      outside_[domain] = outside_bounds(domain);
    for (const Ns each : outside_) furthest_outside_ = std::max(furthest_outside_, each);
  }

  // Of estimates outside of their bounds one of the two is wrong: nothing is certain by these.
  void take_bounds_away() {
    const std::size_t count = clocks_.domains;
    for (std::vector<Ns>& matrix : clocks_.most) {
      for (std::size_t i = 0; i < matrix.size(); ++i) {
        if (i / count != i % count && outside_[i / count] + outside_[i % count] > 0)
          matrix[i] = ClockError::kUnbounded;
      }
    }
  }

  // By how much an estimate is more outside of the bounds, anywhere, than its scatter explains.
  Ns outside_bounds(std::size_t domain) const {
    if (estimate_.root[domain] != 0 || bounds_.most.empty()) return 0;
    Ns spread = 0;
    for (std::size_t way = domain; way != 0; way = estimate_.links[way].parent)
      spread += estimate_.links[way].spread;
    const double rate = estimate_.lines[domain].rate;
    const std::size_t count = bounds_.domains;
    Ns worst = 0;
    for (std::size_t bin = 0; bin < bounds_.most.size(); ++bin) {
      const Ns since = static_cast<Ns>(bin) * bounds_.bin_length;
      const Ns at = static_cast<Ns>(rate / (1 + rate) * static_cast<double>(since));
      const Ns most = bounds_.most[bin][domain * count];
      const Ns least = -bounds_.most[bin][domain];
      worst = std::max({worst, at - most, least - at});
    }
    const Ns allowed = kOutside + spread + drift_of_two(bounds_.bin_length);
    return worst > allowed ? worst : 0;
  }

  void start_clocks() {
    clocks_.reference = domains().count > 0 ? domains().first_row[0] : 0;
    clocks_.origin = placement_.origin;
    clocks_.domain = domains().of_row;
    clocks_.domains = domains().count;
    clocks_.bin_length = bounds_.bin_length;
    clocks_.skew = shared_.skew;
    clocks_.lines.resize(job_.ranks.size());
    for (const RankTimeline& rank : job_.ranks) clocks_.base.push_back(rank.recording.clock_base);
  }

  // Largest and smallest offset to the reference, in the first bin; as differences from the
  // placement.
  Ns most_at_origin(std::size_t domain) const {
    return bounds_.most.empty() ? ClockError::kUnbounded
                                : bounds_.most.front()[domain * bounds_.domains];
  }
  Ns least_at_origin(std::size_t domain) const {
    return bounds_.most.empty() ? -ClockError::kUnbounded : -bounds_.most.front()[domain];
  }

  // What each domain's times get, at the origin.
  void assume() {
    assumed_ = placement_.at_origin;
    for (std::size_t domain = 1; domain < domains().count; ++domain) {
      const std::uint32_t root = estimate_.root[domain];
      if (root != 0) {
        assumed_[domain] += without_estimate(root);
        continue;
      }
      // An estimate that cannot be is off by at least as much as it has to move.
      const Ns moved = std::clamp(Ns{0}, least_at_origin(domain), most_at_origin(domain));
      assumed_[domain] += moved;
      estimate_.links[domain].spread += std::max(std::abs(moved), outside_[domain]);
    }
  }

  // What a tree's root moves by that nothing estimates: to offset 0 where that can be, else into
  // the middle of its bounds. Where 0 says nothing it stays.
  Ns without_estimate(std::uint32_t root) const {
    const Ns least = least_at_origin(root);
    const Ns most = most_at_origin(root);
    const auto has_zero = [this](std::size_t row) {
      return job_.ranks[row].recording.clock == ClockBase::epoch;
    };
    if (!has_zero(domains().first_row[root]) || !has_zero(clocks_.reference))
      return std::clamp(Ns{0}, least, most);
    const Ns to_zero = -placement_.at_origin[root];
    const bool bounded = least > -ClockError::kUnbounded && most < ClockError::kUnbounded;
    if (bounded && (to_zero < least || to_zero > most)) return least + (most - least) / 2;
    return std::clamp(to_zero, least, most);
  }

  // Bounds as offsets. Where a domain is assumed elsewhere than it was placed, its bounds are
  // looked up that much off.
  void report_bounds() {
    const std::size_t count = bounds_.domains;
    for (std::vector<Ns>& matrix : bounds_.most) {
      for (std::size_t i = 0; i < matrix.size(); ++i) {
        const std::size_t x = i / count;
        const std::size_t y = i % count;
        if (x == y || matrix[i] >= ClockError::kUnbounded) continue;
        const Ns placed = placement_.at_origin[x] - placement_.at_origin[y];
        const Ns moved = moved_by(x) + moved_by(y);
        matrix[i] = std::min(ClockError::kUnbounded,
                             near_time(matrix[i] + placed) + (moved > 0 ? drift_of_two(moved) : 0));
      }
    }
    clocks_.most = std::move(bounds_.most);
  }

  Ns moved_by(std::size_t domain) const {
    return near_time(std::abs(assumed_[domain] - placement_.at_origin[domain]));
  }

  void fill_lines() {
    clocks_.links = estimate_.links;
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      const std::uint32_t domain = domains().of_row[row];
      if (domain < domains().count) clocks_.lines[row] = line_of(domain);
    }
    if (domains().count > 0) clocks_.lines[clocks_.reference].method = ClockMethod::reference;
  }

  ClockLine line_of(std::uint32_t domain) const;
  bool anything_known() const;
  void doubt_operations();
  std::string contradictions_in_words() const;

  const Job& job_;
  SharedClocks shared_;
  std::vector<Trust> trust_;
  Ns epsilon_ = kResolution;
  ClockEstimate estimate_;
  ClockPlacement placement_;
  ClockBounds bounds_;
  Contradiction contradiction_;
  Ns worst_ = 0;
  std::set<std::size_t> stepped_;  // domains
  Ns largest_step_ = 0;
  Ns furthest_outside_ = 0;
  std::vector<Ns> outside_;  // by domain: how far its estimate is from what can be; 0: it can be
  std::vector<Ns> assumed_;  // by domain
  Clocks clocks_;
};

ClockLine Relating::line_of(std::uint32_t domain) const {
  ClockLine line;
  line.assumed = assumed_[domain];
  line.drift_ppm = estimate_.lines[domain].rate * 1e6;
  if (domain == 0) {
    line = {.offset = 0, .lower = 0, .upper = 0, .method = ClockMethod::same_host};
    return line;
  }
  if (!clocks_.most.empty()) {
    // As in Clocks::error: an offset that is off was looked up as much off.
    const Ns largest = clocks_.most.front()[domain * clocks_.domains];
    const Ns opposite = clocks_.most.front()[domain];
    const auto loose = [](Ns away) { return away + drift_of_two(std::max<Ns>(0, away)); };
    if (largest < ClockError::kUnbounded) line.upper = line.assumed + loose(largest - line.assumed);
    if (opposite < ClockError::kUnbounded)
      line.lower = line.assumed - loose(opposite + line.assumed);
  }
  if (estimate_.root[domain] != 0) return line;
  line.offset = line.assumed;
  line.method = ClockMethod::end_differences;
  for (std::uint32_t way = domain; way != 0; way = estimate_.links[way].parent)
    line.spread += estimate_.links[way].spread;
  return line;
}

// Whether any two ranks' clocks are related at all.
bool Relating::anything_known() const {
  const std::size_t count = domains().count;
  std::vector<std::uint32_t> rows(count);
  for (const std::uint32_t domain : domains().of_row) {
    if (domain < count && ++rows[domain] > 1) return true;
  }
  for (std::uint32_t domain = 0; domain < count; ++domain) {
    if (estimate_.root[domain] != domain) return true;
  }
  if (clocks_.most.empty()) return false;
  const std::vector<Ns>& matrix = clocks_.most.front();
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (i % (count + 1) != 0 && matrix[i] < ClockError::kUnbounded) return true;
  }
  return false;
}

// Operations that were left out because their match is likely to be wrong.
void Relating::doubt_operations() {
  clocks_.doubted = shared_.doubted;
  if (std::find(trust_.begin(), trust_.end(), Trust::firm) == trust_.end()) return;
  const Matching& matching = job_.matching;
  clocks_.doubted.resize(matching.ops.size());
  for (std::size_t row = 0; row < matching.ops.size(); ++row) {
    const MatchedOp& op = matching.ops[row];
    if (is_firm(op)) continue;
    const Part* parts = &matching.parts[op.first];
    if (std::any_of(parts, parts + op.count, [this](const Part& part) {
          return trust_[domains().of_row[part.rank]] == Trust::firm;
        }))
      clocks_.doubted[row] = true;
  }
}

std::string Relating::contradictions_in_words() const {
  std::string words = shared_.contradiction;
  const auto add = [&](auto is_meant, const std::string& before, const std::string& behind) {
    std::vector<std::int64_t> ranks;
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      const std::uint32_t domain = domains().of_row[row];
      if (domain < domains().count && is_meant(domain)) ranks.push_back(job_.ranks[row].rank);
    }
    if (ranks.empty()) return;
    if (!words.empty()) words += "; ";
    words += "the clocks of ranks " + format_ranks(ranks) + before + behind;
  };
  const auto us = [](Ns time) { return std::to_string(time / 1000) + " us"; };
  const auto is_stepped = [this](std::size_t domain) { return stepped_.contains(domain); };
  const std::string by = " contradict causality by up to " + us(worst_);
  add([&](std::uint32_t domain) { return trust_[domain] == Trust::firm; }, by,
      ", so how their operations were matched is doubted");
  add([&](std::uint32_t domain) { return trust_[domain] == Trust::none && !is_stepped(domain); },
      by,
      " even if each drifts by 200 parts per million: one was stepped, or operations were matched "
      "wrongly; their times are not compared");
  add(is_stepped, " jump by " + us(largest_step_) + " at once, by the ends of their operations",
      ": one was stepped, or operations were matched wrongly; their times are not compared");
  add([&](std::uint32_t domain) { return outside_[domain] > 0; },
      " are " + us(furthest_outside_) +
          " off what causality allows, by the ends of their operations",
      ": nothing that rests on them is certain");
  return words;
}

}  // namespace

Clocks relate_clocks(const Job& job) { return Relating(job).run(); }

}  // namespace commlens
