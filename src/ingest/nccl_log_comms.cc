// Communicators: who takes part as which rank.
//
//   comm 0x7f rank 3 nranks 8                                                        2.2, 2.3
//   comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 - Init COMPLETE                     2.4
//   comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 [commId 0x1] - Init COMPLETE      2.5 - 2.17
//   comm 0x7f rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 commId 0x1 - Init START 2.18 - 2.21
//   ncclCommInitRank comm 0x7f rank 3 ... commId 0x1 - Init COMPLETE                  2.22
//   [Rank 3] ncclCommInitRankConfig comm 0x7f rank 3 ... - Init START                 2.29
//   ncclCommSplit comm 0x7f rank 0 ... parent 0x8 splitCount 1 color 0 key 3- Init START
//   comm 0x7f rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0
//   comm 0x7f rank 3 nranks 8 cudaDev 3 busId 3b000 - Destroy COMPLETE | Abort COMPLETE
//
// `rank 0 nranks 4` alone and `nranks 4` (2.2 - 2.4) name no communicator and are passed over.
#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

// " - Init START", also without the blank before the dash (2.24 - 2.28).
enum class Ending : std::uint8_t { none, start, complete, destroyed, aborted };

Ending ending_of(const LogText& text) {
  if (text.has("- Init COMPLETE")) return Ending::complete;
  if (text.has("- Init START")) return Ending::start;
  if (text.has("- Destroy COMPLETE")) return Ending::destroyed;
  if (text.has("- Abort COMPLETE")) return Ending::aborted;
  return Ending::none;
}

// Where "comm 0x..." begins: at the start, or behind the entry's name and "[Rank 3] ".
std::size_t comm_at(std::string_view message) {
  const std::size_t at = message.find("comm ");
  if (at == std::string_view::npos || at > 80) return std::string_view::npos;
  const std::string_view before = message.substr(0, at);
  const bool fits =
      before.empty() || before.starts_with("ncclComm") || before.starts_with("[Rank ");
  return fits ? at : std::string_view::npos;
}

LogComm common_part(const LogRecord& record, LogBuilder& builder, const LogText& text,
                    std::uint64_t pointer) {
  LogComm comm;
  comm.process = builder.process_of(record);
  comm.pointer = pointer;
  comm.thread = record.thread;
  comm.first_line = record.line;
  comm.rank = text.number("rank ").value_or(-1);
  comm.device = text.number("cudaDev ").value_or(-1);
  if (const auto bus = text.hex("busId "); bus && *bus < (std::uint64_t{1} << 40U))
    comm.bus = static_cast<std::int64_t>(*bus);
  comm.id = text.hex("commId ").value_or(0);
  comm.parent = text.hex("parent ").value_or(0);
  comm.color = text.number("color ").value_or(-1);
  comm.split = text.number("splitCount ").value_or(text.number("childCount ").value_or(-1));
  return comm;
}

void add_ended(const LogComm& seen, Ending ending, std::int64_t line, LogBuilder& builder) {
  // The line names the rank, so it tells the communicator even where its beginning is lost.
  LogComm& comm = builder.comm(builder.initialised(seen));
  (ending == Ending::destroyed ? comm.end_line : comm.abort_line) = line;
}

// "comm 0x7f rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0"
Understood read_nodes(LogComm seen, const LogText& text, LogBuilder& builder) {
  const auto nranks = text.number("nRanks ");
  const auto nodes = text.number("nNodes ");
  const auto local = text.number("localRanks ");
  if (!nranks || !nodes || !local) return Understood::cut;
  seen.nranks = *nranks;
  seen.nodes = *nodes;
  seen.local_ranks = *local;
  builder.initialised(seen);
  return Understood::yes;
}

}  // namespace

Understood read_communicators(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const std::size_t at = comm_at(record.message);
  if (at == std::string_view::npos) {
    const bool nameless =
        record.message.starts_with("nranks ") || record.message.starts_with("rank ");
    return nameless ? Understood::yes : Understood::no;
  }
  const LogText text(record.message.substr(at), record.ended);
  // Documentation writes "0x...": a communicator that cannot be told from others.
  if (text.begins("comm 0x...")) return Understood::yes;
  if (!text.has(" rank ")) return Understood::no;
  const auto pointer = text.hex("comm ");
  if (!pointer) return Understood::cut;
  LogComm seen = common_part(record, builder, text, *pointer);
  if (seen.rank < 0) return Understood::cut;
  if (text.has(" nRanks ")) return read_nodes(seen, text, builder);
  const auto nranks = text.number("nranks ");
  if (!nranks || *nranks < 1 || seen.rank >= *nranks) return Understood::cut;
  seen.nranks = *nranks;
  const Ending ending = ending_of(text);
  const bool old_form =
      ending == Ending::none && trimmed(text.text()).ends_with("nranks " + std::to_string(*nranks));
  if (ending == Ending::none && !old_form) return Understood::cut;
  if (ending == Ending::destroyed || ending == Ending::aborted) {
    add_ended(seen, ending, record.line, builder);
    return Understood::yes;
  }
  if (ending == Ending::complete) seen.complete_line = record.line;
  builder.initialised(seen);
  return Understood::yes;
}

}  // namespace commlens
