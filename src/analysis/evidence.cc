// How it is known what communicates: how many events came from which evidence.
#include <numeric>

#include "analysis/analysis.h"

namespace commlens {
namespace {

Result run_evidence(const Job& job, const AnalysisOptions&) {
  std::array<std::int64_t, kEvidenceCount> counts{};
  std::int64_t doubtful = 0;
  std::int64_t events = 0;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) {
      for (std::size_t i = 0; i < device.comm.size(); ++i) {
        if (!device.exposures[i].starts_inside) continue;
        ++events;
        ++counts[static_cast<std::size_t>(device.comm[i].evidence)];
        doubtful += device.comm[i].name_may_lie ? 1 : 0;
      }
    }
  }
  Table table{.name = "evidence",
              .section = {},
              .title = {},
              .columns = {{"evidence", Unit::none, ""}, {"count", Unit::count, ""}},
              .rows = {}};
  Result result;
  std::string line;
  for (std::size_t i = 0; i < kEvidenceCount; ++i) {
    const std::string name(evidence_name(static_cast<Evidence>(i)));
    table.rows.push_back({name, counts[i]});
    if (counts[i] == 0) continue;
    std::string words = name;
    for (char& c : words) c = c == '_' ? ' ' : c;
    line += (line.empty() ? "Known by " : ", ") + words + ": " + std::to_string(counts[i]);
  }
  if (!line.empty()) {
    line += events == 1 ? " communication event" : " communication events";
    if (doubtful > 0)
      line += "; the kind of " + std::to_string(doubtful) +
              " stands only in a kernel name that can lie";
    result.lines.push_back(line + ".");
  }
  table.known = !only_measured(job);
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

extern const Analysis kEvidenceCounts;
constinit const Analysis kEvidenceCounts{
    .name = "evidence",
    .summary =
        "How it is known what communicates: by metadata, host operation, nesting, kernel name or "
        "your rules",
    .run = run_evidence,
};

}  // namespace commlens
