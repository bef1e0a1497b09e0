// Who did not come, by those who waited: PyTorch's watchdog and its desync report, barriers that
// name ranks, stores that give up.
//
// A watchdog line says how far its own rank is in one group: the operation that timed out, the last
// one enqueued, the last one completed. Together they tell more:
//
//   rank 0: at 9, enqueued 12, completed 8       waits in 9
//   rank 1: at 9, enqueued 9, completed 8        waits in 9
//   rank 2: enqueued 8, completed 8              never called 9: this one is missing
//
// The same where a rank waits in an earlier operation than the others, which all completed that
// one. Ranks without a line prove nothing: their lines may have been cut off, or written elsewhere.
// Neither do sends and receives: ranks make different ones of them, each as many as it needs, so
// that where a group has some its numbers are not compared.
// One case is told all the same: the rank that saves checkpoints, seen doing so, with no line of
// its own, while others wait.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/log_call_ends.h"
#include "diagnose/log_causes.h"
#include "diagnose/log_reports.h"
#include "diagnose/log_watchdog.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

void add_lines(const WatchdogRank& rank, std::size_t most, DiagnosisFinding& finding) {
  for (const WatchdogRef& ref : rank.lines) {
    if (most-- == 0 || finding.evidence.size() >= kMostLogEvidence) return;
    finding.evidence.push_back(evidence_line(*ref.witness, ref.line->line, ref.line->text));
  }
}

// The line that proves best how far a rank is: one with a position.
void add_best_line(const WatchdogRank& rank, DiagnosisFinding& finding) {
  const auto position = std::find_if(
      rank.lines.begin(), rank.lines.end(),
      [](const WatchdogRef& ref) { return ref.line->enqueued != LogWatchdog::kNotSaid; });
  const WatchdogRef& ref = position == rank.lines.end() ? rank.lines.front() : *position;
  if (finding.evidence.size() < kMostLogEvidence)
    finding.evidence.push_back(evidence_line(*ref.witness, ref.line->line, ref.line->text));
}

// Operations in which every rank passes the same number of elements.
bool has_one_size(std::string_view c10d) {
  const std::string op = op_in_words(c10d);
  return op == "all_reduce" || op == "broadcast" || op == "reduce" || op == "reduce_scatter" ||
         c10d == "_ALLGATHER_BASE";
}

DiagnosisFinding finding_in(const WatchdogGroup& group, DiagnosisKind kind) {
  DiagnosisFinding finding;
  finding.kind = kind;
  finding.group = group.name;
  return finding;
}

std::vector<const WatchdogRank*> waiting_ranks(const WatchdogGroup& group) {
  std::vector<const WatchdogRank*> waiting;
  for (const WatchdogRank& rank : group.ranks) {
    if (rank.timed_out && rank.waits_at >= 0) waiting.push_back(&rank);
  }
  return waiting;
}

void describe_wait(const std::vector<const WatchdogRank*>& waiting, DiagnosisFinding& finding) {
  for (const WatchdogRank* rank : waiting) {
    if (rank->rank >= 0) finding.held.push_back(rank->rank);
    if (finding.op.empty()) finding.op = op_in_words(rank->op);
  }
  std::sort(finding.held.begin(), finding.held.end());
  finding.consequences = finding.held;
  finding.seq = waiting.front()->waits_at;
}

// Most ranks are at rest where a few wait in an operation that nobody else called.
std::optional<DiagnosisFinding> ranks_ahead(const WatchdogGroup& group,
                                            const std::vector<const WatchdogRank*>& at_rest,
                                            const std::vector<const WatchdogRank*>& ahead) {
  for (const WatchdogRank* rank : at_rest) {
    if (rank->enqueued != at_rest.front()->enqueued || rank->enqueued != rank->completed)
      return std::nullopt;
  }
  DiagnosisFinding finding = finding_in(group, DiagnosisKind::rank_ahead);
  finding.seq = ahead.front()->waits_at;
  finding.op = op_in_words(ahead.front()->op);
  std::vector<std::int64_t> ranks;
  for (const WatchdogRank* rank : ahead) {
    if (rank->rank < 0) return std::nullopt;
    ranks.push_back(rank->rank);
    finding.differing.push_back({rank->rank, "seq", std::to_string(rank->enqueued),
                                 std::to_string(at_rest.front()->enqueued)});
    add_best_line(*rank, finding);
  }
  add_best_line(*at_rest.front(), finding);
  finding.confidence = Confidence::certain;
  finding.message = ranks_in_words(ranks) + " called " + at_operation(*finding.seq, finding.op) +
                    " of " + group.name + ", which none of the others did";
  finding.advice = "look for a branch that only " + ranks_in_words(ranks) +
                   " takes: one more batch, one more log or barrier";
  return finding;
}

// Ranks that never called what others wait in, or that are still in one that all others completed.
std::optional<DiagnosisFinding> find_behind(const WatchdogGroup& group) {
  const auto waiting = waiting_ranks(group);
  if (waiting.empty()) return std::nullopt;
  const auto last = *std::max_element(waiting.begin(), waiting.end(),
                                      [](auto a, auto b) { return a->waits_at < b->waits_at; });
  std::vector<const WatchdogRank*> absent;
  std::vector<const WatchdogRank*> held;
  bool stuck_earlier = false;
  for (const WatchdogRank& rank : group.ranks) {
    const bool never_called =
        rank.enqueued != LogWatchdog::kNotSaid && rank.enqueued < last->waits_at;
    const bool earlier = rank.timed_out && rank.waits_at >= 0 && rank.waits_at < last->waits_at &&
                         last->completed >= rank.waits_at;
    stuck_earlier = stuck_earlier || (earlier && !never_called);
    if (never_called || earlier)
      absent.push_back(&rank);
    else if (rank.timed_out && rank.waits_at == last->waits_at)
      held.push_back(&rank);
  }
  if (absent.empty() || held.empty()) return std::nullopt;
  // Where most stand still with nothing to do, it is the few that called one too many.
  if (!stuck_earlier && absent.size() > held.size()) return ranks_ahead(group, absent, held);
  DiagnosisFinding finding = finding_in(group, DiagnosisKind::missing_rank);
  describe_wait(held, finding);
  for (const WatchdogRank* rank : absent) {
    if (rank->rank < 0) return std::nullopt;
    finding.missing_ranks.push_back(rank->rank);
    add_best_line(*rank, finding);
  }
  add_best_line(*held.front(), finding);
  finding.confidence = stuck_earlier || !group.sure ? Confidence::likely : Confidence::certain;
  finding.message = ranks_in_words(finding.held) + (finding.held.size() == 1 ? " waits" : " wait") +
                    " in " + at_operation(last->waits_at, finding.op) + " of " + group.name + "; " +
                    ranks_in_words(finding.missing_ranks) +
                    (stuck_earlier ? " did not get that far" : " never called it");
  finding.advice = "look at what " + ranks_in_words(finding.missing_ranks) +
                   " did at that time: py-spy dump, its last output, its data loader, a branch "
                   "that only it takes";
  return finding;
}

// The value that most have; nothing where no value has more than half.
template <class Value>
std::optional<Value> majority(const std::map<Value, std::size_t>& counts, std::size_t total) {
  for (const auto& [value, count] : counts) {
    if (count * 2 > total) return value;
  }
  return std::nullopt;
}

std::string size_text(const WatchdogRank& rank) {
  return std::to_string(rank.in_elements) + " -> " + std::to_string(rank.out_elements);
}

// Ranks that wait under one number in different operations, or with different sizes.
std::optional<DiagnosisFinding> find_mismatch(const WatchdogGroup& group) {
  std::map<std::int64_t, std::vector<const WatchdogRank*>> by_seq;
  for (const WatchdogRank* rank : waiting_ranks(group)) {
    if (!rank->op.empty() && rank->rank >= 0) by_seq[rank->waits_at].push_back(rank);
  }
  for (const auto& [seq, ranks] : by_seq) {
    std::map<std::string, std::size_t> ops;
    std::map<std::string, std::size_t> sizes;
    bool one_size = true;
    for (const WatchdogRank* rank : ranks) {
      ++ops[rank->op];
      if (rank->in_elements >= 0) ++sizes[size_text(*rank)];
      one_size = one_size && has_one_size(rank->op);
    }
    const bool differ_op = ops.size() > 1;
    if (!differ_op && (sizes.size() < 2 || !one_size)) continue;
    const auto& counts = differ_op ? ops : sizes;
    const auto most = majority(counts, ranks.size());
    DiagnosisFinding finding =
        finding_in(group, differ_op ? DiagnosisKind::op_mismatch : DiagnosisKind::size_mismatch);
    finding.seq = seq;
    finding.op = op_in_words(differ_op && most ? *most : ranks.front()->op);
    std::string all;
    for (const WatchdogRank* rank : ranks) {
      const std::string value = differ_op ? rank->op : size_text(*rank);
      all += (all.empty() ? "" : ", ") + std::to_string(rank->rank) + ": " + value;
      if (most && value != *most)
        finding.differing.push_back({rank->rank, differ_op ? "op" : "elements", value, *most});
      else
        finding.held.push_back(rank->rank);
      add_lines(*rank, 1, finding);
    }
    finding.consequences = finding.held;
    finding.confidence = !most        ? Confidence::undecidable
                         : group.sure ? Confidence::certain
                                      : Confidence::likely;
    finding.message =
        "operation " + std::to_string(seq) + " of " + group.name +
        (differ_op ? " is not the same on all ranks (" : " has not one size on all ranks (") + all +
        ")" + (most ? "" : "; which side is wrong cannot be told: no value has a majority");
    finding.advice =
        "compare the program's path on these ranks: conditions on data or rank around this "
        "operation; "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names the call";
    return finding;
  }
  return std::nullopt;
}

// The rank that saves a checkpoint while the others wait in the next operation.
std::optional<DiagnosisFinding> find_lonely_work(const WatchdogGroup& group) {
  const auto waiting = waiting_ranks(group);
  if (waiting.empty() || group.pairwise || group.several_runs ||
      !(group.is_default || group.comparable))
    return std::nullopt;
  const Witness* witness = waiting.front()->lines.front().witness;
  const std::int64_t first = waiting.front()->lines.front().line->line;
  const LogEvent* begun = nullptr;
  for (const LogEvent& event : witness->log->events) {
    if (event.line >= first) break;
    if (event.kind == LogEventKind::checkpoint_begins) begun = &event;
    if (event.kind == LogEventKind::checkpoint_ends) begun = nullptr;
  }
  if (begun == nullptr) return std::nullopt;
  const std::int64_t rank = std::max<std::int64_t>(begun->rank, 0);
  for (const WatchdogRank& other : group.ranks) {
    if (other.rank == rank || other.rank < 0) return std::nullopt;
  }
  DiagnosisFinding finding = finding_in(group, DiagnosisKind::missing_rank);
  describe_wait(waiting, finding);
  finding.missing_ranks = {rank};
  finding.confidence = Confidence::likely;
  finding.evidence.push_back(evidence_line(*witness, begun->line, begun->text));
  for (const WatchdogRank* other : waiting) add_best_line(*other, finding);
  finding.message =
      ranks_in_words(finding.held) + (finding.held.size() == 1 ? " waits" : " wait") + " in " +
      at_operation(waiting.front()->waits_at, finding.op) + " of " + group.name + "; rank " +
      std::to_string(rank) +
      " began to save a checkpoint, has no line of a watchdog, and was probably still at it";
  finding.advice =
      "a longer timeout for the group (timeout= of init_process_group), or save by all ranks "
      "(sharded) or "
      "in the background, so that the others need not wait for one";
  return finding;
}

// "rank 1 says that an operation of it timed out": a dump signal names who gave it.
std::string reports_of(const std::vector<const WatchdogGroup*>& groups) {
  for (const WatchdogGroup* group : groups) {
    for (const WatchdogRank& rank : group->ranks) {
      for (const WatchdogRef& ref : rank.lines) {
        if (ref.line->kind != LogWatchdog::Kind::dump_signal) continue;
        const std::int64_t from =
            ref.line->signal_from >= 0 ? ref.line->signal_from : ref.line->rank;
        if (from < 0) continue;
        std::string text = "an operation of rank " + std::to_string(from) + " timed out";
        if (ref.line->enqueued == ref.line->completed)
          text += "; in " + group->name + " nothing is outstanding, so it is one of another group";
        return text;
      }
    }
  }
  return {};
}

// What ranks wait in, by number. Where a rank's lines do not say it, what all others do.
using OpsAt = std::map<std::int64_t, std::set<std::string>>;

OpsAt ops_waited_in(const std::vector<const WatchdogRank*>& waiting) {
  OpsAt ops;
  for (const WatchdogRank* rank : waiting) {
    if (!rank->op.empty()) ops[rank->waits_at].insert(rank->op);
  }
  return ops;
}

std::string op_of_wait(const WatchdogRank& rank, const OpsAt& ops) {
  const auto known = ops.find(rank.waits_at);
  const bool only = known != ops.end() && known->second.size() == 1;
  return rank.op.empty() && only ? *known->second.begin() : rank.op;
}

// Nobody can be named: who waits where, and whose lines are missing.
DiagnosisFinding undecided(const std::vector<const WatchdogGroup*>& groups) {
  const WatchdogGroup& first = *groups.front();
  DiagnosisFinding finding = finding_in(first, DiagnosisKind::timeout);
  finding.confidence = Confidence::undecidable;
  std::string text;
  for (const WatchdogGroup* group : groups) {
    const auto waiting = waiting_ranks(*group);
    const OpsAt ops = ops_waited_in(waiting);
    std::map<std::pair<std::int64_t, std::string>, std::vector<std::int64_t>> by_operation;
    for (const WatchdogRank* rank : waiting) {
      by_operation[{rank->waits_at, op_of_wait(*rank, ops)}].push_back(
          rank->rank >= 0 ? rank->rank : rank->group_rank);
      if (rank->rank >= 0) finding.consequences.push_back(rank->rank);
    }
    for (auto& [operation, ranks] : by_operation) {
      std::sort(ranks.begin(), ranks.end());
      std::erase(ranks, -1);
      if (!text.empty()) text += "; ";
      text += (ranks.empty() ? "a rank" : ranks_in_words(ranks)) +
              (ranks.size() < 2 ? " waits" : " wait") + " in " +
              at_operation(operation.first, operation.second) +
              (group->name.empty() ? "" : " of " + group->name);
    }
    for (const WatchdogRank& rank : group->ranks) add_lines(rank, 2, finding);
  }
  if (const auto waiting = waiting_ranks(first); !waiting.empty()) {
    finding.seq = waiting.front()->waits_at;
    finding.op = op_in_words(waiting.front()->op);
  }
  std::sort(finding.consequences.begin(), finding.consequences.end());
  finding.consequences.erase(std::unique(finding.consequences.begin(), finding.consequences.end()),
                             finding.consequences.end());
  finding.held = finding.consequences;
  if (text.empty()) text = reports_of(groups);
  if (text.empty())
    text =
        "an operation timed out, and what the watchdogs say of their ranks shows none outstanding";
  const bool pairwise = std::any_of(groups.begin(), groups.end(),
                                    [](const WatchdogGroup* group) { return group->pairwise; });
  const bool several = std::any_of(groups.begin(), groups.end(),
                                   [](const WatchdogGroup* group) { return group->several_runs; });
  finding.message =
      text + (several ? "; who is waited for cannot be told: the lines seem to be of several runs, "
                        "with a restart or minutes between them"
              : pairwise ? "; who is waited for cannot be told: sends and receives are numbered by "
                           "each rank for itself, and watchdogs do not name the peer"
                         : "; who is waited for cannot be told without the watchdog lines of the "
                           "other ranks");
  finding.advice =
      "give the logs of all ranks, or their Flight Recorder dumps "
      "(TORCH_NCCL_TRACE_BUFFER_SIZE=2000, "
      "TORCH_NCCL_DUMP_ON_TIMEOUT=1): these say which rank did not call the operation";
  return finding;
}

std::vector<DiagnosisFinding> find_log_timeouts(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  // Where an error ended the job, those who wait wait for its rank.
  const auto cause = find_log_cause(view);
  const bool explained = cause && !cause->only_followers;
  std::vector<DiagnosisFinding> findings;
  for (const auto find : {find_desync, find_barrier, find_stalled}) {
    if (auto finding = find(view)) findings.push_back(std::move(*finding));
  }
  const bool named = !findings.empty();
  const std::vector<WatchdogGroup> groups = watchdog_groups(view);
  std::vector<const WatchdogGroup*> open;
  for (const WatchdogGroup& group : groups) {
    std::optional<DiagnosisFinding> finding;
    if (group.comparable && !named) finding = find_mismatch(group);
    if (group.comparable && !named && !finding) finding = find_behind(group);
    if (!finding && !named && !explained) finding = find_lonely_work(group);
    if (finding)
      findings.push_back(std::move(*finding));
    else
      open.push_back(&group);
  }
  if (!findings.empty() || explained) return findings;
  if (!open.empty()) {
    if (auto finding = find_behind_by_calls(view)) return {std::move(*finding)};
    return {undecided(open)};
  }
  if (auto finding = find_no_id(view)) return {std::move(*finding)};
  if (auto finding = find_store(view)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace

extern constinit const Verdict kLogTimeouts{
    .name = "log_timeouts",
    .summary = "who did not come, by the watchdogs of those who waited",
    .find = find_log_timeouts,
};

}  // namespace commlens
