// Problem: ranks of one host share a clock, which makes comparing them exact; but which are of one
// host is what a file, or the user, says, and that can be wrong (all hosts named "localhost").
//
// Method: rows that name the same host, or the same session, start as one domain. An operation that
// would let one of them leave before another of them has entered contradicts that: a few
// microseconds are how well each process reads the one clock (`skew`); more, and either the host is
// wrong or the match is. Which one cannot be told, so neither is used: the ranks get clocks of
// their own, and the operation, if it was matched by likeness alone, is left out. Ranks go one by
// one, the one in most contradictions first, so that one wrong line of --hosts does not undo a
// host. Where only a few operations of many contradict, their records are damaged: they alone are
// left out.
//
// Hosts whose clocks differ by less than every operation's transfer takes contradict nothing. But
// one of their ranks then leaves every operation the same time after another, which ranks of one
// host do not. They keep their clock, since ends may differ for other reasons; it is said, and
// nothing that takes place within that time is certain.
//
// Rows without any common operation have nothing that could contradict. Those of one host are
// placed by its clock where they were recorded at one time.
// When it is wrong: a wrong name of a host whose clock is off by less than 50 us is not found, and
// its offset is taken as 0.
#include "match/clock_domains.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "match/comm_numbers.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// How far processes of one host were seen to read their one clock apart.
constexpr Ns kLargestSkew = 10'000;
// So many ranks leave their host one by one; if that does not end the contradictions, all do.
constexpr int kMostRounds = 8;
// Contradictions in at most one in so many operations are damaged records, not a wrong host: those
// operations are left out, and the ranks keep their clock.
constexpr std::size_t kFew = 50;

// Ends on one host that differ by this, always in the same direction, are those of two clocks.
constexpr Ns kConstantDifference = 50'000;
constexpr std::size_t kEnoughEnds = 6;
constexpr std::size_t kMostEnds = 200;  // of a rank; more say no more

// What a row can share its clock by; nothing where that is not known.
using ClockKey = std::pair<std::string_view, bool>;  // a host, or a session where that says more
std::optional<ClockKey> clock_key(const RankTimeline& rank) {
  if (rank.run > 0) return std::nullopt;
  if (!rank.host.empty() && rank.recording.clock == ClockBase::epoch)
    return ClockKey{rank.host, false};
  if (!rank.recording.session.empty()) return ClockKey{rank.recording.session, true};
  return std::nullopt;
}

// Why a row counts among those whose clocks are related.
enum class PlacedBy : std::uint8_t {
  operations,  // it is in matched ones
  clock,       // it shares its clock with another that is in none either
  nothing,
};

// From the first to the last of what a row's GPUs did, since the epoch.
std::optional<Interval> recorded_time(const RankTimeline& rank) {
  std::optional<Interval> time;
  const auto cover = [&time](Interval part) {
    time = time ? Interval{std::min(time->start, part.start), std::max(time->end, part.end)} : part;
  };
  for (const DeviceTimeline& device : rank.devices) {
    if (device.extent.length() > 0) cover(device.extent);
    for (const CommOp& op : device.comm) cover(op.time);
  }
  if (!time) return std::nullopt;
  return Interval{absolute_time(rank.recording, time->start),
                  absolute_time(rank.recording, time->end)};
}

// A host's name says the same clock only of recordings that were made at one time: names are given
// again, and clocks are set. Those of one session need no such sign.
std::vector<PlacedBy> placed_rows(const Job& job) {
  std::vector<PlacedBy> placed(job.ranks.size(), PlacedBy::nothing);
  for (const Part& part : job.matching.parts) placed[part.rank] = PlacedBy::operations;
  std::map<ClockKey, std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < placed.size(); ++row) {
    if (const auto key = clock_key(job.ranks[row])) rows_of[*key].push_back(row);
  }
  for (const auto& [key, rows] : rows_of) {
    if (std::any_of(rows.begin(), rows.end(),
                    [&](std::size_t row) { return placed[row] == PlacedBy::operations; }))
      continue;
    if (!key.second && key.first == "localhost") continue;  // what every host calls itself
    std::vector<std::pair<Interval, std::size_t>> times;
    for (const std::size_t row : rows) {
      if (const auto time = recorded_time(job.ranks[row])) times.emplace_back(*time, row);
    }
    std::sort(times.begin(), times.end(),
              [](const auto& a, const auto& b) { return a.first.start < b.first.start; });
    std::optional<std::size_t> last;  // of the rows before, the one that ends last
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto& [time, row] = times[i];
      const bool together = last && (key.second || time.start < times[*last].first.end);
      if (together) placed[row] = placed[times[*last].second] = PlacedBy::clock;
      if (!last || time.end > times[*last].first.end) last = i;
    }
  }
  return placed;
}

// Rows by host or session, but for those in `alone`. The reference's comes first: a row in
// operations, where there is any.
ClockDomains domains_by_host(const Job& job, const std::vector<PlacedBy>& placed,
                             const std::vector<bool>& alone) {
  ClockDomains domains;
  domains.of_row.resize(job.ranks.size());
  std::map<ClockKey, std::uint32_t> by_operations;
  std::map<ClockKey, std::uint32_t> by_clock;
  std::uint32_t next = 0;
  for (const PlacedBy pass : {PlacedBy::operations, PlacedBy::clock, PlacedBy::nothing}) {
    // What shares no time with those that are placed by their clock does not share that either.
    auto& known = pass == PlacedBy::clock ? by_clock : by_operations;
    for (std::size_t row = 0; row < job.ranks.size(); ++row) {
      if (placed[row] != pass) continue;
      const auto key = alone[row] ? std::nullopt : clock_key(job.ranks[row]);
      const auto found = key ? known.find(*key) : known.end();
      if (found != known.end()) {
        domains.of_row[row] = found->second;
        continue;
      }
      domains.of_row[row] = next;
      if (key) known.emplace(*key, next);
      ++next;
      if (pass != PlacedBy::nothing) domains.first_row.push_back(static_cast<std::uint32_t>(row));
    }
  }
  domains.count = domains.first_row.size();
  return domains;
}

// Contradictions inside of domains.
struct Conflicts {
  std::vector<std::int64_t> of_row;  // how many each row is in
  std::vector<const ClockOp*> ops;
  std::vector<const ClockOp*> impossible;  // of these, those that contradict one rank alone
  Ns skew = 0;                             // the largest small one
  Ns worst = 0;                            // the largest
  bool any() const { return worst > 0; }
};

// Counts the rows of a domain that an operation makes contradict each other: those that had left
// when the last entered, and those that had not entered when the first left. Says whether one
// contradicts itself.
bool count_rows(const Job& job, const ClockDomains& domains, const MatchedOp& op,
                const ClockSpan& span, std::vector<std::int64_t>& of_row) {
  struct Attended {
    std::uint32_t row = 0;
    Ns start = 0;
    Ns end = 0;
  };
  std::vector<Attended> here;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Part& part = job.matching.parts[op.first + i];
    if (domains.of_row[part.rank] != span.domain) continue;
    const Recording& recording = job.ranks[part.rank].recording;
    const Interval time = comm_of(job, part).time;
    here.push_back(
        {part.rank, absolute_time(recording, time.start), absolute_time(recording, time.end)});
  }
  const auto last = std::find_if(here.begin(), here.end(),
                                 [&](const Attended& a) { return a.start == span.entered; });
  const auto first =
      std::find_if(here.begin(), here.end(), [&](const Attended& a) { return a.end == span.left; });
  for (const Attended& each : here) {
    if (last->start - each.end > kLargestSkew) {
      ++of_row[each.row];
      ++of_row[last->row];
    }
    if (each.start - first->end > kLargestSkew) {
      ++of_row[each.row];
      ++of_row[first->row];
    }
  }
  return last->row == first->row;
}

Conflicts find_conflicts(const Job& job, const ClockDomains& domains,
                         const ClockEvidence& evidence) {
  Conflicts conflicts;
  conflicts.of_row.resize(job.ranks.size());
  for (const ClockOp& op : evidence.ops) {
    if (op.inferred) continue;
    bool contradicts = false;
    bool impossible = false;
    for (std::size_t i = op.first; i < op.first + op.count; ++i) {
      const ClockSpan& span = evidence.spans[i];
      if (span.entered == ClockSpan::kNobody || span.left == ClockSpan::kNobody) continue;
      const Ns by = span.entered - span.left;
      if (by <= kLargestSkew) {
        conflicts.skew = std::max(conflicts.skew, by);
        continue;
      }
      contradicts = true;
      conflicts.worst = std::max(conflicts.worst, by);
      if (count_rows(job, domains, job.matching.ops[op.op], span, conflicts.of_row))
        impossible = true;
    }
    if (contradicts) conflicts.ops.push_back(&op);
    if (impossible) conflicts.impossible.push_back(&op);
  }
  return conflicts;
}

// The rows in most contradictions; `all`: every row of a domain that has any.
void separate(const std::vector<std::int64_t>& conflicts, bool all, const ClockDomains& domains,
              std::vector<bool>& alone) {
  const std::int64_t most = *std::max_element(conflicts.begin(), conflicts.end());
  std::vector<bool> contradicted(domains.count);
  for (std::size_t row = 0; row < alone.size(); ++row) {
    if (conflicts[row] == most) alone[row] = true;
    if (conflicts[row] > 0) contradicted[domains.of_row[row]] = true;
  }
  if (!all) return;
  for (std::size_t row = 0; row < alone.size(); ++row) {
    const std::uint32_t domain = domains.of_row[row];
    if (domain < domains.count && contradicted[domain]) alone[row] = true;
  }
}

std::string in_words(const Job& job, const std::vector<bool>& alone, std::size_t operations,
                     Ns worst) {
  std::vector<std::int64_t> ranks;
  std::string host;
  for (std::size_t row = 0; row < alone.size(); ++row) {
    if (!alone[row]) continue;
    ranks.push_back(job.ranks[row].rank);
    if (host.empty()) host = job.ranks[row].host;
  }
  const std::string ends = std::to_string(operations) +
                           (operations == 1 ? " operation ends" : " operations end") + " up to " +
                           std::to_string(worst / 1000) + " us before everybody has entered";
  if (ranks.empty()) return ends + ", on one clock: left out, as damaged records";
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks) +
         " cannot share the clock of " +
         (host.empty() ? std::string("one session") : "host \"" + host + "\"") +
         " as said: " + ends + "; the host, or how they were matched, is wrong";
}

// By row: how much later its ends are than those of the first rank of its clock, in operations that
// all leave together.
std::vector<std::vector<Ns>> end_differences(const Job& job, const ClockDomains& domains,
                                             const ClockEvidence& evidence) {
  std::vector<std::vector<Ns>> differences(job.ranks.size());
  std::vector<std::optional<Ns>> first_end(domains.count);
  for (const ClockOp& clock_op : evidence.ops) {
    if (!clock_op.balanced || clock_op.inferred) continue;
    const MatchedOp& op = job.matching.ops[clock_op.op];
    if (clock_op.count == op.count) continue;  // each on a clock of its own
    std::fill(first_end.begin(), first_end.end(), std::nullopt);
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = job.matching.parts[op.first + i];
      const std::uint32_t domain = domains.of_row[part.rank];
      const Ns end = absolute_time(job.ranks[part.rank].recording, comm_of(job, part).time.end);
      if (part.rank == domains.first_row[domain]) first_end[domain] = end;
      if (first_end[domain] && differences[part.rank].size() < kMostEnds)
        differences[part.rank].push_back(end - *first_end[domain]);
    }
  }
  return differences;
}

// Ranks said to share a host whose ends say otherwise.
struct ApartEnds {
  std::vector<std::int64_t> ranks;
  Ns most = 0;
};

ApartEnds find_apart_ends(const Job& job, const ClockDomains& domains,
                          const ClockEvidence& evidence) {
  ApartEnds apart;
  std::vector<std::vector<Ns>> differences = end_differences(job, domains, evidence);
  for (std::size_t row = 0; row < differences.size(); ++row) {
    std::vector<Ns>& of_row = differences[row];
    if (of_row.size() < kEnoughEnds) continue;
    std::sort(of_row.begin(), of_row.end());
    const Ns middle = std::abs(of_row[of_row.size() / 2]);
    const Ns scatter = of_row[of_row.size() * 9 / 10] - of_row[of_row.size() / 10];
    if (middle < kConstantDifference || 4 * scatter > middle) continue;
    apart.ranks.push_back(job.ranks[row].rank);
    apart.most = std::max(apart.most, middle);
  }
  return apart;
}

std::string in_words(const ApartEnds& apart) {
  return (apart.ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(apart.ranks) +
         " always end operations " + std::to_string(apart.most / 1000) +
         " us before or after another rank that is said to be on the same host: it may be another; "
         "nothing shorter is certain";
}

}  // namespace

SharedClocks find_shared_clocks(const Job& job) {
  SharedClocks shared;
  const std::vector<PlacedBy> placed = placed_rows(job);
  std::vector<bool> alone(job.ranks.size());
  std::size_t operations = 0;
  Ns worst = 0;
  for (int round = 0;; ++round) {
    shared.domains = domains_by_host(job, placed, alone);
    shared.evidence = gather_evidence(job, shared.domains, shared.doubted);
    const Conflicts conflicts = find_conflicts(job, shared.domains, shared.evidence);
    shared.skew = conflicts.skew;
    if (!conflicts.any()) break;

    operations = std::max(operations, conflicts.ops.size());
    worst = std::max(worst, conflicts.worst);
    shared.doubted.resize(job.matching.ops.size());
    const bool few = conflicts.ops.size() * kFew <= shared.evidence.ops.size();
    for (const ClockOp* op : conflicts.ops) shared.doubted[op->op] = few || !op->firm;
    for (const ClockOp* op : conflicts.impossible) shared.doubted[op->op] = true;
    if (few && round < kMostRounds) continue;
    separate(conflicts.of_row, round >= kMostRounds, shared.domains, alone);
  }
  if (worst > 0) shared.contradiction = in_words(job, alone, operations, worst);
  const ApartEnds apart = find_apart_ends(job, shared.domains, shared.evidence);
  if (!apart.ranks.empty()) {
    shared.skew = std::max(shared.skew, apart.most);
    shared.contradiction += (shared.contradiction.empty() ? "" : "; ") + in_words(apart);
  }
  return shared;
}

}  // namespace commlens
