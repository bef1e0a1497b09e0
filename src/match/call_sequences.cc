#include "match/call_sequences.h"

#include <algorithm>

#include "match/witness_processes.h"
#include "model/bandwidth.h"

namespace commlens {
namespace {

std::string_view nccl_name(Op op) {
  switch (op) {
    case Op::all_reduce: return "ncclAllReduce";
    case Op::all_gather: return "ncclAllGather";
    case Op::reduce_scatter: return "ncclReduceScatter";
    case Op::all_to_all: return "ncclAlltoAll";
    case Op::broadcast: return "ncclBroadcast";
    case Op::reduce: return "ncclReduce";
    case Op::gather: return "ncclGather";
    case Op::scatter: return "ncclScatter";
    default: return {};
  }
}

bool is_one_sided(const WitnessCall& call) {
  return call.p2p || call.op == Op::send || call.op == Op::recv || call.op == Op::send_recv;
}

class Collector {
 public:
  Collector(const Job& job, const std::vector<Witness>& witnesses)
      : job_(job), witnesses_(witnesses) {
    found_.of_rank.resize(job.ranks.size());
    found_.refused.resize(witnesses.size());
    found_.comms.resize(witnesses.size());
    found_.choices.resize(witnesses.size());
  }

  CallSequences run() {
    for (std::size_t w = 0; w < witnesses_.size(); ++w) {
      if (witnesses_[w].log != nullptr) {
        add_log(w);
      } else if (witnesses_[w].rank >= 0) {
        add_dump(w);
      } else {
        found_.refused[w] = "it does not say which rank made which call";
      }
    }
    return std::move(found_);
  }

 private:
  std::uint32_t text(const std::string& words) {
    const auto [row, is_new] =
        rows_of_texts_.try_emplace(words, static_cast<std::uint32_t>(found_.texts.size()));
    if (is_new) found_.texts.push_back(words);
    return row->second;
  }

  void add_log(std::size_t w) {
    found_.comms[w] = comms_by_process(witnesses_[w]);
    found_.choices[w] = tuner_choices(witnesses_[w]);
    const std::vector<ProcessOfRank> processes = find_processes(job_, witnesses_[w]);
    std::string reason;
    bool any = false;
    for (std::size_t row = 0; row < processes.size(); ++row) {
      if (!processes[row].process) {
        if (reason.empty()) reason = processes[row].reason;
        continue;
      }
      any = true;
      for (const CommWitness& comm : found_.comms[w][*processes[row].process])
        add_comm(w, row, comm, processes[row].by_id);
    }
    if (!any) found_.refused[w] = reason + ": it may be of another run";
  }

  void add_comm(std::size_t w, std::size_t row, const CommWitness& comm, bool by_id) {
    CallSequence sequence{.witness = w,
                          .communicator = comm.comm->id,
                          .name = {},
                          .members = {},
                          .size = comm.comm->nranks,
                          .place = comm.comm->rank,
                          .same_process = by_id,
                          .numbered = comm.from_start,
                          .calls = {},
                          .texts = {},
                          .made = {},
                          .facts = &comm};
    for (const CommEvent& call : comm.calls) {
      CommEvent event = as_called(call);
      if (comm.from_start) event.seq = static_cast<std::int64_t>(sequence.calls.size()) + 1;
      sequence.calls.push_back(event);
      sequence.texts.push_back(text(std::string(nccl_name(call.op))));
    }
    found_.of_rank[row].push_back(std::move(sequence));
  }

  void add_dump(std::size_t w) {
    const Witness& dump = witnesses_[w];
    bool any = false;
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      if (job_.ranks[row].rank != dump.rank || job_.ranks[row].run != 0) continue;
      any = true;
      for (std::uint32_t group = 0; group < dump.groups.size(); ++group)
        add_dumped_group(w, row, group);
    }
    if (!any) found_.refused[w] = "there is no timeline of its rank " + std::to_string(dump.rank);
  }

  void add_dumped_group(std::size_t w, std::size_t row, std::uint32_t group) {
    const Witness& dump = witnesses_[w];
    CallSequence sequence{.witness = w,
                          .communicator = 0,
                          .name = dump.groups[group].name,
                          .members = dump.groups[group].members,
                          .size = dump.groups[group].size > 0 ? dump.groups[group].size : -1,
                          .place = -1,
                          .same_process = true,
                          .numbered = true,
                          .calls = {},
                          .texts = {},
                          .made = {},
                          .facts = nullptr};
    std::sort(sequence.members.begin(), sequence.members.end());
    for (const WitnessCall& call : dump.calls) {
      if (call.group != group || is_one_sided(call)) continue;
      CommEvent event;
      event.op = call.op;
      event.any_op = call.op == Op::unknown;
      event.seq = call.number;
      const auto element = element_bytes(dump.text(call.in_dtype));
      if (element && !size_may_differ(call.op))
        event.bytes = message_bytes(call.op, call.in_elements, call.out_elements, *element)
                          .value_or(kUnknown);
      sequence.calls.push_back(as_called(event));
      std::string words(dump.text(call.op_text));
      if (call.code.valid()) words += " (" + std::string(dump.text(call.code)) + ")";
      sequence.texts.push_back(text(words));
      sequence.made.push_back(call.created_ns);
    }
    if (!sequence.calls.empty()) found_.of_rank[row].push_back(std::move(sequence));
  }

  const Job& job_;
  const std::vector<Witness>& witnesses_;
  CallSequences found_;
  std::map<std::string, std::uint32_t> rows_of_texts_;
};

}  // namespace

CommEvent as_called(CommEvent event) {
  if (event.op == Op::barrier) {
    event.op = Op::all_reduce;
    event.bytes = kUnknown;
  }
  return event;
}

CallSequences collect_calls(const Job& job, const std::vector<Witness>& witnesses) {
  return Collector(job, witnesses).run();
}

}  // namespace commlens
