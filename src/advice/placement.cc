// A group that spans hosts although it would fit into one, where the job itself shows that the same
// operation is faster inside a host.
#include <algorithm>
#include <map>
#include <optional>

#include "advice/candidate.h"
#include "advice/words.h"
#include "base/saturated.h"

namespace commlens {
namespace {

// The fit of the same operation inside a host, of the group size nearest to this one.
const TransferFit* inside_fit(const TransferFits& fits, const TransferKind& kind) {
  const TransferFit* best = nullptr;
  std::int64_t nearest = 0;
  for (const auto& [other, fit] : fits) {
    if (other.op != kind.op || other.hosts != 1) continue;
    const std::int64_t apart = std::abs(other.ranks - kind.ranks);
    if (best == nullptr || apart < nearest) {
      best = &fit;
      nearest = apart;
    }
  }
  return best;
}

std::int64_t most_ranks_of_a_host(const Job& job) {
  std::map<std::string_view, std::int64_t> ranks;
  std::int64_t most = 0;
  for (const RankTimeline& rank : job.ranks) {
    if (rank.run == 0 && !rank.host.empty()) most = std::max(most, ++ranks[rank.host]);
  }
  return most;
}

// Whether a group would fit into a host beside those groups of its ranks that are inside one as
// they should be:
//
//   4 ranks a host, tp of 4 inside: dp of 4 fits only where tp would cross instead
//
// The product of the sizes of a rank's groups is what has to fit. Groups that hold others count
// twice, which only makes it more.
class Room {
 public:
  explicit Room(const Scene& scene)
      : scene_(scene), hosts_(scene.job()), most_(most_ranks_of_a_host(scene.job())) {}

  bool fits(std::uint32_t row, std::int32_t group) {
    const auto [place, is_new] = known_.try_emplace({row, group}, false);
    if (is_new) place->second = needed(row, group) <= most_;
    return place->second;
  }

 private:
  std::int64_t needed(std::uint32_t row, std::int32_t group) const {
    const std::vector<GroupIdentity>& groups = scene_.job().ranks[row].groups;
    const GroupIdentity& crossing = groups[static_cast<std::size_t>(group)];
    std::int64_t ranks = crossing.size;
    for (const GroupIdentity& other : groups) {
      const bool of_its_kind =
          !other.description.empty() && other.description == crossing.description;
      if (other.size < 2 || of_its_kind || other.ranks == crossing.ranks || ranks > most_) continue;
      const auto crosses = hosts_.crosses(other.ranks);
      if (crosses && !*crosses) ranks *= other.size;
    }
    return ranks;
  }

  const Scene& scene_;
  const RankHosts hosts_;
  const std::int64_t most_;
  std::map<std::pair<std::uint32_t, std::int32_t>, bool> known_;  // by rank's row, group
};

struct Crossing {
  Candidate candidate;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  double across = 0;  // sum of fitted times between hosts
  double inside = 0;  // the same inside a host
  TransferKind kind;
};

// By what all groups of a role share: a layout is changed for all of them.
using Crossings = std::map<std::pair<Op, std::string>, Crossing>;

void add(const Scene& scene, std::uint32_t row, std::size_t i, const CommOp& op,
         const MatchedOp& matched, Room& room, Crossings& crossings) {
  const TransferKind kind = scene.kind_of(matched);
  const GroupIdentity* group = scene.group_of(row, op);
  if (kind.hosts < 2 || matched.pair || group == nullptr || !op.bytes) return;
  if (!room.fits(row, op.group)) return;
  const auto& fits = scene.job().transfer_fits;
  const auto across = fits.find(kind);
  const TransferFit* inside = inside_fit(fits, kind);
  if (across == fits.end() || inside == nullptr) return;
  const auto slow = static_cast<double>(across->second.at(*op.bytes));
  const auto fast = static_cast<double>(inside->at(*op.bytes));
  if (slow <= fast || slow <= 0) return;
  const std::string name =
      group->description.empty() ? std::string(group_role_name(group->role)) : group->description;
  Crossing& crossing = crossings[{op.op, name}];
  if (crossing.count == 0) crossing.candidate.change = unchanged(scene.graph());
  crossing.candidate.change.transfer[row][i] = fast / slow;
  crossing.kind = kind;
  ++crossing.count;
  crossing.bytes = saturated_sum(crossing.bytes, *op.bytes);
  crossing.across += slow;
  crossing.inside += fast;
}

Candidate describe(const std::pair<Op, std::string>& key, Crossing crossing) {
  Finding& finding = crossing.candidate.finding;
  finding.confidence = Confidence::likely;
  finding.title = "Groups " + key.second + " span " + std::to_string(crossing.kind.hosts) +
                  " hosts although their " + count_words(crossing.kind.ranks, "rank") +
                  " would fit into one";
  finding.evidence = count_words(crossing.count, std::string(op_name(key.first))) + " of " +
                     size_words(crossing.bytes / crossing.count) + " take " +
                     number_words(crossing.across / crossing.inside) +
                     " times as long between hosts as this job's own inside one (fitted)";
  finding.advice =
      "Order ranks so that the groups that exchange most are neighbours on one host (tensor and "
      "expert parallel innermost, then context, pipeline and data parallel): the order of a "
      "DeviceMesh's dimensions, Megatron's --use-tp-pp-dp-mapping, the launcher's rank order. "
      "Other "
      "groups then cross hosts instead: ask whatif for those too.";
  return std::move(crossing.candidate);
}

std::vector<Candidate> find_placement(const Scene& scene) {
  Room room(scene);
  Crossings crossings;
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp* matched) {
        if (matched != nullptr) add(scene, row, i, op, *matched, room, crossings);
      });
  std::vector<Candidate> found;
  for (auto& [key, crossing] : crossings) found.push_back(describe(key, std::move(crossing)));
  return found;
}

}  // namespace

extern const Finder kPlacement;
constinit const Finder kPlacement{
    .id = "placement",
    .summary = "Groups that span hosts although they would fit into one",
    .find = find_placement,
};

}  // namespace commlens
