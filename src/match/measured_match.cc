// Sources that number their calls equally on all ranks (Inspector: by communicator and operation)
// tell which records are one call. Durations then tell who waited, without any clock in common:
// all ranks leave such an operation together, so the one that took least came last, and another
// waited for what it took longer (docs/measured.md):
//
//   rank 0  |--------------| 14 us      waits 10 us for rank 2
//   rank 1      |----------| 10 us      waits  6 us for rank 2
//   rank 2            |----|  4 us      came last
//
// Only for operations in which everyone needs everyone, and only for calls that all ranks recorded:
// a rank without a record may have been the last. Durations are cut to whole microseconds and ends
// differ by some: where two ranks are as close as that, who was last is not decided.
#include "match/measured_match.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace commlens {
namespace {

// Ends of one operation on one machine, as they were seen to differ (docs/clocks.md).
constexpr Ns kMeasuredEndsAgree = 1000;

// One rank's record of a call.
struct MeasuredEntry {
  std::int64_t number = 0;
  std::int32_t rank = 0;
  std::uint32_t file = 0;
  std::uint32_t call = 0;
};

struct MeasuredKey {
  std::string group;
  std::int64_t size = 0;
  Op op = Op::unknown;
  friend auto operator<=>(const MeasuredKey&, const MeasuredKey&) = default;
};

using MeasuredKeys = std::map<MeasuredKey, std::vector<MeasuredEntry>>;

bool measured_leave_together(Op op) {
  switch (op) {
    case Op::all_reduce:
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::barrier: return true;
    default: return false;
  }
}

MeasuredKeys collect_measured(const MeasuredJob& job) {
  MeasuredKeys sequences;
  for (std::uint32_t file = 0; file < job.files.size(); ++file) {
    const Measured& measured = job.files[file];
    if (!measured.numbered) continue;
    for (std::uint32_t i = 0; i < measured.calls.size(); ++i) {
      const MeasuredCall& call = measured.calls[i];
      const MeasuredGroup& group = measured.groups[call.group];
      // Operations of unknown names may be several, which are numbered each by itself.
      if (call.number < 0 || call.rank < 0 || group.id.empty() || call.op == Op::unknown) continue;
      sequences[{group.id, group.size, call.op}].push_back({call.number, call.rank, file, i});
    }
  }
  for (auto& [key, entries] : sequences) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const MeasuredEntry& a, const MeasuredEntry& b) {
                       return std::tie(a.number, a.rank) < std::tie(b.number, b.rank);
                     });
  }
  return sequences;
}

class MeasuredMatcher {
 public:
  explicit MeasuredMatcher(MeasuredJob& job) : job_(job) {}
  void match();

 private:
  const MeasuredCall& call(const MeasuredEntry& entry) const {
    return job_.files[entry.file].calls[entry.call];
  }
  void sequence(const MeasuredKey& key, std::span<const MeasuredEntry> entries);
  bool sizes_agree(std::span<const MeasuredEntry> entries) const;
  void waits(const MeasuredKey& key, std::span<const MeasuredEntry> entries);
  std::uint32_t row_of(const MeasuredKey& key, const MeasuredEntry& entry);
  void name_ranks();

  MeasuredJob& job_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> rows_;  // of the waits by rank
};

void MeasuredMatcher::match() {
  for (const auto& [key, entries] : collect_measured(job_)) sequence(key, entries);
  MeasuredWaits& waits = job_.waits;
  waits.known = !waits.by_rank.empty();
  name_ranks();
}

// Numbers that a rank has no record of, between its first and its last.
std::int64_t measured_gaps(std::span<const MeasuredEntry> entries) {
  struct Extent {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t count = 0;
  };
  std::map<std::int32_t, Extent> extents;
  for (const MeasuredEntry& entry : entries) {
    const auto [place, is_new] = extents.try_emplace(entry.rank, Extent{entry.number, 0, 0});
    place->second.last = entry.number;
    ++place->second.count;
  }
  std::int64_t gaps = 0;
  for (const auto& [rank, extent] : extents) {
    // Numbers of a hostile input can be anything: a sum that leaves 64 bits says nothing.
    std::int64_t sum = 0;
    const std::int64_t missing = extent.last - extent.first - extent.count + 1;
    if (!__builtin_add_overflow(gaps, missing, &sum)) gaps = sum;
  }
  return gaps;
}

void MeasuredMatcher::sequence(const MeasuredKey& key, std::span<const MeasuredEntry> all) {
  // A second record of one call says nothing new.
  std::vector<MeasuredEntry> entries;
  for (const MeasuredEntry& entry : all) {
    if (entries.empty() || entries.back().number != entry.number ||
        entries.back().rank != entry.rank) {
      entries.push_back(entry);
    } else {
      Measured& file = job_.files[entry.file];
      file.calls[entry.call].repeated = true;
      file.notes.add(Note::repeated_record, "line " + std::to_string(call(entry).where));
    }
  }
  std::set<std::int32_t> ranks;
  for (const MeasuredEntry& entry : entries) ranks.insert(entry.rank);
  const MeasuredCall& first = call(entries.front());
  MeasuredSequence row{.group = key.group,
                       .name = job_.files[entries.front().file].groups[first.group].name,
                       .op = key.op,
                       .size = key.size,
                       .reporting = static_cast<std::int64_t>(ranks.size()),
                       .gaps = measured_gaps(entries),
                       .repeated = static_cast<std::int64_t>(all.size() - entries.size())};
  for (std::size_t from = 0; from < entries.size();) {
    std::size_t to = from;
    while (to < entries.size() && entries[to].number == entries[from].number) ++to;
    const std::span<const MeasuredEntry> of_call(entries.data() + from, to - from);
    from = to;
    if (!sizes_agree(of_call)) {
      ++row.mismatched;
    } else if (static_cast<std::int64_t>(of_call.size()) != key.size) {
      ++(of_call.size() > 1 ? row.partial : row.alone);
    } else {
      ++row.matched;
      if (of_call.size() > 1) waits(key, of_call);
    }
  }
  if (row.gaps > 0)
    job_.files[entries.front().file].notes.add(
        Note::lost_records, key.group + " " + std::string(op_name(key.op)), row.gaps);
  job_.sequences.push_back(std::move(row));
}

bool MeasuredMatcher::sizes_agree(std::span<const MeasuredEntry> entries) const {
  std::int64_t size = -1;
  for (const MeasuredEntry& entry : entries) {
    const std::int64_t message = call(entry).message;
    if (message < 0) continue;
    if (size >= 0 && message != size) return false;
    size = message;
  }
  return true;
}

std::uint32_t MeasuredMatcher::row_of(const MeasuredKey& key, const MeasuredEntry& entry) {
  auto& rows = job_.waits.by_rank;
  const auto next = static_cast<std::uint32_t>(rows.size());
  const auto [place, is_new] = rows_.try_emplace({key.group, entry.rank}, next);
  if (is_new) {
    const Measured& file = job_.files[entry.file];
    rows.push_back(
        {.group = key.group, .rank = entry.rank, .host = file.host, .process = file.process});
  }
  return place->second;
}

void MeasuredMatcher::waits(const MeasuredKey& key, std::span<const MeasuredEntry> entries) {
  MeasuredWaits& waits = job_.waits;
  if (!measured_leave_together(key.op)) {
    ++waits.not_together;
    return;
  }
  const auto time = [this](const MeasuredEntry& entry) { return call(entry).time; };
  const auto untimed = [&](const MeasuredEntry& entry) { return time(entry) < 0; };
  if (std::any_of(entries.begin(), entries.end(), untimed)) {
    ++waits.untimed;
    return;
  }
  const bool by_gpu = std::all_of(
      entries.begin(), entries.end(),
      [this](const MeasuredEntry& entry) { return call(entry).timed_by == TimedBy::kernel_gpu; });
  waits.not_gpu += by_gpu ? 0 : 1;
  Ns least = time(entries.front());
  for (const MeasuredEntry& entry : entries) least = std::min(least, time(entry));

  // What is as close as a tie may have been last: then nobody is named.
  std::vector<std::uint32_t> rows;
  std::uint32_t last = 0;
  std::int64_t close = 0;
  for (const MeasuredEntry& entry : entries) {
    rows.push_back(row_of(key, entry));
    if (time(entry) == least) last = rows.back();
    close += time(entry) - least <= kMeasuredEndsAgree ? 1 : 0;
    ++waits.by_rank[rows.back()].calls;
  }
  const bool decided = by_gpu && close == 1;
  if (decided) ++waits.by_rank[last].last;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Ns wait = time(entries[i]) - least;
    // A sum that leaves 64 bits is that of times that no call took; all others are parts of it.
    Ns total = 0;
    if (wait == 0 || __builtin_add_overflow(waits.total, wait, &total)) continue;
    waits.total = total;
    waits.by_rank[rows[i]].waited += wait;
    if (!decided) {
      waits.undecidable += wait;
      continue;
    }
    waits.by_rank[last].caused += wait;
    waits.blame[{rows[i], last}] += wait;
  }
}

// A rank of a communicator is one of the job where that communicator is the only one of its size,
// none is larger, and every process has one rank in it.
void MeasuredMatcher::name_ranks() {
  MeasuredWaits& waits = job_.waits;
  if (!waits.known) return;
  std::int64_t largest = 0;
  std::set<std::string> of_largest;
  for (const Measured& file : job_.files) {
    for (const MeasuredGroup& group : file.groups) {
      if (!file.numbered || group.id.empty()) continue;
      if (group.size > largest) of_largest.clear();
      largest = std::max(largest, group.size);
      if (group.size == largest) of_largest.insert(group.id);
    }
  }
  if (of_largest.size() != 1) return;
  const std::string& world = *of_largest.begin();
  std::map<std::pair<std::string, std::int64_t>, std::set<std::int64_t>> ranks_of;
  for (const Measured& file : job_.files) {
    for (const MeasuredCall& call : file.calls) {
      if (call.rank >= 0 && file.groups[call.group].id == world)
        ranks_of[{file.host, file.process}].insert(call.rank);
    }
  }
  for (const MeasuredRankWaits& row : waits.by_rank) {
    const auto ranks = ranks_of.find({row.host, row.process});
    if (row.group == world) {
      waits.global.push_back(row.rank);
    } else if (row.process >= 0 && ranks != ranks_of.end() && ranks->second.size() == 1) {
      waits.global.push_back(*ranks->second.begin());
    } else {
      waits.global.clear();
      return;
    }
  }
  waits.ranks_known = true;
  waits.world_size = largest;
}

}  // namespace

void match_measured(MeasuredJob& job) {
  job.sequences.clear();
  job.waits = {};
  MeasuredMatcher(job).match();
}

}  // namespace commlens
