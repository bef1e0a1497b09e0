// NCCL's own ranges (domain "NCCL"): one around each call, on the thread that makes it.
//
//   thread  [ncclGroupStart][ncclSend][ncclRecv][ncclGroupEnd   ]
//                                                  ^ launches one kernel for the send and the
//                                                  receive
//
// What a kernel does is told by the range that it was launched in, so ncclGroupEnd stands for all
// calls of its group. Sizes are in payloads (ingest/nsys_payload.h).
//
// Nsight's own tracing of NCCL names the calls without "nccl", and has ranges of the operations on
// the GPU beside them; these are not calls, and nothing was launched in them.
//
// Other annotators start and end ranges where NCCL pushes and pops: these overlap anyhow, and may
// end on another thread. One is read as a call where it is alone on its thread: started and ended
// there, while no other range of NCCL's was open. What was launched in others is not known, and
// where NCCL's own ranges are, it is said already.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "ingest/nsys_payload.h"
#include "ingest/nsys_process.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

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
  const bool prefixed = function.starts_with("nccl");
  const auto* const found = std::find_if(kCalls.begin(), kCalls.end(), [=](const NamedCall& call) {
    return call.function.substr(prefixed ? 0 : 4) == function;
  });
  return found == kCalls.end() ? std::string_view() : found->collective;
}

// As NCCL's log writes a commId: "0x5af3".
std::string hex_name(std::uint64_t communicator) {
  std::array<char, 16> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), communicator, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

// Domains of NCCL; empty where the rows that name them are not there.
std::set<std::int64_t> nccl_domains(NsysDatabase& database) {
  std::set<std::int64_t> domains;
  database.each(
      "NVTX_EVENTS", {"domainId", "text", "textId"},
      [&](const NsysRow& row) {
        const std::string_view name =
            row.text(1).empty() ? database.string(row.integer(2, -1)) : row.text(1);
        if (name.starts_with("NCCL")) domains.insert(row.integer(0));
      },
      "eventType = " + std::to_string(kNewDomain));
  return domains;
}

// What a call asks for, as far as its payload tells.
struct Asked {
  std::int64_t bytes = -1;  // of all ranks' shares together
  std::int64_t ranks = 0;
  std::uint64_t communicator = 0;
  std::int64_t peer = -1;  // or the root
  std::string_view dtype = {};
  std::int64_t element_bytes = 0;
  std::string_view reduction = {};
};

// Calls of one thread between ncclGroupStart and the outermost ncclGroupEnd.
struct Group {
  int depth = 0;
  std::set<std::string_view> collectives;
  std::int64_t calls = 0;
  Asked last = {};               // of the last call
  bool one_communicator = true;  // all calls are of that one
  bool one_type = true;          // and of its data type and reduction
};

class NcclReader {
  static constexpr int kPayload = 8;  // column at which the payload's begin

 public:
  NcclReader(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder)
      : database_(database),
        process_(process),
        builder_(builder),
        payloads_(database),
        domains_(nccl_domains(database)) {}

  void read() {
    find_alone();
    each_range(std::to_string(kNsysPushPop) + (any_started_ ? ", " + kStartEnd : ""),
               [this](const NsysRow& row) { read_range(row); });
    if (without_size_ > 0) builder_.notes().add(Note::sizes_not_exported, without_size_);
  }

 private:
  inline static const std::string kStartEnd = std::to_string(kNsysStartEnd);

  // Ranges of these types, by start.
  void each_range(const std::string& types, const std::function<void(const NsysRow&)>& visit) {
    std::string where = "eventType IN (" + types + ")";
    if (process_.global_pid) where += " AND " + process_.of_thread();
    std::vector<std::string_view> columns{"start",     "end",      "text",      "textId",
                                          "globalTid", "domainId", "eventType", "endGlobalTid"};
    columns.insert(columns.end(), NsysPayloads::columns().begin(), NsysPayloads::columns().end());
    database_.each("NVTX_EVENTS", columns, visit, where, "start, end DESC");
  }

  std::string_view name_of(const NsysRow& row) const {
    return row.text(2).empty() ? database_.string(row.integer(3, -1)) : row.text(2);
  }

  bool is_nccl(const NsysRow& row) const {
    if (!domains_.empty() && !domains_.contains(row.integer(5))) return false;
    const std::string_view name = name_of(row);
    return name.starts_with("nccl") || (!domains_.empty() && !collective_of(name).empty());
  }

  // Most exports have no such range, and are not read twice.
  void find_alone() {
    std::map<std::int64_t, std::vector<Interval>> started;  // by thread, by start
    each_range(kStartEnd, [&](const NsysRow& row) {
      if (!is_nccl(row)) return;
      any_started_ = true;
      const std::int64_t thread = row.integer(4);
      if (!row.is_number(0) || !row.is_number(1) || row.integer(7, thread) != thread) return;
      if (!payloads_.read(row, kPayload).of_gpu)
        started[thread].push_back({row.integer(0), row.integer(1)});
    });
    if (started.empty()) return;
    std::map<std::int64_t, std::vector<Interval>> pushed;
    each_range(std::to_string(kNsysPushPop), [&](const NsysRow& row) {
      if (!row.is_null(1) && started.contains(row.integer(4)) && is_nccl(row))
        pushed[row.integer(4)].push_back({row.integer(0), row.integer(1)});
    });
    for (const auto& [thread, ranges] : started) keep_alone(thread, ranges, pushed[thread]);
  }

  // Both by start.
  void keep_alone(std::int64_t thread, const std::vector<Interval>& ranges,
                  const std::vector<Interval>& pushed) {
    Ns latest = std::numeric_limits<Ns>::min();  // end of those before
    Ns latest_pushed = latest;
    auto next = pushed.begin();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const Interval range = ranges[i];
      for (; next != pushed.end() && next->start < range.end; ++next)
        latest_pushed = std::max(latest_pushed, next->end);
      const bool alone = latest <= range.start && latest_pushed <= range.start &&
                         (i + 1 == ranges.size() || range.end <= ranges[i + 1].start);
      if (alone) alone_.emplace(thread, range.start);
      latest = std::max(latest, range.end);
    }
  }

  void read_range(const NsysRow& row) {
    if (!is_nccl(row)) return;
    const std::string_view name = name_of(row);
    const std::string_view collective = collective_of(name);
    ++builder_.about().events;
    const NsysPayload payload = payloads_.read(row, kPayload);
    if (payload.odd)
      builder_.notes().add(Note::odd_payload, "at " + std::to_string(row.integer(0)) + " ns");
    if (payload.of_gpu) return;
    // Who makes a communicator says so on whatever thread.
    const bool is_call =
        row.integer(6) == kNsysPushPop || alone_.contains({row.integer(4), row.integer(0)});
    if (!is_call) {
      if (name.starts_with("ncclComm")) take_communicator(payload);
      return;
    }
    Group& group = groups_[row.integer(4)];
    if (name == "ncclGroupStart") {
      ++group.depth;
    } else if (name == "ncclGroupEnd") {
      end_group(row, group);
    } else if (!collective.empty()) {
      call(row, collective, payload, group);
    } else if (name.starts_with("ncclComm")) {
      take_communicator(payload);
    }
  }

  void call(const NsysRow& row, std::string_view collective, const NsysPayload& payload,
            Group& group) {
    Asked asked{.ranks = ranks_of(payload),
                .communicator = payload.communicator,
                .peer = payload.peer,
                .dtype = payload.dtype,
                .element_bytes = payload.element_bytes,
                .reduction = payload.reduction};
    asked.bytes = size_of(collective, payload.bytes, asked.ranks);
    without_size_ += asked.bytes < 0 ? 1 : 0;
    add(row, collective, asked);
    if (group.depth == 0) return;
    if (group.calls > 0) {
      const Asked& last = group.last;
      group.one_communicator = group.one_communicator && last.communicator == asked.communicator;
      group.one_type =
          group.one_type && last.dtype == asked.dtype && last.reduction == asked.reduction;
    }
    group.collectives.insert(collective);
    ++group.calls;
    group.last = asked;
  }

  // The launches of a group are inside its end.
  void end_group(const NsysRow& row, Group& group) {
    if (group.depth > 0) --group.depth;
    if (group.depth > 0) return;
    const bool pairs = group.collectives.contains("send") || group.collectives.contains("recv");
    // Of several calls, each kernel may hold any of them: what it does is known, how much is not.
    if (group.collectives.size() == 1 && !pairs) {
      Asked asked = group.one_type ? group.last : Asked{};
      asked.bytes = group.calls == 1 ? group.last.bytes : -1;
      asked.ranks = group.one_communicator ? group.last.ranks : 0;
      asked.communicator = group.one_communicator ? group.last.communicator : 0;
      asked.peer = -1;
      add(row, *group.collectives.begin(), asked);
    } else if (!group.collectives.empty()) {
      add(row, "coalesced", {});  // what of it a kernel is, its name tells
    }
    group = {};
  }

  void add(const NsysRow& row, std::string_view collective, const Asked& asked) {
    if (!row.is_number(0) || !row.is_number(1) || row.integer(1) < row.integer(0)) return;
    if (!is_in_session(row.integer(0)) || !is_in_session(row.integer(1))) return;
    const std::int64_t global = row.integer(4);
    HostRange range{.start = row.integer(0),
                    .end = row.integer(1),
                    .thread = builder_.thread(NsysProcess::pid(global), NsysProcess::tid(global)),
                    .name = builder_.intern(collective),
                    .backend = builder_.intern("nccl"),
                    .meta = {}};
    if (asked.bytes >= 0 || asked.communicator != 0 || !asked.dtype.empty() ||
        !asked.reduction.empty()) {
      range.kind = HostRangeKind::collective_record;
      range.name = StringId::none();
      range.backend = StringId::none();
      range.meta = builder_.add_meta(meta_of(collective, asked));
    }
    const std::int64_t peer = asked.peer;
    const bool known = peer >= 0 && (asked.ranks > 0 ? peer < asked.ranks : peer < kMostRanks);
    builder_.add_host_range(range, {.rank = known ? static_cast<std::int32_t>(peer) : -1});
  }

  // How many ranks a call's communicator has; 0 where that is not known.
  std::int64_t ranks_of(const NsysPayload& payload) const {
    const auto found = ranks_.find(payload.communicator);
    return payload.communicator == 0 || found == ranks_.end() ? 0 : found->second;
  }

  // The size that NCCL's payload gives is one rank's share where data are gathered, scattered or
  // exchanged: without the number of ranks, how much is moved is not known. Neither is what no
  // message has.
  static std::int64_t size_of(std::string_view collective, std::int64_t bytes, std::int64_t ranks) {
    const bool whole = collective == "allreduce" || collective == "broadcast" ||
                       collective == "reduce" || collective == "send" || collective == "recv";
    if (whole || bytes < 0) return bytes;
    std::int64_t all = 0;
    const bool known = ranks > 0 && !__builtin_mul_overflow(bytes, ranks, &all);
    return known && all <= kLargestNsysMessage ? all : -1;
  }

  // Bytes where the type is not told, or does not divide them.
  CollectiveMeta meta_of(std::string_view collective, const Asked& asked) {
    CollectiveMeta meta;
    meta.collective = builder_.intern(collective);
    const std::int64_t parts = std::max<std::int64_t>(1, asked.ranks);
    const bool typed =
        asked.element_bytes > 0 && (asked.bytes < 0 || asked.bytes % asked.element_bytes == 0);
    meta.counts_bytes = !typed;
    meta.dtype = builder_.intern(typed ? asked.dtype : "Byte");
    if (asked.bytes >= 0) {
      const std::int64_t all = typed ? asked.bytes / asked.element_bytes : asked.bytes;
      meta.in_elements = collective == "all_gather" ? all / parts : all;
      meta.out_elements = collective == "reduce_scatter" ? all / parts : all;
    }
    if (!asked.reduction.empty()) meta.reduction = builder_.intern(asked.reduction);
    meta.group_size = asked.ranks;
    // All ranks call a communicator alike, which they do not of a group of the framework.
    if (asked.communicator != 0) meta.group_name = builder_.intern(hex_name(asked.communicator));
    return meta;
  }

  // Communicators and their ranks, as they are made.
  void take_communicator(const NsysPayload& payload) {
    if (payload.ranks < 1 || payload.ranks > kMostRanks) return;
    if (payload.communicator != 0) ranks_[payload.communicator] = payload.ranks;
    if (payload.ranks > world_) take_rank(payload);
  }

  // The largest communicator is the job's, whose ranks are those of the job.
  void take_rank(const NsysPayload& payload) {
    if (payload.rank < 0 || payload.rank >= payload.ranks || payload.ranks > kMostRanks) return;
    world_ = payload.ranks;
    builder_.about().world_size = payload.ranks;
    builder_.about().rank = payload.rank;
  }

  NsysDatabase& database_;
  const NsysProcess& process_;
  TraceBuilder& builder_;
  const NsysPayloads payloads_;
  const std::set<std::int64_t> domains_;
  std::set<std::pair<std::int64_t, Ns>> alone_;  // threads and starts
  bool any_started_ = false;
  std::map<std::int64_t, Group> groups_;         // by globalTid
  std::map<std::uint64_t, std::int64_t> ranks_;  // by communicator
  std::int64_t world_ = -1;
  std::int64_t without_size_ = 0;
};

}  // namespace

void read_nsys_nccl(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  database.need("NVTX_EVENTS", {"start", "end", "eventType", "globalTid"});
  if (!database.has_column("NVTX_EVENTS", "text")) database.need("NVTX_EVENTS", {"textId"});
  NcclReader(database, process, builder).read();
}

}  // namespace commlens
