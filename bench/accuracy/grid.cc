#include "grid.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"

namespace commlens::accuracy {
namespace {

using simulate::Fault;
using simulate::FaultKind;
using simulate::JobSpec;
using simulate::LosePlace;
using simulate::Prng;
using simulate::Scenario;
using simulate::SeqKind;

class Dice {
 public:
  explicit Dice(Prng chance) : chance_(chance) {}
  int pick(int low, int high) { return low + static_cast<int>(chance_.below(high - low + 1)); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + chance_.below(high - low + 1);
  }
  bool one_in(int n) { return pick(1, n) == 1; }
  int rank(const JobSpec& spec) { return pick(0, spec.world() - 1); }

 private:
  Prng chance_;
};

// --- Jobs ---

enum class Shape : std::uint8_t {
  data,
  tensor,
  tensor_data,
  pipeline,
  sharded,
  experts,
  tensor_pairs  // only where asked for
};
constexpr int kShapes = 6;

void set_layout(JobSpec& spec, Shape shape, int ranks, Dice& dice) {
  spec.dp = ranks;
  switch (shape) {
    case Shape::data: return;
    case Shape::tensor:
      spec.tp = 8;
      spec.dp = ranks / 8;
      return;
    case Shape::tensor_pairs: spec.tp = 2; break;
    case Shape::tensor_data: spec.tp = dice.one_in(2) ? 2 : 4; break;
    case Shape::pipeline:
      spec.pp = dice.one_in(2) ? 2 : 4;
      spec.microbatches = dice.pick(2, 4);
      break;
    case Shape::sharded: spec.fsdp = true; return;
    case Shape::experts:
      spec.moe = true;
      spec.expert_ranks = 8;
      return;
  }
  spec.dp = ranks / spec.tp / spec.pp;
}

// Small traces: two to four layers a stage, three to six steps.
JobSpec make_spec(Shape shape, Dice& dice) {
  constexpr std::array<int, 10> kRanks{8, 8, 8, 8, 8, 16, 16, 16, 32, 64};
  JobSpec spec;
  set_layout(spec, shape, kRanks[static_cast<std::size_t>(dice.pick(0, 9))], dice);
  spec.ranks_per_host = dice.one_in(3) && shape != Shape::tensor ? 4 : 8;
  spec.layers = spec.pp * dice.pick(spec.pp > 1 ? 1 : 2, spec.pp > 1 ? 2 : 4);
  spec.steps = dice.pick(3, 6);
  spec.layer_forward_ns = dice.between(300'000, 1'000'000);
  spec.layer_bytes = dice.between(10'000'000, 40'000'000);
  spec.activation_bytes = dice.between(2'000'000, 8'000'000);
  // A trained router spreads tokens nearly evenly; a popular expert is a fault of its own.
  spec.moe_imbalance = 0.03;
  spec.seed = static_cast<std::uint64_t>(dice.between(1, std::int64_t{1} << 40U));
  return spec;
}

Ns usual_step(const JobSpec& spec) {
  const Ns layers = spec.layers / spec.pp * 3 * spec.layer_forward_ns;
  return layers * spec.microbatches + spec.optimizer_ns + spec.input_ns;
}

// --- Faults ---

// A step that is neither the first nor the last.
std::int64_t middle_step(const JobSpec& spec, Dice& dice) {
  return spec.first_step + dice.pick(1, spec.steps - 2);
}

Fault slow(const JobSpec& spec, Dice& dice) {
  return {.kind = FaultKind::slow,
          .rank = dice.rank(spec),
          .factor_ppm = dice.between(1'030'000, 1'800'000)};
}

Fault late(const JobSpec& spec, Dice& dice) {
  return {.kind = FaultKind::late,
          .rank = dice.rank(spec),
          .amount_ns = usual_step(spec) * dice.between(2, 30) / 100};
}

// Most often a link that can be known: of a pair of stages or of two tensor-parallel ranks.
Fault slow_link(const JobSpec& spec, Dice& dice) {
  Fault fault{.kind = FaultKind::slow_link,
              .rank = dice.rank(spec),
              .factor_ppm = dice.between(2'000'000, 8'000'000)};
  const int stage = spec.tp * spec.dp;
  const bool any = dice.one_in(4);
  if (spec.pp > 1 && !any) {
    fault.rank %= stage * (spec.pp - 1);
    fault.peer = fault.rank + stage;
  } else if (spec.tp > 1) {
    fault.peer = fault.rank % spec.tp == 0 ? fault.rank + 1 : fault.rank - 1;
  } else {
    fault.peer = fault.rank % stage == stage - 1 ? fault.rank - 1 : fault.rank + 1;
  }
  return fault;
}

Fault unequal(const JobSpec& spec, Dice& dice) {
  return {.kind = FaultKind::unequal,
          .rank = dice.rank(spec),
          .factor_ppm = dice.between(1'200'000, 3'000'000)};
}

Fault lose(const JobSpec& spec, Dice& dice, LosePlace place) {
  return {.kind = FaultKind::lose,
          .rank = dice.rank(spec),
          .count = dice.pick(1, place == LosePlace::random ? 20 : 8),
          .place = place};
}

Fault in_one_step(Fault fault, const JobSpec& spec, Dice& dice) {
  fault.steps = {middle_step(spec, dice)};
  return fault;
}

void set_clocks(Scenario& scenario, Dice& dice) {
  const JobSpec& spec = scenario.spec;
  const int hosts = (spec.world() + spec.ranks_per_host - 1) / spec.ranks_per_host;
  for (int host = 0; host < hosts; ++host) {
    scenario.faults.list.push_back({.kind = FaultKind::clock,
                                    .host = host,
                                    .amount_ns = dice.between(-2'000'000, 2'000'000),
                                    .drift_ppb = dice.between(-20'000, 20'000)});
  }
}

using Add = void (*)(Scenario&, Dice&);
struct KindRow {
  FaultKindRow row;
  Add add;
};

void push(Scenario& scenario, Fault fault) { scenario.faults.list.push_back(std::move(fault)); }

const KindRow kKinds[] = {
    {{"slow", "a rank's kernels take 1.03 to 1.8 times as long"},
     [](Scenario& s, Dice& dice) { push(s, slow(s.spec, dice)); }},
    {{"slow_burst", "the same in one step"},
     [](Scenario& s, Dice& dice) { push(s, in_one_step(slow(s.spec, dice), s.spec, dice)); }},
    {{"late", "a rank's host loses 2 to 30 % of a step"},
     [](Scenario& s, Dice& dice) { push(s, late(s.spec, dice)); }},
    {{"late_burst", "the same in one step"},
     [](Scenario& s, Dice& dice) { push(s, in_one_step(late(s.spec, dice), s.spec, dice)); }},
    {{"slow_link", "a link takes 2 to 8 times as long"},
     [](Scenario& s, Dice& dice) { push(s, slow_link(s.spec, dice)); }},
    {{"unequal", "a rank's experts are 1.2 to 3 times as popular"},
     [](Scenario& s, Dice& dice) { push(s, unequal(s.spec, dice)); }},
    {{"clock", "hosts' clocks differ by up to 4 ms and drift by up to 40 ppm"}, set_clocks},
    {{"lose_start", "the first 1 to 8 communications and all before them are lost"},
     [](Scenario& s, Dice& dice) { push(s, lose(s.spec, dice, LosePlace::start)); }},
    {{"lose_end", "the last 1 to 8 communications and all behind them are lost"},
     [](Scenario& s, Dice& dice) { push(s, lose(s.spec, dice, LosePlace::end)); }},
    {{"lose_random", "1 to 20 GPU events are lost"},
     [](Scenario& s, Dice& dice) { push(s, lose(s.spec, dice, LosePlace::random)); }},
    {{"window_shift", "a rank's window opens up to 0.8 of a step late"},
     [](Scenario& s, Dice& dice) {
       push(s, {.kind = FaultKind::window_shift,
                .rank = dice.rank(s.spec),
                .amount_ns = usual_step(s.spec) * dice.between(1, 80) / 100});
     }},
    {{"missing", "a rank has no trace"},
     [](Scenario& s, Dice& dice) {
       push(s, {.kind = FaultKind::missing, .rank = dice.rank(s.spec)});
     }},
    {{"hosts_unknown", "nothing says who shares a clock"},
     [](Scenario& s, Dice&) { s.record.hosts = false; }},
    {{"seq_none", "operations are not numbered"},
     [](Scenario& s, Dice&) { s.record.seq = SeqKind::none; }},
    {{"seq_wrong", "one counter for all groups"},
     [](Scenario& s, Dice&) { s.record.seq = SeqKind::process; }},
    {{"metadata_none", "nothing says which group, size or dtype"},
     [](Scenario& s, Dice&) { s.record.metadata = false; }},
};
constexpr std::size_t kKindCount = std::size(kKinds);

// Unequal work needs experts, a clock needs a second host; a link is mostly one that can be known.
Shape shape_for(const CaseKey& key, Dice& dice) {
  if (key.has("unequal")) return Shape::experts;
  if (key.has("slow_link") && !dice.one_in(4))
    return dice.one_in(2) ? Shape::pipeline : Shape::tensor_pairs;
  return static_cast<Shape>(dice.pick(0, kShapes - 1));
}

std::uint64_t purpose_of(const CaseKey& key) {
  std::uint64_t purpose = 0;
  for (const std::size_t kind : key.kinds) purpose = purpose * 64 + kind + 1;
  return purpose;
}

}  // namespace

std::span<const FaultKindRow> fault_kinds() {
  static const std::vector<FaultKindRow> rows = [] {
    std::vector<FaultKindRow> all;
    for (const KindRow& kind : kKinds) all.push_back(kind.row);
    return all;
  }();
  return rows;
}

bool CaseKey::has(std::string_view kind) const {
  return std::ranges::any_of(kinds,
                             [kind](std::size_t row) { return kKinds[row].row.name == kind; });
}

std::string name_of(const CaseKey& key) {
  std::string name;
  for (const std::size_t kind : key.kinds)
    name += (name.empty() ? "" : "+") + std::string(kKinds[kind].row.name);
  return name.empty() ? "healthy" : name;
}

std::vector<std::size_t> kinds_of(std::string_view name) {
  std::vector<std::size_t> kinds;
  if (name == "healthy") return kinds;
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t plus = std::min(name.find('+', from), name.size());
    const std::string_view word = name.substr(from, plus - from);
    const auto found =
        std::ranges::find(kKinds, word, [](const KindRow& kind) { return kind.row.name; });
    if (found == std::end(kKinds))
      throw Error(ErrorKind::usage, "accuracy: there is no fault \"" + std::string(word) + "\"");
    kinds.push_back(static_cast<std::size_t>(found - std::begin(kKinds)));
    from = plus + 1;
  }
  std::ranges::sort(kinds);
  return kinds;
}

Scenario make_scenario(const CaseKey& key) {
  Dice dice(Prng(key.seed, purpose_of(key), 0));
  Scenario scenario{.spec = make_spec(shape_for(key, dice), dice)};
  JobSpec& spec = scenario.spec;
  if (key.has("clock")) spec.ranks_per_host = 4;
  // Without metadata only one clock's ranks can be told apart: half of the jobs have one.
  if (key.has("metadata_none") && !key.has("clock") && dice.one_in(2))
    spec.ranks_per_host = spec.world();
  scenario.faults.end_jitter_ns = 3'000;
  for (const std::size_t kind : key.kinds) kKinds[kind].add(scenario, dice);
  return scenario;
}

std::vector<CaseKey> make_grid(std::int64_t seeds) {
  std::vector<CaseKey> grid;
  const auto add = [&grid](const std::vector<std::size_t>& kinds, std::int64_t count) {
    for (std::int64_t seed = 0; seed < count; ++seed)
      grid.push_back({.kinds = kinds, .seed = static_cast<std::uint64_t>(seed)});
  };
  for (std::size_t kind = 0; kind < kKindCount; ++kind) add({kind}, seeds);
  // A tenth of a small number is nothing: then only every so many pairs come up.
  std::int64_t pair = 0;
  for (std::size_t a = 0; a < kKindCount; ++a) {
    for (std::size_t b = a + 1; b < kKindCount; ++b, ++pair)
      add({a, b}, seeds * (pair + 1) / 10 - seeds * pair / 10);
  }
  add({}, seeds * 10);
  return grid;
}

}  // namespace commlens::accuracy
