// What logs tell: NCCL's own lines (NCCL_DEBUG), those of PyTorch's watchdog, and the few lines of
// a program that say how it ended. Filled by the reader of ingest/nccl_log.cc, read by diagnose/.
//
// A log is never complete: lines are lost where processes crash, and people cut them before they
// pass them on. So nothing here means "was not there", only "is not in this file".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "model/operation.h"
#include "model/written_span.h"

namespace commlens {

using LogProcessId = Id<struct LogProcessTag>;
using LogCommId = Id<struct LogCommTag>;

// One operating system process that wrote lines. Lines without host and pid share one process with
// an empty host.
struct LogProcess {
  std::string host;
  std::int64_t pid = -1;        // -1: the lines do not say
  std::int64_t hint = -1;       // what a launcher put before its lines: mostly the world rank
  bool hint_varies = false;     // several hints: of no use
  std::int64_t first_line = 0;  // from 1
  std::int64_t last_line = 0;
  WrittenSpan written;       // by the clock on the host's wall: the zone is not said
  std::vector<int> devices;  // of the threads that wrote: no rank identity
  std::string version;       // "2.21.5"; empty: not said
  std::string cuda;          // "12.4"
  std::string network;       // "IB", "Socket", "AWS Libfabric": `Using network`
  std::int64_t network_line = 0;
  bool rccl = false;
};

// One communicator as one rank sees it. Pointers are used again after destruction, so (process,
// pointer) alone is no key: each initialisation makes a new one.
struct LogComm {
  LogProcessId process;
  std::uint64_t pointer = 0;
  std::int64_t rank = -1;  // in the communicator; -1: only call lines name it
  std::int64_t nranks = -1;
  std::int64_t device = -1;
  std::int64_t bus = -1;     // packed: bus << 12 | device << 4 | function
  std::uint64_t id = 0;      // commId: the same on all ranks; 0: not said
  std::uint64_t parent = 0;  // pointer of the communicator that was split; 0: none
  std::int64_t split = -1;   // splitCount or childCount; -1: none
  std::int64_t color = -1;
  std::int64_t nodes = -1;  // nNodes; -1: not said
  std::int64_t local_ranks = -1;
  std::int64_t thread = -1;  // that initialised it
  std::int64_t first_line = 0;
  std::int64_t complete_line = 0;  // Init COMPLETE; 0: not in the file
  std::int64_t end_line = 0;       // Destroy COMPLETE
  std::int64_t abort_line = 0;
};

enum class LogTransport : std::uint8_t { p2p, shm, net, collnet };

// "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA"
struct LogChannel {
  LogProcessId process;
  LogTransport transport = LogTransport::p2p;
  std::int64_t channel = -1;
  std::int64_t connection = -1;  // 0: collectives, 1: sends and receives; -1: not said
  std::int64_t from = -1;        // ranks in the communicator that is being set up
  std::int64_t to = -1;
  bool sends = false;        // [send]
  bool receives = false;     // [receive]
  bool gdr = false;          // GDRDMA: network and GPU without host memory between
  std::string via;           // "P2P/IPC", "NET/IB/0"
  std::string network;       // "IB"; empty: no network
  std::int64_t device = -1;  // NET: which of them
  std::int64_t line = 0;
};

// "NET/IB : Using [0]mlx5_0:1/RoCE ...; OOB eth0:10.0.0.1<0>" and its likes.
struct LogInterfaces {
  enum class Kind : std::uint8_t { bootstrap, socket, ib };
  Kind kind = Kind::socket;
  LogProcessId process;
  std::vector<std::string> names;      // "mlx5_0:1/RoCE", "eth0"
  std::vector<std::string> addresses;  // of sockets: "10.0.0.1"
  bool cut = false;                    // the list goes on beyond the end of the line
  std::int64_t line = 0;
};

// "16 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer"
struct LogChannelCount {
  LogProcessId process;
  std::int64_t collective = 0;
  std::int64_t nvls = 0;  // 0 too where the version does not say
  std::int64_t line = 0;
};

// "Init timings"; seconds.
struct LogInitTimings {
  LogProcessId process;
  std::int64_t rank = -1;
  std::int64_t nranks = -1;
  double total = 0;
  struct Phase {
    std::string name;
    double seconds = 0;
  };
  std::vector<Phase> phases;
  std::int64_t line = 0;
};

// "NCCL_ALGO set by environment to Ring"
struct LogSetting {
  LogProcessId process;
  std::string name;
  std::string value;  // masked where it may be a secret
  std::int64_t line = 0;
};

// "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}": what the tuner chose.
struct LogTuning {
  LogProcessId process;
  Op op = Op::unknown;  // 2.20 to 2.22 do not say
  std::int64_t bytes = 0;
  std::string algorithm;       // "RING"; upper case in all versions
  std::string protocol;        // "LL", "LL128", "SIMPLE"
  double microseconds = 0;     // modelled; 0: not said
  std::int64_t channels = -1;  // that it runs on; -1: not said
  bool of_one_rank = false;    // `bytes` of gathered and scattered data: one rank's (since 2.24)
  std::int64_t line = 0;
};

// One call of a collective, send or receive. Written before the call is queued: it says what the
// program asked for, not that it ran.
struct LogCall {
  LogCommId comm;
  Op op = Op::unknown;
  std::int16_t datatype = -1;   // ncclDataType_t
  std::int16_t reduction = -1;  // ncclRedOp_t
  bool uneven = false;          // all-to-all-v: each rank's count is its own
  bool traced = false;          // of NCCL_DEBUG_SUBSYS=CALL: without an op count
  std::int64_t op_count = -1;   // no number of the call, see docs/formats/nccl-log.md
  std::int64_t count = 0;       // elements, as the caller passed them
  std::int64_t root = -1;       // of Send and Recv: the peer
  std::int64_t thread = -1;
  std::int64_t line = 0;
};

// Anything that went wrong, or could have to do with it.
enum class LogEventKind : std::uint8_t {
  out_of_memory,        // of the device
  cuda_failure,         // a CUDA or HIP call failed
  duplicate_gpu,        // two ranks on one device
  mismatch,             // NCCL itself saw that ranks call different things
  truncated,            // a message of another length than expected
  bootstrap_truncated,  // the same while communicators are set up
  version_mismatch,
  topology,        // rings that do not close
  no_algorithm,    // NCCL_ALGO or NCCL_PROTO leave nothing
  shared_memory,   // /dev/shm too small or not usable
  locked_memory,   // memory cannot be registered with the NIC
  no_interface,    // no interface to start with
  bad_setting,     // a setting that NCCL refuses
  open_files,      // the limit of open files
  driver,          // driver or fabric manager are not fit
  ib_completion,   // a work request failed
  ib_event,        // link or port
  ib_setup,        // a verbs call failed
  connect_failed,  // no answer, refused, no route
  p2p_failed,      // peer access or IPC refused
  peer_gone,       // follows from the other side's end
  proxy_failed,    // follows from something in its own process
  system_call,     // any other call of the operating system
  setup_warning,   // RCCL: kernel command line, environment
  gdr_disabled,
  topology_hidden,      // a virtual machine hides the PCI topology
  low_bandwidth_model,  // "=== System : maxBw 12.0"
  back_trace,           // "file:line -> code"
  other_warning,
  // The program's and the launcher's.
  program_out_of_memory,
  program_nccl_error,  // an exception that names NCCL
  signal,              // segmentation fault, killed
  exit_code,
  test_failure,       // "Test NCCL failure"
  async_error,        // the watchdog found an error of NCCL's
  store_timeout,      // rendezvous or key-value store
  barrier_timeout,    // monitoredBarrier names who did not come
  stalled,            // Horovod names who did not submit a tensor
  id_timeout,         // the first rank of a group did not give out the id of the communicator
  checkpoint_begins,  // work that only one rank does
  checkpoint_ends,
  result_row,  // a row of nccl-tests' table
};

struct LogEvent {
  LogEventKind kind = LogEventKind::other_warning;
  LogProcessId process;
  std::int64_t thread = -1;
  std::int64_t device = -1;
  std::int64_t rank = -1;  // global, where the line itself says it
  std::int64_t line = 0;
  Ns when = -1;                     // within the year, by the log's clock; -1: not said
  Ns dated = -1;                    // the same since the epoch; -1: the year is not said
  std::int64_t code = -1;           // ncclResult_t of a back-trace, signal, exit code, status
  std::vector<std::int64_t> ranks;  // that the text names
  std::string detail;               // the peer, the device, the error's own words
  std::string text;                 // printable, limited, without secrets
};

// One line of PyTorch's watchdog. Numbers it does not give are kNotSaid.
struct LogWatchdog {
  static constexpr std::int64_t kNotSaid = -2;
  // gave_up: the process ends for a reason that another line tells.
  enum class Kind : std::uint8_t {
    timed_out,
    position,
    async_error,
    dump_signal,
    heartbeat,
    gave_up,
  };
  Kind kind = Kind::timed_out;
  std::int64_t rank = -1;         // global, from the "[rank3]:" before the line; -1: not said
  std::int64_t group_rank = -1;   // in the group
  std::string group;              // "GUID 119", "PG 5"; empty: not said
  bool group_is_default = false;  // of all ranks
  bool group_is_shared = false;   // the name means the same on every rank
  std::int64_t seq = kNotSaid;    // of the operation that timed out
  std::string op;                 // "ALLREDUCE"
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t ran_ms = -1;
  std::int64_t timeout_ms = -1;
  std::int64_t enqueued = kNotSaid;
  std::int64_t completed = kNotSaid;
  std::int64_t signal_from = -1;  // the rank that a dump signal came from; -1: itself or unknown
  LogProcessId process;
  std::int64_t line = 0;
  Ns when = -1;   // as of LogEvent
  Ns dated = -1;  // as of LogEvent
  std::string text;
};

// One line of the desync report (TORCH_NCCL_DESYNC_DEBUG).
struct LogDesync {
  enum class Kind : std::uint8_t {
    timed_out,     // who reports, in which collective
    never_joined,  // any collective
    not_finished,  // joined seq, did not finish it
    not_joined,    // finished seq - 1, did not join seq
    started,       // the snapshot's: op in seq
    finished,
  };
  Kind kind = Kind::timed_out;
  std::vector<std::int64_t> ranks;
  std::int64_t seq = -1;
  std::string op;
  std::int64_t line = 0;
  std::string text;
};

struct LogFacts {
  std::vector<LogProcess> processes;
  std::vector<LogComm> comms;
  std::vector<LogChannel> channels;
  std::vector<LogChannelCount> channel_counts;
  std::vector<LogInterfaces> interfaces;
  std::vector<LogInitTimings> timings;
  std::vector<LogSetting> settings;
  std::vector<LogTuning> tuning;
  std::vector<LogCall> calls;    // in the order of the file
  std::vector<LogEvent> events;  // in the order of the file
  std::vector<LogWatchdog> watchdog;
  std::vector<LogDesync> desync;
  // What nccl-tests says of its ranks: which process is which.
  struct TestRank {
    std::int64_t rank = -1;
    std::int64_t pid = -1;
    std::string host;
    std::int64_t device = -1;
    std::string gpu;
    std::int64_t line = 0;
  };
  std::vector<TestRank> test_ranks;
  std::int64_t lines = 0;              // of the file
  std::int64_t understood = 0;         // records of NCCL's or of the watchdog's
  std::int64_t unknown = 0;            // that look like these and are not known
  std::int64_t cut = 0;                // that stop in the middle of a value
  bool ends_cut = false;               // the last record stops in the middle of a value
  bool hints_are_ranks = true;         // false: lines say another rank than the mark before them
  std::int64_t lost = 0;               // beyond what is kept (see ingest/nccl_log_builder.h)
  std::int64_t last_log_line = 0;      // the last record of NCCL's or of the watchdog's
  std::int64_t last_program_line = 0;  // the last line with text of somebody else's
  // "NCCL 2.4.8" of lines that do not say who printed them: a few, each once.
  std::vector<std::string> unsigned_versions;
};

// What a datatype number means ("float32"); empty where it is not known.
std::string_view log_datatype_name(std::int64_t datatype);
// Bytes of one element; 0 where it is not known.
std::int64_t log_datatype_bytes(std::int64_t datatype);

}  // namespace commlens
