// A run of a job as analyses see it: per rank and GPU, what ran when, and what each communication
// was.
//
// match/ fills these from recordings; after that nothing here changes. Times are nanoseconds of
// that recording's clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/clocks.h"
#include "model/finding.h"
#include "model/group_role.h"
#include "model/interval_set.h"
#include "model/joined.h"
#include "model/ledger.h"
#include "model/matching.h"
#include "model/measured_job.h"
#include "model/operation.h"
#include "model/path.h"
#include "model/stragglers.h"
#include "model/trace.h"
#include "model/trail.h"
#include "model/transfer_fit.h"
#include "model/waits.h"
#include "model/work.h"

namespace commlens {

// How it is known that something is a communication, and which. From the strongest to the weakest.
enum class Evidence : std::uint8_t {
  metadata,        // the framework's metadata stands on the activity itself
  host_operation,  // the host operation that it is linked to by external id
  host_nesting,    // the host range in which it was launched
  kernel_name,     // its name, by the built-in rules
  user_rule,       // its name, by the user's rules
  host_interval,   // it is a range on the host (Gloo and the like), not GPU work
};
inline constexpr std::size_t kEvidenceCount = 6;
std::string_view evidence_name(Evidence evidence);

// A process group as far as one recording knows it.
struct GroupIdentity {
  std::string name;         // process-local; two ranks may name different groups alike
  std::string description;  // empty or "undefined" where the framework has none
  std::int64_t size = 0;    // 0 is unknown
  std::vector<int> ranks;   // sorted global ranks; empty where unknown
  GroupRole role = GroupRole::unknown;
  friend auto operator<=>(const GroupIdentity&, const GroupIdentity&) = default;
};

// "mesh_tp[0,1]": readable, and different for different groups. Where the members are not known,
// `rank` (which knows the group) stands for them.
std::string group_label(const GroupIdentity& group, std::int64_t rank);

// One communication on one rank.
struct CommOp {
  Interval time;
  std::size_t source =
      0;            // row of the recording's GPU activities (or host ranges): the order in the file
  StreamId stream;  // none for host intervals
  StringId name;
  StringId dtype;
  StringId reduction = {};  // "sum"; none: not told
  Op op = Op::unknown;
  Evidence evidence = Evidence::kernel_name;
  bool name_may_lie = false;          // `op` comes from a name that need not tell what ran
  std::int32_t group = -1;            // index into RankTimeline::groups; -1 is unknown
  std::int64_t group_size = 0;        // 0 is unknown
  std::optional<std::int64_t> bytes;  // nccl-tests size; nothing where unknown

  // What tells it from the group's other operations (docs/matching.md).
  std::int64_t seq = kUnknown;   // as the framework counts the group's operations
  std::uint64_t comms_id = 0;    // the framework's identifier of the operation; 0: none
  std::int64_t step = kUnknown;  // number of the step that launched it
  std::int32_t root = -1;        // global rank, of a rooted operation; -1: not known
  std::uint32_t first_peer = 0;  // point-to-point: RankTimeline::peers [first_peer, + peers)
  std::uint32_t peers = 0;       // 0: not known, or not point-to-point
  bool zero_split = false;       // all-to-all: some rank sends or gets nothing
};

// One direction of a point-to-point kernel: grouped calls have several.
struct Peer {
  std::int32_t rank = -1;  // global
  bool sends = false;      // to that rank; else receives from it
  std::optional<std::int64_t> bytes;
};

// A rank's own time before an instant, each nanosecond in one class: compute where any compute ran,
// else memory where a copy ran and no communication, else, with no communication either, idle: host
// where nothing was queued for the GPU, and gaps. What is left of a stretch is exposed
// communication.
struct OwnTime {
  Ns compute = 0;
  Ns memory = 0;
  Ns host = 0;
  Ns gaps = 0;  // idle with something queued; all idle time where launches are not known
};

// What one communication cost inside a window (docs/numbers.md).
struct Exposure {
  Ns busy = 0;       // its time in the window
  Ns hidden = 0;     // of that, while compute ran
  Ns exposed = 0;    // busy - hidden
  Ns exclusive = 0;  // its share of the exposed time: these sum to the rank's exposed communication
  bool in_window = false;      // any part of it, or all of a zero-length one
  bool starts_inside = false;  // it is counted, and its bytes are, in the window where it starts
};

// The five buckets of a window; they sum to its length exactly.
struct Breakdown {
  Interval window;
  Ns compute_only = 0;
  Ns hidden_comm = 0;
  Ns exposed_comm = 0;
  Ns memory_only = 0;
  Ns idle = 0;
  Ns host_idle = 0;            // of the idle: with nothing queued for the GPU; 0 where not known
  Ns comm_busy = 0;            // sum over communications of their time in the window
  Ns whole_event_overlap = 0;  // the tutorial's approximation: whole events that meet any compute
  std::int64_t gpu_events = 0;
  std::int64_t comm_events = 0;
};

struct StepFigures {
  std::int64_t number = 0;
  Breakdown breakdown;
  std::size_t first_op = 0;  // row of DeviceTimeline::comm that the first exposure belongs to
  std::vector<Exposure>
      exposures;  // of it and the rows behind it; the others have no part in the step
};

// What a GPU did, also outside the window of the figures.
struct WiderSets {
  IntervalSet compute;
  IntervalSet memory_only;  // copies while neither compute nor communication ran
  IntervalSet host_idle;    // idle with nothing queued; empty where launches are not known
};

// One GPU of one rank (or its host, for backends that move data there).
struct DeviceTimeline {
  std::optional<std::int64_t> device;  // nothing for host intervals
  std::vector<CommOp> comm;            // by start, then stream, then order in the file
  IntervalSet compute;
  IntervalSet memory;
  std::vector<Ns> starts;  // of activities of every class, sorted: for counting them in windows
  Interval extent;         // first start to last end
  std::vector<std::pair<std::int64_t, Interval>>
      steps;  // windows of the steps: number, window; they tile

  Breakdown breakdown;              // of the chosen window
  std::vector<Exposure> exposures;  // in the chosen window, by communication
  std::vector<StepFigures> step_figures;

  // By communication: the rank's own time from the start of `extent` until it starts and until it
  // ends. Comparing two ranks needs no more than differences of these.
  std::vector<OwnTime> own_at_start;
  std::vector<OwnTime> own_at_end;
  IntervalSet compute_under_comm;  // the part of `compute` while any communication ran
  bool launches_known = false;     // whether `host` of the above can be told from `gaps`

  // Only where figures are of some steps: the window of all ranks is wider than each one's.
  std::optional<WiderSets> wider;
};

// How long one kernel takes on one rank: what tells a slow GPU from more work.
struct KernelTime {
  std::string name;
  std::int64_t count = 0;
  Ns total = 0;
};

struct RankTimeline {
  bool ready = false;  // classified, cut into windows, figures computed
  std::int64_t rank = 0;
  int run = 0;       // 0, 1, ... where one rank was recorded more than once
  std::string host;  // empty is unknown
  Recording recording;
  std::vector<GroupIdentity> groups;
  std::vector<Peer> peers;               // of point-to-point communications
  std::vector<KernelTime> kernel_times;  // compute kernels that take most of the time, by name
  std::vector<ActivityClass> classes;    // by GPU activity
  std::vector<std::uint32_t> launches;   // the same: row of Recording::launches, or kNoLaunchRow
  std::vector<DeviceTimeline> devices;   // sorted by device
  Work work;                             // for the critical path; unknown where nobody asks for it
  std::array<std::int64_t, kEvidenceCount> evidence{};
  Notes notes;  // of matching and windows; the reader's are in `recording`

  static constexpr std::uint32_t kNoLaunchRow = UINT32_MAX;
  // Row of the launch of a GPU activity; nothing where it was not recorded.
  std::optional<std::size_t> launch_of(std::size_t activity) const {
    const std::uint32_t row = launches[activity];
    return row != kNoLaunchRow ? std::optional<std::size_t>(row) : std::nullopt;
  }
};
// Else a list of them copies gigabytes as it grows.
static_assert(std::is_nothrow_move_constructible_v<RankTimeline>);

struct Job {
  std::vector<RankTimeline> ranks;  // by rank, then run
  std::int64_t world_size = 0;      // 0 is unknown
  std::vector<std::int64_t> missing_ranks;
  std::string hosts_from;  // how host names were found; empty where they were not
  Matching matching;
  Clocks clocks;
  Waits waits;
  Stragglers stragglers;
  TransferFits transfer_fits;
  Ledger ledger;
  CriticalPath path;
  Findings findings;
  MeasuredJob measured;       // of inputs that are no timelines
  std::vector<Trail> trails;  // of the rank that --explain names
  Joined joined;
  std::vector<std::pair<std::string, Notes>>
      notes_of_pieces;  // of inputs that were put into others
  std::vector<std::pair<std::string, std::int64_t>> rank_of_path;  // of every input that was used
  Notes notes;
};

// Training steps of the recordings, of the rank with the most; 1 where none are recorded.
std::int64_t step_count(const Job& job);
// Whether there is anything at all that could communicate: GPU activities, or a host backend's
// ranges.
bool has_timelines(const Job& job);
// Whether all that is known of communication was measured without a timeline.
bool only_measured(const Job& job);
// Whether there are at least two ranks of which it can be asked what they did together.
bool has_several_ranks(const Job& job);

}  // namespace commlens
