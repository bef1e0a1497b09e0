// How long initialisation took, phase by phase (2.22+), in seconds.
//
//   Init timings - ncclCommInitRank: rank 5 nranks 8 total 2.46 (kernels 0.18, alloc 0.05,
//   bootstrap 1.60, ...)
//
// "Bootstrap timings total 0.000778 (...)" names no rank and is a part of these.
#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

// "kernels 0.18, bootstrap 1.60)": false where the bracket does not close.
bool read_phases(std::string_view text, LogInitTimings& timings) {
  const std::size_t close = text.find(')');
  if (close == std::string_view::npos) return false;
  text = text.substr(0, close);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto words = words_of_line(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (words.size() != 2) continue;
    const auto seconds = LogText(words[1], true).real("");
    if (seconds && *seconds >= 0) timings.phases.push_back({std::string(words[0]), *seconds});
  }
  return true;
}

}  // namespace

Understood read_timings(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  if (text.begins("Bootstrap timings total")) return Understood::yes;
  if (!text.begins("Init timings")) return Understood::no;
  LogInitTimings timings;
  const auto rank = text.number("rank ");
  const auto nranks = text.number("nranks ");
  const auto total = text.real("total ");
  const std::size_t open = text.text().find('(');
  if (!rank || !nranks || !total || open == std::string_view::npos) return Understood::cut;
  if (!read_phases(text.text().substr(open + 1), timings)) return Understood::cut;
  timings.process = builder.process_of(record);
  timings.rank = *rank;
  timings.nranks = *nranks;
  timings.total = *total;
  timings.line = record.line;
  builder.add(std::move(timings));
  return Understood::yes;
}

}  // namespace commlens
