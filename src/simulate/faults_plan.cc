// Faults of the machines: longer kernels, a host that stops, longer transfers, more tokens.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "simulate/faults.h"
#include "simulate/program.h"

namespace commlens::simulate {
namespace {

constexpr std::uint64_t kEndJitter = 5;  // purpose of the random stream

Ns times(Ns length, std::int64_t ppm) {
  return length / kMillion * ppm + length % kMillion * ppm / kMillion;
}

// `whole` * part / parts, for parts of a whole that may be too large to multiply.
std::int64_t share_of(std::int64_t whole, std::int64_t part, std::int64_t parts) {
  if (parts == 0) return 0;
  const std::int64_t scale = parts / 1'000'000'000 + 1;
  const std::int64_t of = parts / scale;
  return whole / of * (part / scale) + whole % of * (part / scale) / of;
}

bool in_steps(const Plan& plan, const Fault& fault, int index) {
  if (fault.steps.empty()) return true;
  return index >= 0 &&
         std::ranges::find(fault.steps, plan.spec.first_step + index) != fault.steps.end();
}

std::vector<Instruction>& program_of(Plan& plan, const Fault& fault) {
  return plan.programs[static_cast<std::size_t>(fault.rank)];
}

// Calls `visit(instruction, index of its step)` for all of a program; -1: before the first step.
template <class Program, class Visit>
void for_each_in_steps(Program& program, Visit visit) {
  int step = -1;
  for (auto& instruction : program) {
    if (instruction.verb == Verb::range_begin && instruction.range == RangeKind::step) ++step;
    visit(instruction, step);
  }
}

void slow_down(Plan& plan, const Fault& fault) {
  for_each_in_steps(program_of(plan, fault), [&](Instruction& instruction, int step) {
    if (instruction.verb == Verb::kernel && in_steps(plan, fault, step))
      instruction.gpu = times(instruction.gpu, fault.factor_ppm);
  });
}

// --- A late host ---

// Where a step's operators that launch a compute kernel begin, by step.
std::vector<std::vector<std::size_t>> launch_points(const Plan& plan, const Fault& fault) {
  std::vector<std::vector<std::size_t>> points;
  const std::vector<Instruction>& program = plan.programs[static_cast<std::size_t>(fault.rank)];
  std::size_t at = 0;
  for_each_in_steps(program, [&](const Instruction& instruction, int step) {
    points.resize(static_cast<std::size_t>(step + 1));
    if (step >= 0 && instruction.verb == Verb::kernel && in_steps(plan, fault, step))
      points.back().push_back(at - 1);
    ++at;
  });
  return points;
}

// The host waits until the GPU is done and only then loses its time: launched ahead, the GPU would
// not notice. That is what reading a number back in the middle of a step does (`loss.item()`).
//
//   host  launch launch launch | sync ----> work ------> launch ...
//   GPU          ==== ==== ====            (dry)              ====
void lose_time(Plan& plan, const Fault& fault) {
  constexpr std::size_t kPieces = 4;
  std::vector<std::pair<std::size_t, Ns>> stops;  // before which instruction, how long
  for (const std::vector<std::size_t>& points : launch_points(plan, fault)) {
    const std::size_t pieces = std::min(kPieces, points.size());
    const auto count = static_cast<Ns>(pieces);
    for (std::size_t i = 0; i < pieces; ++i) {
      const Ns more = static_cast<Ns>(i) < fault.amount_ns % count ? 1 : 0;
      stops.emplace_back(points[points.size() * i / pieces], fault.amount_ns / count + more);
    }
  }
  std::vector<Instruction>& program = program_of(plan, fault);
  int events = 0;
  for (const Instruction& instruction : program) events = std::max(events, instruction.event + 1);
  std::vector<Instruction> changed;
  std::size_t next = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (next < stops.size() && stops[next].first == at) {
      changed.push_back({.verb = Verb::sync_stream, .stream = kComputeStream, .event = events++});
      changed.push_back({.verb = Verb::work, .host = stops[next++].second});
    }
    changed.push_back(program[at]);
  }
  program = std::move(changed);
}

// --- Links ---

// The index of the step that each communication is issued in.
std::vector<int> steps_of_collectives(const Plan& plan) {
  std::vector<int> steps(plan.collectives.size(), -1);
  for (const std::vector<Instruction>& program : plan.programs) {
    for_each_in_steps(program, [&](const Instruction& instruction, int step) {
      if (instruction.verb == Verb::communicate)
        steps[static_cast<std::size_t>(instruction.collective)] = step;
    });
  }
  return steps;
}

int position(const Collective& collective, int rank) {
  const auto found = std::ranges::find(collective.members, rank, &Member::rank);
  return found == collective.members.end() ? -1
                                           : static_cast<int>(found - collective.members.begin());
}

// Whether data passes between the two: members of a ring hand it to their neighbours only, those of
// an all-to-all to all.
bool uses_link(const Collective& collective, int a, int b) {
  const int at_a = position(collective, a);
  const int at_b = position(collective, b);
  if (at_a < 0 || at_b < 0) return false;
  if (collective.point_to_point || collective.op == Op::all_to_all) return true;
  const int apart = at_a < at_b ? at_b - at_a : at_a - at_b;
  return apart == 1 || apart + 1 == static_cast<int>(collective.members.size());
}

void slow_down_link(Plan& plan, const Fault& fault) {
  const std::vector<int> steps = steps_of_collectives(plan);
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    Collective& collective = plan.collectives[i];
    if (uses_link(collective, fault.rank, fault.peer) && in_steps(plan, fault, steps[i]))
      collective.transfer = times(collective.transfer, fault.factor_ppm);
  }
}

// --- Unequal work ---

bool is_expert_kernel(const KernelType* kernel) {
  const auto among = [kernel](const auto& shares) {
    return std::ranges::find(shares, kernel, &KernelShare::type) != std::end(shares);
  };
  return among(catalog().experts_forward) || among(catalog().experts_backward);
}

// All tokens still go somewhere: what one gets more, the others get less, each in proportion.
std::vector<std::int64_t> more_popular(const std::vector<std::int64_t>& rows, std::size_t favourite,
                                       std::int64_t ppm) {
  const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const std::int64_t wanted = total - rows[favourite] + times(rows[favourite], ppm);
  std::vector<std::int64_t> changed;
  std::int64_t left = total;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t weight = i == favourite ? times(rows[i], ppm) : rows[i];
    changed.push_back(share_of(total, weight, wanted));
    left -= changed.back();
  }
  changed[favourite] += left;  // of rounding
  return changed;
}

void set_rows(Plan& plan, std::size_t index, std::vector<std::int64_t> rows) {
  Collective& exchange = plan.collectives[index];
  const auto members = static_cast<std::int64_t>(rows.size());
  for (std::size_t i = 0; i < exchange.members.size(); ++i) {
    Member& member = exchange.members[i];
    std::int64_t& of_experts = exchange.to_experts ? member.out_elements : member.in_elements;
    of_experts = rows[i] * members * plan.spec.hidden;
  }
  exchange.expert_rows = std::move(rows);
  exchange.transfer = noisy_transfer(plan, index);
}

// The exchanges that the fault changes, with the rows that they had before.
using Changed = std::map<int, std::vector<std::int64_t>>;

// Expert kernels take as long as the rows that the exchange before them brought.
void fit_kernels(Plan& plan, const Changed& before, int rank) {
  int exchange = -1;
  int member = -1;
  for (Instruction& instruction : plan.programs[static_cast<std::size_t>(rank)]) {
    if (instruction.verb == Verb::communicate && before.contains(instruction.collective)) {
      exchange = instruction.collective;
      member = instruction.member;
    }
    if (!is_expert_kernel(instruction.kernel) || exchange < 0) continue;
    const auto own = static_cast<std::size_t>(member);
    const std::int64_t rows = plan.collectives[static_cast<std::size_t>(exchange)].expert_rows[own];
    instruction.gpu = share_of(instruction.gpu, rows, before.at(exchange)[own]);
  }
}

void spread_unequally(Plan& plan, const Fault& fault) {
  const std::vector<int> steps = steps_of_collectives(plan);
  Changed before;
  std::set<int> ranks;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& exchange = plan.collectives[i];
    const int own = position(exchange, fault.rank);
    if (exchange.op != Op::all_to_all || own < 0 || !in_steps(plan, fault, steps[i])) continue;
    before.emplace(static_cast<int>(i), exchange.expert_rows);
    for (const Member& member : exchange.members) ranks.insert(member.rank);
    set_rows(plan, i,
             more_popular(exchange.expert_rows, static_cast<std::size_t>(own), fault.factor_ppm));
  }
  for (const int rank : ranks) fit_kernels(plan, before, rank);
}

void apply(Plan& plan, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::unequal: return spread_unequally(plan, fault);
    case FaultKind::slow: return slow_down(plan, fault);
    case FaultKind::late: return lose_time(plan, fault);
    case FaultKind::slow_link: return slow_down_link(plan, fault);
    default: return;  // of the recording
  }
}

void scatter_ends(Plan& plan, Ns jitter) {
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    Prng chance(plan.spec.seed, kEndJitter, i);
    for (Member& member : plan.collectives[i].members) member.late_exit = chance.below(jitter + 1);
  }
}

}  // namespace

void apply_to_plan(Plan& plan, const Faults& faults) {
  std::vector<Fault> ordered = faults.list;
  std::ranges::stable_sort(ordered, {}, &Fault::kind);
  for (const Fault& fault : ordered) apply(plan, fault);
  if (faults.end_jitter_ns > 0) scatter_ends(plan, faults.end_jitter_ns);
}

}  // namespace commlens::simulate
