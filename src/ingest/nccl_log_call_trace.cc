// Calls as NCCL_DEBUG=TRACE writes them (NCCL_DEBUG_SUBSYS=CALL), one line each, before they are
// queued:
//
//   ncclCommInitRank(0x55d8, 16, 0x5216, 3, 3)     communicator, ranks, commId, rank, device
//   ncclCommSplit(0x55d8, 1, 0, 0x55e0, 2, 8)      parent, color, key, communicator, rank, ranks
//   ncclAllReduce(7f5d,7f5e,64,7,0,0,0x55d8,0x55d9)
//   ncclSend(0,7f5d,64,7,0,2,0x55d8,(nil))         the peer stands in place of the root
//
// Arguments of an operation: send and receive buffer, count, datatype, reduction, root,
// communicator, stream. The first two kinds of lines are written when the communicator has come up.
// There is no opCount, and nothing that tells a line that was lost.
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

struct TracedCall {
  std::string_view name;  // without "nccl"
  std::vector<std::string_view> arguments;
};

// "(nil)" holds what else ends the list.
std::size_t argument_end(std::string_view text, std::size_t at) {
  constexpr std::string_view kNil = "(nil)";
  if (text.substr(at).starts_with(kNil)) at += kNil.size();
  return text.find_first_of(",)", at);
}

// Nothing where the line stops before the closing bracket.
std::optional<TracedCall> traced_call(std::string_view message) {
  constexpr std::string_view kBegin = "nccl";
  const std::size_t open = message.find('(');
  if (!message.starts_with(kBegin) || open == std::string_view::npos) return std::nullopt;
  TracedCall call{.name = message.substr(kBegin.size(), open - kBegin.size()), .arguments = {}};
  for (std::size_t at = open + 1;;) {
    while (at < message.size() && message[at] == ' ') ++at;
    const std::size_t end = argument_end(message, at);
    if (end == std::string_view::npos) return std::nullopt;
    if (end > at) call.arguments.push_back(trimmed(message.substr(at, end - at)));
    if (message[end] == ')') return call;
    at = end + 1;
  }
}

Understood add_traced_comm(const LogRecord& record, LogBuilder& builder, LogComm comm,
                           std::optional<std::uint64_t> pointer, std::optional<std::int64_t> nranks,
                           std::optional<std::int64_t> rank) {
  if (!pointer || !nranks || !rank || *rank < 0 || *rank >= *nranks) return Understood::no;
  comm.process = builder.process_of(record);
  comm.pointer = *pointer;
  comm.rank = *rank;
  comm.nranks = *nranks;
  comm.thread = record.thread;
  comm.first_line = comm.complete_line = record.line;
  builder.initialised(comm);
  return Understood::yes;
}

Understood read_traced_init(const LogRecord& record, LogBuilder& builder, const TracedCall& call) {
  const auto& said = call.arguments;
  if (said.size() != 5) return Understood::no;
  LogComm comm;
  comm.id = hex_number(said[2]).value_or(0);
  comm.device = decimal_number(said[4]).value_or(-1);
  return add_traced_comm(record, builder, comm, hex_number(said[0]), decimal_number(said[1]),
                         decimal_number(said[3]));
}

Understood read_traced_split(const LogRecord& record, LogBuilder& builder, const TracedCall& call) {
  const auto& said = call.arguments;
  if (said.size() != 6) return Understood::no;
  LogComm comm;
  comm.parent = hex_number(said[0]).value_or(0);
  comm.color = decimal_number(said[1]).value_or(-1);
  return add_traced_comm(record, builder, comm, hex_number(said[3]), decimal_number(said[5]),
                         decimal_number(said[4]));
}

Understood read_traced_operation(const LogRecord& record, LogBuilder& builder, Op op,
                                 const TracedCall& traced) {
  const auto& said = traced.arguments;
  if (said.size() != 8) return Understood::no;
  const auto count = decimal_number(said[2]);
  const auto datatype = decimal_number(said[3]);
  const auto reduction = decimal_number(said[4]);
  const auto root = decimal_number(said[5]);
  const auto pointer = hex_number(said[6]);
  if (!count || !datatype || !reduction || !root || !pointer || *count < 0 || *datatype < 0 ||
      *datatype > 255)
    return Understood::no;
  LogCall call;
  call.comm = builder.comm_of(builder.process_of(record), *pointer, record.line);
  if (call.comm.index() >= LogBuilder::kMostComms) return Understood::yes;
  call.traced = true;
  call.op = op;
  call.uneven = traced.name == "AllToAllv";
  call.count = *count;
  call.datatype = static_cast<std::int16_t>(*datatype);
  call.reduction = static_cast<std::int16_t>(*reduction > 255 ? 5 : *reduction);
  call.root = *root;
  call.thread = record.thread;
  call.line = record.line;
  builder.add(call);
  return Understood::yes;
}

}  // namespace

Understood read_call_trace(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl || !record.call_trace) return Understood::no;
  const auto call = traced_call(record.message);
  if (!call) return Understood::cut;
  // Documentation writes "0x...": communicators that cannot be told from each other.
  if (record.message.find("0x...") != std::string_view::npos) return Understood::yes;
  if (call->name == "CommInitRank") return read_traced_init(record, builder, *call);
  if (call->name == "CommSplit") return read_traced_split(record, builder, *call);
  const bool signal =
      call->name == "PutSignal" || call->name == "Signal" || call->name == "WaitSignal";
  const Op op = signal ? Op::put_get : op_of_nccl_name(call->name);
  // Groups, memory, versions.
  return op == Op::unknown ? Understood::yes : read_traced_operation(record, builder, op, *call);
}

}  // namespace commlens
