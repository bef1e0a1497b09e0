#include "match/transfer_fits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "model/semantics.h"

namespace commlens {
namespace {

// How many hosts ranks are on; 0 where that of one is not known.
class HostCount {
 public:
  explicit HostCount(const Job& job) : job_(job) {
    for (const RankTimeline& rank : job.ranks) {
      const auto number = static_cast<std::uint32_t>(numbers_.size());
      host_of_.push_back(numbers_.try_emplace(rank.host, number).first->second);
    }
  }
  std::int64_t of(const MatchedOp& op) {
    found_.clear();
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const std::uint32_t rank = job_.matching.parts[op.first + i].rank;
      if (job_.ranks[rank].host.empty()) return 0;
      if (found_.empty() || found_.back() != host_of_[rank]) found_.push_back(host_of_[rank]);
    }
    std::sort(found_.begin(), found_.end());
    return std::unique(found_.begin(), found_.end()) - found_.begin();
  }

 private:
  const Job& job_;
  std::map<std::string_view, std::uint32_t> numbers_;
  std::vector<std::uint32_t> host_of_;  // by row of job.ranks
  std::vector<std::uint32_t> found_;
};

std::int64_t members_of(const Job& job, const MatchedOp& op) {
  if (op.group < 0) return op.count;
  return static_cast<std::int64_t>(
      job.matching.groups[static_cast<std::size_t>(op.group)].ranks.size());
}

// The time of the last to enter; of a broadcast, whose root needs nobody, that of the receiver that
// took least. Nothing where some waiting is not known.
std::optional<Ns> sample_of(const Job& job, const MatchedOp& op, bool several) {
  if (!op.whole || !op.agreed || several) return std::nullopt;
  std::optional<Ns> last;
  std::optional<Ns> least;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    if (needs_of(op, i, false) == Needs::nobody) continue;
    const Part& part = job.matching.parts[op.first + i];
    const Wait& wait = job.waits.of[part.rank][part.device][part.op];
    if (!wait.known || !wait.estimated) return std::nullopt;
    const Ns busy = comm_of(job, part).time.length();
    if (wait.wait == 0) last = std::min(last.value_or(busy), busy);
    least = std::min(least.value_or(busy - wait.wait), busy - wait.wait);
  }
  return last ? last : least;
}

}  // namespace

TransferKinds find_transfer_kinds(const Job& job, const CommNumbers& numbers) {
  TransferKinds found;
  found.op_of.assign(numbers.size(), TransferKinds::kNone);
  HostCount hosts(job);
  for (std::uint32_t row = 0; row < job.matching.ops.size(); ++row) {
    const MatchedOp& op = job.matching.ops[row];
    std::int64_t bytes = -1;
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = job.matching.parts[op.first + i];
      bytes = std::max(bytes, comm_of(job, part).bytes.value_or(-1));
      std::uint32_t& mine = found.op_of[numbers.of(part)];
      mine = mine == TransferKinds::kNone ? row : TransferKinds::kSeveral;
    }
    found.kinds.push_back({op.op, members_of(job, op), hosts.of(op)});
    found.bytes.push_back(bytes);
  }
  return found;
}

TransferFits find_transfer_fits(const Job& job) {
  TransferFits fits;
  if (!job.waits.known) return fits;
  const CommNumbers numbers(job);
  const TransferKinds kinds = find_transfer_kinds(job, numbers);
  std::map<TransferKind, std::vector<TransferSample>> samples;
  for (std::uint32_t row = 0; row < job.matching.ops.size(); ++row) {
    const MatchedOp& op = job.matching.ops[row];
    if (kinds.bytes[row] < 0) continue;
    bool several = false;
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = job.matching.parts[op.first + i];
      several = several || kinds.op_of[numbers.of(part)] == TransferKinds::kSeveral;
    }
    if (const auto time = sample_of(job, op, several))
      samples[kinds.kinds[row]].push_back({kinds.bytes[row], *time});
  }
  for (auto& [kind, list] : samples) {
    if (const auto fit = fit_transfers(std::move(list))) fits.emplace(kind, *fit);
  }
  return fits;
}

}  // namespace commlens
