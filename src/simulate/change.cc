#include "simulate/change.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace commlens::simulate {
namespace {

// --- Which ---

bool concerns(const Plan& plan, const Change& change, const Collective& collective) {
  const bool pair = change.op == Op::send || change.op == Op::recv || change.op == Op::send_recv;
  const bool op =
      change.op == Op::unknown || change.op == collective.op || (pair && collective.point_to_point);
  const Group& group = plan.layout.groups[static_cast<std::size_t>(collective.group)];
  return op && (change.group.empty() || change.group == group.description) &&
         (!change.between_hosts || crosses_hosts(plan.layout, collective));
}

void check(const JobSpec& spec, const Change& change) {
  const auto refuse = [](const char* sentence) {
    throw Error(ErrorKind::usage, std::string("simulate: ") + sentence);
  };
  if (change.speed_ppm < kMillion / 1000) refuse("a speed must be 0.001 or more");
  if (change.kind == ChangeKind::like_peers && (change.rank < 0 || change.rank >= spec.world()))
    refuse("there is no such rank to make like its peers");
}

// Whether a change takes this fault away.
bool undoes(const Change& change, const Fault& fault) {
  if (change.kind == ChangeKind::like_peers)
    return fault.kind == FaultKind::slow && fault.rank == change.rank;
  return change.kind == ChangeKind::hosts_on_time && fault.kind == FaultKind::late;
}

Faults remaining(const Faults& faults, const std::vector<Change>& changes) {
  Faults left = faults;
  std::erase_if(left.list, [&changes](const Fault& fault) {
    return std::ranges::any_of(changes,
                               [&fault](const Change& change) { return undoes(change, fault); });
  });
  return left;
}

// --- Communications ---

Ns sped_up(Ns length, std::int64_t ppm) {
  return length / ppm * kMillion + length % ppm * kMillion / ppm;
}

void speed_up(Plan& plan, const Change& change) {
  for (Collective& collective : plan.collectives) {
    if (!concerns(plan, change, collective)) continue;
    collective.transfer = sped_up(collective.transfer, change.speed_ppm);
    for (Member& member : collective.members)
      member.late_exit = sped_up(member.late_exit, change.speed_ppm);
  }
}

void remove(Plan& plan, const Change& change) {
  for (Collective& collective : plan.collectives)
    collective.apart = collective.apart || concerns(plan, change, collective);
}

// --- Hosts ---

// Every launch is there from the job's start.
void free_of_hosts(Plan& plan) {
  plan.spec.launch_latency_ns = 0;
  for (std::vector<Instruction>& program : plan.programs) {
    for (Instruction& instruction : program) {
      instruction.host = 0;
      if (instruction.verb == Verb::sync_stream) instruction.verb = Verb::work;
    }
  }
}

// --- Buckets ---

bool is_bucket(const Plan& plan, int collective) {
  if (collective < 0 || plan.spec.fsdp) return false;
  const Collective& whole = plan.collectives[static_cast<std::size_t>(collective)];
  const Group& group = plan.layout.groups[static_cast<std::size_t>(whole.group)];
  return whole.op == Op::all_reduce && group.kind == GroupKind::data;
}

// The instructions of a rank that have nothing to do with buckets. A bucket's are those that
// ProgramWriter writes from its operator to the operator's end, and around the wait for it.
std::vector<Instruction*> besides_buckets(Plan& plan, std::size_t rank) {
  std::vector<Instruction*> others;
  int depth = 0;  // of ranges inside a bucket's
  for (Instruction& instruction : plan.programs[rank]) {
    const bool opens = instruction.verb == Verb::range_begin;
    if (depth == 0 && opens && is_bucket(plan, instruction.collective)) {
      // The operator around a record was taken for another's.
      if (instruction.range == RangeKind::record_comms) {
        others.pop_back();
        ++depth;
      }
      ++depth;
    } else if (depth > 0) {
      if (opens) ++depth;
      if (instruction.verb == Verb::range_end) --depth;
    } else {
      others.push_back(&instruction);
    }
  }
  return others;
}

[[noreturn]] void differ() {
  throw Error(ErrorKind::internal, "simulate: another size of buckets changed more than buckets");
}

// Everything but the buckets takes as long as in the job with buckets of another size; both plans
// hold it in the same order.
void keep_durations(Plan& before, Plan& plan) {
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    const std::vector<Instruction*> from = besides_buckets(before, rank);
    const std::vector<Instruction*> to = besides_buckets(plan, rank);
    if (from.size() != to.size()) differ();
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (from[i]->verb != to[i]->verb) differ();
      to[i]->host = from[i]->host;
      to[i]->gpu = from[i]->gpu;
    }
  }
  std::size_t next = 0;
  const auto skip_buckets = [&] {
    while (next < before.collectives.size() && is_bucket(before, static_cast<int>(next))) ++next;
  };
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    if (is_bucket(plan, static_cast<int>(i))) continue;
    skip_buckets();
    if (next == before.collectives.size()) differ();
    const Collective& same = before.collectives[next++];
    Collective& collective = plan.collectives[i];
    collective.transfer = same.transfer;
    for (std::size_t member = 0; member < collective.members.size(); ++member)
      collective.members[member].late_exit = same.members[member].late_exit;
  }
}

Plan plan_with(const JobSpec& spec, const Faults& faults) {
  Plan plan = make_plan(spec);
  apply_to_plan(plan, faults);
  return plan;
}

void apply(Plan& plan, const Change& change, const Faults& faults) {
  switch (change.kind) {
    case ChangeKind::comm_speed: return speed_up(plan, change);
    case ChangeKind::remove: return remove(plan, change);
    case ChangeKind::no_host: return free_of_hosts(plan);
    case ChangeKind::bucket: {
      JobSpec spec = plan.spec;
      spec.bucket_bytes = change.bytes;
      Plan other = plan_with(spec, faults);
      keep_durations(plan, other);
      plan = std::move(other);
      return;
    }
    default: return;  // faults that are not there any more
  }
}

}  // namespace

SimulatedJob simulate_changed(const Scenario& scenario, const std::vector<Change>& changes) {
  scenario.spec.validate();
  validate(scenario.spec, scenario.faults);
  for (const Change& change : changes) check(scenario.spec, change);
  const Faults faults = remaining(scenario.faults, changes);
  Plan plan = plan_with(scenario.spec, faults);
  // Buckets first: the others are of the communications that there are then.
  for (const bool buckets : {true, false}) {
    for (const Change& change : changes) {
      if ((change.kind == ChangeKind::bucket) == buckets) apply(plan, change, faults);
    }
  }
  SimulatedJob job = run(std::move(plan));
  apply_to_job(job, faults);
  return job;
}

}  // namespace commlens::simulate
