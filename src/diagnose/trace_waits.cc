// Ranks that others wait for, by timelines. A timeline that was cut, or that ends before the others
// do, proves nothing of what is absent from it; so a rank is named only where its own recording
// went on for long while the others stood in a collective that it did not call.
#include <algorithm>

#include "diagnose/joint_traces.h"
#include "diagnose/verdict.h"
#include "diagnose/words.h"

namespace commlens {
namespace {

std::string seconds_words(Ns time) {
  const Ns tenths = time / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

DiagnosisFinding wait_finding(const TraceWait& wait) {
  // Most did not call it, and wait for nothing: the few who did are one ahead.
  const bool ahead =
      wait.elsewhere.empty() && wait.unseen.empty() && wait.missing.size() > wait.waiting.size();
  DiagnosisFinding finding;
  finding.kind = ahead ? DiagnosisKind::rank_ahead : DiagnosisKind::missing_rank;
  finding.group = wait.group;
  finding.group_description = wait.description;
  finding.group_ranks = wait.members;
  finding.seq = wait.number;
  finding.op = op_name(wait.op);
  finding.since_ns = wait.since;
  finding.held = wait.waiting;
  finding.evidence = wait.evidence;
  finding.confidence = Confidence::likely;
  const std::string what = std::string(op_name(wait.op)) + " " + std::to_string(wait.number) +
                           " of group " + wait.group +
                           (wait.description.empty() ? "" : " (" + wait.description + ")");
  finding.message = rank_words(wait.waiting) + " called " + what + ", which did not end in the " +
                    seconds_words(wait.open) + " until their recordings did" +
                    since_words(wait.since) + "; " + rank_words(wait.missing) +
                    " did not call it in that time";
  if (!wait.unseen.empty())
    finding.message += "; nothing can be said of " + rank_words(wait.unseen);
  if (ahead) {
    for (const std::int64_t rank : wait.waiting)
      finding.differing.push_back(
          {rank, "seq", std::to_string(wait.number), std::to_string(wait.number - 1)});
    finding.advice =
        "look for a call that only these ranks make: a longer loop, one more batch, a condition on "
        "the rank";
    return finding;
  }
  finding.missing_ranks = wait.missing;
  finding.consequences = wait.waiting;
  finding.advice =
      "look at what these ranks did at that time in their traces and by py-spy dump --pid PID: "
      "data "
      "loading, a checkpoint, a lock, or a branch that skips this call";
  return finding;
}

std::vector<DiagnosisFinding> find_missing_by_traces(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const TraceWait& wait : find_trace_waits(witnesses)) {
    if (!wait.missing.empty()) findings.push_back(wait_finding(wait));
  }
  return findings;
}

}  // namespace

extern const Verdict kTraceWaits;
constinit const Verdict kTraceWaits{
    .name = "trace_waits",
    .summary =
        "Who has not come to an operation that others' timelines show as called and not left?",
    .find = find_missing_by_traces,
};

}  // namespace commlens
