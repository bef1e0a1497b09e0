// What NCCL's RAS client (ncclras) prints of a job: a table of communicators, and which ranks of
// them stand out. Filled by the reader of ingest/nccl_ras.cc, read by diagnose/.
//
// It is a picture of one moment. Its counters are launches by the host, of one kind of operation in
// one communicator each: that two ranks differ says neither that one waits nor that anything hangs,
// and a number here is not the one of another counter or witness. Ranks are those of the
// communicator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// "GPU 3 managed by process 1650386 on node node1"
struct RasProcess {
  std::int64_t pid = -1;  // -1: not said
  std::string node;       // empty: not said
  std::string gpu;        // "3", of several "0-3"; empty: not said
  std::int64_t line = 0;

  bool operator==(const RasProcess& other) const {
    return pid == other.pid && node == other.node && gpu == other.gpu;
  }
};

struct RasRank {
  std::int64_t rank = 0;  // in the communicator
  RasProcess process;
};

// Ranks of which the same is said. RAS lists the small sets only.
struct RasSet {
  std::int64_t count = 0;
  std::int64_t launched = 0;  // counts: how many operations
  std::string word;           // status: "ABORT"; errors: "unhandled system error"
  std::int64_t line = 0;
  std::vector<RasRank> listed;

  bool is_named() const { return static_cast<std::int64_t>(listed.size()) == count; }
};

// What is said of the ranks of one communicator.
struct RasBlock {
  enum class Kind : std::uint8_t {
    counts,       // "have different AllReduce operation counts"
    status,       // "have different status"
    init_error,   // "Initialization error on 1 rank"
    async_error,  // "Asynchronous error on 1 rank"
    incomplete,   // "Missing communicator data from 1 rank": the one set is those
  };
  Kind kind = Kind::counts;
  std::string label;    // "0-1": the first is the group of the table
  std::string hash;     // the same in each output of the job
  std::string op;       // counts: "AllReduce"; of NCCL 2.24 "collective"
  bool broken = false;  // a line was cut or could not be read
  std::int64_t line = 0;
  std::vector<RasSet> sets;
};

// "0  1  2  4  8  8  RUNNING  MISMATCH": communicators that look alike.
struct RasRow {
  std::int64_t group = 0;
  std::int64_t comms = 0;
  std::int64_t size = 0;  // of each
  std::string status;     // the highest of any of its ranks
  std::string errors;     // "OK", "ERROR,MISMATCH"
  std::int64_t line = 0;
};

// "1 job process is considered dead", or gave no data.
struct RasAbsent {
  std::int64_t count = 0;  // 0: none
  std::int64_t line = 0;
  std::vector<RasProcess> listed;
};

struct RasSnapshot {
  std::int64_t gpus = -1;  // of the job; -1: not said
  bool no_data = false;    // "No communicator data collected!"
  bool whole = false;      // goes on to its warnings, which stand last
  std::int64_t line = 0;
  std::vector<RasRow> rows;
  RasAbsent dead;
  RasAbsent silent;
  std::vector<RasBlock> blocks;
};

struct RasFacts {
  std::vector<RasSnapshot> snapshots;  // in the order of the file
};

}  // namespace commlens
