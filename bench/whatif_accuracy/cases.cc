#include "cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "simulate/prng.h"
#include "simulate/words.h"

namespace commlens::whatif_accuracy {
namespace {

using simulate::Change;
using simulate::ChangeKind;
using simulate::Fault;
using simulate::FaultKind;
using simulate::JobSpec;
using simulate::kMillion;
using simulate::Prng;
using simulate::Scenario;

class Dice {
 public:
  explicit Dice(Prng chance) : chance_(chance) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + chance_.below(high - low + 1);
  }
  int pick(int low, int high) { return static_cast<int>(between(low, high)); }
  bool one_in(int n) { return pick(1, n) == 1; }
  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(between(0, std::ssize(values) - 1))];
  }

 private:
  Prng chance_;
};

// --- Jobs ---

void set_layout(JobSpec& spec, std::string_view layout, Dice& dice) {
  spec.dp = dice.one_in(2) ? 4 : 8;
  if (layout == "tp") {
    spec.tp = dice.one_in(2) ? 2 : 4;
    spec.dp = 8 / spec.tp;
  } else if (layout == "pp") {
    spec.pp = dice.one_in(2) ? 2 : 4;
    spec.dp = 8 / spec.pp;
    spec.microbatches = dice.pick(2, 6);
  } else if (layout == "fsdp") {
    spec.fsdp = true;
  } else if (layout == "moe") {
    spec.moe = true;
    if (spec.dp == 8 && dice.one_in(2)) spec.expert_ranks = 4;
  } else if (layout == "3d") {
    spec.dp = spec.tp = spec.pp = 2;
    spec.microbatches = dice.pick(2, 4);
    spec.fsdp = dice.one_in(3);
  }
}

// From communication that hides to communication that is most of the step.
void set_work(JobSpec& spec, Dice& dice) {
  spec.layers = spec.pp * dice.pick(1, 4);
  spec.steps = dice.pick(3, 5);
  spec.layer_forward_ns = dice.between(200'000, 1'500'000);
  spec.layer_bytes = dice.between(5'000'000, 120'000'000);
  spec.activation_bytes = dice.between(2'000'000, 24'000'000);
  spec.intra.gbs = static_cast<double>(dice.pick(40, 200));
  spec.inter.gbs = static_cast<double>(dice.pick(15, 50));
  spec.bucket_bytes = dice.between(4'000'000, 40'000'000);
  spec.noise = static_cast<double>(dice.pick(0, 5)) / 100;
  spec.moe_imbalance = static_cast<double>(dice.pick(0, 10)) / 100;
}

// Launches bind: what surrounds them takes as long as in interpreted code, the calls themselves a
// little longer than usual.
void make_hosts_slow(JobSpec& spec, Dice& dice) {
  spec.range_ns = dice.between(5'000, 40'000);
  spec.launch_ns = dice.between(4'500, 20'000);
}

bool is_ddp(const JobSpec& spec) { return spec.dp > 1 && !spec.fsdp; }

// Clocks of all hosts but the first; the tool has to relate them.
void set_clocks(Scenario& scenario, Dice& dice) {
  const JobSpec& spec = scenario.spec;
  for (int host = 1; host * spec.ranks_per_host < spec.world(); ++host) {
    scenario.faults.list.push_back({.kind = FaultKind::clock,
                                    .host = host,
                                    .amount_ns = dice.between(-2'000'000, 2'000'000),
                                    .drift_ppb = dice.between(-20'000, 20'000)});
  }
}

Scenario make_job(std::string_view layout, Dice& dice) {
  Scenario scenario;
  JobSpec& spec = scenario.spec;
  set_layout(spec, layout, dice);
  set_work(spec, dice);
  spec.ranks_per_host = dice.one_in(2) ? 8 : 4;
  if (dice.one_in(4)) make_hosts_slow(spec, dice);
  spec.seed = static_cast<std::uint64_t>(dice.between(1, std::int64_t{1} << 40U));
  scenario.faults.end_jitter_ns = dice.between(0, 3'000);
  if (dice.one_in(3)) {
    scenario.faults.list.push_back({.kind = FaultKind::slow,
                                    .rank = dice.pick(0, spec.world() - 1),
                                    .factor_ppm = dice.between(1'050'000, 1'600'000)});
  }
  if (dice.one_in(4)) {
    scenario.faults.list.push_back({.kind = FaultKind::late,
                                    .rank = dice.pick(0, spec.world() - 1),
                                    .amount_ns = dice.between(200'000, 3'000'000)});
  }
  if (dice.one_in(3)) set_clocks(scenario, dice);
  return scenario;
}

// --- Changes ---

// Twice as slow to four times as fast, never nearly the same.
std::int64_t speed(Dice& dice) {
  return dice.one_in(4) ? dice.between(500'000, 800'000) : dice.between(1'300'000, 4'000'000);
}

// The operations that a job has.
std::vector<Op> ops_of(const JobSpec& spec) {
  std::vector<Op> ops;
  if (spec.tp > 1 || is_ddp(spec)) ops.push_back(Op::all_reduce);
  if (spec.fsdp) ops.insert(ops.end(), {Op::all_gather, Op::reduce_scatter});
  if (spec.moe) ops.push_back(Op::all_to_all);
  return ops;
}

std::vector<std::string> groups_of(const JobSpec& spec) {
  std::vector<std::string> groups;
  if (spec.tp > 1) groups.emplace_back("TENSOR_MODEL_PARALLEL_GROUP");
  if (spec.dp > 1) groups.emplace_back("DATA_PARALLEL_GROUP");
  if (spec.moe) groups.emplace_back("EXPERT_MODEL_PARALLEL_GROUP");
  if (spec.pp > 1) groups.emplace_back("PIPELINE_MODEL_PARALLEL_GROUP");
  return groups;
}

std::string times(std::int64_t ppm) {
  return fmt::format("x{:.2f}", static_cast<double>(ppm) / kMillion);
}

using Make = void (*)(Question&, Dice&);
struct Kind {
  std::string_view name;
  Make make;
};

void say(Question& question, Change change, const std::string& words) {
  question.changes.push_back(std::move(change));
  question.words += " " + words;
}

constexpr std::string_view kSeveral = "several of these at once";

const Kind kKinds[] = {
    {"all communication at another speed",
     [](Question& q, Dice& dice) {
       const std::int64_t ppm = speed(dice);
       say(q, {.speed_ppm = ppm}, times(ppm));
     }},
    {"an operation at another speed",
     [](Question& q, Dice& dice) {
       const std::int64_t ppm = speed(dice);
       const Op op = dice.one_of(ops_of(q.scenario.spec));
       say(q, {.op = op, .speed_ppm = ppm}, fmt::format("{} {}", op_name(op), times(ppm)));
     }},
    {"groups at another speed",
     [](Question& q, Dice& dice) {
       const std::int64_t ppm = speed(dice);
       const std::string group = dice.one_of(groups_of(q.scenario.spec));
       say(q, {.group = group, .speed_ppm = ppm}, group + " " + times(ppm));
     }},
    {"an operation removed",
     [](Question& q, Dice& dice) {
       const Op op = dice.one_of(ops_of(q.scenario.spec));
       say(q, {.kind = ChangeKind::remove, .op = op}, std::string(op_name(op)));
     }},
    {"a slow rank like its peers",
     [](Question& q, Dice& dice) {
       const int rank = dice.pick(0, q.scenario.spec.world() - 1);
       std::erase_if(q.scenario.faults.list,
                     [](const Fault& fault) { return fault.kind == FaultKind::slow; });
       q.scenario.faults.list.push_back({.kind = FaultKind::slow,
                                         .rank = rank,
                                         .factor_ppm = dice.between(1'100'000, 1'800'000)});
       say(q, {.kind = ChangeKind::like_peers, .rank = rank}, fmt::format("rank {}", rank));
     }},
    {"launches never bind",
     [](Question& q, Dice& dice) {
       if (dice.one_in(2)) make_hosts_slow(q.scenario.spec, dice);
       say(q, {.kind = ChangeKind::no_host}, "");
     }},
    {"links between hosts at another speed",
     [](Question& q, Dice& dice) {
       q.scenario.spec.ranks_per_host = q.scenario.spec.world() / 2;
       std::erase_if(q.scenario.faults.list,
                     [](const Fault& fault) { return fault.kind == FaultKind::clock; });
       const std::int64_t ppm = speed(dice);
       say(q, {.between_hosts = true, .speed_ppm = ppm}, times(ppm));
     }},
    {"buckets of another size",
     [](Question& q, Dice& dice) {
       JobSpec& spec = q.scenario.spec;
       spec.fsdp = false;
       if (spec.dp == 1) spec.dp = 2;
       const std::int64_t bytes = spec.bucket_bytes * dice.between(2, 6);
       say(q, {.kind = ChangeKind::bucket, .bytes = bytes},
           fmt::format("{:.1f} MB for {:.1f} MB", static_cast<double>(bytes) / 1e6,
                       static_cast<double>(spec.bucket_bytes) / 1e6));
     }},
    {kSeveral, nullptr},  // of the others
};

// Whether the kind of change says anything about such a job.
bool fits_one(std::string_view kind, const JobSpec& spec) {
  if (kind.starts_with("an operation")) return !ops_of(spec).empty();
  if (kind.starts_with("buckets")) return !spec.moe;
  return true;
}

bool fits(std::string_view kind, const JobSpec& spec) {
  return kind == kSeveral || fits_one(kind, spec);
}

// Two or three changes of different kinds. What makes the job another one comes first: buckets
// and hosts.
void make_several(Question& question, Dice& dice) {
  const int wanted = dice.pick(2, 3);
  std::vector<std::size_t> left(std::size(kKinds) - 1);
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<std::size_t> chosen;
  while (std::ssize(chosen) < wanted && !left.empty()) {
    const auto at = left.begin() + dice.between(0, std::ssize(left) - 1);
    if (fits_one(kKinds[*at].name, question.scenario.spec)) chosen.push_back(*at);
    left.erase(at);
  }
  std::sort(chosen.rbegin(), chosen.rend());
  for (const std::size_t kind : chosen) kKinds[kind].make(question, dice);
}

}  // namespace

Scenario make_job(std::size_t layout, std::uint64_t number) {
  Dice dice(Prng(number, 11, layout));
  return make_job(kLayouts[layout], dice);
}

Question make_question(std::uint64_t number) {
  const Kind& kind = kKinds[number % std::size(kKinds)];
  Dice dice(Prng(number, 13, 0));
  for (std::size_t layout = number / std::size(kKinds);; ++layout) {
    Question question{.kind = std::string(kind.name),
                      .words = std::string(kLayouts[layout % kLayoutCount])};
    question.scenario = make_job(kLayouts[layout % kLayoutCount], dice);
    if (!fits(kind.name, question.scenario.spec)) continue;
    if (kind.make != nullptr) {
      kind.make(question, dice);
    } else {
      make_several(question, dice);
    }
    question.scenario.record.sync_records = dice.one_in(2);
    if (!question.scenario.record.sync_records) question.words += ", no sync records";
    return question;
  }
}

}  // namespace commlens::whatif_accuracy
