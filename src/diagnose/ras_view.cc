#include "diagnose/ras_view.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/decimal.h"
#include "base/utf8.h"

namespace commlens {
namespace {

// Where a communicator is said to be larger, its members are not listed.
constexpr std::int64_t kMostRasMembers = std::int64_t{1} << 18U;

// As many of one job as anybody prints.
constexpr std::size_t kMostOutputs = 64;

// What "0" of "0-1" names in the table.
std::int64_t table_group(const RasBlock& block) {
  return parse_int(std::string_view(block.label).substr(0, block.label.find('-'))).value_or(-1);
}

using LaunchedLeast = std::tuple<const RasSnapshot*, std::int64_t, std::vector<std::int64_t>>;

std::vector<std::int64_t> ranks_of(const RasSet& set) {
  std::vector<std::int64_t> ranks;
  for (const RasRank& row : set.listed) ranks.push_back(row.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<const RasSet*> by_launches(const RasBlock& block) {
  std::vector<const RasSet*> sets;
  for (const RasSet& set : block.sets) sets.push_back(&set);
  std::stable_sort(sets.begin(), sets.end(),
                   [](const RasSet* a, const RasSet* b) { return a->launched < b->launched; });
  return sets;
}

// Those who launched the least hold the others up, unless they are most: then these are ahead.
RasSpread spread_of(const RasOutput& output, const RasBlock& block) {
  RasSpread spread{.output = output, .block = &block, .odd = {}};
  const std::vector<const RasSet*> sets = by_launches(block);
  const RasSet& least = *sets.front();
  const std::int64_t all =
      std::accumulate(sets.begin(), sets.end(), std::int64_t{0},
                      [](std::int64_t sum, const RasSet* set) { return sum + set->count; });
  spread.least = least.launched;
  spread.most = sets.back()->launched;
  const RasSet& usual =
      **std::max_element(sets.begin() + 1, sets.end(),
                         [](const RasSet* a, const RasSet* b) { return a->count < b->count; });
  spread.usual = usual.launched;
  spread.usual_count = usual.count;
  spread.tie = 2 * least.count == all;
  spread.ahead = 2 * least.count > all;
  spread.named = !spread.tie;
  for (const RasSet* set : sets) {
    if ((set == &least) == spread.ahead) continue;
    spread.named &= set->is_named();
    spread.odd_count += set->count;
    spread.odd.insert(spread.odd.end(), set->listed.begin(), set->listed.end());
  }
  spread.rest_count = all - spread.odd_count;
  std::sort(spread.odd.begin(), spread.odd.end(),
            [](const RasRank& a, const RasRank& b) { return a.rank < b.rank; });
  return spread;
}

bool is_spread(const RasBlock& block) {
  return block.kind == RasBlock::Kind::counts && block.sets.size() > 1;
}

}  // namespace

std::vector<RasOutput> ras_outputs(const std::vector<Witness>& witnesses) {
  std::vector<RasOutput> outputs;
  for (const Witness& witness : witnesses) {
    if (witness.ras == nullptr) continue;
    for (const RasSnapshot& snapshot : witness.ras->snapshots)
      outputs.push_back({&witness, &snapshot});
  }
  return outputs;
}

std::string ras_line(const Witness& witness, std::int64_t line, const std::string& text) {
  return printable(witness.path + ", line " + std::to_string(line) + ": " + text);
}

std::string ras_process_words(const RasProcess& process) {
  std::string text;
  if (process.pid >= 0) text = "process " + std::to_string(process.pid);
  if (!process.gpu.empty())
    text += (text.empty() ? "" : ", ") +
            std::string(process.gpu.find_first_of(",-") == std::string::npos ? "GPU " : "GPUs ") +
            process.gpu;
  if (!process.node.empty()) text += (text.empty() ? "" : " ") + ("on node " + process.node);
  return printable(text);
}

std::string ras_rank_words(const RasBlock& block, const std::vector<RasRank>& ranks) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    const bool last = i + 1 == ranks.size();
    text += i == 0 ? "rank " : last ? " and rank " : ", rank ";
    text += std::to_string(ranks[i].rank);
    if (i == 0) text += " of communicator #" + block.label;
    const std::string process = ras_process_words(ranks[i].process);
    if (!process.empty()) text += " (" + process + ")";
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more ranks";
  return printable(text);
}

std::string ras_set_words(const RasBlock& block, const RasSet& set) {
  if (set.is_named()) return ras_rank_words(block, set.listed);
  return std::to_string(set.count) + (set.count == 1 ? " rank" : " ranks") + " of communicator #" +
         block.label;
}

bool is_of_row(const RasBlock& block, const RasRow& row) { return table_group(block) == row.group; }

const RasRow* ras_row(const RasSnapshot& snapshot, const RasBlock& block) {
  const std::int64_t group = table_group(block);
  const auto found = std::find_if(snapshot.rows.begin(), snapshot.rows.end(),
                                  [group](const RasRow& row) { return row.group == group; });
  return found == snapshot.rows.end() ? nullptr : &*found;
}

DiagnosisFinding ras_finding(DiagnosisKind kind, const RasSnapshot& snapshot,
                             const RasBlock& block) {
  DiagnosisFinding finding;
  finding.kind = kind;
  finding.group = block.hash;
  finding.ranks_of_group = true;
  const RasRow* row = ras_row(snapshot, block);
  if (row != nullptr && row->size == snapshot.gpus && row->size <= kMostRasMembers) {
    finding.group_ranks.resize(static_cast<std::size_t>(row->size));
    std::iota(finding.group_ranks.begin(), finding.group_ranks.end(), 0);
  }
  return finding;
}

void add_ras_ranks(DiagnosisFinding& finding, const Witness& witness,
                   const std::vector<RasRank>& ranks, const std::string& what) {
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    const RasRank& rank = ranks[i];
    const std::string process = ras_process_words(rank.process);
    finding.evidence.push_back(
        ras_line(witness, rank.process.line,
                 "rank " + std::to_string(rank.rank) + what +
                     (process.empty() ? ", process not said" : ", " + process)));
  }
  if (ranks.size() > kMost)
    finding.evidence.push_back("... and " + std::to_string(ranks.size() - kMost) + " more ranks");
}

namespace {

// Whether an output that is not known to be older says that all ranks of the communicator have
// launched as many.
bool caught_up_in(const RasOutput& output, const RasSpread& spread) {
  const RasSnapshot& own = *spread.output.snapshot;
  const RasSnapshot& other = *output.snapshot;
  if (&own == &other || other.gpus != own.gpus) return false;
  if (output.witness == spread.output.witness && other.line < own.line) return false;
  const RasRow* row = ras_row(own, *spread.block);
  const RasRow* then = ras_row(other, *spread.block);
  return row != nullptr && then != nullptr && row->size == then->size &&
         row->comms == then->comms && then->errors == "OK";
}

}  // namespace

std::vector<RasSpread> ras_spreads(const std::vector<Witness>& witnesses) {
  const std::vector<RasOutput> outputs = ras_outputs(witnesses);
  std::map<std::pair<std::string, std::string>, std::vector<LaunchedLeast>> seen;
  std::vector<RasSpread> spreads;
  for (const RasOutput& output : outputs) {
    for (const RasBlock& block : output.snapshot->blocks) {
      if (!is_spread(block)) continue;
      const RasSet& least = *by_launches(block).front();
      std::vector<LaunchedLeast>& same = seen[{block.hash, block.op}];
      if (same.size() < kMostOutputs)
        same.emplace_back(output.snapshot, least.launched, ranks_of(least));
      spreads.push_back(spread_of(output, block));
    }
  }
  for (RasSpread& spread : spreads) {
    const std::vector<std::int64_t> ranks = ranks_of(*by_launches(*spread.block).front());
    bool others = false;
    bool newer = false;  // launches only grow
    for (const auto& [snapshot, launched, who] : seen[{spread.block->hash, spread.block->op}]) {
      if (snapshot == spread.output.snapshot) continue;
      others = true;
      newer |= launched > spread.least;
      spread.stood |= launched == spread.least && who == ranks;
    }
    spread.moved = newer || (others && !spread.stood) ||
                   std::any_of(outputs.begin(), outputs.end(), [&](const RasOutput& output) {
                     return caught_up_in(output, spread);
                   });
  }
  return spreads;
}

}  // namespace commlens
