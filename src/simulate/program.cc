#include "simulate/program.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"

namespace commlens::simulate {

int SharedParts::name(std::string_view text) {
  if (const auto found = names_.find(text); found != names_.end()) return found->second;
  const int index = static_cast<int>(plan_.names.size());
  plan_.names.emplace_back(text);
  names_.emplace(text, index);
  return index;
}

int SharedParts::collective(Op op, int group, std::int64_t n, int source, int destination) {
  std::vector<int>& made = collectives_[{group, source, destination}];
  const auto index = static_cast<std::size_t>(n - 1);
  if (index < made.size()) {
    if (plan_.collectives[static_cast<std::size_t>(made[index])].op == op) return made[index];
    throw Error(ErrorKind::internal,
                "simulate: two ranks disagree about the next operation of a group");
  }
  Collective fresh{.op = op, .group = group, .seq = n, .point_to_point = source >= 0};
  const std::vector<int> pair{source, destination};
  for (const int rank :
       source >= 0 ? pair : plan_.layout.groups[static_cast<std::size_t>(group)].ranks) {
    fresh.members.push_back({.rank = rank, .op = op});
  }
  made.push_back(static_cast<int>(plan_.collectives.size()));
  plan_.collectives.push_back(std::move(fresh));
  return made.back();
}

// The purposes of random streams.
enum Purpose : std::uint64_t { kGpuTimes = 1, kHostTimes = 2 };

ProgramWriter::ProgramWriter(Plan& plan, SharedParts& shared, int rank)
    : plan_(plan),
      shared_(shared),
      rank_(rank),
      place_(plan.layout.places[static_cast<std::size_t>(rank)]),
      gpu_chance_(plan.spec.seed, kGpuTimes, static_cast<std::uint64_t>(rank)),
      host_chance_(plan.spec.seed, kHostTimes, static_cast<std::uint64_t>(rank)),
      noise_ppm_(to_ppm(plan.spec.noise)),
      calls_(plan.layout.groups.size(), 0) {}

Instruction& ProgramWriter::emit(Verb verb, Ns host) {
  Instruction& instruction = plan_.programs[static_cast<std::size_t>(rank_)].emplace_back();
  instruction.verb = verb;
  instruction.host = host_chance_.jitter(host, noise_ppm_);
  return instruction;
}

void ProgramWriter::work(Ns mean) { emit(Verb::work, mean); }

void ProgramWriter::kernels(std::span<const KernelShare> shares, Ns time) {
  for (const KernelShare& share : shares) {
    begin(RangeKind::cpu_op, share.type->cpu_op);
    Instruction& launch = emit(Verb::kernel, plan_.spec.launch_ns);
    launch.stream = kComputeStream;
    launch.kernel = share.type;
    launch.gpu = gpu_chance_.jitter(time * share.permille / 1000, noise_ppm_);
    end();
  }
}

void ProgramWriter::copy(std::string_view name, std::int64_t bytes, Ns time) {
  begin(RangeKind::cpu_op, "aten::copy_");
  Instruction& launch = emit(Verb::memcpy, plan_.spec.launch_ns);
  launch.stream = kComputeStream;
  launch.name = shared_.name(name);
  launch.bytes = bytes;
  launch.gpu = gpu_chance_.jitter(time, noise_ppm_);
  end();
}

void ProgramWriter::set(std::int64_t bytes, Ns time) {
  begin(RangeKind::cpu_op, "aten::zero_");
  Instruction& launch = emit(Verb::memset, plan_.spec.launch_ns);
  launch.stream = kComputeStream;
  launch.name = shared_.name("Memset (Device)");
  launch.bytes = bytes;
  launch.gpu = gpu_chance_.jitter(time, noise_ppm_);
  end();
}

void ProgramWriter::begin(RangeKind kind, std::string_view name, int collective, int member) {
  Instruction& range = emit(Verb::range_begin, plan_.spec.range_ns);
  range.range = kind;
  range.name = shared_.name(name);
  range.collective = collective;
  range.member = member;
}

void ProgramWriter::end() { emit(Verb::range_end, plan_.spec.range_ns); }

void ProgramWriter::sync_compute() {
  Instruction& sync = emit(Verb::sync_stream, plan_.spec.event_call_ns);
  sync.stream = kComputeStream;
  sync.event = new_event();
}

Member& ProgramWriter::join(int collective, std::size_t member) {
  return plan_.collectives[static_cast<std::size_t>(collective)].members[member];
}

std::string ProgramWriter::annotation(Op op, int peer) const {
  const std::string_view title = op_words(op).annotation;
  if (peer < 0) return std::string(title);
  const Group& group =
      plan_.layout.groups[static_cast<std::size_t>(place_.group_of(GroupKind::pipeline))];
  return fmt::format("{} {}{}{}", title, index_in_group(group, rank_), op == Op::send ? "->" : "<-",
                     index_in_group(group, peer));
}

Pending ProgramWriter::launch(int collective, std::size_t member, int stream) {
  const Collective& whole = plan_.collectives[static_cast<std::size_t>(collective)];
  const Op op = whole.members[member].op;
  const int peer = whole.point_to_point ? whole.members[1 - member].rank : -1;
  const int own = static_cast<int>(member);
  const Pending pending{.event = new_event(), .collective = collective, .member = own};
  begin(RangeKind::cpu_op, op_words(op).dispatch);
  begin(RangeKind::record_comms, "record_param_comms", collective, own);
  begin(RangeKind::annotation, annotation(op, peer), collective, own);
  const int ready = new_event();
  for (const auto& [verb, on, event] :
       {std::tuple{Verb::record_event, kComputeStream, ready},
        std::tuple{Verb::wait_event, stream, ready}, std::tuple{Verb::communicate, stream, -1},
        std::tuple{Verb::record_event, stream, pending.event}}) {
    const bool kernel = verb == Verb::communicate;
    Instruction& call =
        emit(verb, kernel ? plan_.spec.launch_ns * 3 / 2 : plan_.spec.event_call_ns);
    call.stream = on;
    call.event = event;
    if (!kernel) continue;
    call.collective = collective;
    call.member = own;
    call.kernel = &communication_kernel(op);
  }
  for (int ranges = 0; ranges < 3; ++ranges) end();
  return pending;
}

Pending ProgramWriter::communicate(Op op, GroupKind kind, int stream, std::int64_t in,
                                   std::int64_t out) {
  const int group = place_.group_of(kind);
  const std::int64_t seq = ++calls_[static_cast<std::size_t>(group)];
  const int collective = shared_.collective(op, group, seq);
  const auto own = static_cast<std::size_t>(
      index_in_group(plan_.layout.groups[static_cast<std::size_t>(group)], rank_));
  Member& member = join(collective, own);
  member.seq = seq;
  member.in_elements = in;
  member.out_elements = out;
  return launch(collective, own, stream);
}

Pending ProgramWriter::exchange(const std::vector<std::int64_t>& expert_rows, bool to_experts) {
  const auto members = static_cast<std::int64_t>(expert_rows.size());
  const auto own = static_cast<std::size_t>(place_.replica % plan_.spec.expert_group());
  const std::int64_t routed =
      std::accumulate(expert_rows.begin(), expert_rows.end(), std::int64_t{0});
  const std::int64_t of_tokens = routed * plan_.spec.hidden;
  const std::int64_t of_experts = expert_rows[own] * members * plan_.spec.hidden;
  const Pending pending =
      to_experts
          ? communicate(Op::all_to_all, GroupKind::expert, kExpertStream, of_tokens, of_experts)
          : communicate(Op::all_to_all, GroupKind::expert, kExpertStream, of_experts, of_tokens);
  Collective& collective = plan_.collectives[static_cast<std::size_t>(pending.collective)];
  collective.expert_rows = expert_rows;
  collective.to_experts = to_experts;
  return pending;
}

Pending ProgramWriter::pair(Op op, int peer, int stream, std::int64_t elements) {
  const int source = op == Op::send ? rank_ : peer;
  const int destination = op == Op::send ? peer : rank_;
  const std::int64_t n = ++pairs_[{source, destination}];
  const int collective =
      shared_.collective(Op::send, place_.group_of(GroupKind::pipeline), n, source, destination);
  const std::size_t own = op == Op::send ? 0 : 1;
  Member& member = join(collective, own);
  member.op = op;
  member.seq = ++pair_calls_;
  member.in_elements = member.out_elements = elements;
  return launch(collective, own, stream);
}

Pending ProgramWriter::send(int peer, int stream, std::int64_t elements) {
  return pair(Op::send, peer, stream, elements);
}

Pending ProgramWriter::receive(int peer, int stream, std::int64_t elements) {
  return pair(Op::recv, peer, stream, elements);
}

void ProgramWriter::wait(const Pending& pending) {
  begin(RangeKind::wait_record, "record_param_comms", pending.collective, pending.member);
  Instruction& call = emit(Verb::wait_event, plan_.spec.event_call_ns);
  call.stream = kComputeStream;
  call.event = pending.event;
  end();
}

}  // namespace commlens::simulate
