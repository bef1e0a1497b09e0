// NCCL's own ranges (domain "NCCL"): one around each call, on the thread that makes it.
//
//   thread  [ncclGroupStart][ncclSend][ncclRecv][ncclGroupEnd   ]
//                                                  ^ launches one kernel for the send and the
//                                                  receive
//
// What a kernel does is told by the range that it was launched in, so ncclGroupEnd stands for all
// calls of its group. Sizes are in payloads, which an export has only with --include-blobs=true:
//
//   blob  domain u64, schema u64, size u64, offset u64, then the payload; what stands where in it
//   is
//         in NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset)
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "ingest/nsys_process.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::int64_t kPushPop = 59;
constexpr std::int64_t kNewDomain = 75;

struct NamedCall {
  std::string_view function;
  std::string_view collective;  // as PyTorch would call it
};
constexpr std::array<NamedCall, 10> kCalls{{{"ncclAllReduce", "allreduce"},
                                            {"ncclAllGather", "all_gather"},
                                            {"ncclReduceScatter", "reduce_scatter"},
                                            {"ncclBroadcast", "broadcast"},
                                            {"ncclReduce", "reduce"},
                                            {"ncclSend", "send"},
                                            {"ncclRecv", "recv"},
                                            {"ncclAlltoAll", "all_to_all"},
                                            {"ncclGather", "gather"},
                                            {"ncclScatter", "scatter"}}};

std::string_view collective_of(std::string_view function) {
  const auto* const found =
      std::find_if(kCalls.begin(), kCalls.end(),
                   [function](const NamedCall& call) { return call.function == function; });
  return found == kCalls.end() ? std::string_view() : found->collective;
}

// A payload's entry that matters here.
struct Entry {
  std::string name;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool is_signed = false;
};
using Schemas = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Entry>>;

// Codes of NVTX's header; 0 for what is no whole number.
std::size_t bytes_of_type(std::int64_t type) {
  switch (type) {
    case 5:
    case 6:
    case 15:
    case 16: return 4;
    case 3:
    case 4:
    case 13:
    case 14: return 2;
    case 7:
    case 8:
    case 9:
    case 10:
    case 17:
    case 18:
    case 22: return 8;
    case 1:
    case 2:
    case 11:
    case 12: return 1;
    default: return 0;
  }
}

Schemas read_schemas(NsysDatabase& database) {
  Schemas schemas;
  database.each("NVTX_PAYLOAD_SCHEMA_ENTRIES",
                {"domainId", "schemaId", "type", "name", "offset", "idx"},
                [&schemas](const NsysRow& row) {
                  const std::int64_t type = row.integer(2);
                  const std::size_t bytes = bytes_of_type(type);
                  const std::int64_t offset = row.integer(4);
                  if (bytes == 0 || offset < 0 || offset > 4096) return;
                  auto& entries = schemas[{row.integer(0), row.integer(1)}];
                  if (entries.size() < 64)  // rows repeat for each process
                    entries.push_back({std::string(row.text(3)), static_cast<std::size_t>(offset),
                                       bytes, type == 5 || type == 15 || type == 17 || type == 9});
                });
  return schemas;
}

// What a call's payload says.
struct Payload {
  std::int64_t bytes = -1;
  std::int64_t peer = -1;  // of send and receive; or the root
  std::int64_t ranks = -1;
  std::int64_t rank = -1;
  std::uint64_t communicator = 0;
};

// As NCCL's log writes a commId: "0x5af3".
std::string hex_name(std::uint64_t communicator) {
  std::array<char, 16> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), communicator, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::uint64_t word_at(std::string_view blob, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, blob.data() + at, bytes);  // little-endian, as every machine of NCCL's
  return value;
}

bool same_letters(std::string_view text, std::string_view wanted) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(text.begin(), text.end(), wanted.begin(), wanted.end(),
                    [lower](char a, char b) { return lower(a) == b; });
}

void set_entry(std::string_view name, std::uint64_t value, Payload& payload) {
  const auto number = static_cast<std::int64_t>(value);
  if (same_letters(name, "message size [bytes]") || same_letters(name, "bytes"))
    payload.bytes = number;
  if (same_letters(name, "peer rank") || same_letters(name, "root")) payload.peer = number;
  if (same_letters(name, "no. of ranks")) payload.ranks = number;
  if (same_letters(name, "rank")) payload.rank = number;
  if (same_letters(name, "nccl communicator id")) payload.communicator = value;
}

Payload read_payload(std::string_view blob, const Schemas& schemas) {
  constexpr std::size_t kHead = 32;
  Payload payload;
  if (blob.size() < kHead) return payload;
  const auto domain = static_cast<std::int64_t>(word_at(blob, 0, 8));
  const auto schema = static_cast<std::int64_t>(word_at(blob, 8, 8));
  const std::uint64_t size = word_at(blob, 16, 8);
  const std::uint64_t said = word_at(blob, 24, 8);
  const bool is_offset = said >= kHead && size <= blob.size() && said <= blob.size() - size;
  const std::size_t from = is_offset ? static_cast<std::size_t>(said) : kHead;
  const auto found = schemas.find({domain, schema});
  if (found == schemas.end()) return payload;
  for (const Entry& entry : found->second) {
    if (entry.offset > size || entry.bytes > size - entry.offset) continue;
    const std::size_t at = from + entry.offset;
    if (at > blob.size() || entry.bytes > blob.size() - at) continue;
    set_entry(entry.name, word_at(blob, at, entry.bytes), payload);
  }
  return payload;
}

// Domains of NCCL; empty where the rows that name them are not there.
std::set<std::int64_t> nccl_domains(NsysDatabase& database) {
  std::set<std::int64_t> domains;
  database.each(
      "NVTX_EVENTS", {"domainId", "text", "textId"},
      [&](const NsysRow& row) {
        const std::string_view name =
            row.text(1).empty() ? database.string(row.integer(2, -1)) : row.text(1);
        if (name == "NCCL") domains.insert(row.integer(0));
      },
      "eventType = " + std::to_string(kNewDomain));
  return domains;
}

// Calls of one thread between ncclGroupStart and the outermost ncclGroupEnd.
struct Group {
  int depth = 0;
  std::set<std::string_view> collectives;
  std::int64_t calls = 0;
  std::int64_t bytes = -1;         // of the last call
  std::int64_t ranks = 0;          // the same
  std::uint64_t communicator = 0;  // the same; 0: not known
};

class NcclReader {
 public:
  NcclReader(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder)
      : database_(database),
        process_(process),
        builder_(builder),
        schemas_(read_schemas(database)),
        domains_(nccl_domains(database)) {}

  void read() {
    std::string where = "eventType = " + std::to_string(kPushPop);
    if (process_.global_pid) where += " AND " + process_.of_thread();
    database_.each(
        "NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid", "domainId", "binaryData"},
        [this](const NsysRow& row) { read_range(row); }, where, "start, end DESC");
    if (without_size_ > 0) builder_.notes().add(Note::sizes_not_exported, without_size_);
  }

 private:
  void read_range(const NsysRow& row) {
    if (!domains_.empty() && !domains_.contains(row.integer(5))) return;
    const std::string_view name =
        row.text(2).empty() ? database_.string(row.integer(3, -1)) : row.text(2);
    if (!name.starts_with("nccl")) return;
    ++builder_.about().events;
    Group& group = groups_[row.integer(4)];
    const Payload payload = read_payload(row.bytes(6), schemas_);
    if (name == "ncclGroupStart") {
      ++group.depth;
    } else if (name == "ncclGroupEnd") {
      end_group(row, group);
    } else if (const std::string_view collective = collective_of(name); !collective.empty()) {
      call(row, collective, payload, group);
    } else if (name.starts_with("ncclComm")) {
      take_communicator(payload);
    }
  }

  void call(const NsysRow& row, std::string_view collective, const Payload& payload, Group& group) {
    const std::int64_t ranks = ranks_of(payload);
    const std::int64_t bytes = size_of(collective, payload.bytes, ranks);
    without_size_ += bytes < 0 ? 1 : 0;
    add(row, collective, bytes, ranks, payload.communicator);
    if (group.depth == 0) return;
    group.ranks = ranks;
    group.communicator = payload.communicator;
    group.collectives.insert(collective);
    ++group.calls;
    group.bytes = bytes;
  }

  // The launches of a group are inside its end.
  void end_group(const NsysRow& row, Group& group) {
    if (group.depth > 0) --group.depth;
    if (group.depth > 0) return;
    const bool pairs = group.collectives.contains("send") || group.collectives.contains("recv");
    // Of several calls, each kernel may hold any of them: what it does is known, how much is not.
    if (group.collectives.size() == 1 && !pairs) {
      add(row, *group.collectives.begin(), group.calls == 1 ? group.bytes : -1, group.ranks,
          group.communicator);
    } else if (!group.collectives.empty()) {
      add(row, "coalesced", -1, 0, 0);  // what of it a kernel is, its name tells
    }
    group = {};
  }

  void add(const NsysRow& row, std::string_view collective, std::int64_t bytes, std::int64_t ranks,
           std::uint64_t communicator) {
    if (row.is_null(1) || row.integer(1) < row.integer(0)) return;
    const std::int64_t global = row.integer(4);
    HostRange range{.start = row.integer(0),
                    .end = row.integer(1),
                    .thread = builder_.thread(NsysProcess::pid(global), NsysProcess::tid(global)),
                    .name = builder_.intern(collective),
                    .backend = builder_.intern("nccl"),
                    .meta = {}};
    if (bytes >= 0) {
      range.kind = HostRangeKind::collective_record;
      range.name = StringId::none();
      range.backend = StringId::none();
      range.meta = builder_.add_meta(meta_of(collective, bytes, ranks, communicator));
    }
    builder_.add_host_range(range);
  }

  // How many ranks a call's communicator has; 0 where that is not known.
  std::int64_t ranks_of(const Payload& payload) const {
    const auto found = ranks_.find(payload.communicator);
    return payload.communicator == 0 || found == ranks_.end() ? 0 : found->second;
  }

  // The size that NCCL's payload gives is one rank's share where data are gathered, scattered or
  // exchanged: without the number of ranks, how much is moved is not known.
  static std::int64_t size_of(std::string_view collective, std::int64_t bytes, std::int64_t ranks) {
    const bool whole = collective == "allreduce" || collective == "broadcast" ||
                       collective == "reduce" || collective == "send" || collective == "recv";
    if (whole || bytes < 0) return bytes;
    std::int64_t all = 0;
    return ranks == 0 || __builtin_mul_overflow(bytes, ranks, &all) ? -1 : all;
  }

  // `bytes`: of all ranks' shares together.
  CollectiveMeta meta_of(std::string_view collective, std::int64_t bytes, std::int64_t ranks,
                         std::uint64_t communicator) {
    CollectiveMeta meta;
    meta.collective = builder_.intern(collective);
    meta.dtype = builder_.intern("Byte");
    meta.in_elements =
        collective == "all_gather" ? bytes / std::max<std::int64_t>(1, ranks) : bytes;
    meta.out_elements =
        collective == "reduce_scatter" ? bytes / std::max<std::int64_t>(1, ranks) : bytes;
    meta.group_size = ranks;
    // All ranks call a communicator alike, which they do not of a group of the framework.
    if (communicator != 0) meta.group_name = builder_.intern(hex_name(communicator));
    return meta;
  }

  // Communicators and their ranks, as they are made.
  void take_communicator(const Payload& payload) {
    if (payload.ranks < 1 || payload.ranks > kMostRanks) return;
    if (payload.communicator != 0) ranks_[payload.communicator] = payload.ranks;
    if (payload.ranks > world_) take_rank(payload);
  }

  // The largest communicator is the job's, whose ranks are those of the job.
  void take_rank(const Payload& payload) {
    if (payload.rank < 0 || payload.rank >= payload.ranks || payload.ranks > kMostRanks) return;
    world_ = payload.ranks;
    builder_.about().world_size = payload.ranks;
    builder_.about().rank = payload.rank;
  }

  NsysDatabase& database_;
  const NsysProcess& process_;
  TraceBuilder& builder_;
  const Schemas schemas_;
  const std::set<std::int64_t> domains_;
  std::map<std::int64_t, Group> groups_;         // by globalTid
  std::map<std::uint64_t, std::int64_t> ranks_;  // by communicator
  std::int64_t world_ = -1;
  std::int64_t without_size_ = 0;
};

}  // namespace

void read_nsys_nccl(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  NcclReader(database, process, builder).read();
}

}  // namespace commlens
