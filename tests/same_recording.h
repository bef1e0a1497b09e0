// Whether two recordings are the same one, in every field and in order.
#pragma once

#include <algorithm>
#include <string>

#include "model/trace.h"

namespace commlens {

// The first field in which they differ, with both values where they are short; empty where they are
// equal.
inline std::string difference(const Recording& a, const Recording& b) {
  std::string found;
  const auto differ = [&found](const std::string& what) {
    if (found.empty()) found = what;
  };
  const auto number = [&](const char* what, auto x, auto y) {
    if (x != y) differ(std::string(what) + ": " + std::to_string(x) + ", " + std::to_string(y));
  };
  const auto word = [&](const char* what, const std::string& x, const std::string& y) {
    if (x != y) differ(std::string(what) + ": '" + x + "', '" + y + "'");
  };
  const auto equal = [&](const char* what, bool same) {
    if (!same) differ(what);
  };
  word("path", a.path, b.path);
  word("format", a.format, b.format);
  number("stored_bytes", a.stored_bytes, b.stored_bytes);
  for (std::size_t i = 0; i < Notes::kCount; ++i) {
    const auto note = static_cast<Note>(i);
    const std::string code(note_info(note).code);
    number(("count of " + code).c_str(), a.notes.count(note), b.notes.count(note));
    word(("example of " + code).c_str(), a.notes.example(note), b.notes.example(note));
  }
  number("events", a.events, b.events);
  number("rank", a.rank.value_or(kUnknown), b.rank.value_or(kUnknown));
  number("world_size", a.world_size, b.world_size);
  word("backend", a.backend, b.backend);
  word("nccl_version", a.nccl_version, b.nccl_version);
  word("host", a.host, b.host);
  number("process", a.process, b.process);
  number("groups", a.groups.size(), b.groups.size());
  for (std::size_t i = 0; found.empty() && i < a.groups.size(); ++i) {
    const ProcessGroup& x = a.groups[i];
    const ProcessGroup& y = b.groups[i];
    word("group name", x.name, y.name);
    word("group description", x.description, y.description);
    number("group size", x.size, y.size);
    equal("group ranks", x.ranks == y.ranks);
  }
  number("clock_base", a.clock_base, b.clock_base);
  equal("clock", a.clock == b.clock);
  equal("extent", a.extent == b.extent);
  equal("span", a.span == b.span);
  number("strings", a.strings.size(), b.strings.size());
  for (std::size_t i = 0; found.empty() && i < a.strings.size(); ++i) {
    const auto id = StringId::from(i);
    word("string", std::string(a.strings.get(id)), std::string(b.strings.get(id)));
  }
  equal("streams", a.streams == b.streams);
  equal("threads", a.threads == b.threads);
  equal("metas", a.metas == b.metas);
  number("activities", a.gpu.size(), b.gpu.size());
  equal("gpu.start", a.gpu.start == b.gpu.start);
  equal("gpu.end", a.gpu.end == b.gpu.end);
  equal("gpu.correlation", a.gpu.correlation == b.gpu.correlation);
  equal("gpu.external_id", a.gpu.external_id == b.gpu.external_id);
  equal("gpu.name", a.gpu.name == b.gpu.name);
  equal("gpu.stream", a.gpu.stream == b.gpu.stream);
  equal("gpu.meta", a.gpu.meta == b.gpu.meta);
  equal("gpu.kind", a.gpu.kind == b.gpu.kind);
  equal("calls", a.calls == b.calls);
  equal("host_calls", a.host_calls == b.host_calls);
  number("launches", a.launches.size(), b.launches.size());
  number("sync calls", a.sync_calls.size(), b.sync_calls.size());
  for (std::size_t i = 0; found.empty() && i < a.sync_calls.size(); ++i) {
    const SyncCall& x = a.sync_calls[i];
    const SyncCall& y = b.sync_calls[i];
    equal("sync call", x.start == y.start && x.end == y.end && x.correlation == y.correlation &&
                           x.thread == y.thread && x.kind == y.kind);
  }
  number("sync records", a.sync_records.size(), b.sync_records.size());
  for (std::size_t i = 0; found.empty() && i < a.sync_records.size(); ++i) {
    const SyncRecord& x = a.sync_records[i];
    const SyncRecord& y = b.sync_records[i];
    number("sync record start", x.start, y.start);
    number("sync record correlation", x.correlation, y.correlation);
    number("sync record of event", x.record_correlation, y.record_correlation);
    equal("sync record stream", x.stream == y.stream);
    equal("sync record source", x.source == y.source);
    equal("sync record kind", x.kind == y.kind);
  }
  equal("launches.correlation", a.launches.correlation == b.launches.correlation);
  equal("launches.start", a.launches.start == b.launches.start);
  equal("launches.thread", a.launches.thread == b.launches.thread);
  number("host_ranges", a.host_ranges.size(), b.host_ranges.size());
  for (std::size_t i = 0; found.empty() && i < a.host_ranges.size(); ++i) {
    const HostRange& x = a.host_ranges[i];
    const HostRange& y = b.host_ranges[i];
    equal("host range", x.start == y.start && x.end == y.end && x.thread == y.thread &&
                            x.name == y.name && x.backend == y.backend && x.meta == y.meta &&
                            x.external_id == y.external_id && x.kind == y.kind);
  }
  number("steps", a.steps.size(), b.steps.size());
  for (std::size_t i = 0; found.empty() && i < a.steps.size(); ++i) {
    const StepRange& x = a.steps[i];
    const StepRange& y = b.steps[i];
    equal("step", x.number == y.number && x.host == y.host && x.gpu_annotation == y.gpu_annotation);
  }
  const auto x = a.host_compute.parts();
  const auto y = b.host_compute.parts();
  equal("host_compute", std::equal(x.begin(), x.end(), y.begin(), y.end()));
  return found;
}

}  // namespace commlens
