#include <algorithm>
#include <array>

#include "base/json_out.h"
#include "simulate/fault_truth.h"
#include "simulate/path_truth.h"
#include "simulate/profile.h"
#include "simulate/truth.h"

namespace commlens::simulate {
namespace {

template <class Value>
void member(JsonOut& json, std::string_view key, const Value& value) {
  json.key(key);
  json.value(value);
}

template <class Rows, class Of>
void list(JsonOut& json, std::string_view key, const Rows& rows, Of of) {
  json.key(key);
  json.compact_next();
  json.begin_array();
  for (const auto& row : rows) json.value(of(row));
  json.end_array();
}

void write_link(JsonOut& json, std::string_view key, const Link& link) {
  json.key(key);
  json.compact_next();
  json.begin_object();
  member(json, "alpha_ns", link.alpha_ns);
  member(json, "gbs", link.gbs);
  json.end_object();
}

void write_spec(JsonOut& json, const JobSpec& spec) {
  json.key("spec");
  json.begin_object();
  member(json, "dp", spec.dp);
  member(json, "tp", spec.tp);
  member(json, "pp", spec.pp);
  member(json, "ranks_per_host", spec.ranks_per_host);
  member(json, "layers", spec.layers);
  member(json, "steps", spec.steps);
  member(json, "microbatches", spec.microbatches);
  member(json, "fsdp", spec.fsdp);
  member(json, "moe", spec.moe);
  member(json, "expert_ranks", spec.expert_ranks);
  member(json, "layer_bytes", spec.layer_bytes);
  member(json, "activation_bytes", spec.activation_bytes);
  member(json, "bucket_bytes", spec.bucket_bytes);
  member(json, "hidden", spec.hidden);
  member(json, "top_k", spec.top_k);
  member(json, "layer_forward_ns", spec.layer_forward_ns);
  member(json, "embedding_ns", spec.embedding_ns);
  member(json, "loss_ns", spec.loss_ns);
  member(json, "optimizer_ns", spec.optimizer_ns);
  member(json, "launch_latency_ns", spec.launch_latency_ns);
  member(json, "kernel_gap_ns", spec.kernel_gap_ns);
  member(json, "event_latency_ns", spec.event_latency_ns);
  member(json, "launch_ns", spec.launch_ns);
  member(json, "event_call_ns", spec.event_call_ns);
  member(json, "range_ns", spec.range_ns);
  member(json, "input_ns", spec.input_ns);
  write_link(json, "intra", spec.intra);
  write_link(json, "inter", spec.inter);
  member(json, "seed", spec.seed);
  member(json, "noise", spec.noise);
  member(json, "moe_imbalance", spec.moe_imbalance);
  member(json, "first_step", spec.first_step);
  json.end_object();
}

void write_buckets(JsonOut& json, const Buckets& buckets) {
  member(json, "window_ns", buckets.window);
  member(json, "compute_only_ns", buckets.compute_only);
  member(json, "hidden_comm_ns", buckets.hidden_comm);
  member(json, "exposed_comm_ns", buckets.exposed_comm);
  member(json, "memory_only_ns", buckets.memory_only);
  member(json, "idle_ns", buckets.idle);
  const Ns comm = buckets.hidden_comm + buckets.exposed_comm;
  json.key("overlap_ratio");
  if (comm == 0) return json.null();
  json.value(static_cast<double>(buckets.hidden_comm) / static_cast<double>(comm));
}

void write_rank(JsonOut& json, const SimulatedJob& job, const RankTruth& truth, std::size_t rank) {
  const Place& place = job.layout.places[rank];
  json.begin_object();
  member(json, "rank", static_cast<std::int64_t>(rank));
  member(json, "host", host_name(place.host));
  member(json, "device", place.device);
  // To the clock of rank 0, as the analysis reports it.
  member(json, "offset_ns", job.ranks[0].clock.offset_ns - job.ranks[rank].clock.offset_ns);
  member(json, "start_ns", truth.start);
  member(json, "end_ns", truth.end);
  write_buckets(json, truth.buckets);
  member(json, "gpu_events", truth.gpu_events);
  member(json, "comm_events", truth.comm_events);
  member(json, "comm_busy_ns", truth.comm_busy);
  member(json, "whole_event_overlap_ns", truth.whole_event_overlap);
  json.key("steps");
  json.begin_array();
  for (const StepTruth& step : truth.steps) {
    json.compact_next();
    json.begin_object();
    member(json, "step", step.number);
    member(json, "start_ns", step.start);
    member(json, "end_ns", step.end);
    write_buckets(json, step.buckets);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_waits(JsonOut& json, std::string_view key, const WaitTruth& waits) {
  json.key(key);
  json.begin_object();
  member(json, "total_ns", waits.total);
  json.key("by_rank");
  json.begin_array();
  for (std::size_t rank = 0; rank < waits.waited.size(); ++rank) {
    json.compact_next();
    json.begin_object();
    member(json, "rank", static_cast<std::int64_t>(rank));
    member(json, "waited_ns", waits.waited[rank]);
    member(json, "exposed_waited_ns", waits.exposed_waited[rank]);
    member(json, "caused_ns", waits.caused[rank]);
    json.end_object();
  }
  json.end_array();
  json.key("blame");
  json.begin_array();
  for (const auto& [pair, ns] : waits.blame) {
    json.compact_next();
    json.begin_object();
    member(json, "waiter", pair.first);
    member(json, "culprit", pair.second);
    member(json, "ns", ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_ops(JsonOut& json, const Truth& truth) {
  json.key("ops");
  json.begin_array();
  for (const auto& [op, sums] : truth.ops) {
    json.compact_next();
    json.begin_object();
    member(json, "op", op_words(op).op);
    member(json, "count", sums.count);
    member(json, "bytes", sums.bytes);
    member(json, "busy_ns", sums.busy);
    member(json, "hidden_ns", sums.hidden);
    member(json, "exposed_ns", sums.busy - sums.hidden);
    member(json, "waited_ns", sums.waited);
    member(json, "transfer_ns", sums.transfer);
    json.end_object();
  }
  json.end_array();
}

// The nccl-tests size of the whole operation; members of an uneven all-to-all differ, and the
// largest counts.
std::int64_t bytes_of(const Collective& collective) {
  std::int64_t most = 0;
  for (const Member& each : collective.members) most = std::max(most, message_bytes_of(each));
  return most;
}

void write_collective(JsonOut& json, const SimulatedJob& job, const Truth& truth,
                      std::size_t index) {
  const Collective& collective = job.collectives[index];
  const std::vector<Attendance>& attendance = job.attendance[index];
  json.compact_next();
  json.begin_object();
  member(json, "op",
         collective.point_to_point ? std::string_view("send_recv") : op_words(collective.op).op);
  member(json, "group", job.layout.groups[static_cast<std::size_t>(collective.group)].name);
  list(json, "ranks", collective.members, [](const Member& each) { return each.rank; });
  member(json, "seq", collective.seq);
  member(json, "bytes", bytes_of(collective));
  member(json, "transfer_ns", collective.transfer);
  list(json, "start_ns", attendance, [](const Attendance& each) { return each.entry; });
  list(json, "end_ns", attendance, [](const Attendance& each) { return each.exit; });
  list(json, "wait_ns", truth.member_waits[index], [](Ns wait) { return wait; });
  json.end_object();
}

void write_groups(JsonOut& json, const Layout& layout) {
  json.key("groups");
  json.begin_array();
  for (const Group& group : layout.groups) {
    json.compact_next();
    json.begin_object();
    member(json, "name", group.name);
    member(json, "description", group.description);
    list(json, "ranks", group.ranks, [](int rank) { return rank; });
    json.end_object();
  }
  json.end_array();
}

// --- Faults ---

void number_or_null(JsonOut& json, std::string_view key, int value) {
  json.key(key);
  if (value < 0) return json.null();
  json.value(value);
}

void write_place(JsonOut& json, const Fault& fault) {
  const bool link = fault.kind == FaultKind::slow_link && fault.peer >= 0;
  number_or_null(json, "rank", link ? -1 : fault.rank);
  if (link) {
    list(json, "link", std::array{fault.rank, fault.peer}, [](int rank) { return rank; });
  } else {
    json.key("link");
    json.null();
  }
  json.key("host");
  if (fault.host < 0) return json.null();
  json.value(host_name(fault.host));
}

std::string_view place_name(LosePlace place) {
  switch (place) {
    case LosePlace::start: return "start";
    case LosePlace::end: return "end";
    case LosePlace::random: return "random";
  }
  return "";
}

void write_amounts(JsonOut& json, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::unequal:
    case FaultKind::slow:
    case FaultKind::slow_link:
      member(json, "factor", static_cast<double>(fault.factor_ppm) / kMillion);
      return;
    case FaultKind::late:
    case FaultKind::window_shift: member(json, "time_ns", fault.amount_ns); return;
    case FaultKind::clock:
      member(json, "time_ns", fault.amount_ns);
      member(json, "drift_ppm", static_cast<double>(fault.drift_ppb) / 1000);
      return;
    case FaultKind::lose:
      member(json, "count", fault.count);
      member(json, "place", place_name(fault.place));
      return;
    case FaultKind::missing: return;
  }
}

void write_costs(JsonOut& json, const FaultTruth& truth) {
  member(json, "cause", truth.cause);
  list(json, "steps", truth.fault.steps, [](std::int64_t step) { return step; });
  member(json, "extra_ns", truth.extra);
  member(json, "share_of_step", truth.share_of_step);
  member(json, "added_waits_ns", truth.added_waits);
  member(json, "added_exposed_waits_ns", truth.added_exposed_waits);
  member(json, "exposed_share", truth.exposed_share);
  member(json, "identifiable", truth.hidden_by.empty());
  json.key("reason");
  if (truth.hidden_by.empty()) return json.null();
  json.value(truth.hidden_by);
}

void write_fault(JsonOut& json, const FaultTruth& truth) {
  json.begin_object();
  member(json, "kind", truth.kind);
  write_place(json, truth.fault);
  if (truth.kind == fault_name(truth.fault.kind)) write_amounts(json, truth.fault);
  if (!truth.cause.empty()) {
    write_costs(json, truth);
  } else {
    json.key("cause");
    json.null();
  }
  json.end_object();
}

void write_clocks(JsonOut& json, const SimulatedJob& job) {
  json.key("clocks");
  json.begin_array();
  int written = -1;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const int host = job.layout.places[rank].host;
    if (host == written) continue;
    written = host;
    json.compact_next();
    json.begin_object();
    member(json, "host", host_name(host));
    member(json, "ahead_ns", job.ranks[rank].clock.offset_ns);
    member(json, "drift_ppm", static_cast<double>(job.ranks[rank].clock.drift_ppb) / 1000);
    json.end_object();
  }
  json.end_array();
}

// A healthy job says nothing of this.
void write_faults(JsonOut& json, const Scenario& scenario, const SimulatedJob& job) {
  const std::vector<FaultTruth> truths = find_fault_truth(scenario, job);
  if (truths.empty() && scenario.faults.none()) return;
  member(json, "end_jitter_ns", scenario.faults.end_jitter_ns);
  json.key("faults");
  json.begin_array();
  for (const FaultTruth& truth : truths) write_fault(json, truth);
  json.end_array();
  write_clocks(json, job);
}

}  // namespace

void write_truth(const Scenario& scenario, const SimulatedJob& job, Sink& sink) {
  const Truth truth = find_truth(job);
  JsonOut json(sink);
  json.begin_object();
  member(json, "schema", "commlens.truth/1");
  write_spec(json, job.spec);
  member(json, "epoch_ns", kJobEpochNs);
  write_faults(json, scenario, job);
  write_groups(json, job.layout);
  json.key("ranks");
  json.begin_array();
  for (std::size_t rank = 0; rank < truth.ranks.size(); ++rank)
    write_rank(json, job, truth.ranks[rank], rank);
  json.end_array();
  write_ops(json, truth);
  write_waits(json, "waits", truth.waits);
  write_waits(json, "waits_with_senders", truth.waits_with_senders);
  write_critical_path(json, job.layout, find_critical_path(job));
  json.key("collectives");
  json.begin_array();
  for (std::size_t i = 0; i < job.collectives.size(); ++i) write_collective(json, job, truth, i);
  json.end_array();
  json.end_object();
}

}  // namespace commlens::simulate
