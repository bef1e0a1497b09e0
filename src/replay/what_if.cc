// From a question in the user's terms to changed lengths, and from replayed instants to an answer.
//
// The interval. A replay errs with what it changes: dependencies that nothing showed, lengths that
// depend on each other. So its half width is a part of the change (kPartOfChange), more where the
// dependencies are inferred, and never less than kPartOfStep of the step. The parts are those that
// hold nine in ten simulated changes (docs/what-if.md).
#include "replay/what_if.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"
#include "model/rank_hosts.h"
#include "model/rank_list.h"
#include "replay/buckets.h"
#include "replay/pace.h"
#include "replay/transfer.h"

namespace commlens {
namespace {

constexpr double kPartOfChange = 0.1;
constexpr double kPartOfChangeInferred = 0.3;
constexpr double kPartOfStep = 0.003;
constexpr double kPartOfStepInferred = 0.01;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

bool group_is(const GroupIdentity& group, std::int64_t rank, std::string_view wanted) {
  const std::string name = lower(wanted);
  if (name == lower(group.description) || wanted == group.name ||
      wanted == group_label(group, rank))
    return true;
  const auto role = group_role_from_name(name);
  return role && *role == group.role;
}

// Every part of the question must say something about this run.
class Asked {
 public:
  explicit Asked(const Question& question)
      : question_(question),
        ops_(question.ops.size()),
        groups_(question.groups.size()),
        links_(question.links.size()) {}

  // `pair`: source and destination of a point-to-point operation that is matched; else null.
  double factor(const RankTimeline& rank, const CommOp& op, const std::vector<std::int64_t>* pair,
                const RankHosts& hosts) {
    const GroupIdentity* group =
        op.group < 0 ? nullptr : &rank.groups[static_cast<std::size_t>(op.group)];
    double speed = question_.comm_speed;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (question_.ops[i].what == op_name(op.op)) apply(question_.ops[i], ops_, i, speed);
    }
    for (std::size_t i = 0; i < groups_.size() && group != nullptr; ++i) {
      if (group_is(*group, rank.rank, question_.groups[i].what))
        apply(question_.groups[i], groups_, i, speed);
    }
    for (std::size_t i = 0; i < links_.size() && group != nullptr; ++i) {
      const auto crosses = pair != nullptr ? hosts.crosses(*pair) : hosts.crosses(group->ranks);
      if (crosses && *crosses == (question_.links[i].what == "ib"))
        apply(question_.links[i], links_, i, speed);
    }
    return std::isinf(speed) ? Assumption::kRemoved : 1 / speed;
  }

  void check(const Job& job) const {
    require(ops_, question_.ops, {"--op", "op"}, names(job, true));
    require(groups_, question_.groups, {"--group", "group"}, names(job, false));
    require(links_, question_.links, {"--links", "link"}, "hosts must be known: --hosts");
  }

 private:
  static void apply(const SpeedChange& change, std::vector<bool>& seen, std::size_t i,
                    double& speed) {
    seen[i] = true;
    speed *= change.speed;
  }

  static std::string names(const Job& job, bool ops) {
    std::map<std::string, int> found;
    for (const RankTimeline& rank : job.ranks) {
      for (const DeviceTimeline& device : rank.devices) {
        for (const CommOp& op : device.comm) {
          if (ops) {
            found[std::string(op_name(op.op))];
          } else if (op.group >= 0) {
            found[rank.groups[static_cast<std::size_t>(op.group)].description];
          }
        }
      }
    }
    std::string list;
    for (const auto& [name, count] : found) list += (list.empty() ? "" : ", ") + name;
    return list.empty() ? "it has none" : "it has " + list;
  }

  static void require(const std::vector<bool>& seen, const std::vector<SpeedChange>& changes,
                      const std::pair<std::string, std::string>& kind, const std::string& there) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i])
        throw Error(ErrorKind::usage, kind.first + ": no communication of this run is of the " +
                                          kind.second + " \"" + changes[i].what + "\"; " + there);
    }
  }

  const Question& question_;
  std::vector<bool> ops_;
  std::vector<bool> groups_;
  std::vector<bool> links_;
};

// The ranks that are to be fixed are no measure for each other.
void fix_ranks(const Graph& graph, const Question& question, Assumption& assumption) {
  if (question.fix_ranks.empty()) return;
  const Job& job = graph.job();
  std::vector<std::uint32_t> rows;
  for (const std::int64_t wanted : question.fix_ranks) {
    const auto found = std::find_if(
        job.ranks.begin(), job.ranks.end(),
        [wanted](const RankTimeline& rank) { return rank.rank == wanted && rank.run == 0; });
    if (found == job.ranks.end())
      throw Error(ErrorKind::usage,
                  "--fix-rank: there is no rank " + std::to_string(wanted) + " in these inputs");
    rows.push_back(static_cast<std::uint32_t>(found - job.ranks.begin()));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const Paces paces(graph);
  for (const std::uint32_t row : rows) paces.at_pace_of_peers(row, rows, assumption);
}

// --- The answer ---

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string words(const Question& question) {
  std::vector<std::string> parts;
  const auto speeds = [&parts](const std::vector<SpeedChange>& changes, const std::string& before) {
    for (const SpeedChange& change : changes) {
      parts.push_back(
          before + change.what +
          (std::isinf(change.speed) ? " removed" : " at " + number(change.speed) + "x the speed"));
    }
  };
  if (question.comm_speed != 1)
    parts.push_back("communication at " + number(question.comm_speed) + "x the speed");
  speeds(question.ops, "");
  speeds(question.groups, "group ");
  speeds(question.links, "links ");
  if (!question.fix_ranks.empty())
    parts.push_back("compute of rank " + format_ranks(question.fix_ranks) +
                    " as fast as its peers'");
  if (question.perfect_overlap) parts.emplace_back("no communication waited for (a bound)");
  if (question.no_host_delay) parts.emplace_back("hosts never late");
  if (question.bucket) parts.push_back("buckets of " + std::to_string(*question.bucket) + " bytes");
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : "; ") + part;
  return all.empty() ? "nothing changed" : all;
}

// `least`: by row, what a rank's window cannot be shorter than; empty: nothing bounds it.
std::vector<RankPrediction> by_rank(const Graph& graph, const Outcome& outcome,
                                    const std::vector<Ns>& least) {
  std::vector<RankPrediction> rows;
  for (std::uint32_t row = 0; row < graph.job().ranks.size(); ++row) {
    const Work& work = graph.work(row);
    if (work.size() == 0) continue;
    constexpr Interval kNone{std::numeric_limits<Ns>::max(), std::numeric_limits<Ns>::min()};
    Interval was = kNone;
    Interval is = kNone;
    const auto cover = [](Interval& window, Ns start, Ns end) {
      window = {std::min(window.start, start), std::max(window.end, end)};
    };
    for (std::uint32_t node = 0; node < work.size(); ++node) {
      const ItemId id = graph.node(row, node);
      cover(was, work.start[node], work.end[node]);
      cover(is, outcome.start[id], outcome.end[id]);
    }
    rows.push_back({.rank = graph.job().ranks[row].rank,
                    .window = was.length(),
                    .predicted = std::max(is.length(), least.empty() ? 0 : least[row])});
  }
  return rows;
}

void remove_all_transfers(Assumption& assumption) {
  for (std::vector<double>& factors : assumption.transfer)
    std::fill(factors.begin(), factors.end(), Assumption::kRemoved);
}

}  // namespace

Assumption assumption_of(const Graph& graph, const Question& question) {
  const Job& job = graph.job();
  Assumption assumption;
  fix_ranks(graph, question, assumption);
  if (question.no_host_delay) assumption.host_in_time.assign(job.ranks.size(), true);
  const RankHosts hosts(job);
  Asked asked(question);
  for (std::uint32_t row = 0; row < job.ranks.size(); ++row) {
    const RankTimeline& rank = job.ranks[row];
    std::vector<double>& factors = assumption.transfer.emplace_back();
    for (const CommNode& comm : rank.work.comm) {
      const Graph::Membership in = graph.membership(row, comm.node);
      const MatchedOp* op =
          in.op < 0 ? nullptr : &job.matching.ops[static_cast<std::size_t>(in.op)];
      const bool pair = op != nullptr && op->pair && op->group >= 0;
      factors.push_back(asked.factor(
          rank, rank.devices[comm.device].comm[comm.op],
          pair ? &job.matching.groups[static_cast<std::size_t>(op->group)].ranks : nullptr, hosts));
    }
  }
  asked.check(job);
  return assumption;
}

namespace {

// One replay of the question; of buckets, one for each place where they could end.
struct Replayed {
  Outcome outcome;
  std::vector<Ns> least;  // by row, what a rank's window cannot be shorter than; empty: nothing
  Ns window = 0;
};

Replayed replay_question(const Constraints& constraints, const Question& question,
                         Assumption assumption, Buckets* buckets) {
  Replayed replayed;
  if (buckets != nullptr) buckets->apply(assumption);
  if (question.perfect_overlap) {
    replayed.least = busiest_streams(constraints.graph(), assumption.transfer);
    remove_all_transfers(assumption);
  }
  replayed.outcome = replay(constraints, assumption);
  replayed.window = replayed.outcome.window.length();
  for (const Ns bound : replayed.least) replayed.window = std::max(replayed.window, bound);
  return replayed;
}

struct Range {
  Ns middle = 0;
  Ns half = 0;
};

// A bucket ends in one of two places, and beginning a message costs what its fit leaves open: the
// truth lies between these answers.
Range bucket_range(const Constraints& constraints, const Question& question,
                   const Assumption& assumption) {
  const auto window = [&](BucketEnd end, BucketAlpha alpha) {
    Buckets buckets(constraints.graph(), *question.bucket, end, alpha);
    return replay_question(constraints, question, assumption, &buckets).window;
  };
  Range range;
  std::vector<Ns> windows;
  for (const BucketEnd end : {BucketEnd::reached, BucketEnd::not_exceeded}) {
    range.middle += window(end, BucketAlpha::fitted) / 2;
    for (const BucketAlpha alpha : {BucketAlpha::least, BucketAlpha::most})
      windows.push_back(window(end, alpha));
  }
  for (const Ns each : windows) range.half = std::max(range.half, std::abs(each - range.middle));
  return range;
}

}  // namespace

Interval interval_around(Ns predicted, double half) {
  constexpr Ns kMost = Ns{1} << 61U;
  const Ns middle = std::clamp<Ns>(predicted, 0, kMost);
  const auto part = static_cast<Ns>(std::clamp(half, 0.0, static_cast<double>(kMost)));
  return {std::max<Ns>(0, middle - part), middle + part};
}

Prediction predict(const Graph& graph, const Question& question) {
  const Constraints constraints(graph);
  const Outcome before = replay(constraints, {});
  const Assumption assumption = assumption_of(graph, question);
  std::optional<Buckets> buckets;
  if (question.bucket) buckets.emplace(graph, *question.bucket);
  const Replayed after =
      replay_question(constraints, question, assumption, buckets ? &*buckets : nullptr);
  if (buckets && buckets->messages() == 0)
    throw Error(ErrorKind::usage,
                "--bucket: this run has no all-reduce of known size in a data-parallel group");

  Prediction prediction;
  prediction.question = words(question);
  prediction.steps = step_count(graph.job());
  prediction.step = before.window.length() / prediction.steps;
  prediction.predicted = after.window / prediction.steps;
  prediction.by_rank = by_rank(graph, after.outcome, after.least);
  Ns open = 0;  // half of what buckets leave open
  if (buckets) {
    const Range range = bucket_range(constraints, question, assumption);
    prediction.predicted = range.middle / prediction.steps;
    open = range.half / prediction.steps;
  }

  bool recorded = true;
  for (const RankTimeline& rank : graph.job().ranks)
    recorded = recorded && (rank.work.size() == 0 || rank.work.recorded_waits);
  const double change =
      std::abs(static_cast<double>(prediction.step) - static_cast<double>(prediction.predicted));
  const double half =
      change * (recorded ? kPartOfChange : kPartOfChangeInferred) +
      static_cast<double>(prediction.step) * (recorded ? kPartOfStep : kPartOfStepInferred);
  const bool changed = prediction.question != words({});
  const Interval around =
      interval_around(prediction.predicted, changed ? half + static_cast<double>(open) : 0);
  prediction.lower = around.start;
  prediction.upper = around.end;
  if (question.perfect_overlap) prediction.lower = prediction.predicted;  // itself a bound
  prediction.confidence = Confidence::likely;
  if (!recorded) {
    prediction.remarks.emplace_back(
        "which stream waited for which was not recorded and is inferred; record with "
        "enable_cuda_sync_events");
  }
  if (buckets && buckets->merged() > 0 && !buckets->alpha_known()) {
    prediction.confidence = Confidence::undecidable;
    prediction.remarks.emplace_back(
        "what a message costs to begin cannot be told from messages of one size, and is taken as "
        "nothing: record a run with buckets of another size as well");
  }
  if (buckets && buckets->would_split()) {
    prediction.confidence = Confidence::undecidable;
    prediction.remarks.emplace_back(
        "messages would be smaller than those recorded: when each part could begin is not known");
  }
  if (question.perfect_overlap)
    prediction.remarks.emplace_back(
        "a bound: no schedule can be better than this by overlap alone");
  if (graph.job().ranks.size() == 1 && graph.job().world_size > 1) {
    prediction.confidence = Confidence::undecidable;
    prediction.remarks.emplace_back(
        "one rank of several: its waiting for others counts as transfer; give all ranks");
  }
  return prediction;
}

}  // namespace commlens
