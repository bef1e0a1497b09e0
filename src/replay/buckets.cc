#include "replay/buckets.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/saturated.h"

namespace commlens {
namespace {

Ns median(std::vector<Ns>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void Buckets::apply(Assumption& assumption) {
  assumption.spared.resize(graph_.job().ranks.size());
  for (std::uint32_t rank = 0; rank < graph_.job().ranks.size(); ++rank) {
    nodes_.clear();
    gone_.clear();
    apply(rank, assumption.transfer[rank]);
    std::sort(nodes_.begin(), nodes_.end());
    std::sort(gone_.begin(), gone_.end());
    spare_calls(rank, assumption.spared[rank]);
  }
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
    nodes_.push_back(comm.node);
    Open& bucket = open[op.group];
    const bool full =
        end_ == BucketEnd::not_exceeded && saturated_sum(bucket.bytes, *op.bytes) > bytes_;
    if (op.step != bucket.step || full) close(rank, bucket, factors);
    bucket.step = op.step;
    bucket.alpha = alpha_of(op.op, group);
    bucket.bytes = saturated_sum(bucket.bytes, *op.bytes);
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
      const double alpha = i == last ? 0 : static_cast<double>(bucket.alpha);
      sum += factor * (length - std::min(length, alpha));
    }
    merged_ += static_cast<std::int64_t>(bucket.messages.size()) - 1;
    const bool moves = factors[last] != Assumption::kRemoved;
    for (const std::size_t i : bucket.messages) {
      factors[i] = Assumption::kRemoved;
      if (i != last) gone_.push_back(comm[i].node);
    }
    if (moves) factors[last] = own > 0 ? std::max(0.0, sum / own) : 1;
  }
  bucket.bytes = 0;
  bucket.messages.clear();
}

// What sending one message takes the thread: by how much the launches around it are further apart
// than kernels' usually are. Times of single calls vary; the median stands for all.
void Buckets::spare_calls(std::uint32_t rank, std::vector<SparedCall>& spared) const {
  const Work& work = graph_.work(rank);
  std::vector<std::uint32_t> launched;
  for (std::uint32_t node = 0; node < work.size(); ++node) {
    if (work.launch[node] != kNoLaunch && work.stretch[node] != kNoNode) launched.push_back(node);
  }
  std::sort(launched.begin(), launched.end(), [&work](std::uint32_t a, std::uint32_t b) {
    return std::pair(work.stretch[a], work.launch[a]) < std::pair(work.stretch[b], work.launch[b]);
  });
  const auto is_message = [this](std::uint32_t node) {
    return std::binary_search(nodes_.begin(), nodes_.end(), node);
  };
  const auto apart = [&](std::size_t first, std::size_t last) {
    return work.launch[launched[last]] - work.launch[launched[first]];
  };
  const auto together = [&](std::size_t first, std::size_t last) {
    return work.stretch[launched[first]] == work.stretch[launched[last]];
  };
  std::vector<Ns> usual;
  std::vector<Ns> around;
  for (std::size_t i = 1; i < launched.size(); ++i) {
    if (!together(i - 1, i) || is_message(launched[i - 1])) continue;
    if (!is_message(launched[i])) {
      usual.push_back(apart(i - 1, i));
    } else if (i + 1 < launched.size() && together(i, i + 1)) {
      around.push_back(apart(i - 1, i + 1));
    }
  }
  if (usual.empty() || around.empty()) return;
  const Ns each = std::max<Ns>(0, median(around) - median(usual));
  for (const std::uint32_t node : launched) {
    if (!std::binary_search(gone_.begin(), gone_.end(), node)) continue;
    const std::uint32_t stretch = work.stretch[node];
    const bool first = spared.empty() || spared.back().stretch != stretch;
    spared.push_back({.stretch = stretch,
                      .at = work.launch[node],
                      .until = each + (first ? 0 : spared.back().until)});
  }
}

// Where nothing tells it, it may be all that the messages took.
Ns Buckets::alpha_of(Op op, const GroupIdentity& group) {
  const TransferFit* best = nullptr;
  for (const auto& [kind, fit] : graph_.job().transfer_fits) {
    if (kind.op == op && kind.ranks == group.size && fit.sizes > 1 &&
        (best == nullptr || fit.samples > best->samples))
      best = &fit;
  }
  alpha_known_ = alpha_known_ && best != nullptr;
  constexpr Ns kAny = std::numeric_limits<Ns>::max();
  const Ns fitted = best != nullptr ? best->alpha_ns : 0;
  const Ns off = best != nullptr ? 2 * best->alpha_error_ns : kAny;
  switch (alpha_) {
    case BucketAlpha::least: return std::max<Ns>(0, fitted - off);
    case BucketAlpha::most: return off == kAny ? kAny : fitted + off;
    case BucketAlpha::fitted: break;
  }
  return fitted;
}

}  // namespace commlens
