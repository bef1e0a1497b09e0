#include "diagnose/remarks.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/joint_calls.h"
#include "diagnose/joint_hangs.h"
#include "diagnose/joint_mismatch.h"
#include "diagnose/joint_traces.h"
#include "diagnose/words.h"
#include "model/witness_trace.h"

namespace commlens {
namespace {

std::vector<std::int64_t> absent_ranks(const JointCalls& job) {
  std::set<std::int64_t> absent;
  for (const JointGroup& group : job.groups) {
    for (const auto& [rank, row] : group.ranks) {
      if (row.witness == nullptr) absent.insert(rank);
    }
  }
  return {absent.begin(), absent.end()};
}

// " (rank 0: scheduled, ranks 1-3: started)" of those in flight; empty where all stand alike.
std::string states_in_flight(const JointGroup& group, std::int64_t number) {
  std::map<CallState, std::vector<std::int64_t>> states;
  for (const std::int64_t rank : group.ranks_at(number, Standing::waiting))
    states[group.ranks.at(rank).calls.at(number).front().call->state].push_back(rank);
  if (states.size() < 2) return {};
  std::string text;
  for (const auto& [state, ranks] : states)
    text +=
        (text.empty() ? " (" : ", ") + rank_words(ranks) + ": " + std::string(state_name(state));
  return text + ")";
}

void add_in_flight(const JointCalls& job, std::vector<std::string>& remarks) {
  constexpr std::size_t kMost = 8;
  std::size_t shown = 0;
  for (const JointGroup& group : job.groups) {
    const auto pending = group.pending();
    if (pending.empty() || ++shown > kMost) continue;
    const std::vector<std::int64_t> done = group.ranks_at(pending.front(), Standing::completed);
    const std::vector<std::int64_t> out = group.ranks_at(pending.front(), Standing::not_called);
    remarks.push_back(operation_words(group, pending.front()) + " was in flight on " +
                      rank_words(group.ranks_at(pending.front(), Standing::waiting)) +
                      states_in_flight(group, pending.front()) +
                      (done.empty() ? "" : ", and completed on " + rank_words(done) + ",") +
                      (out.empty() ? "" : ", and not called by " + rank_words(out) + ",") +
                      " when the dumps were written, and nothing tells whether it hangs" +
                      (done.empty() ? ""
                                    : ": dumps of a running job are written one after the "
                                      "other, and differ like that") +
                      "; if it does, look at the network and the GPUs of " +
                      (done.empty() ? "these ranks"
                                    : "those in flight; a second set of dumps, a minute later, "
                                      "would tell"));
  }
}

// The oldest send or receive that is pending somewhere.
void add_p2p_in_flight(const JointCalls& job, std::vector<std::string>& remarks) {
  const PendingCall* oldest = nullptr;
  std::vector<std::int64_t> ranks;
  for (const auto& [rank, calls] : job.pending) {
    for (const PendingCall& call : calls) {
      if (!call.seen.call->p2p) continue;
      if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
      if (oldest == nullptr || call.seen.call->created_ns < oldest->seen.call->created_ns)
        oldest = &call;
    }
  }
  if (oldest == nullptr) return;
  remarks.push_back(
      "sends and receives were in flight on " + rank_words(ranks) +
      " when the dumps were written, and nothing tells whether they hang; the oldest: " +
      evidence_line(oldest->seen));
  if (!job.lacks_other_side(*oldest)) return;
  const bool receives = oldest->seen.call->op == Op::recv;
  remarks.back() += "; rank " + std::to_string(oldest->peer()) + " has not " +
                    (receives ? "sent to" : "received from") + " rank " +
                    std::to_string(oldest->seen.call->rank) +
                    " yet, which is no fault where it is only posted ahead of its turn; a second "
                    "set of dumps, a minute later, would tell";
}

// Results that nobody waits for any more, and that may be wrong.
void add_completed_mismatches(const JointCalls& job, std::vector<std::string>& remarks) {
  constexpr std::size_t kMost = 8;
  std::size_t shown = 0;
  for (const JointGroup& group : job.groups) {
    for (const CallMismatch& mismatch : first_completed_mismatch(group)) {
      if (++shown > kMost) return;
      remarks.push_back(mismatch_words(group, mismatch) +
                        "; it completed on all of them, so that it is no hang; whether its results "
                        "are right these files do not tell");
    }
  }
}

// Ranks of which there are several dumps.
void add_repeated(const std::vector<Witness>& witnesses, const std::vector<JointCalls>& jobs,
                  std::vector<std::string>& remarks) {
  if (jobs.size() > 1)
    remarks.push_back("some ranks have dumps in several folders: each of the " +
                      std::to_string(jobs.size()) + " folders was taken for a job of its own");
  const auto dumps = std::count_if(witnesses.begin(), witnesses.end(),
                                   [](const Witness& witness) { return witness.rank >= 0; });
  std::size_t used = 0;
  for (const JointCalls& job : jobs) used += job.witnesses.size();
  const std::size_t left = static_cast<std::size_t>(dumps) - used;
  if (left > 0)
    remarks.push_back(std::to_string(left) + (left == 1 ? " dump was" : " dumps were") +
                      " left out: another one of the same rank holds as many entries or more; "
                      "give those of one hang only");
}

// Timelines: which are cut, and what they leave open.
void add_of_traces(const std::vector<Witness>& witnesses, bool anything_found,
                   std::vector<std::string>& remarks) {
  std::vector<std::int64_t> cut;
  std::set<std::int64_t> whole;  // another recording of the rank may be
  std::vector<std::string> nameless;
  bool any = false;
  bool numbered = false;
  for (const Witness& witness : witnesses) {
    if (witness.trace == nullptr) continue;
    any = true;
    numbered |= witness.trace->calls_known;
    if (!witness.trace->cut) {
      whole.insert(witness.trace->rank);
      continue;
    }
    if (witness.trace->rank >= 0) {
      cut.push_back(witness.trace->rank);
    } else {
      nameless.push_back(witness.path);
    }
  }
  std::sort(cut.begin(), cut.end());
  cut.erase(std::unique(cut.begin(), cut.end()), cut.end());
  std::erase_if(cut, [&whole](std::int64_t rank) { return whole.contains(rank); });
  const std::string_view what_is_lost =
      " early: what is absent there may have stood in the lost part, so that nothing is concluded "
      "from that";
  if (!cut.empty())
    remarks.push_back((cut.size() == 1 ? "the trace of " : "the traces of ") + rank_words(cut) +
                      (cut.size() == 1 ? " ends" : " end") + std::string(what_is_lost));
  if (!nameless.empty())
    remarks.push_back(nameless.front() +
                      (nameless.size() == 1
                           ? " ends"
                           : " and " + std::to_string(nameless.size() - 1) + " more end") +
                      std::string(what_is_lost));
  if (any && !numbered)
    remarks.push_back(
        "these traces do not number the calls of groups on the host (record CPU activities with a "
        "PyTorch that writes Seq), so that they cannot tell who did not come; Flight Recorder "
        "dumps do");
  if (anything_found) return;
  for (const TraceWait& wait : find_trace_waits(witnesses)) {
    if (!wait.missing.empty()) continue;
    std::string text = rank_words(wait.waiting) + " called " + std::string(op_name(wait.op)) + " " +
                       std::to_string(wait.number) + " of group " + wait.group +
                       (wait.description.empty() ? "" : " (" + wait.description + ")") +
                       ", which did not end until their recordings did";
    if (!wait.elsewhere.empty())
      text += "; " + rank_words(wait.elsewhere) + " had not called it, and may be held by another";
    if (!wait.unseen.empty())
      text += "; whether " + rank_words(wait.unseen) +
              " called it is not known: there is no trace of that time, or it is cut";
    remarks.push_back(text + "; Flight Recorder dumps of all ranks would tell");
  }
}

}  // namespace

std::vector<std::string> find_remarks(const std::vector<Witness>& witnesses, bool anything_found) {
  std::vector<std::string> remarks;
  const std::vector<JointCalls> jobs = join_calls(witnesses);
  add_of_traces(witnesses, anything_found, remarks);
  add_repeated(witnesses, jobs, remarks);
  for (const JointCalls& job : jobs) {
    const auto absent = absent_ranks(job);
    if (!absent.empty() && !job.witnesses.empty())
      remarks.push_back("there is no usable dump of " + rank_words(absent) +
                        "; add theirs to know what these ranks did");
    add_completed_mismatches(job, remarks);
    if (anything_found) continue;
    add_in_flight(job, remarks);
    add_p2p_in_flight(job, remarks);
  }
  return remarks;
}

std::vector<std::string> unproven_hangs(const std::vector<Witness>& witnesses,
                                        const std::vector<DiagnosisFinding>& findings) {
  const bool any_open =
      std::any_of(findings.begin(), findings.end(), [](const DiagnosisFinding& finding) {
        return finding.confidence != Confidence::certain &&
               (finding.kind == DiagnosisKind::missing_rank ||
                finding.kind == DiagnosisKind::rank_ahead);
      });
  if (!any_open) return {};
  for (const JointCalls& job : join_calls(witnesses)) {
    if (job.witnesses.empty() || job.pending.empty() || job.timed_out) continue;
    return {
        "nothing in these dumps proves a hang (no call was given up or is older than its timeout): "
        "if the job was running when they were written, one after the other, ranks are a few calls "
        "apart in passing; a second set of dumps, a minute later, would tell"};
  }
  return {};
}

}  // namespace commlens
