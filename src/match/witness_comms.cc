// Problem: lines of the tuner and of connections name no communicator. They are given to one only
// where no other of the same process can be meant: by the lines of initialisation that they stand
// between, by the only communicator with such ranks, by the call right before them. What several
// can mean is given to none.
#include "match/witness_comms.h"

#include <algorithm>

namespace commlens {
namespace {

bool is_collective(Op op) {
  return op != Op::send && op != Op::recv && op != Op::send_recv && op != Op::put_get &&
         op != Op::unknown;
}

// Whether one rank's buffer of the operation is a share of the whole.
bool is_shared(Op op) {
  return op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all ||
         op == Op::gather || op == Op::scatter;
}

// "NET/IB/0(3)/GDRDMA" without what differs between channels: "NET/IB/GDRDMA".
std::string way_of(const LogChannel& channel) {
  switch (channel.transport) {
    case LogTransport::p2p: return channel.via.substr(0, channel.via.find('/', 4));
    case LogTransport::shm: return "SHM";
    case LogTransport::net: return "NET/" + channel.network + (channel.gdr ? "/GDRDMA" : "");
    case LogTransport::collnet: return "COLLNET/" + channel.network;
  }
  return {};
}

std::string adapter_of(const LogFacts& log, const LogChannel& channel) {
  if (channel.transport != LogTransport::net || channel.device < 0) return {};
  const auto kind =
      channel.network == "Socket" ? LogInterfaces::Kind::socket : LogInterfaces::Kind::ib;
  const auto index = static_cast<std::size_t>(channel.device);
  for (const LogInterfaces& list : log.interfaces) {
    if (list.process == channel.process && list.kind == kind && index < list.names.size())
      return list.names[index];
  }
  return channel.network + "/" + std::to_string(channel.device);
}

// Rows of the process's communicators that a line can mean: the one that is being initialised then,
// else all that are alive.
template <class Test>
std::vector<std::size_t> meant(const LogFacts& log, const std::vector<std::size_t>& comms,
                               std::int64_t line, Test test) {
  std::vector<std::size_t> inside;
  std::vector<std::size_t> alive;
  for (const std::size_t row : comms) {
    const LogComm& comm = log.comms[row];
    if (!test(comm)) continue;
    if (comm.first_line <= line && line <= comm.complete_line) inside.push_back(row);
    const bool ended = (comm.end_line > 0 && comm.end_line < line) ||
                       (comm.abort_line > 0 && comm.abort_line < line);
    // Before 2.18 the first line is that of the end of the initialisation.
    if (!ended) alive.push_back(row);
  }
  return inside.empty() ? alive : inside;
}

class CommReader {
 public:
  explicit CommReader(const LogFacts& log) : log_(log), found_(log.comms.size()) {
    for (std::size_t row = 0; row < log.comms.size(); ++row) {
      const LogComm& comm = log.comms[row];
      rows_[comm.process].push_back(row);
      found_[row].comm = &comm;
      found_[row].row = static_cast<std::uint32_t>(row);
      found_[row].from_start = comm.complete_line > 0 && log.lost == 0 && log.cut == 0;
    }
  }

  std::map<LogProcessId, std::vector<CommWitness>> run() {
    for (const LogCall& call : log_.calls) {
      if (is_collective(call.op)) {
        add_call(call, log_.comms[call.comm.index()]);
      } else if (call.op == Op::send || call.op == Op::recv) {
        counts_[call.comm.index()].of_pairs.insert(call.op_count);
        found_[call.comm.index()].pairs.push_back(
            {.op = call.op,
             .peer = call.root,
             .bytes = call_bytes(call, log_.comms[call.comm.index()].nranks).value_or(kUnknown)});
      }
    }
    for (std::size_t row = 0; row < found_.size(); ++row) count_lost(row);
    for (const LogChannel& channel : log_.channels) add_channel(channel);
    std::map<LogProcessId, std::vector<CommWitness>> comms;
    for (CommWitness& comm : found_) comms[comm.comm->process].push_back(std::move(comm));
    return comms;
  }

 private:
  void add_call(const LogCall& call, const LogComm& comm) {
    CommEvent event;
    event.op = call.op;
    event.bytes =
        size_may_differ(call.op) ? kUnknown : call_bytes(call, comm.nranks).value_or(kUnknown);
    found_[call.comm.index()].calls.push_back(event);
    counts_[call.comm.index()].of_calls.push_back(call.op_count);
  }

  // NCCL counts launches, from 0 on. Where each call has a number of its own, a number that no line
  // has is a line that was lost.
  void count_lost(std::size_t row) {
    constexpr std::int64_t kMostLost = 4096;  // more is another way of counting
    const auto& [of_calls, of_pairs] = counts_[row];
    std::vector<std::int64_t> lost;
    std::int64_t next = found_[row].comm->complete_line > 0 || of_calls.empty() ? 0 : of_calls[0];
    std::int64_t all = 0;
    for (const std::int64_t count : of_calls) {
      if (count < next || (all += count - next) > kMostLost) return;
      lost.push_back(count - next -
                     std::distance(of_pairs.lower_bound(next), of_pairs.lower_bound(count)));
      next = count + 1;
    }
    found_[row].lost_before = std::move(lost);
  }

  void add_channel(const LogChannel& channel) {
    const auto rows =
        meant(log_, rows_[channel.process], channel.line, [&channel](const LogComm& comm) {
          const bool own = comm.rank < 0 || comm.rank == channel.from || comm.rank == channel.to;
          return own && comm.nranks != 1 &&
                 (comm.nranks < 0 || std::max(channel.from, channel.to) < comm.nranks);
        });
    if (rows.size() != 1) return;
    CommWitness& witness = found_[rows.front()];
    const bool of_pairs = channel.connection == 1;
    const std::int64_t own = witness.comm->rank;
    if (of_pairs && own != channel.from && own != channel.to) return;
    const std::int64_t peer = channel.from == own ? channel.to : channel.from;
    (of_pairs ? witness.pair_ways[peer] : witness.ways).insert(way_of(channel));
    if (std::string adapter = adapter_of(log_, channel); !adapter.empty())
      (of_pairs ? witness.pair_adapters[peer] : witness.adapters).insert(std::move(adapter));
  }

  struct Counts {
    std::vector<std::int64_t> of_calls;
    std::set<std::int64_t> of_pairs;
  };

  const LogFacts& log_;
  std::map<std::size_t, Counts> counts_;  // by row of LogFacts::comms
  std::map<LogProcessId, std::vector<std::size_t>> rows_;
  std::vector<CommWitness> found_;  // by row of LogFacts::comms
};

// Lines of the tuner and calls of one process, in the order of lines.
class TunerReader {
 public:
  explicit TunerReader(const LogFacts& log) : log_(log) {
    for (const LogCall& call : log.calls) {
      const LogComm& comm = log.comms[call.comm.index()];
      if (comm.rank <= 0 && is_collective(call.op)) calls_[comm.process].push_back(&call);
    }
    for (std::size_t row = 0; row < log.comms.size(); ++row) {
      if (log.comms[row].rank == 0 && log.comms[row].nranks != 1)
        firsts_[log.comms[row].process].push_back(static_cast<std::uint32_t>(row));
    }
  }

  std::map<std::uint32_t, TunerChoices> run() {
    std::map<std::uint32_t, TunerChoices> choices;
    for (const LogTuning& line : log_.tuning) {
      const auto meaning = meaning_of(line);
      if (!meaning || meaning->op == Op::unknown) continue;
      choices[meaning->comm][{meaning->op, meaning->bytes}].insert(
          {line.algorithm, line.protocol, line.channels});
    }
    return choices;
  }

 private:
  struct Meaning {
    std::uint32_t comm = 0;
    Op op = Op::unknown;
    std::int64_t bytes = 0;
  };

  // The line's bytes as nccl-tests counts them, in a communicator of so many ranks.
  static std::int64_t whole_bytes(const LogTuning& line, Op op, std::int64_t nranks) {
    if (!line.of_one_rank || !is_shared(op) || nranks < 1) return line.bytes;
    std::int64_t bytes = 0;
    return __builtin_mul_overflow(line.bytes, nranks, &bytes) ? -1 : bytes;
  }

  std::optional<Meaning> as_call(const LogCall& call, const LogTuning& line) const {
    const LogComm& comm = log_.comms[call.comm.index()];
    const auto bytes = call_bytes(call, comm.nranks);
    if (line.op != Op::unknown && line.op != call.op) return std::nullopt;
    if (!bytes || *bytes != whole_bytes(line, call.op, comm.nranks)) return std::nullopt;
    return Meaning{call.comm.value, call.op, *bytes};
  }

  // By the calls before the line: the last one, or the only communicator that has such a call.
  std::optional<Meaning> meaning_of(const LogTuning& line) const {
    const auto calls = calls_.find(line.process);
    if (calls == calls_.end()) return of_only_comm(line);
    const auto& rows = calls->second;
    const auto behind =
        std::upper_bound(rows.begin(), rows.end(), line.line,
                         [](std::int64_t at, const LogCall* call) { return at < call->line; });
    if (behind == rows.begin()) return std::nullopt;
    if (const auto last = as_call(**std::prev(behind), line)) return last;
    constexpr std::ptrdiff_t kMostBack = 256;  // calls of one group
    std::optional<Meaning> only;
    for (auto call = behind; call != rows.begin() && behind - call < kMostBack;) {
      const auto other = as_call(**--call, line);
      if (!other) continue;
      if (only && only->comm != other->comm) return std::nullopt;
      only = other;
    }
    return only;
  }

  // Without calls: where the process is the first rank of one communicator only.
  std::optional<Meaning> of_only_comm(const LogTuning& line) const {
    const auto firsts = firsts_.find(line.process);
    if (firsts == firsts_.end() || firsts->second.size() != 1) return std::nullopt;
    const std::uint32_t row = firsts->second.front();
    const std::int64_t bytes = whole_bytes(line, line.op, log_.comms[row].nranks);
    if (bytes < 0) return std::nullopt;
    return Meaning{row, line.op, bytes};
  }

  const LogFacts& log_;
  std::map<LogProcessId, std::vector<const LogCall*>> calls_;
  std::map<LogProcessId, std::vector<std::uint32_t>> firsts_;
};

}  // namespace

std::optional<std::int64_t> call_bytes(const LogCall& call, std::int64_t nranks) {
  std::int64_t bytes = 0;
  const std::int64_t element = log_datatype_bytes(call.datatype);
  if (element == 0 || __builtin_mul_overflow(call.count, element, &bytes)) return std::nullopt;
  if (!is_shared(call.op)) return bytes;
  if (nranks < 1 || __builtin_mul_overflow(bytes, nranks, &bytes)) return std::nullopt;
  return bytes;
}

std::map<LogProcessId, std::vector<CommWitness>> comms_by_process(const Witness& log) {
  return CommReader(*log.log).run();
}

std::map<std::uint32_t, TunerChoices> tuner_choices(const Witness& log) {
  return TunerReader(*log.log).run();
}

}  // namespace commlens
