// What the job's time consists of: the critical path over all ranks (docs/critical-path.md).
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analysis/analysis.h"
#include "model/comm_at.h"

namespace commlens {
namespace {

constexpr std::size_t kMostContributors = 50;
constexpr std::size_t kShownContributors = 6;

std::string percent_of(Ns part, Ns whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

Ns sum_of(const CriticalPath& path, PathClass kind) {
  return path.sums[static_cast<std::size_t>(kind)];
}

Table unknown_table() {
  return {.name = "critical_path",
          .section = {},
          .title = {},
          .columns = {},
          .rows = {},
          .known = false};
}

Table sums_table(const CriticalPath& path) {
  return {.name = {},
          .section = "critical_path",
          .title = {},
          .columns = {{"window_ns", Unit::nanoseconds, ""},
                      {"compute_ns", Unit::nanoseconds, ""},
                      {"transfer_ns", Unit::nanoseconds, ""},
                      {"host_ns", Unit::nanoseconds, ""},
                      {"memory_ns", Unit::nanoseconds, ""},
                      {"unexplained_ns", Unit::nanoseconds, ""},
                      {"inferred_edges", Unit::count, ""},
                      {"inferred_on_path", Unit::count, ""},
                      {"contradictions", Unit::count, ""},
                      {"rank_changes", Unit::count, ""},
                      {"confidence", Unit::none, ""},
                      {"doubt", Unit::none, ""}},
          .rows = {{path.window.length(), sum_of(path, PathClass::compute),
                    sum_of(path, PathClass::transfer), sum_of(path, PathClass::host),
                    sum_of(path, PathClass::memory), sum_of(path, PathClass::unexplained),
                    path.inferred_edges, path.inferred_on_path, path.contradictions,
                    path.rank_changes, std::string(path.sure ? "likely" : "undecidable"),
                    path.doubt.empty() ? Cell() : Cell(path.doubt)}}};
}

// What is named on the path: an operation of a group, or a kernel.
struct Contributor {
  Ns time = 0;
  std::int64_t count = 0;
  std::map<std::int64_t, Ns> ranks;
  // Where its longest segment that is known so far was launched.
  const CallContext* context = nullptr;
  Ns context_of = 0;
};
using ContributorKey = std::tuple<PathClass, std::string, std::string>;  // name, group

// What a segment is in, before it is named: a path has far more segments than names.
struct Unnamed {
  std::uint32_t rank = 0;
  PathClass kind = PathClass::unexplained;
  StringId name;
  Op op = Op::unknown;
  std::int32_t group = -2;  // -2: no communication
  friend auto operator<=>(const Unnamed&, const Unnamed&) = default;
};

Unnamed unnamed(const Job& job, const PathSegment& segment) {
  const RankTimeline& rank = job.ranks[segment.rank];
  Unnamed key{.rank = segment.rank, .kind = segment.kind, .name = {}};
  if (segment.node == kNoNode) return key;
  const CommOp* op = segment.kind == PathClass::transfer ? comm_at(rank, segment.node) : nullptr;
  if (op == nullptr) {
    key.name = rank.work.name[segment.node];
  } else {
    key.op = op->op;
    key.group = op->group;
  }
  return key;
}

ContributorKey named(const Job& job, const Unnamed& key) {
  const RankTimeline& rank = job.ranks[key.rank];
  if (key.group == -2)
    return {key.kind,
            key.name.valid() ? std::string(rank.recording.strings.get(key.name)) : std::string(),
            std::string()};
  std::string group;
  if (key.group >= 0)
    group = group_label(rank.groups[static_cast<std::size_t>(key.group)], rank.rank);
  return {key.kind, std::string(op_name(key.op)), std::move(group)};
}

std::map<ContributorKey, Contributor> contributors_of(const Job& job) {
  std::map<Unnamed, Contributor> parts;
  for (std::size_t i = 0; i < job.path.segments.size(); ++i) {
    const PathSegment& segment = job.path.segments[i];
    Contributor& part = parts[unnamed(job, segment)];
    part.time += segment.time.length();
    ++part.count;
    const auto context = job.path.contexts.find(i);
    if (context == job.path.contexts.end()) continue;
    part.context = &context->second;
    part.context_of = segment.time.length();
  }
  std::map<ContributorKey, Contributor> sums;
  for (const auto& [key, part] : parts) {
    Contributor& sum = sums[named(job, key)];
    sum.time += part.time;
    sum.count += part.count;
    sum.ranks[job.ranks[key.rank].rank] += part.time;
    if (part.context == nullptr || part.context_of <= sum.context_of) continue;
    sum.context = part.context;
    sum.context_of = part.context_of;
  }
  return sums;
}

Table op_table(const std::map<ContributorKey, Contributor>& sums) {
  Table table{
      .name = "by_op",
      .section = "critical_path",
      .title = {},
      .columns = {{"op", Unit::none, ""}, {"group", Unit::none, ""}, {"ns", Unit::nanoseconds, ""}},
      .rows = {}};
  for (const auto& [key, sum] : sums) {
    if (std::get<0>(key) == PathClass::transfer)
      table.rows.push_back(
          {std::get<1>(key), std::get<2>(key).empty() ? Cell() : Cell(std::get<2>(key)), sum.time});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[2]) > std::get<std::int64_t>(b[2]);
  });
  return table;
}

Table path_rank_table(const Job& job) {
  Table table{.name = "by_rank",
              .section = "critical_path",
              .title = {},
              .columns = {{"rank", Unit::none, ""}, {"ns", Unit::nanoseconds, ""}},
              .rows = {}};
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    if (job.path.by_rank[row] > 0)
      table.rows.push_back({job.ranks[row].rank, job.path.by_rank[row]});
  }
  return table;
}

std::string shortened(const std::string& name, std::size_t longest = 60) {
  if (name.size() <= longest) return name;
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;
  return name.substr(0, cut) + "...";
}

Cell known_text(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

// Its four parts, and the one that says most to people.
void append_context(const CallContext* context, std::vector<Cell>& cells) {
  const CallContext known = context == nullptr ? CallContext{} : *context;
  for (const std::string* part :
       {&known.operation, &known.module, &known.function, &known.annotation})
    cells.push_back(known_text(*part));
  const std::string* most = &known.operation;
  for (const std::string* part : {&known.module, &known.annotation, &known.function}) {
    if (most == &known.operation && !part->empty()) most = part;
  }
  constexpr std::size_t kShownBytes = 32;
  cells.push_back(known_text(most->size() <= kShownBytes ? *most : shortened(*most, kShownBytes)));
}

Table contributor_table(const Job& job, const std::map<ContributorKey, Contributor>& sums) {
  Table table{.name = "contributors",
              .section = "critical_path",
              .title = "Longest on the critical path",
              .columns = {{"kind", Unit::none, "what"},
                          {"name", Unit::none, "name"},
                          {"group", Unit::none, "group"},
                          {"count", Unit::count, "times"},
                          {"ns", Unit::nanoseconds, "time"},
                          {"share", Unit::ratio, "of the path"},
                          {"rank", Unit::none, "most on rank"},
                          {"operation", Unit::none, ""},
                          {"module", Unit::none, ""},
                          {"function", Unit::none, ""},
                          {"annotation", Unit::none, ""},
                          {"launched_in", Unit::none, "launched in"}},
              .rows = {},
              .text_rows = kShownContributors};
  for (const auto& [key, sum] : sums) {
    const auto most =
        std::max_element(sum.ranks.begin(), sum.ranks.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const Ns window = job.path.window.length();
    table.rows.push_back(
        {std::string(path_class_name(std::get<0>(key))),
         std::get<1>(key).empty() ? Cell() : Cell(shortened(std::get<1>(key))),
         std::get<2>(key).empty() ? Cell() : Cell(std::get<2>(key)), sum.count, sum.time,
         window > 0 ? Cell(static_cast<double>(sum.time) / static_cast<double>(window)) : Cell(),
         most->first});
    append_context(sum.context, table.rows.back());
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[4]) > std::get<std::int64_t>(b[4]);
  });
  if (table.rows.size() > kMostContributors) table.rows.resize(kMostContributors);
  return table;
}

std::string sentence(const Job& job) {
  const CriticalPath& path = job.path;
  std::string line = "Critical path: ";
  std::array<PathClass, kPathClasses> kinds{PathClass::compute, PathClass::transfer,
                                            PathClass::host, PathClass::memory,
                                            PathClass::unexplained};
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](PathClass a, PathClass b) { return sum_of(path, a) > sum_of(path, b); });
  bool first = true;
  for (const PathClass kind : kinds) {
    if (sum_of(path, kind) == 0) continue;
    line += (first ? "" : ", ") + percent_of(sum_of(path, kind), path.window.length()) + ' ' +
            std::string(path_class_name(kind));
    first = false;
  }
  if (job.ranks.size() > 1)
    line += "; it changes rank " + std::to_string(path.rank_changes) +
            (path.rank_changes == 1 ? " time" : " times");
  if (path.inferred_on_path > 0)
    line += "; " + std::to_string(path.inferred_on_path) + " of its steps are inferred from timing";
  if (!path.sure) line += "; low confidence: " + path.doubt;
  return line + ".";
}

Result run_critical_path(const Job& job, const AnalysisOptions&) {
  Result result;
  if (!job.path.known || job.path.window.length() == 0) {
    if (!job.path.missing.empty() && !only_measured(job))
      result.lines.push_back("No critical path: " + job.path.missing + ".");
    result.tables.push_back(unknown_table());
    return result;
  }
  const auto sums = contributors_of(job);
  result.lines.push_back(sentence(job));
  result.tables.push_back(sums_table(job.path));
  result.tables.push_back(op_table(sums));
  result.tables.push_back(path_rank_table(job));
  result.tables.push_back(contributor_table(job, sums));
  return result;
}

}  // namespace

extern const Analysis kCriticalPath;
constinit const Analysis kCriticalPath{
    .name = "critical_path",
    .summary = "What the job's time consists of: the longest chain of dependencies over all ranks",
    .run = run_critical_path,
};

}  // namespace commlens
