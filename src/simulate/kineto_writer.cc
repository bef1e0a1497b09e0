// The events of one rank, in the order in which Kineto writes them: host ranges, runtime calls, GPU
// activities.
#include "simulate/kineto_writer.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "simulate/kineto_parts.h"
#include "simulate/program.h"

namespace commlens::simulate {
namespace {

std::string decimal(double value) {
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string dimensions(int x) { return "[" + std::to_string(x) + ", 1, 1]"; }

struct CallWords {
  std::string_view name;
  int cbid;
};

CallWords call_words(CallKind kind) {
  switch (kind) {
    case CallKind::launch: return {"cudaLaunchKernel", 211};
    case CallKind::launch_communication: return {"cudaLaunchKernelExC", 430};
    case CallKind::memcpy: return {"cudaMemcpyAsync", 41};
    case CallKind::memset: return {"cudaMemsetAsync", 51};
    case CallKind::event_record: return {"cudaEventRecord", 135};
    case CallKind::stream_wait: return {"cudaStreamWaitEvent", 147};
    case CallKind::stream_sync: return {"cudaStreamSynchronize", 131};
  }
  return {"", 0};
}

std::string_view range_cat(RangeKind kind) {
  return kind == RangeKind::annotation || kind == RangeKind::step ? "user_annotation" : "cpu_op";
}

class RankWriter {
 public:
  RankWriter(const Profile& profile, Sink& sink)
      : profile_(profile),
        trace_(profile.trace()),
        options_(profile.options()),
        text_(sink),
        host_{profile.process(), profile.process()},
        device_(profile.device()) {}

  void write() {
    for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
      if (profile_.kept(trace_.ranges[i])) write_range(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
      if (profile_.kept(trace_.calls[i])) write_call(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < trace_.gpu.size(); ++i) {
      if (profile_.kept_activity(i)) write_activity(trace_.gpu[i]);
    }
    for (const GpuStep& step : profile_.gpu_steps())
      write_gpu_annotation(step.range, step.stream, step.span);
    write_metadata();
    write_span();
  }

 private:
  Ns at(Ns instant) const { return profile_.at(instant); }
  Lane lane(int stream) const { return {device_, stream}; }
  void begin(std::string_view cat, std::string_view name, Lane where, Ns start, Ns end) {
    text_.begin(cat, name, where, at(start), at(end) - at(start));
  }
  const RuntimeCall& call(int index) const { return profile_.call(index); }
  const std::string& name(int index) const { return profile_.name(index); }

  void write_range(int index);
  void write_call(int index);
  void write_sync(int index);
  void write_activity(const GpuEvent& event);
  void write_kernel(const GpuEvent& event);
  void write_copy(const GpuEvent& event);
  void write_link(const GpuEvent& event);
  void write_gpu_annotation(int range, int stream, Interval span);
  void write_metadata();
  void write_device_metadata(Ns start);
  void write_span();

  const Profile& profile_;
  const RankTrace& trace_;
  const RecordOptions& options_;
  KinetoText text_;
  Lane host_;
  int device_;
};

void RankWriter::write_range(int index) {
  const HostRange& range = trace_.ranges[static_cast<std::size_t>(index)];
  begin(range_cat(range.kind), name(range.name), host_, range.start, range.end);
  text_.arg("External id", Profile::external_id(index));
  text_.arg("Record function id", 0);
  if (options_.metadata && range.kind == RangeKind::record_comms)
    write_host_comms(text_, profile_.comms(range.collective, range.member));
  if (range.kind == RangeKind::wait_record)
    write_wait_comms(text_, profile_.comms(range.collective, range.member));
  text_.arg("Ev Idx", index);
  text_.end();
}

void RankWriter::write_call(int index) {
  const RuntimeCall& made = call(index);
  const auto [title, cbid] = call_words(made.kind);
  begin("cuda_runtime", title, host_, made.start, made.end);
  if (made.range >= 0) text_.arg("External id", Profile::external_id(made.range));
  text_.arg("cbid", cbid);
  text_.arg("correlation", Profile::correlation(index));
  text_.end();
  if (made.kind == CallKind::stream_wait || made.kind == CallKind::stream_sync)
    return write_sync(index);
  if (options_.flows && made.kind != CallKind::event_record)
    text_.flow('s', Profile::correlation(index), host_, at(made.start));
}

void RankWriter::write_sync(int index) {
  if (!options_.sync_records) return;
  const RuntimeCall& made = call(index);
  const bool waits = made.kind == CallKind::stream_wait;
  const std::string_view kind = waits ? "Stream Wait Event" : "Stream Sync";
  begin("cuda_sync", kind, lane(made.stream), made.start, made.end);
  text_.arg("cuda_sync_kind", kind);
  if (waits) {
    text_.arg("wait_on_stream", call(made.record_call).stream);
    text_.arg("wait_on_cuda_event_record_corr_id", Profile::correlation(made.record_call));
  }
  text_.arg("stream", made.stream);
  text_.arg("correlation", Profile::correlation(index));
  text_.arg("device", device_);
  text_.arg("context", 1);
  text_.end();
}

void RankWriter::write_link(const GpuEvent& event) {
  if (const int range = call(event.call).range; range >= 0)
    text_.arg("External id", Profile::external_id(range));
  if (event.kernel != nullptr) text_.arg("queued", 0);
  text_.arg("device", device_);
  text_.arg("context", 1);
  text_.arg("stream", event.stream);
  text_.arg("correlation", Profile::correlation(event.call));
}

void RankWriter::write_kernel(const GpuEvent& event) {
  const KernelType& kernel = *event.kernel;
  const double blocks = kernel.grid / 132.0;
  const double warps = blocks * kernel.block / 32.0;
  begin("kernel", kernel.name, lane(event.stream), event.start, event.end);
  write_link(event);
  text_.arg("registers per thread", kernel.registers);
  text_.arg("shared memory", kernel.shared_memory);
  text_.raw_arg("blocks per SM", decimal(blocks));
  text_.raw_arg("warps per SM", decimal(warps));
  text_.raw_arg("grid", dimensions(kernel.grid));
  text_.raw_arg("block", dimensions(kernel.block));
  text_.arg("est. achieved occupancy %",
            std::min<std::int64_t>(100, static_cast<std::int64_t>(warps * 100 / 64)));
  if (options_.metadata && event.collective >= 0)
    write_kernel_comms(text_, profile_.comms(event.collective, event.member), options_.kernel_seq);
  text_.end();
}

void RankWriter::write_copy(const GpuEvent& event) {
  const Ns length = event.end - event.start;
  begin(event.kind == GpuKind::memcpy ? "gpu_memcpy" : "gpu_memset", name(event.name),
        lane(event.stream), event.start, event.end);
  write_link(event);
  text_.arg("bytes", event.bytes);
  if (length > 0) {
    text_.raw_arg("memory bandwidth (GB/s)",
                  decimal(static_cast<double>(event.bytes) / static_cast<double>(length)));
  }
  text_.end();
}

// Kineto widens these by a nanosecond on both sides, so that the kernels lie inside.
void RankWriter::write_gpu_annotation(int range, int stream, Interval span) {
  const std::string& title = name(trace_.ranges[static_cast<std::size_t>(range)].name);
  text_.begin("gpu_user_annotation", title, lane(stream), span.start - 1, span.length() + 2);
  text_.arg("External id", Profile::external_id(range));
  text_.end();
}

void RankWriter::write_activity(const GpuEvent& event) {
  if (event.kernel != nullptr) {
    write_kernel(event);
  } else {
    write_copy(event);
  }
  if (options_.flows && options_.launches)
    text_.flow('f', Profile::correlation(event.call), lane(event.stream), at(event.start));
  if (event.collective < 0) return;
  // The annotation is the range that opens inside record_param_comms, so the next one.
  write_gpu_annotation(call(event.call).range + 1, event.stream,
                       profile_.own(event.start, event.end));
}

void RankWriter::write_device_metadata(Ns start) {
  const Lane device{device_, 0};
  text_.metadata("process_name", device, start, "name", "python3");
  text_.metadata("process_labels", device, start, "labels", "GPU " + std::to_string(device_));
  text_.metadata("process_sort_index", device, start, "sort_index", 5'000'000 + device_);
  for (const int stream : profile_.streams()) {
    text_.metadata("thread_name", lane(stream), start, "name",
                   "stream " + std::to_string(stream) + " ");
    text_.metadata("thread_sort_index", lane(stream), start, "sort_index", stream);
  }
}

void RankWriter::write_metadata() {
  const Ns start = profile_.span().start;
  text_.metadata("process_name", {host_.pid, 0}, start, "name", "python3");
  text_.metadata("process_labels", {host_.pid, 0}, start, "labels", "CPU");
  text_.metadata("process_sort_index", {host_.pid, 0}, start, "sort_index", host_.pid);
  const std::string thread = "thread " + std::to_string(host_.tid) + " (python3)";
  text_.metadata("thread_name", host_, start, "name", thread);
  text_.metadata("thread_sort_index", host_, start, "sort_index", host_.tid);
  write_device_metadata(start);
}

void RankWriter::write_span() {
  const auto [start, end] = profile_.span();
  text_.other(R"x("ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",)x"
              R"x( "tid": "PyTorch Profiler", "args": {"Op count": 0})x",
              start, end - start);
  text_.other(
      R"("name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces",)"
      R"( "tid": "Trace PyTorch Profiler")",
      start);
  text_.other(R"("name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "")", end);
}

}  // namespace

void write_kineto(const SimulatedJob& job, int rank, Sink& sink, const RecordOptions& options) {
  const Profile profile(job, rank, options);
  write_kineto_head(profile, sink);
  RankWriter(profile, sink).write();
  sink.append("\n  ],\n  \"traceName\": \"rank-" + std::to_string(rank) + ".json\"\n}\n");
}

}  // namespace commlens::simulate
