#include "replay/buckets.h"

#include <algorithm>
#include <map>

namespace commlens {

void Buckets::apply(Assumption& assumption) {
  for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank)
    apply(rank, assumption.transfer[rank]);
}

void Buckets::apply(std::uint32_t rank, std::vector<double>& factors) {
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
    if (group.role != GroupRole::data && group.description != "default_pg") continue;
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

void Buckets::close(std::uint32_t rank, Open& bucket, std::vector<double>& factors) {
  if (bucket.messages.size() > 1) {
    const std::vector<CommNode>& comm = graph_.work(rank).comm;
    const std::size_t last = bucket.messages.back();
    const auto own = static_cast<double>(transfers_.length(rank, comm[last]));
    // What else is asked for changes all that a message takes, its beginning as well.
    double sum = 0;
    for (const std::size_t i : bucket.messages) {
      const double factor = factors[i] == Assumption::kRemoved ? 0 : factors[i];
      const auto length = static_cast<double>(transfers_.length(rank, comm[i]));
      sum += factor * (length - (i == last ? 0 : static_cast<double>(bucket.alpha)));
    }
    merged_ += static_cast<std::int64_t>(bucket.messages.size()) - 1;
    const bool moves = factors[last] != Assumption::kRemoved;
    for (const std::size_t i : bucket.messages) factors[i] = Assumption::kRemoved;
    if (moves) factors[last] = own > 0 ? std::max(0.0, sum / own) : 1;
  }
  bucket.bytes = 0;
  bucket.messages.clear();
}

Ns Buckets::alpha_of(Op op, const GroupIdentity& group) {
  const TransferFit* best = nullptr;
  for (const auto& [kind, fit] : graph_.job().transfer_fits) {
    if (kind.op == op && kind.ranks == group.size && fit.sizes > 1 &&
        (best == nullptr || fit.samples > best->samples))
      best = &fit;
  }
  alpha_known_ = alpha_known_ && best != nullptr;
  return best != nullptr ? best->alpha_ns : 0;
}

}  // namespace commlens
