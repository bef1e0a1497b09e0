#include "replay/combine.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace commlens {
namespace {

double shorter(double a, double b) {
  if (a == Assumption::kRemoved || b == Assumption::kRemoved) return Assumption::kRemoved;
  return std::min(a, b);
}

std::vector<double> shorter(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty()) return b;
  std::vector<double> both = a;
  for (std::size_t i = 0; i < b.size(); ++i) both[i] = shorter(a[i], b[i]);
  return both;
}

std::vector<bool> either(const std::vector<bool>& a, const std::vector<bool>& b) {
  if (a.empty()) return b;
  std::vector<bool> both = a;
  for (std::size_t i = 0; i < b.size(); ++i) both[i] = a[i] || b[i];
  return both;
}

std::vector<ItemId> either(const std::vector<ItemId>& a, const std::vector<ItemId>& b) {
  std::vector<ItemId> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// Of one kernel only one factor stays.
std::vector<std::pair<ItemId, double>> shorter(std::vector<std::pair<ItemId, double>> a,
                                               const std::vector<std::pair<ItemId, double>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());  // of equal nodes, the smallest factor first
  const auto same = [](const auto& x, const auto& y) { return x.first == y.first; };
  a.erase(std::unique(a.begin(), a.end(), same), a.end());
  return a;
}

// How many times as long an activity is under the assumption; 0 where it is gone.
class Factors {
 public:
  Factors(const Graph& graph, const Assumption& assumption)
      : graph_(graph), assumption_(assumption) {}

  double of(const PathSegment& segment) const {
    if (segment.node == kNoNode) return 1;
    if (segment.kind == PathClass::transfer) return std::max(0.0, of_transfer(segment));
    return segment.kind == PathClass::compute ? of_kernel(segment) : 1;
  }

 private:
  double of_transfer(const PathSegment& segment) const {
    if (assumption_.transfer.empty()) return 1;
    const std::vector<CommNode>& comm = graph_.work(segment.rank).comm;
    const auto found =
        std::lower_bound(comm.begin(), comm.end(), segment.node,
                         [](const CommNode& c, std::uint32_t n) { return c.node < n; });
    if (found == comm.end() || found->node != segment.node) return 1;
    return assumption_.transfer[segment.rank][static_cast<std::size_t>(found - comm.begin())];
  }

  double of_kernel(const PathSegment& segment) const {
    double factor = assumption_.compute.empty() ? 1 : assumption_.compute[segment.rank];
    const ItemId node = graph_.node(segment.rank, segment.node);
    const auto own =
        std::lower_bound(assumption_.kernels.begin(), assumption_.kernels.end(), node,
                         [](const auto& kernel, ItemId wanted) { return kernel.first < wanted; });
    if (own != assumption_.kernels.end() && own->first == node) factor *= own->second;
    return factor;
  }

  const Graph& graph_;
  const Assumption& assumption_;
};

bool drops_dependencies(const Assumption& assumption) {
  const auto any = [](const std::vector<bool>& rows) {
    return std::find(rows.begin(), rows.end(), true) != rows.end();
  };
  const auto removes = [](const std::vector<double>& factors) {
    return std::find(factors.begin(), factors.end(), Assumption::kRemoved) != factors.end();
  };
  return any(assumption.host_in_time) || any(assumption.host_runs_ahead) ||
         !assumption.launched_in_time.empty() || !assumption.on_own_stream.empty() ||
         !assumption.spared.empty() ||
         std::any_of(assumption.transfer.begin(), assumption.transfer.end(), removes);
}

}  // namespace

Assumption unchanged(const Graph& graph) {
  Assumption assumption;
  for (std::uint32_t row = 0; row < graph.job().ranks.size(); ++row)
    assumption.transfer.emplace_back(graph.work(row).comm.size(), 1.0);
  return assumption;
}

Assumption combined(const Assumption& a, const Assumption& b) {
  Assumption both;
  both.transfer = a.transfer.empty() ? b.transfer : a.transfer;
  for (std::size_t row = 0; row < both.transfer.size() && !b.transfer.empty(); ++row)
    both.transfer[row] = shorter(both.transfer[row], b.transfer[row]);
  both.compute = shorter(a.compute, b.compute);
  both.host_in_time = either(a.host_in_time, b.host_in_time);
  both.host_runs_ahead = either(a.host_runs_ahead, b.host_runs_ahead);
  both.kernels = shorter(a.kernels, b.kernels);
  both.launched_in_time = either(a.launched_in_time, b.launched_in_time);
  both.on_own_stream = either(a.on_own_stream, b.on_own_stream);
  both.spared = a.spared.empty() ? b.spared : a.spared;  // of two sizes of buckets, the first
  return both;
}

Ns most_gain(const Graph& graph, const Assumption& assumption) {
  const CriticalPath& path = graph.job().path;
  if (drops_dependencies(assumption)) return path.window.length();
  const Factors factors(graph, assumption);
  double gain = 0;
  for (const PathSegment& segment : path.segments) {
    const double factor = factors.of(segment);
    if (factor < 1) gain += (1 - factor) * static_cast<double>(segment.time.length());
  }
  return std::llround(gain);
}

}  // namespace commlens
