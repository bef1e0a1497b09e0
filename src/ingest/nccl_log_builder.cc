#include "ingest/nccl_log_builder.h"

#include <algorithm>
#include <array>

#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

// A part of a record can have lost the word that told that it is a secret.
std::string safe_detail(const std::string& detail, const LogRecord& record) {
  constexpr std::size_t kWhole = 8192;
  std::string safe = evidence_text(detail);
  const bool is_part = record.text.find(detail) != std::string_view::npos;
  const bool stays = !is_part || safe.ends_with("...") ||
                     safe_start(record.text, kWhole).find(safe) != std::string::npos;
  return stays ? safe : "(hidden)";
}

}  // namespace

std::string record_text(const LogRecord& record) { return evidence_text(record.text); }

// A host that other text stands before ("3node-1" of "...cudaDev 3node-1:42:42"): the longest known
// host that it ends with.
std::string_view LogBuilder::whole_host(const LogRecord& record) const {
  if (!record.glued) return record.host;
  std::string_view best;
  for (const LogProcess& process : facts_.processes) {
    if (process.host.size() > best.size() && record.host.ends_with(process.host))
      best = process.host;
  }
  return best.empty() ? record.host : best;
}

LogProcessId LogBuilder::process_of(const LogRecord& record) {
  auto key = std::pair(std::string(whole_host(record)), record.pid);
  auto [found, is_new] = processes_.try_emplace(std::move(key));
  if (is_new) {
    found->second = LogProcessId::from(facts_.processes.size());
    LogProcess fresh;
    fresh.host = found->first.first;
    fresh.pid = record.pid;
    fresh.hint = record.hint;
    fresh.first_line = record.line;
    facts_.processes.push_back(std::move(fresh));
  }
  LogProcess& process = facts_.processes[found->second.index()];
  process.last_line = record.line;
  if (record.time.since_epoch >= 0 && record.time.leads)
    process.written.add(record.time.since_epoch, record.line);
  if (record.hint >= 0 && record.hint != process.hint) {
    process.hint_varies = process.hint >= 0;
    process.hint = record.hint;
  }
  if (record.device >= 0 && process.devices.size() < 64) {
    const int device = static_cast<int>(record.device);
    if (std::find(process.devices.begin(), process.devices.end(), device) == process.devices.end())
      process.devices.push_back(device);
  }
  return found->second;
}

LogCommId LogBuilder::comm_of(LogProcessId process, std::uint64_t pointer, std::int64_t line) {
  const auto [found, is_new] = comms_.try_emplace({process.value, pointer});
  if (is_new && facts_.comms.size() > kMostComms) {
    // All beyond share the last one, which nothing is known of.
    comms_.erase(found);
    ++facts_.lost;
    return LogCommId::from(kMostComms);
  }
  if (is_new) {
    found->second = LogCommId::from(facts_.comms.size());
    LogComm comm;
    comm.process = process;
    comm.pointer = pointer;
    comm.first_line = line;
    facts_.comms.push_back(comm);
  }
  return found->second;
}

namespace {

// Whether two lines can speak of one initialisation.
bool agree(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

bool is_same(const LogComm& known, const LogComm& seen) {
  const bool same_id = known.id == 0 || seen.id == 0 || known.id == seen.id;
  return same_id && agree(known.rank, seen.rank) && agree(known.nranks, seen.nranks) &&
         known.end_line == 0 && known.abort_line == 0;
}

void take(std::int64_t& known, std::int64_t seen) {
  if (seen >= 0) known = seen;
}

}  // namespace

LogCommId LogBuilder::initialised(const LogComm& seen) {
  LogCommId id = comm_of(seen.process, seen.pointer, seen.first_line);
  if (id.index() == kMostComms) return id;
  if (!is_same(comm(id), seen)) {
    comms_.erase({seen.process.value, seen.pointer});
    id = comm_of(seen.process, seen.pointer, seen.first_line);
  }
  LogComm& known = comm(id);
  take(known.rank, seen.rank);
  take(known.nranks, seen.nranks);
  take(known.device, seen.device);
  take(known.bus, seen.bus);
  take(known.split, seen.split);
  take(known.color, seen.color);
  take(known.nodes, seen.nodes);
  take(known.local_ranks, seen.local_ranks);
  take(known.thread, seen.thread);
  if (seen.id != 0) known.id = seen.id;
  if (seen.parent != 0) known.parent = seen.parent;
  if (seen.complete_line > 0) known.complete_line = seen.complete_line;
  return id;
}

void LogBuilder::add(LogEvent event, const LogRecord& record) {
  if (facts_.events.size() >= kMostEvents) {
    ++facts_.lost;
    return;
  }
  event.process = process_of(record);
  event.thread = record.thread;
  event.device = record.device;
  if (event.rank < 0) event.rank = record.torch_rank;
  event.line = record.line;
  event.when = record.time.in_year;
  event.dated = record.time.since_epoch;
  event.text = record_text(record);
  if (!event.detail.empty()) event.detail = safe_detail(event.detail, record);
  facts_.events.push_back(std::move(event));
}

bool LogBuilder::is_counting(const LogCall& call) const {
  const std::size_t process = facts_.comms[call.comm.index()].process.index();
  return process < counting_.size() && counting_[process];
}

void LogBuilder::add(const LogCall& call) {
  if (!call.traced && !is_counting(call)) {
    const std::size_t process = comm(call.comm).process.index();
    counting_.resize(std::max(counting_.size(), process + 1));
    counting_[process] = true;
  }
  if (!call.traced || !is_counting(call)) keep(facts_.calls, call);
}

void LogBuilder::finish() {
  // In an excerpt the first line of a call can be the second one of its two.
  std::erase_if(facts_.calls,
                [this](const LogCall& call) { return call.traced && is_counting(call); });
}

Op op_of_nccl_name(std::string_view name) {
  struct Name {
    std::string_view name;
    Op op;
  };
  constexpr std::array<Name, 13> kNames = {{{"AllReduce", Op::all_reduce},
                                            {"AllGather", Op::all_gather},
                                            {"ReduceScatter", Op::reduce_scatter},
                                            {"Broadcast", Op::broadcast},
                                            {"Reduce", Op::reduce},
                                            {"Send", Op::send},
                                            {"Recv", Op::recv},
                                            {"AlltoAll", Op::all_to_all},
                                            {"AllToAll", Op::all_to_all},
                                            {"AllToAllv", Op::all_to_all},
                                            {"AllToAllPivot", Op::all_to_all},
                                            {"Gather", Op::gather},
                                            {"Scatter", Op::scatter}}};
  for (const Name& known : kNames) {
    if (known.name == name) return known.op;
  }
  return Op::unknown;
}

Op op_of_c10d_name(std::string_view name) {
  struct Name {
    std::string_view name;
    Op op;
  };
  constexpr std::array<Name, 18> kNames = {{{"ALLREDUCE", Op::all_reduce},
                                            {"ALLREDUCE_COALESCED", Op::all_reduce},
                                            {"_ALLREDUCE_SPARSE", Op::all_reduce},
                                            {"BROADCAST", Op::broadcast},
                                            {"REDUCE", Op::reduce},
                                            {"ALLGATHER", Op::all_gather},
                                            {"_ALLGATHER_BASE", Op::all_gather},
                                            {"ALLGATHER_COALESCED", Op::all_gather},
                                            {"GATHER", Op::gather},
                                            {"SCATTER", Op::scatter},
                                            {"REDUCE_SCATTER", Op::reduce_scatter},
                                            {"_REDUCE_SCATTER_BASE", Op::reduce_scatter},
                                            {"ALLTOALL_BASE", Op::all_to_all},
                                            {"ALLTOALL", Op::all_to_all},
                                            {"SEND", Op::send},
                                            {"RECV", Op::recv},
                                            {"RECVANYSOURCE", Op::recv},
                                            {"BARRIER", Op::barrier}}};
  for (const Name& known : kNames) {
    if (known.name == name) return known.op;
  }
  return Op::unknown;
}

}  // namespace commlens
