// Calls (NCCL_DEBUG_SUBSYS=COLL), one line each, before they are queued.
//
//   AllReduce: opCount 1d sendbuff 0x7f recvbuff 0x7f count 64 datatype 7 op 0 root 0 comm 0x55
//   [nranks=2] stream 0x7e
//   ... task 0 globalrank 170                                     RCCL: the only one that says the
//   rank
//
// opCount is hexadecimal and no number of the call: since 2.9 calls of one group share it. Send and
// Recv have the peer in `root` and the buffer in `recvbuff`.
// A terminal that cuts lines leaves "coun$" for "count".
#include <array>

#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

// Where "AllReduce:" ends, and whether what follows is a call.
struct Head {
  Op op = Op::unknown;
  std::size_t end = 0;
  bool uneven = false;
};

Head head_of(std::string_view message) {
  const std::size_t colon = message.find(": opCount");
  if (colon == std::string_view::npos || colon > 24) return {};
  const std::string_view name = message.substr(0, colon);
  const Op op = op_of_nccl_name(name);
  const bool signal = name == "PutSignal" || name == "Signal" || name == "WaitSignal";
  return op == Op::unknown && !signal
             ? Head{}
             : Head{signal ? Op::put_get : op, colon + 2, name == "AllToAllv"};
}

// "coun$ 8" is "count 8": a key whose end a terminal replaced.
std::string repaired(std::string_view text) {
  std::string whole(text);
  constexpr std::array<std::string_view, 8> kKeys = {"opCount",  "sendbuff", "recvbuff", "count",
                                                     "datatype", "root",     "comm",     "stream"};
  const std::size_t sign = whole.find("$ ");
  if (sign == std::string::npos) return whole;
  const std::size_t word = whole.rfind(' ', sign) + 1;
  const std::string part = whole.substr(word, sign - word);
  for (const std::string_view key : kKeys) {
    if (!part.empty() && key.starts_with(part)) return whole.replace(word, part.size() + 1, key);
  }
  return whole;
}

}  // namespace

Understood read_calls(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const Head head = head_of(record.message);
  if (head.end == 0) return Understood::no;
  const std::string whole = repaired(record.message.substr(head.end));
  const LogText text(whole, record.ended);
  const auto op_count = text.hex("opCount ");
  const auto count = text.number("count ");
  const auto datatype = text.number("datatype ");
  const auto reduction = text.number(" op ");
  const auto root = text.number("root ");
  if (text.has("comm 0x...")) return Understood::yes;
  const auto pointer = text.hex("comm ");
  // Closed by what comes behind; a pointer at the end of a line may be half of one.
  if (!op_count || !count || !datatype || !root || !pointer || !text.has(" [nranks="))
    return Understood::cut;
  const auto nranks = text.behind(" [nranks").number("=", "]");
  if (!nranks || *nranks < 1 || !text.behind(" [nranks").has("]")) return Understood::cut;
  if (*count < 0 || *datatype < 0 || *datatype > 255) return Understood::no;
  LogCall call;
  call.comm = builder.comm_of(builder.process_of(record), *pointer, record.line);
  LogComm& comm = builder.comm(call.comm);
  if (call.comm.index() >= LogBuilder::kMostComms) return Understood::yes;
  if (comm.nranks < 0) comm.nranks = *nranks;
  if (comm.device < 0) comm.device = record.device;
  if (const auto rank = text.number("globalrank "); rank && *rank >= 0)
    builder.process(comm.process).hint = *rank;
  call.op = head.op;
  call.uneven = head.uneven;
  call.op_count = static_cast<std::int64_t>(*op_count);
  call.count = *count;
  call.datatype = static_cast<std::int16_t>(*datatype);
  call.reduction =
      static_cast<std::int16_t>(reduction.value_or(-1) > 255 ? 5 : reduction.value_or(-1));
  call.root = *root;
  call.thread = record.thread;
  call.line = record.line;
  builder.add(call);
  return Understood::yes;
}

}  // namespace commlens
