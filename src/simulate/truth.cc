#include "simulate/truth.h"

#include <algorithm>
#include <array>

namespace commlens::simulate {
namespace {

enum Activity : std::size_t { kCompute = 0, kCommunication = 1, kMemory = 2 };

Activity activity_of(GpuKind kind) {
  switch (kind) {
    case GpuKind::compute: return kCompute;
    case GpuKind::communication: return kCommunication;
    default: return kMemory;
  }
}

// An instant at which the number of running activities of one kind changes.
struct Edge {
  Ns at = 0;
  Activity activity = kCompute;
  int change = 0;
};

std::vector<Edge> edges_of(const std::vector<GpuEvent>& events) {
  std::vector<Edge> edges;
  for (const GpuEvent& event : events) {
    edges.push_back({event.start, activity_of(event.kind), 1});
    edges.push_back({event.end, activity_of(event.kind), -1});
  }
  std::ranges::sort(edges, {}, &Edge::at);
  return edges;
}

void add_piece(Buckets& buckets, const std::array<int, 3>& running, Ns length) {
  buckets.window += length;
  if (running[kCommunication] > 0) {
    (running[kCompute] > 0 ? buckets.hidden_comm : buckets.exposed_comm) += length;
  } else if (running[kCompute] > 0) {
    buckets.compute_only += length;
  } else {
    (running[kMemory] > 0 ? buckets.memory_only : buckets.idle) += length;
  }
}

// The buckets of each window between neighbouring `cuts`.
std::vector<Buckets> sweep(const std::vector<Edge>& edges, const std::vector<Ns>& cuts) {
  std::vector<Buckets> windows(cuts.size() - 1);
  std::array<int, 3> running{};
  std::size_t next = 0;
  for (std::size_t window = 0; window + 1 < cuts.size(); ++window) {
    Ns at = cuts[window];
    while (at < cuts[window + 1]) {
      for (; next < edges.size() && edges[next].at <= at; ++next) {
        running[edges[next].activity] += edges[next].change;
      }
      const Ns until =
          next < edges.size() ? std::min(edges[next].at, cuts[window + 1]) : cuts[window + 1];
      add_piece(windows[window], running, until - at);
      at = until;
    }
  }
  return windows;
}

// How much of any stretch compute covers.
class ComputeCover {
 public:
  explicit ComputeCover(const std::vector<Edge>& edges) {
    int running = 0;
    for (const Edge& edge : edges) {
      if (edge.activity != kCompute) continue;
      if (running > 0) extend(edge.at);
      running += edge.change;
      if (running == 1 && edge.change == 1) open(edge.at);
    }
  }
  Ns within(Ns start, Ns end) const { return before(end) - before(start); }

 private:
  void open(Ns at) {
    starts_.push_back(at);
    since_.push_back(at);
    total_.push_back(total_.empty() ? 0 : total_.back());
  }
  void extend(Ns at) {
    total_.back() += at - since_.back();
    since_.back() = at;
  }
  // Covered time before `at`: that before the piece that `at` is in or behind, and of that piece.
  Ns before(Ns at) const {
    const auto behind = std::ranges::upper_bound(starts_, at);
    if (behind == starts_.begin()) return 0;
    const auto piece = static_cast<std::size_t>(behind - starts_.begin()) - 1;
    const Ns earlier = piece == 0 ? 0 : total_[piece - 1];
    return std::min(total_[piece], earlier + (at - starts_[piece]));
  }
  std::vector<Ns> starts_;
  std::vector<Ns> since_;  // ends of the pieces
  std::vector<Ns> total_;  // covered until the end of the piece
};

// The first GPU start launched in each step, then the end of the last; a step that launched nothing
// has none.
void find_steps(const RankTrace& trace, const std::vector<Edge>& edges, RankTruth& truth) {
  std::map<int, std::pair<Ns, Ns>> spans;  // first start and last end by step
  for (const GpuEvent& event : trace.gpu) {
    if (event.step < 0) continue;
    const auto [at, fresh] = spans.try_emplace(event.step, event.start, event.end);
    at->second.first = std::min(at->second.first, event.start);
    at->second.second = std::max(at->second.second, event.end);
  }
  std::vector<Ns> cuts;
  for (const auto& [step, span] : spans) {
    truth.steps.push_back(
        {.number = trace.steps[static_cast<std::size_t>(step)].number, .start = span.first});
    cuts.push_back(span.first);
  }
  if (cuts.empty()) return;
  cuts.push_back(spans.rbegin()->second.second);
  const std::vector<Buckets> windows = sweep(edges, cuts);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    truth.steps[i].end = cuts[i + 1];
    truth.steps[i].buckets = windows[i];
  }
}

RankTruth rank_truth(const RankTrace& trace, const std::vector<Edge>& edges,
                     const ComputeCover& compute) {
  RankTruth truth;
  if (trace.gpu.empty()) return truth;
  truth.start = std::ranges::min_element(trace.gpu, {}, &GpuEvent::start)->start;
  truth.end = std::ranges::max_element(trace.gpu, {}, &GpuEvent::end)->end;
  truth.buckets = sweep(edges, {truth.start, truth.end})[0];
  truth.gpu_events = static_cast<std::int64_t>(trace.gpu.size());
  for (const GpuEvent& event : trace.gpu) {
    if (event.kind != GpuKind::communication) continue;
    ++truth.comm_events;
    truth.comm_busy += event.end - event.start;
    if (compute.within(event.start, event.end) > 0)
      truth.whole_event_overlap += event.end - event.start;
  }
  find_steps(trace, edges, truth);
  return truth;
}

// --- Waiting ---

// Adds a wait, charged in equal parts to the last to arrive; the first of them get what does not
// divide.
void charge(WaitTruth& waits, int waiter, const std::vector<int>& culprits, Ns wait, Ns exposed) {
  const auto count = static_cast<Ns>(culprits.size());
  Ns rest = wait % count;
  for (const int culprit : culprits) {
    const Ns share = wait / count + (rest-- > 0 ? 1 : 0);
    waits.caused[static_cast<std::size_t>(culprit)] += share;
    waits.blame[{waiter, culprit}] += share;
  }
  waits.total += wait;
  waits.waited[static_cast<std::size_t>(waiter)] += wait;
  waits.exposed_waited[static_cast<std::size_t>(waiter)] += exposed;
}

void attend(Truth& truth, const Collective& collective, const std::vector<Attendance>& attendance,
            const std::vector<ComputeCover>& computes) {
  const Ns together = std::ranges::max_element(attendance, {}, &Attendance::entry)->entry;
  std::vector<int> last;
  for (std::size_t i = 0; i < attendance.size(); ++i) {
    if (attendance[i].entry == together) last.push_back(collective.members[i].rank);
  }
  std::vector<Ns>& member_waits = truth.member_waits.emplace_back();
  for (std::size_t i = 0; i < attendance.size(); ++i) {
    const Member& member = collective.members[i];
    const auto [event, entry, exit] = attendance[i];
    const ComputeCover& compute = computes[static_cast<std::size_t>(member.rank)];
    const Ns wait = collective.apart ? 0 : together - entry;
    member_waits.push_back(wait);
    OpTruth& op = truth.ops[member.op];
    ++op.count;
    op.bytes += message_bytes_of(member);
    op.busy += exit - entry;
    op.hidden += compute.within(entry, exit);
    op.waited += wait;
    op.transfer += exit - entry - wait;
    if (wait == 0) continue;
    const Ns exposed = wait - compute.within(entry, together);
    charge(truth.waits_with_senders, member.rank, last, wait, exposed);
    if (member.op != Op::send) charge(truth.waits, member.rank, last, wait, exposed);
  }
}

}  // namespace

Truth find_truth(const SimulatedJob& job) {
  Truth truth;
  std::vector<ComputeCover> computes;
  for (const RankTrace& trace : job.ranks) {
    const std::vector<Edge> edges = edges_of(trace.gpu);
    computes.emplace_back(edges);
    truth.ranks.push_back(rank_truth(trace, edges, computes.back()));
  }
  for (WaitTruth* waits : {&truth.waits, &truth.waits_with_senders}) {
    for (auto* column : {&waits->waited, &waits->exposed_waited, &waits->caused})
      column->resize(job.ranks.size());
  }
  for (std::size_t i = 0; i < job.collectives.size(); ++i) {
    attend(truth, job.collectives[i], job.attendance[i], computes);
  }
  return truth;
}

}  // namespace commlens::simulate
