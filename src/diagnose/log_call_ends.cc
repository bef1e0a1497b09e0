// Problem: a watchdog may say only who waits. With NCCL_DEBUG_SUBSYS=COLL each call has a line, and
// the rank that did not come has one fewer:
//
//   rank 0, 1, 2   call 1 2 3 4      then their watchdogs time out
//   rank 3         call 1 2 3        then other lines: it lives, and did not make call 4
//
// Method: believed only where nothing says that lines are lost: the communicator is known by its
// identifier, all of its ranks are there from their initialisation on, no record is cut, most ranks
// made the last call, the others wrote a line after it was made, and have made no call in any other
// communicator that a member there has not made: else they are held there. Those lines may be of
// any kind; a rank without one may only have been cut off. opCounts that are not those of the
// others show a lost line, so that traced calls, which have none, say nothing; and a communicator
// with sends and receives is left out: ranks make different ones of them. When it is wrong: a
// single call line that was lost without a trace, where processes share one output. So never more
// than likely.
#include "diagnose/log_call_ends.h"

#include <algorithm>
#include <map>

namespace commlens {
namespace {

// The collectives of one rank in one communicator.
struct CallEnd {
  const LogMember* member = nullptr;
  std::int64_t rank = -1;  // global
  std::size_t calls = 0;
  const LogCall* last = nullptr;
  std::vector<std::int64_t> op_counts = {};
};

bool nothing_lost(const Witness& witness) {
  const LogFacts& log = *witness.log;
  return log.cut == 0 && log.lost == 0 && !log.ends_cut;
}

// Whether both calls are in one file, so that the order of their lines says something.
bool one_file(const CallEnd& a, const CallEnd& b) { return a.member->witness == b.member->witness; }

// By member; empty where one of them lacks what is needed.
std::vector<CallEnd> call_ends(const LogView& view, const LogGroup& group) {
  std::vector<CallEnd> ends;
  if (!group.joined_by_id || static_cast<std::int64_t>(group.members.size()) != group.nranks)
    return ends;
  std::map<std::pair<const Witness*, std::uint32_t>, std::size_t> place;  // in `ends`
  for (const LogMember& member : group.members) {
    const LogComm& comm = member.facts();
    const auto rank = rank_of_process(view, *member.witness, comm.process, comm.device);
    if (!nothing_lost(*member.witness) || comm.complete_line == 0 || !rank) return {};
    place.try_emplace({member.witness, member.comm.value}, ends.size());
    ends.push_back({.member = &member, .rank = *rank, .calls = 0, .last = nullptr});
  }
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) {
      const auto found = place.find({witness, call.comm.value});
      if (found == place.end()) continue;
      if (call.op == Op::send || call.op == Op::recv || call.op == Op::put_get || call.traced)
        return {};
      ++ends[found->second].calls;
      ends[found->second].last = &call;
      ends[found->second].op_counts.push_back(call.op_count);
    }
  }
  return ends;
}

// What members of a communicator did, asked for again and again.
class KnownEnds {
 public:
  explicit KnownEnds(const LogView& view) : view_(view) {}
  const std::vector<CallEnd>& of(const LogGroup& group) {
    const auto [found, is_new] = known_.try_emplace(&group);
    if (is_new) found->second = call_ends(view_, group);
    return found->second;
  }

 private:
  const LogView& view_;
  std::map<const LogGroup*, std::vector<CallEnd>> known_;
};

// Whether the calls of both that are there are the same ones, as far as their numbers tell.
bool numbered_alike(const CallEnd& fewer, const CallEnd& more) {
  return std::equal(fewer.op_counts.begin(), fewer.op_counts.end(), more.op_counts.begin());
}

// Whether the process may wait in another communicator than `group`: it made a call there that
// some member did not, or what its members did is not known.
bool held_elsewhere(const LogView& view, KnownEnds& known, const LogGroup& group,
                    const CallEnd& end) {
  for (const LogGroup& other : view.groups) {
    if (&other == &group || other.nranks == 1) continue;
    const auto own = std::find_if(other.members.begin(), other.members.end(), [&](const auto& m) {
      return m.witness == end.member->witness && m.facts().process == end.member->facts().process;
    });
    if (own == other.members.end()) continue;
    const std::vector<CallEnd>& ends = known.of(other);
    const auto here =
        std::find_if(ends.begin(), ends.end(), [&](const CallEnd& e) { return e.member == &*own; });
    if (here == ends.end()) return true;
    if (std::any_of(ends.begin(), ends.end(),
                    [&](const CallEnd& e) { return e.calls < here->calls; }))
      return true;
  }
  return false;
}

std::string call_words(const CallEnd& end) {
  return std::string(op_name(end.last->op)) + ", its call " + std::to_string(end.calls) +
         " of the communicator";
}

std::optional<DiagnosisFinding> behind_in(const LogView& view, KnownEnds& known,
                                          const LogGroup& group) {
  const std::vector<CallEnd>& ends = known.of(group);
  if (ends.size() < 3) return std::nullopt;
  const auto most = std::max_element(
      ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.calls < b.calls; });
  DiagnosisFinding finding;
  if (most->last == nullptr) return std::nullopt;
  for (const CallEnd& end : ends) {
    if (end.calls == most->calls) {
      finding.held.push_back(end.rank);
      continue;
    }
    const auto& log = *end.member->witness->log;
    const LogProcess& process = log.processes[end.member->facts().process.index()];
    const bool told = end.last != nullptr && end.calls + 1 == most->calls && one_file(end, *most) &&
                      numbered_alike(end, *most) && process.last_line > most->last->line;
    if (!told || held_elsewhere(view, known, group, end)) return std::nullopt;
    finding.missing_ranks.push_back(end.rank);
    finding.evidence.push_back(
        evidence_line(*end.member->witness, end.last->line,
                      "the last call of rank " + std::to_string(end.rank) + ": " + call_words(end) +
                          "; its process writes until line " + std::to_string(process.last_line)));
  }
  if (finding.missing_ranks.empty() || 2 * finding.missing_ranks.size() >= ends.size())
    return std::nullopt;
  std::sort(finding.missing_ranks.begin(), finding.missing_ranks.end());
  std::sort(finding.held.begin(), finding.held.end());
  finding.kind = DiagnosisKind::missing_rank;
  finding.group = group.name;
  finding.seq = static_cast<std::int64_t>(most->calls) - 1;
  finding.op = op_name(most->last->op);
  finding.consequences = finding.held;
  finding.confidence = Confidence::likely;
  finding.evidence.push_back(evidence_line(
      *most->member->witness, most->last->line,
      "the last call of rank " + std::to_string(most->rank) + ": " + call_words(*most)));
  finding.message = ranks_in_words(finding.held) + " made call " + std::to_string(most->calls) +
                    " (" + finding.op + ") of " + group.name + ", and " +
                    ranks_in_words(finding.missing_ranks) +
                    " did not, though their lines go on; an operation timed out";
  finding.advice = "look at what " + ranks_in_words(finding.missing_ranks) +
                   " did at that time: py-spy dump, its last output, a branch that only it takes";
  return finding;
}

}  // namespace

std::optional<DiagnosisFinding> find_behind_by_calls(const LogView& view) {
  KnownEnds known(view);
  for (const LogGroup& group : view.groups) {
    if (auto finding = behind_in(view, known, group)) return finding;
  }
  return std::nullopt;
}

}  // namespace commlens
