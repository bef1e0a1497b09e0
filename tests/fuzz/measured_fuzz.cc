// Every format of measured calls on any bytes, whether it would claim them or not: it throws Error
// or gives calls that hold together, and the same ones however little of the text the head held;
// and matching and summing them comes to an end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ingest/measured_format.h"
#include "match/measured_match.h"
#include "model/measured_stats.h"

namespace {

using commlens::Measured;
using commlens::MeasuredFormat;

// Says which claim failed: abort() alone leaves that to a debugger.
void require(bool holds, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s: line %u does not hold\n", here.file_name(), here.line());
  std::abort();
}

std::optional<Measured> read(const MeasuredFormat& format, std::string_view text,
                             std::size_t head_bytes) {
  Measured measured;
  measured.path = "fuzz_0";
  try {
    // Throws for a compression that this build cannot read.
    auto source = commlens::Source::memory("fuzz", text);
    std::string head(std::min(head_bytes, text.size()), '\0');
    head.resize(source.read({head.data(), head.size()}));
    format.sniff(head);
    format.read(source, head, measured);
  } catch (const commlens::Error& error) {
    require(error.kind() == commlens::ErrorKind::input);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return std::nullopt;
  }
  return measured;
}

void check(const Measured& measured) {
  const auto known = [&measured](commlens::StringId id) {
    return !id.valid() || id.index() < measured.strings.size();
  };
  for (const commlens::MeasuredCall& call : measured.calls) {
    require(call.group < measured.groups.size());
    require(known(call.op_text) && known(call.caller) && known(call.dtype));
    require(known(call.algorithm) && known(call.protocol));
    require(call.time >= -1 && call.bytes >= -1 && call.message >= -1 && call.count >= -1);
  }
  for (const commlens::MeasuredTimer& timer : measured.timers) {
    require(timer.least >= -1 && timer.most >= -1 && timer.one >= -1);
    require(timer.most >= 0 || timer.one >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const MeasuredFormat* format : commlens::measured_formats()) {
    auto whole = read(*format, text, size);
    auto parted = read(*format, text, size / 3);
    require(whole.has_value() == parted.has_value());
    if (!whole) continue;
    check(*whole);
    require(whole->calls.size() == parted->calls.size());
    require(whole->timers.size() == parted->timers.size());
    for (commlens::MeasuredCall& call : parted->calls) call.rank = 1;
    commlens::MeasuredJob job;
    job.files.push_back(std::move(*whole));
    job.files.push_back(std::move(*parted));
    commlens::match_measured(job);
    require(job.waits.undecidable <= job.waits.total);
    commlens::MeasuredStats stats;
    for (const Measured& file : job.files) {
      for (const commlens::MeasuredCall& call : file.calls)
        stats.add(call, file.groups[call.group].size);
    }
    std::vector<commlens::Cell> cells;
    stats.append_cells(cells);
  }
  return 0;
}
