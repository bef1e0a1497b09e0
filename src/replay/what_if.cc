// From a question in the user's terms to changed lengths, and from replayed instants to an answer.
//
// The interval. A replay errs with what it changes: dependencies that nothing showed, lengths that
// depend on each other. So its half width is a part of the change (kPartOfChange), more where the
// dependencies are inferred, and never less than kPartOfStep of the step. The parts are those that
// hold nine in ten simulated changes (docs/what-if.md).
#include "replay/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"
#include "model/rank_list.h"

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

// What groups of a role are called in descriptions.
struct Role {
  std::string_view name;
  std::array<std::string_view, 2> words;
};
constexpr std::array<Role, 5> kRoles{{{"dp", {"data", "dp"}},
                                      {"tp", {"tensor", "tp"}},
                                      {"pp", {"pipeline", "pp"}},
                                      {"ep", {"expert", "ep"}},
                                      {"cp", {"context", "cp"}}}};

bool group_is(const GroupIdentity& group, std::int64_t rank, std::string_view wanted) {
  const std::string name = lower(wanted);
  const std::string description = lower(group.description);
  if (name == description || wanted == group.name || wanted == group_label(group, rank))
    return true;
  for (const Role& role : kRoles) {
    if (name != role.name) continue;
    for (const std::string_view word : role.words) {
      if (description.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

// Whether the members of a communication's group are on different hosts; nothing where hosts or
// members are not known.
class Hosts {
 public:
  explicit Hosts(const Job& job) {
    for (const RankTimeline& rank : job.ranks) of_[rank.rank] = rank.host;
  }
  template <class Ranks>
  std::optional<bool> crosses(const Ranks& ranks) const {
    std::string first;
    for (const auto rank : ranks) {
      const auto host = of_.find(rank);
      if (host == of_.end() || host->second.empty()) return std::nullopt;
      if (first.empty()) first = host->second;
      if (host->second != first) return true;
    }
    return ranks.size() < 2 ? std::nullopt : std::optional(false);
  }

 private:
  std::map<std::int64_t, std::string> of_;
};

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
                const Hosts& hosts) {
    const GroupIdentity* group =
        op.group < 0 ? nullptr : &rank.groups[static_cast<std::size_t>(op.group)];
    double speed = question_.comm_speed;
    if (question_.perfect_overlap) speed = std::numeric_limits<double>::infinity();
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
    require(ops_, question_.ops, "op", names(job, true));
    require(groups_, question_.groups, "group", names(job, false));
    require(links_, question_.links, "link", "hosts must be known: --hosts");
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
                      const std::string& kind, const std::string& there) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i])
        throw Error(ErrorKind::usage, "--" + kind + ": no communication of this run is of the " +
                                          kind + " \"" + changes[i].what + "\"; " + there);
    }
  }

  const Question& question_;
  std::vector<bool> ops_;
  std::vector<bool> groups_;
  std::vector<bool> links_;
};

// --- A rank's compute against its peers' ---

struct KernelSum {
  Ns total = 0;
  std::int64_t count = 0;
};

std::map<std::string_view, KernelSum> kernels_of(const RankTimeline& rank) {
  std::vector<KernelSum> by_id(rank.recording.strings.size());
  const Work& work = rank.work;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work.kind[i] != ActivityClass::compute || !work.name[i].valid()) continue;
    KernelSum& sum = by_id[work.name[i].index()];
    sum.total += work.end[i] - work.start[i];
    ++sum.count;
  }
  std::map<std::string_view, KernelSum> by_name;
  for (std::size_t id = 0; id < by_id.size(); ++id) {
    if (by_id[id].count > 0) by_name[rank.recording.strings.get(StringId::from(id))] = by_id[id];
  }
  return by_name;
}

// How many times as long its kernels would take at the pace of its peers: for each kernel, the
// median over the other ranks of its mean length. Kernels that no other rank runs stay.
double pace_of_peers(const Job& job, std::size_t row) {
  const auto own = kernels_of(job.ranks[row]);
  std::map<std::string_view, std::vector<double>> means;
  for (std::size_t other = 0; other < job.ranks.size(); ++other) {
    if (other == row || job.ranks[other].run > 0) continue;
    for (const auto& [name, sum] : kernels_of(job.ranks[other])) {
      if (own.contains(name))
        means[name].push_back(static_cast<double>(sum.total) / static_cast<double>(sum.count));
    }
  }
  double now = 0;
  double then = 0;
  for (const auto& [name, sum] : own) {
    now += static_cast<double>(sum.total);
    const auto found = means.find(name);
    if (found == means.end()) {
      then += static_cast<double>(sum.total);
      continue;
    }
    std::vector<double>& values = found->second;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    then += *middle * static_cast<double>(sum.count);
  }
  return now > 0 ? then / now : 1;
}

std::vector<double> compute_factors(const Job& job, const Question& question) {
  if (question.fix_ranks.empty()) return {};
  std::vector<double> factors(job.ranks.size(), 1);
  for (const std::int64_t wanted : question.fix_ranks) {
    const auto found = std::find_if(
        job.ranks.begin(), job.ranks.end(),
        [wanted](const RankTimeline& rank) { return rank.rank == wanted && rank.run == 0; });
    if (found == job.ranks.end())
      throw Error(ErrorKind::usage,
                  "--fix-rank: there is no rank " + std::to_string(wanted) + " in these inputs");
    const auto row = static_cast<std::size_t>(found - job.ranks.begin());
    factors[row] = pace_of_peers(job, row);
  }
  return factors;
}

std::int64_t steps_of(const Job& job) {
  std::size_t most = 1;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices) most = std::max(most, device.steps.size());
  }
  return static_cast<std::int64_t>(most);
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

std::vector<RankPrediction> by_rank(const Graph& graph, const Outcome& outcome) {
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
    rows.push_back(
        {.rank = graph.job().ranks[row].rank, .window = was.length(), .predicted = is.length()});
  }
  return rows;
}

// How long a communication of a rank moves data: from its last arrival on.
Ns transfer_length(const Graph& graph, std::uint32_t rank, const CommNode& comm) {
  const Work& work = graph.work(rank);
  Ns together = work.start[comm.node];
  const Graph::Membership in = graph.membership(rank, comm.node);
  if (in.op < 0) return work.end[comm.node] - together;
  const auto members = graph.members(static_cast<std::size_t>(in.op));
  const Graph::Range needed = graph.needed(static_cast<std::size_t>(in.op), in.part);
  for (std::uint32_t i = needed.first; i < needed.last; ++i) {
    if (members[i] == kNoNode) continue;
    const std::uint32_t other = graph.rank_of_node(members[i]);
    together = std::max(together, graph.work(other).start[graph.local(other, members[i])]);
  }
  return std::max<Ns>(0, work.end[comm.node] - together);
}

// Bytes have to be moved even where nobody waits for them: the longest that any stream transfers.
Ns busiest_stream(const Graph& graph) {
  Ns most = 0;
  for (std::uint32_t rank = 0; rank < graph.job().ranks.size(); ++rank) {
    const Work& work = graph.work(rank);
    std::map<std::size_t, Ns> sums;  // by stream
    for (const CommNode& comm : work.comm) {
      const auto stream = static_cast<std::size_t>(
          std::upper_bound(work.stream_begins.begin(), work.stream_begins.end(), comm.node) -
          work.stream_begins.begin());
      sums[stream] += transfer_length(graph, rank, comm);
    }
    for (const auto& [stream, sum] : sums) most = std::max(most, sum);
  }
  return most;
}

// --- Buckets ---

// Messages of data-parallel groups merged until they hold so many bytes: the last of each bucket
// moves the bytes of all, and saves what each of the others costs to begin; the others are gone.
class Buckets {
 public:
  Buckets(const Graph& graph, std::int64_t bytes) : graph_(graph), bytes_(bytes) {}

  void apply(Assumption& assumption) {
    for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank)
      apply(rank, assumption.transfer[rank]);
    if (messages_ == 0)
      throw Error(ErrorKind::usage,
                  "--bucket: this run has no all-reduce of known size in a data-parallel group");
  }

  // Smaller messages than were recorded would begin earlier, which nothing recorded tells.
  bool would_split() const { return 2 * larger_ > messages_; }
  bool alpha_known() const { return alpha_known_; }

 private:
  struct Open {
    std::int64_t bytes = 0;
    std::int64_t step = kUnknown;
    std::vector<std::size_t> messages;  // rows of Work::comm
    Ns alpha = 0;
  };

  void apply(std::uint32_t rank, std::vector<double>& factors) {
    const RankTimeline& row = graph_.job().ranks[rank];
    std::map<std::int32_t, Open> open;  // by group
    std::vector<std::size_t> by_time(row.work.comm.size());
    for (std::size_t i = 0; i < by_time.size(); ++i) by_time[i] = i;
    std::stable_sort(by_time.begin(), by_time.end(), [&row](std::size_t a, std::size_t b) {
      return row.work.start[row.work.comm[a].node] < row.work.start[row.work.comm[b].node];
    });
    for (const std::size_t i : by_time) {
      const CommNode& comm = row.work.comm[i];
      const CommOp& op = row.devices[comm.device].comm[comm.op];
      if (op.op != Op::all_reduce || op.group < 0 || !op.bytes) continue;
      const GroupIdentity& group = row.groups[static_cast<std::size_t>(op.group)];
      if (!group_is(group, row.rank, "dp") && !group_is(group, row.rank, "default_pg")) continue;
      ++messages_;
      larger_ += *op.bytes > bytes_ ? 1 : 0;
      Open& bucket = open[op.group];
      if (op.step != bucket.step) close(rank, bucket, factors);
      bucket.step = op.step;
      bucket.alpha = alpha_of(op.op, group);
      bucket.bytes += *op.bytes;
      bucket.messages.push_back(i);
      if (bucket.bytes >= bytes_) close(rank, bucket, factors);
    }
    for (auto& [group, bucket] : open) close(rank, bucket, factors);
  }

  void close(std::uint32_t rank, Open& bucket, std::vector<double>& factors) const {
    if (bucket.messages.size() > 1) {
      const std::vector<CommNode>& comm = graph_.work(rank).comm;
      Ns sum = 0;
      for (const std::size_t i : bucket.messages) sum += transfer_length(graph_, rank, comm[i]);
      sum -= static_cast<Ns>(bucket.messages.size() - 1) * bucket.alpha;
      const std::size_t last = bucket.messages.back();
      const Ns own = transfer_length(graph_, rank, comm[last]);
      for (const std::size_t i : bucket.messages) factors[i] = Assumption::kRemoved;
      factors[last] =
          own > 0 ? std::max(0.0, static_cast<double>(sum) / static_cast<double>(own)) : 1;
    }
    bucket.bytes = 0;
    bucket.messages.clear();
  }

  Ns alpha_of(Op op, const GroupIdentity& group) {
    const TransferFit* best = nullptr;
    for (const auto& [kind, fit] : graph_.job().transfer_fits) {
      if (kind.op == op && kind.ranks == group.size && fit.sizes > 1 &&
          (best == nullptr || fit.samples > best->samples))
        best = &fit;
    }
    alpha_known_ = alpha_known_ && best != nullptr;
    return best != nullptr ? best->alpha_ns : 0;
  }

  const Graph& graph_;
  const std::int64_t bytes_;
  std::int64_t messages_ = 0;
  std::int64_t larger_ = 0;
  bool alpha_known_ = true;
};

}  // namespace

Assumption assumption_of(const Graph& graph, const Question& question) {
  const Job& job = graph.job();
  Assumption assumption;
  assumption.compute = compute_factors(job, question);
  if (question.no_host_delay) assumption.host_in_time.assign(job.ranks.size(), true);
  const Hosts hosts(job);
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

Prediction predict(const Graph& graph, const Question& question) {
  const Outcome before = replay(graph, {});
  Assumption assumption = assumption_of(graph, question);
  std::optional<Buckets> buckets;
  if (question.bucket) buckets.emplace(graph, *question.bucket).apply(assumption);
  const Outcome after = replay(graph, assumption);
  Ns window = after.window.length();
  if (question.perfect_overlap) window = std::max(window, busiest_stream(graph));

  Prediction prediction;
  prediction.question = words(question);
  prediction.steps = steps_of(graph.job());
  prediction.step = before.window.length() / prediction.steps;
  prediction.predicted = window / prediction.steps;
  prediction.by_rank = by_rank(graph, after);

  bool recorded = true;
  for (const RankTimeline& rank : graph.job().ranks)
    recorded = recorded && (rank.work.size() == 0 || rank.work.recorded_waits);
  const double change =
      std::abs(static_cast<double>(prediction.step) - static_cast<double>(prediction.predicted));
  const auto half = static_cast<Ns>(change * (recorded ? kPartOfChange : kPartOfChangeInferred) +
                                    static_cast<double>(prediction.step) *
                                        (recorded ? kPartOfStep : kPartOfStepInferred));
  const bool changed = prediction.question != words({});
  prediction.lower = std::max<Ns>(0, prediction.predicted - (changed ? half : 0));
  prediction.upper = prediction.predicted + (changed ? half : 0);
  prediction.confidence = Confidence::likely;
  if (!recorded) {
    prediction.remarks.emplace_back(
        "which stream waited for which was not recorded and is inferred; record with "
        "enable_cuda_sync_events");
  }
  if (buckets && !buckets->alpha_known())
    prediction.remarks.emplace_back(
        "what a message costs to begin cannot be told from messages of one size: taken as nothing");
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
