#include "replay/pace.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace commlens {
namespace {

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

Ns compute_of(const Work& work) {
  Ns sum = 0;
  for (std::size_t i = 0; i < work.size(); ++i)
    sum += work.kind[i] == ActivityClass::compute ? work.end[i] - work.start[i] : 0;
  return sum;
}

}  // namespace

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

double load_of_others(const Job& job, std::size_t row) {
  std::vector<Ns> others;
  for (std::size_t other = 0; other < job.ranks.size(); ++other) {
    if (other != row && job.ranks[other].run == 0)
      others.push_back(compute_of(job.ranks[other].work));
  }
  const Ns own = compute_of(job.ranks[row].work);
  if (others.empty() || own <= 0) return 1;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return std::min(1.0, static_cast<double>(*middle) / static_cast<double>(own));
}

}  // namespace commlens
