// A recording in one line, so that a test reads as the picture it has in mind.
//
//   Situation s = situation("compute@7 [0,2) [3,5); all_reduce@20 [1,3) bytes=1M n=8; memcpy@7
//   [6,7)"); Recording r = recording(s);                    // as an importer hands it over
//   DeviceTimeline d = device_timeline(s);         // as match/ hands it over
//   std::string text = kineto_text(s, {.style = Style::compact});   // as PyTorch writes it
//
// Statements are parted by `;`: what, where, when, and more.
//   what    compute, memcpy, memset, or an operation (all_reduce, all_gather, ...): a GPU activity
//           step#3, gpu_step#3: a ProfilerStep range on the host, or its copy on the GPU
//           launch: a launch on the host; record: record_param_comms; range: a named host range
//   where   @STREAM, @DEVICE/STREAM or @DEVICE/CONTEXT/STREAM; on the host @THREAD
//   when    [start,end) or [start,end], several; launches: one instant, [5]
//   more    corr=5 (correlation)  id=77 (External id)  name=KERNEL_NAME or nccl:all_reduce
//           bytes=1M n=8 group=tp ranks=0,1 op=_allgather_base: metadata; without any of these an
//           operation is known by its kernel's name only. Of the call itself: seq=4 comms_id=9
//           rank=1 (in the group) src=0 dst=3 split=4,0 (split sizes), and of the group start=0
//           stride=2
// Times are nanoseconds, or have a unit (1.5us, 2ms, 3s), and count from `Situation::origin`, since
// a time of 0 is a lost one to the readers. K, M and G of bytes are powers of 1024.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/trace.h"

namespace commlens::notation {

struct Collective {
  std::string name;  // as PyTorch writes it: "_allgather_base"
  std::string dtype = "Byte";
  std::int64_t in_elements = kUnknown;  // not written where unknown
  std::int64_t out_elements = kUnknown;
  std::int64_t group_size = 0;
  std::string group;
  std::string description;
  std::string ranks;  // "[0, 1]"
  std::int64_t start = kUnknown;
  std::int64_t stride = kUnknown;
  CallKey call;
  std::string splits;  // "[4, 0]", of input and output
};

struct Activity {
  ActivityKind kind = ActivityKind::kernel;
  ActivityClass kind_of_work = ActivityClass::compute;
  Op op = Op::unknown;
  std::string name;
  Stream stream{0, 1, 7};
  Interval time;
  std::uint64_t correlation = 0;  // 0: none
  std::uint64_t external_id = 0;
  std::optional<Collective> meta;
};

struct Launch {
  std::uint64_t correlation = 0;
  Ns at = 0;
  std::int64_t thread = 1;
};

struct Host {
  HostRangeKind kind = HostRangeKind::annotation;
  Interval time;
  std::int64_t thread = 1;
  std::string name;  // annotation, with its backend: "nccl:all_reduce"
  std::uint64_t external_id = 0;
  std::optional<Collective> meta;
};

struct Step {
  std::int64_t number = 0;
  Interval time;
  bool on_gpu = false;
};

struct Situation {
  Ns origin = 1'000'000;
  std::vector<Activity> activities;  // in file order
  std::vector<Launch> launches;
  std::vector<Host> host;
  std::vector<Step> steps;
  std::optional<std::int64_t> rank;
  std::int64_t world_size = 0;
  std::int64_t process = 4100;

  // A window or instant of the situation on the recording's clock.
  Interval window(Ns start, Ns end) const { return {start + origin, end + origin}; }
};

// Throws std::runtime_error where the text is not understood.
Situation situation(std::string_view text);

// The same text with each time multiplied (for tests of scaling) or moved.
Situation scaled(Situation s, Ns factor);
Situation moved(Situation s, Ns shift);

// Through the builder: what a reader would hand over, with the clock known.
Recording recording(const Situation& s, std::string_view path = "rank-0.json");

// Classes and operations as written, without match/: one device's activities (`device` of their
// streams), sorted and united as match/ does. No figures.
DeviceTimeline device_timeline(const Situation& s, std::int64_t device = 0);
// All devices, with the recording.
RankTimeline rank_timeline(const Situation& s, std::int64_t rank = 0);

enum class Style : std::uint8_t {
  classic,  // as Kineto prints: several keys on a line, each event on several lines
  lines,    // each key on a line of its own
  compact,  // no blank anywhere
};
enum class Clock : std::uint8_t {
  absolute,  // microseconds since the epoch, as before 2024
  base,      // relative to baseTimeNanoseconds
  no_base,   // relative to something not said
};

struct KinetoLayout {
  Style style = Style::classic;
  Clock clock = Clock::base;
  bool base_last = false;     // displayTimeUnit and baseTimeNanoseconds behind the events
  std::uint64_t shuffle = 0;  // other than 0: keys of events and of the top level in random order
  bool bare_array = false;    // the events alone (Chrome's other form); clock: no_base or absolute
};

// The base that the texts are written with, and that `recording` has.
inline constexpr Ns kBase = 1'735'632'360'000'000'000;

// The situation as a Kineto trace. Read back it gives the times of `recording(s)`, except
// Clock::absolute: there they include kBase.
std::string kineto_text(const Situation& s, const KinetoLayout& layout = {});

}  // namespace commlens::notation
