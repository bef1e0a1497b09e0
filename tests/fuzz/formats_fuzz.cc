// Every input format on any bytes, whether it would claim them or not: it throws Error or gives a
// recording that holds together, and the same one however little of the text the head held. (Not
// where the input is damaged: how much is saved around the damage may depend on how it was read.)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ingest/format.h"
#include "model/builder.h"

namespace {

using commlens::Format;
using commlens::Note;
using commlens::Recording;

// Says which claim failed: abort() alone leaves that to a debugger.
void require(bool holds, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s: line %u does not hold\n", here.file_name(), here.line());
  std::abort();
}

struct Outcome {
  std::optional<Recording> recording;  // nothing where the format refuses the text
  bool damaged = false;
};

bool is_damaged(const commlens::Notes& notes) {
  return notes.count(Note::malformed_event) + notes.count(Note::malformed_metadata) > 0;
}

Outcome read(const Format& format, std::string_view text, std::size_t head_bytes) {
  auto source = commlens::Source::memory("fuzz", text);
  Outcome outcome;
  try {
    std::string head(head_bytes, '\0');
    std::size_t have = 0;
    while (have < head_bytes) {
      const std::size_t got = source.read({head.data() + have, head_bytes - have});
      if (got == 0) break;
      have += got;
    }
    head.resize(have);
    format.sniff(head);
    commlens::TraceBuilder builder("fuzz", format.name);
    format.read(source, head, {.host_compute = true}, builder);
    outcome.recording = builder.finish();
  } catch (const commlens::Error& error) {
    require(error.kind() == commlens::ErrorKind::input);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  outcome.damaged = source.end() == commlens::SourceEnd::corrupt ||
                    (outcome.recording && is_damaged(outcome.recording->notes));
  return outcome;
}

template <class Id, class Rows>
bool in(Id id, const Rows& rows) {
  return id.index() < rows.size();
}

template <class Id, class Rows>
bool in_or_none(Id id, const Rows& rows) {
  return !id.valid() || in(id, rows);
}

// Columns of one length, ids that name a row, intervals that do not run backwards.
void check(const Recording& recording) {
  const auto& gpu = recording.gpu;
  const std::size_t rows = gpu.size();
  require(gpu.end.size() == rows && gpu.correlation.size() == rows && gpu.name.size() == rows);
  require(gpu.external_id.size() == rows && gpu.stream.size() == rows);
  require(gpu.meta.size() == rows && gpu.kind.size() == rows);
  for (std::size_t i = 0; i < rows; ++i) {
    require(gpu.start[i] <= gpu.end[i]);
    require(in(gpu.stream[i], recording.streams) && in_or_none(gpu.meta[i], recording.metas));
    require(in_or_none(gpu.name[i], recording.strings));
  }
  const auto& launches = recording.launches;
  require(launches.start.size() == launches.size() && launches.thread.size() == launches.size());
  for (const auto thread : launches.thread) require(in(thread, recording.threads));
  for (const auto& range : recording.host_ranges) {
    require(range.start <= range.end);
    require(in(range.thread, recording.threads) && in_or_none(range.meta, recording.metas));
  }
  require(std::ranges::is_sorted(recording.steps, {}, &commlens::StepRange::number));
  for (const auto& group : recording.groups) require(std::ranges::is_sorted(group.ranks));
}

bool same(const Recording& a, const Recording& b) {
  return a.events == b.events && a.rank == b.rank && a.gpu.start == b.gpu.start &&
         a.gpu.end == b.gpu.end && a.launches.start == b.launches.start &&
         a.host_ranges.size() == b.host_ranges.size() && a.steps.size() == b.steps.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Format* format : commlens::formats()) {
    const auto whole = read(*format, text, std::max<std::size_t>(size, std::size_t{64} << 10U));
    const auto parted = read(*format, text, size / 3);
    if (whole.recording) check(*whole.recording);
    if (parted.recording) check(*parted.recording);
    if (whole.damaged || parted.damaged) continue;
    require(whole.recording.has_value() == parted.recording.has_value());
    require(!whole.recording || same(*whole.recording, *parted.recording));
  }
  return 0;
}
