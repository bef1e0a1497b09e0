// A rank's recording written down call by call, for tests of dependencies. Times are nanoseconds
// after kOrigin.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "model/builder.h"

namespace commlens {

inline constexpr Ns kOrigin = 1'000'000'000;  // a time of 0 is a lost one to readers

// One rank's recording, written down call by call.
class Made {
 public:
  explicit Made(std::int64_t rank = 0, std::int64_t world = 1) : builder_("made.json", "kineto") {
    builder_.about().rank = rank;
    builder_.about().world_size = world;
    builder_.about().host = "a";
    builder_.about().clock = ClockBase::epoch;
    builder_.about().process = 100 + rank;
  }

  // A kernel and, where `launch` is not negative, the call that started it.
  Made& kernel(std::int64_t stream, Ns start, Ns end, Ns launch = -1,
               std::string_view name = "gemm") {
    const std::uint64_t id = next_++;
    if (launch >= 0) call(id, launch);
    return activity(stream, start, end, id, name, {});
  }
  // Of one CUDA graph: kernels that share a launch.
  Made& graph(Ns launch, const std::vector<std::pair<std::int64_t, Interval>>& kernels) {
    const std::uint64_t id = next_++;
    call(id, launch);
    for (const auto& [stream, time] : kernels)
      activity(stream, time.start, time.end, id, "node", {});
    return *this;
  }
  Made& all_reduce(std::int64_t stream, Ns start, Ns end, std::string_view group,
                   std::string_view ranks, std::int64_t size, std::int64_t seq, Ns launch = -1,
                   std::int64_t elements = 1024) {
    const std::uint64_t id = next_++;
    if (launch >= 0) call(id, launch);
    const MetaId meta = builder_.add_meta({.collective = builder_.intern("allreduce"),
                                           .dtype = builder_.intern("Float"),
                                           .in_elements = elements,
                                           .out_elements = elements,
                                           .group_size = size,
                                           .group_name = builder_.intern(group),
                                           .group_description = builder_.intern(group),
                                           .group_ranks = builder_.intern(ranks)});
    activity(stream, start, end, id, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", meta, {.seq = seq});
    return *this;
  }
  // Of Float: each rank gives `elements` and gets those of all.
  Made& all_gather(std::int64_t stream, Ns start, Ns end, std::string_view group,
                   std::string_view ranks, std::int64_t size, std::int64_t seq, Ns launch,
                   std::int64_t elements) {
    const std::uint64_t id = next_++;
    call(id, launch);
    const MetaId meta = builder_.add_meta({.collective = builder_.intern("_allgather_base"),
                                           .dtype = builder_.intern("Float"),
                                           .in_elements = elements,
                                           .out_elements = elements * size,
                                           .group_size = size,
                                           .group_name = builder_.intern(group),
                                           .group_description = builder_.intern(group),
                                           .group_ranks = builder_.intern(ranks)});
    activity(stream, start, end, id, "ncclDevKernel_AllGather_RING_LL", meta, {.seq = seq});
    return *this;
  }
  // The stream `waits` waits for what `source` was given so far.
  Made& wait(std::int64_t waits, std::int64_t source, Ns at) {
    const std::uint64_t record = next_++;
    const std::uint64_t id = next_++;
    builder_.add_sync_record({.start = kOrigin + at,
                              .correlation = id,
                              .record_correlation = record,
                              .stream = stream(waits),
                              .source = stream(source),
                              .kind = SyncKind::stream_wait});
    return *this;
  }
  // Some stream is made to wait, the recording does not say for what.
  Made& some_wait(Ns at) {
    builder_.add_sync_call({.start = kOrigin + at,
                            .end = kOrigin + at + 100,
                            .correlation = next_++,
                            .thread = builder_.thread(100, thread_),
                            .kind = SyncKind::stream_wait});
    return *this;
  }
  // The host waits for everything.
  Made& synchronise(Ns start, Ns end, std::int64_t thread = 1) {
    builder_.add_sync_call({.start = kOrigin + start,
                            .end = kOrigin + end,
                            .correlation = next_++,
                            .thread = builder_.thread(100, thread),
                            .kind = SyncKind::device_sync});
    return *this;
  }
  Made& step(std::int64_t number, Ns start, Ns end) {
    builder_.add_step(number, {kOrigin + start, kOrigin + end}, false);
    return *this;
  }
  Made& host(std::string_view name) {
    builder_.about().host = name;
    return *this;
  }
  Made& thread(std::int64_t number) {
    thread_ = number;
    return *this;
  }

  Recording done() { return builder_.finish(); }

 private:
  static Stream stream(std::int64_t number) {
    return {.device = 0, .context = 1, .stream = number};
  }
  void call(std::uint64_t id, Ns at) {
    builder_.add_launch(id, kOrigin + at, builder_.thread(100, thread_));
  }
  Made& activity(std::int64_t on, Ns start, Ns end, std::uint64_t id, std::string_view name,
                 MetaId meta, const CallKey& key = {}) {
    builder_.add_activity({.start = kOrigin + start,
                           .end = kOrigin + end,
                           .name = name,
                           .stream = stream(on),
                           .correlation = id,
                           .meta = meta,
                           .call = key});
    return *this;
  }

  TraceBuilder builder_;
  std::uint64_t next_ = 1;
  std::int64_t thread_ = 1;
};

}  // namespace commlens
