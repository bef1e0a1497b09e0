// An operation binds clocks through who needs whom (model/semantics): whoever needs somebody leaves
// after that one has entered. Of ranks that share a clock only the extremes count:
//
//   host A  rank 0  [==========]            entered of A: the later start
//           rank 1      [=======]           left of A:    the earlier end
//   host B  rank 2         [====]     =>    entered of B + offset of B <= left of A + offset of A,
//           rank 3  [==========]            and the other way round
//
// so an operation costs as many spans as it has clocks.
#include "match/clock_evidence.h"

#include "match/comm_numbers.h"
#include "model/semantics.h"

namespace commlens {
namespace {

class Gatherer {
 public:
  Gatherer(const Job& job, const ClockDomains& domains)
      : job_(job), domains_(domains), span_of_(domains.count, kNone) {}

  void add(std::uint32_t row) {
    const MatchedOp& op = job_.matching.ops[row];
    if (!op.agreed || !op.sure || !moves_something(op)) return;
    ClockOp out{.op = row, .group = op.group, .first = evidence_.spans.size()};
    for (std::uint32_t part = 0; part < op.count; ++part) attend(op, part);
    out.count = static_cast<std::uint32_t>(evidence_.spans.size() - out.first);
    for (std::size_t i = out.first; i < evidence_.spans.size(); ++i)
      span_of_[evidence_.spans[i].domain] = kNone;
    out.firm = is_firm(op);
    out.inferred = op.by == MatchedBy::inferred;
    out.together = synchronises_everyone(op, false);
    out.balanced = out.together && op.op != Op::all_to_all;
    if (out.count > 0) evidence_.ops.push_back(out);
  }

  ClockEvidence take() { return std::move(evidence_); }

 private:
  // Data hold nobody back where there are none, and what a lying name does is not known.
  bool moves_something(const MatchedOp& op) const {
    const Part* parts = &job_.matching.parts[op.first];
    return std::none_of(parts, parts + op.count, [&](const Part& part) {
      const CommOp& comm = comm_of(job_, part);
      return comm.name_may_lie || comm.zero_split || (comm.bytes == 0 && op.op != Op::barrier);
    });
  }

  void attend(const MatchedOp& op, std::uint32_t part) {
    const Part& where = job_.matching.parts[op.first + part];
    const Needs needs = needs_of(op, part, false);
    if (needs == Needs::unknown) return;
    // Whom others need: of a pair the source, of a broadcast the root; else everybody.
    const bool from_root = op.op == Op::broadcast || op.op == Op::scatter;
    const bool needed = needs == Needs::nobody || (!op.pair && !from_root);
    const Recording& recording = job_.ranks[where.rank].recording;
    const Interval time = comm_of(job_, where).time;
    ClockSpan& span = span_of(domains_.of_row[where.rank]);
    if (needed) span.entered = std::max(span.entered, absolute_time(recording, time.start));
    if (needs == Needs::nobody) return;
    const Ns end = absolute_time(recording, time.end);
    span.left = span.left == ClockSpan::kNobody ? end : std::min(span.left, end);
    span.all_left = std::max(span.all_left, end);
  }

  ClockSpan& span_of(std::uint32_t domain) {
    if (span_of_[domain] == kNone) {
      span_of_[domain] = evidence_.spans.size();
      evidence_.spans.push_back({.domain = domain});
    }
    return evidence_.spans[span_of_[domain]];
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  const Job& job_;
  const ClockDomains& domains_;
  std::vector<std::size_t> span_of_;  // by domain, of the operation at hand
  ClockEvidence evidence_;
};

}  // namespace

Ns absolute_time(const Recording& recording, Ns own) {
  return near_time(near_time(own) + near_time(recording.clock_base));
}

bool is_firm(const MatchedOp& op) {
  return op.by == MatchedBy::comms_id || op.by == MatchedBy::sequence;
}

ClockEvidence gather_evidence(const Job& job, const ClockDomains& domains,
                              const std::vector<bool>& doubted) {
  Gatherer gatherer(job, domains);
  for (std::uint32_t row = 0; row < job.matching.ops.size(); ++row) {
    if (doubted.empty() || !doubted[row]) gatherer.add(row);
  }
  return gatherer.take();
}

}  // namespace commlens
