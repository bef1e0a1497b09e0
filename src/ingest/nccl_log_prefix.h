// What stands before a message: who wrote it, at which level. A line of a file can hold several
// records, since processes that share an output write over each other.
//
//   node-3:4242:4250 [5] NCCL INFO Connected all rings
//   [2025-06-01 10:11:12] node-3:4242:4250 [5] transport/net_ib.cc:94 NCCL WARN ...
//   node-3:4242:4250 [5] init.cc:94 (commAlloc) NCCL WARN ...            2.30
//   node-3:4242:4250 [5] INFO comm 0x1 rank 0 nranks 2                   2.2
//   node-3:4242:4250 [5] 1558545003174220 NCCL INFO ...                  RCCL
//   node-3:4242:4250 [5] 12.345678 ncclInit:120 NCCL TRACE ...
//   node-3:4242:4250 NCCL CALL ncclGroupStart()
//   [5] NCCL INFO ...      NCCL WARN ...                                 hands have passed over it
//   [rank3]:[E1129 11:56:57.642513817 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID 0 Rank 3] ...
//   [E ProcessGroupNCCL.cpp:523] [Rank 3] ...
//
// Before all of these: "[1,3]<stdout>:", "3: ", "[3] ", "(WorkerDict pid=99) ", times, file names.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "ingest/nccl_log_time.h"

namespace commlens {

struct LogRecord {
  enum class Kind : std::uint8_t {
    plain,  // no mark of NCCL's or PyTorch's: the program's own, or the rest of another line
    nccl,
    torch,  // a line of c10's logger, or one that "[rank3]:" stands before
  };
  Kind kind = Kind::plain;
  bool warning = false;     // WARN
  bool call_trace = false;  // CALL
  bool glued = false;       // other text stood directly before the host: it may be too long
  std::string_view host;    // empty: not said
  std::int64_t pid = -1;
  std::int64_t thread = -1;
  std::int64_t device = -1;
  std::int64_t hint = -1;        // what a launcher put before the line: mostly the world rank
  std::int64_t torch_rank = -1;  // "[rank3]:": global
  std::string_view place;        // of a warning: "transport/net_ib.cc:94"
  std::string_view message;      // behind the level
  std::string_view text;         // all of the record
  bool ended = true;             // false: the message may be cut at its end
  std::int64_t line = 0;
  LogTime time;
};

// How long that is which a launcher put before a line of any program: "[1,3]<stdout>:", "3: ",
// "[3] ", "[default0]:", "(WorkerDict pid=99) ". 0: nothing.
std::size_t launcher_length(std::string_view line);

// The records of one line, at least one; they point into `line`.
std::vector<LogRecord> split_records(std::string_view line, std::int64_t number, bool ended);

}  // namespace commlens
