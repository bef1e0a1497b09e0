#include "match/call_sequences.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "match/same_time.h"
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
    case Op::send: return "ncclSend";
    case Op::recv: return "ncclRecv";
    default: return {};
  }
}

bool is_one_sided(const WitnessCall& call) {
  return call.p2p || call.op == Op::send || call.op == Op::recv || call.op == Op::send_recv;
}

bool is_pair(const WitnessCall& call) {
  return call.p2p && !call.closes_coalesced && (call.op == Op::send || call.op == Op::recv);
}

class Collector {
 public:
  Collector(const Job& job, const std::vector<Witness>& witnesses,
            const std::vector<Measured>& measured)
      : job_(job), witnesses_(witnesses), measured_(measured) {
    found_.of_rank.resize(job.ranks.size());
    found_.pairs_of_rank.resize(job.ranks.size());
    found_.refused.resize(witnesses.size() + measured.size());
    found_.calls.resize(witnesses.size() + measured.size(), 0);
    found_.comms.resize(witnesses.size());
    found_.choices.resize(witnesses.size());
    for (const Witness& witness : witnesses) found_.formats.push_back(witness.format);
    for (const Measured& file : measured) found_.formats.push_back(file.format);
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
    for (std::size_t m = 0; m < measured_.size(); ++m) add_measured(m);
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
    for (const auto& [process, comms] : found_.comms[w]) {
      for (const CommWitness& comm : comms)
        found_.calls[w] += static_cast<std::int64_t>(comm.calls.size() + comm.pairs.size());
    }
    found_.choices[w] = tuner_choices(witnesses_[w]);
    const std::vector<ProcessOfRank> processes = find_processes(job_, witnesses_[w]);
    for (std::size_t row = 0; row < processes.size(); ++row) {
      if (!processes[row].process) continue;
      for (const CommWitness& comm : found_.comms[w][*processes[row].process])
        add_comm(w, row, comm, processes[row].by_id);
    }
    found_.refused[w] = why_refused(processes);
  }

  // Doubts are always said. That ranks have no process at all is common, and only said where none
  // has one.
  static std::string why_refused(const std::vector<ProcessOfRank>& processes) {
    std::vector<std::string> doubts;
    for (const ProcessOfRank& process : processes) {
      const bool is_new = std::find(doubts.begin(), doubts.end(), process.reason) == doubts.end();
      if (process.doubtful && is_new) doubts.push_back(process.reason);
    }
    if (doubts.size() == 1) return doubts.front();
    if (doubts.size() > 1)
      return doubts.front() + "; " + std::to_string(doubts.size() - 1) + " more of this kind";
    const bool any = std::any_of(processes.begin(), processes.end(),
                                 [](const ProcessOfRank& one) { return one.process.has_value(); });
    return any || processes.empty() ? std::string() : processes.front().reason;
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
                          .ways = {},
                          .facts = &comm};
    sequence.lost_before = comm.lost_before;
    for (const CommEvent& call : comm.calls) {
      CommEvent event = as_called(call);
      if (!comm.lost_before.empty()) sequence.lost += comm.lost_before[sequence.calls.size()];
      if (comm.from_start)
        event.seq = static_cast<std::int64_t>(sequence.calls.size()) + 1 + sequence.lost;
      sequence.calls.push_back(event);
      sequence.texts.push_back(text(std::string(nccl_name(call.op))));
    }
    add_pairs(w, row, comm, by_id);
    found_.of_rank[row].push_back(std::move(sequence));
  }

  void add_pairs(std::size_t w, std::size_t row, const CommWitness& comm, bool by_id) {
    if (comm.pairs.empty()) return;
    PairSequence pairs{.witness = w,
                       .communicator = comm.comm->id,
                       .name = {},
                       .members = {},
                       .size = comm.comm->nranks,
                       .place = comm.comm->rank,
                       .same_process = by_id,
                       .calls = comm.pairs,
                       .texts = {},
                       .numbers = {},
                       .made = {},
                       .ways = {},
                       .facts = &comm};
    for (const PairCall& call : comm.pairs)
      pairs.texts.push_back(text(std::string(nccl_name(call.op))));
    found_.pairs_of_rank[row].push_back(std::move(pairs));
  }

  void add_dump(std::size_t w) {
    const Witness& dump = witnesses_[w];
    found_.calls[w] =
        std::count_if(dump.calls.begin(), dump.calls.end(),
                      [](const WitnessCall& call) { return !is_one_sided(call) || is_pair(call); });
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
                          .ways = {},
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
      sequence.texts.push_back(text(words_of(dump, call)));
      sequence.made.push_back(call.created_ns);
    }
    add_dumped_pairs(w, row, group, sequence);
    if (!sequence.calls.empty()) found_.of_rank[row].push_back(std::move(sequence));
  }

  static std::string words_of(const Witness& dump, const WitnessCall& call) {
    std::string words(dump.text(call.op_text));
    // "nccl:send 0->1": the ranks are no part of what is called.
    if (is_pair(call)) words = words.substr(0, words.find(' '));
    if (call.code.valid()) words += " (" + std::string(dump.text(call.code)) + ")";
    return words;
  }

  // `of`: the group's collectives.
  void add_dumped_pairs(std::size_t w, std::size_t row, std::uint32_t group,
                        const CallSequence& of) {
    const Witness& dump = witnesses_[w];
    PairSequence pairs{.witness = w,
                       .communicator = 0,
                       .name = of.name,
                       .members = of.members,
                       .size = of.size,
                       .place = -1,
                       .same_process = true,
                       .calls = {},
                       .texts = {},
                       .numbers = {},
                       .made = {},
                       .ways = {},
                       .facts = nullptr};
    for (const WitnessCall& call : dump.calls) {
      if (call.group != group || !is_pair(call)) continue;
      PairCall pair{.op = call.op, .peer = call.peer, .bytes = kUnknown};
      if (const auto element = element_bytes(dump.text(call.in_dtype)))
        pair.bytes = message_bytes(call.op, call.in_elements, call.out_elements, *element)
                         .value_or(kUnknown);
      pairs.calls.push_back(pair);
      pairs.texts.push_back(text(words_of(dump, call)));
      pairs.numbers.push_back(call.number);
      pairs.made.push_back(call.created_ns);
    }
    if (!pairs.calls.empty()) found_.pairs_of_rank[row].push_back(std::move(pairs));
  }

  // The same process, or, where either side does not say which it is, the same rank.
  static bool is_of(const Measured& file, const RankTimeline& rank) {
    if (file.rank >= 0 && file.rank != rank.rank) return false;
    const bool by_id = file.process >= 0 && rank.recording.process >= 0;
    const std::string& host = by_id ? rank.host : rank.recording.host;
    const bool one_host =
        file.host.empty() || host.empty() ||
        file.host.substr(0, file.host.find('.')) == host.substr(0, host.find('.'));
    if (!one_host) return false;
    return by_id ? file.process == rank.recording.process : file.rank >= 0 && rank.run == 0;
  }

  void add_measured(std::size_t m) {
    const Measured& file = measured_[m];
    const std::size_t w = witnesses_.size() + m;
    found_.calls[w] = std::count_if(
        file.calls.begin(), file.calls.end(),
        [](const MeasuredCall& call) { return is_single(call) || is_single_pair(call); });
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) {
      if (is_of(file, job_.ranks[row])) rows.push_back(row);
    }
    if (found_.calls[w] == 0) {
      found_.refused[w] = "it holds no single calls";
    } else if (rows.size() != 1) {
      found_.refused[w] = rows.empty() ? "there is no timeline of its process or rank"
                                       : "several timelines can be of its process or rank";
    } else if (std::string other = why_other_time(file.written, {.calls = true},
                                                  job_.ranks[rows.front()], kOneZone);
               !other.empty()) {
      found_.refused[w] = std::move(other);
    } else {
      for (std::uint32_t group = 0; group < file.groups.size(); ++group)
        add_measured_group(m, rows.front(), group);
    }
  }

  // One call, not a sum; with a counterpart among the timelines' collectives.
  static bool is_single(const MeasuredCall& call) {
    return call.count == 1 && !call.repeated && call.op != Op::send && call.op != Op::recv &&
           call.op != Op::send_recv && call.op != Op::unknown;
  }

  static bool is_single_pair(const MeasuredCall& call) {
    return call.count == 1 && !call.repeated && (call.op == Op::send || call.op == Op::recv);
  }

  // `of`: the communicator's collectives.
  void add_measured_pairs(std::size_t m, std::size_t row, std::uint32_t group,
                          const CallSequence& of) {
    const Measured& file = measured_[m];
    PairSequence pairs{.witness = of.witness,
                       .communicator = of.communicator,
                       .name = {},
                       .members = of.members,
                       .size = of.size,
                       .place = -1,
                       .same_process = of.same_process,
                       .calls = {},
                       .texts = {},
                       .numbers = {},
                       .made = {},
                       .ways = {},
                       .facts = nullptr};
    for (const MeasuredCall& call : file.calls) {
      if (call.group != group || !is_single_pair(call)) continue;
      pairs.calls.push_back({.op = call.op, .peer = call.peer, .bytes = call.bytes});
      if (call.rank >= 0) pairs.place = call.rank;
      pairs.texts.push_back(
          text(std::string(call.caller.valid() ? file.text(call.caller) : nccl_name(call.op))));
      pairs.ways.push_back(way({.algorithm = {}, .protocol = {}, .channels = call.channels}));
    }
    if (!pairs.calls.empty()) found_.pairs_of_rank[row].push_back(std::move(pairs));
  }

  void add_measured_group(std::size_t m, std::size_t row, std::uint32_t group) {
    const Measured& file = measured_[m];
    const MeasuredGroup& facts = file.groups[group];
    CallSequence sequence{.witness = witnesses_.size() + m,
                          .communicator = communicator_number(facts.id),
                          .name = {},
                          .members = {},
                          .size = facts.size > 0 ? facts.size : -1,
                          .place = -1,
                          .same_process = file.process >= 0,
                          .numbered = false,
                          .calls = {},
                          .texts = {},
                          .made = {},
                          .ways = {},
                          .facts = nullptr};
    sequence.members.assign(facts.ranks.begin(), facts.ranks.end());
    for (const MeasuredCall& call : file.calls) {
      if (call.group != group || !is_single(call)) continue;
      CommEvent event;
      event.op = call.op;
      if (call.bytes >= 0 && !size_may_differ(call.op)) event.bytes = call.bytes;
      if (call.rank >= 0) sequence.place = call.rank;
      sequence.calls.push_back(as_called(event));
      sequence.texts.push_back(
          text(std::string(call.caller.valid() ? file.text(call.caller) : nccl_name(call.op))));
      sequence.ways.push_back(way({.algorithm = std::string(file.text(call.algorithm)),
                                   .protocol = std::string(file.text(call.protocol)),
                                   .channels = call.channels}));
    }
    add_measured_pairs(m, row, group, sequence);
    if (!sequence.calls.empty()) found_.of_rank[row].push_back(std::move(sequence));
  }

  std::uint32_t way(const TunerChoice& choice) {
    const auto [row, is_new] =
        rows_of_ways_.try_emplace(choice, static_cast<std::uint32_t>(found_.ways.size()));
    if (is_new) found_.ways.push_back(choice);
    return row->second;
  }

  const Job& job_;
  const std::vector<Witness>& witnesses_;
  const std::vector<Measured>& measured_;
  CallSequences found_;
  std::map<TunerChoice, std::uint32_t> rows_of_ways_;
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

std::uint64_t communicator_number(std::string_view name) {
  std::uint64_t id = 0;
  if (!name.starts_with("0x")) return 0;
  const auto read = std::from_chars(name.data() + 2, name.data() + name.size(), id, 16);
  return read.ptr == name.data() + name.size() ? id : 0;
}

std::string communicator_name(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

CallSequences collect_calls(const Job& job, const std::vector<Witness>& witnesses,
                            const std::vector<Measured>& measured) {
  return Collector(job, witnesses, measured).run();
}

}  // namespace commlens
