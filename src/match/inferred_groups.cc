// Problem: PyTorch before 2.4 wrote no groups on kernels. But a stream that communicates belongs to
// a group, and the ranks of a group leave their operations together.
//
//   rank 0 stream 20   ====|      ==|     =====|          ends agree within microseconds, again and
//   rank 1 stream 20     ==|    ====|        ==|          again: one group
//   rank 2 stream 20  ===|   ==|       ==|                others: not of it
//
// Method: a lane is the sequence of one rank's stream. Each lane is compared with one lane of each
// group found so far, at the times as they were written: nearly all operations of the shorter must
// end with one of the other, more often than chance would have it, and none may end before the
// other has begun. A group's operations are then matched by the nearest ends. When it is wrong: two
// groups that do the same at the same microseconds. Where ends do not agree clearly better than
// starts do, nothing tells these apart, and no operation is sure.
#include "match/inferred_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "match/alignment.h"
#include "match/shift_search.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::size_t kFewest = 3;          // operations that end together
constexpr double kNearlyAll = 0.8;          // of the shorter lane's, where both were recorded
constexpr Ns kFarthestEnds = 300'000;       // ends of one operation on one clock
constexpr Ns kPartOfGap = 5;                // and no more than this part of the time between two
constexpr double kByChance = 1e-5;          // so improbable must an accident be
constexpr Ns kClockNoise = 10'000;          // an end before the other's start by less says nothing
constexpr std::size_t kMostCompared = 512;  // operations of a lane that are compared
constexpr std::size_t kMostComparisons = 200'000;  // of two lanes

// One stream of one rank.
struct Lane {
  Member member;
  StreamId stream;
};

struct Likeness {
  Ns off = 0;  // median distance of ends
  std::size_t count = 0;
};

// The first operations of both that lie in the time that both recorded.
std::vector<CommEvent> common_part(const Lane& lane, Ns from, Ns to) {
  std::vector<CommEvent> part;
  for (const CommEvent& event : lane.member.events) {
    if (event.end >= from && event.end <= to && part.size() < kMostCompared) part.push_back(event);
  }
  return part;
}

// log of the probability of at least `hits` of `tries` where each succeeds by `chance`, from above.
double log_of_accident(std::size_t hits, std::size_t tries, double chance) {
  if (chance >= 1) return 0;
  const auto n = static_cast<double>(tries);
  const double share = static_cast<double>(hits) / n;
  if (share <= chance) return 0;
  const double other = share < 1 ? (1 - share) * std::log((1 - share) / (1 - chance)) : 0;
  return -n * (share * std::log(share / chance) + other);
}

std::optional<Likeness> likeness(const Lane& a, const Lane& b) {
  const Ns from =
      std::max(a.member.events.front().start, b.member.events.front().start) - kFarthestEnds;
  const Ns to = std::min(a.member.events.back().end, b.member.events.back().end) + kFarthestEnds;
  const std::vector<CommEvent> of_a = common_part(a, from, to);
  const std::vector<CommEvent> of_b = common_part(b, from, to);
  const std::size_t shorter = std::min(of_a.size(), of_b.size());
  if (shorter < kFewest) return std::nullopt;
  const EventsByEnd reference(of_a);
  const EventsByEnd own(of_b);
  std::vector<Ns> gaps;
  for (std::size_t i = 1; i < of_a.size(); ++i) gaps.push_back(of_a[i].end - of_a[i - 1].end);
  const Ns tolerance = std::min(kFarthestEnds, std::max<Ns>(1'000, median_of(gaps) / kPartOfGap));
  const std::vector<TimePair> pairs = match_by_time(reference, own, {}, tolerance);
  const auto hits = static_cast<double>(pairs.size());
  if (pairs.size() < kFewest || hits < kNearlyAll * static_cast<double>(shorter))
    return std::nullopt;
  const auto length = static_cast<double>(std::max<Ns>(1, to - from));
  const double chance =
      2 * static_cast<double>(tolerance) * static_cast<double>(of_a.size()) / length;
  if (log_of_accident(pairs.size(), shorter, chance) > std::log(kByChance)) return std::nullopt;
  std::vector<Ns> distances;
  std::size_t impossible = 0;
  for (const TimePair& pair : pairs) {
    distances.push_back(pair.off);
    const CommEvent& x = of_a[pair.reference];
    const CommEvent& y = of_b[pair.own];
    if (x.end + kClockNoise < y.start || y.end + kClockNoise < x.start) ++impossible;
  }
  if (20 * impossible > pairs.size()) return std::nullopt;
  return Likeness{median_of(distances), pairs.size()};
}

class Inference {
 public:
  Inference(const Job& job, const std::vector<Part>& parts, EventReader& reader, Matching& matching,
            OperationWriter& writer)
      : job_(job), matching_(matching), writer_(writer) {
    for (const Part& part : parts) {
      const StreamId stream = job.ranks[part.rank].devices[part.device].comm[part.op].stream;
      Lane& lane = lane_of(part, stream, reader);
      lane.member.events.push_back(reader.event(part.rank, part.device, part.op));
    }
  }

  void run() {
    for (std::size_t i = 0; i < lanes_.size(); ++i) join(i);
    for (const std::vector<std::size_t>& group : groups_) {
      if (group.size() > 1) {
        write(group);
      } else {
        leave(lanes_[group.front()]);
      }
    }
  }

 private:
  Lane& lane_of(const Part& part, StreamId stream, EventReader& reader) {
    for (std::size_t i = lanes_.size(); i > 0 && lanes_[i - 1].member.row == part.rank; --i) {
      if (lanes_[i - 1].stream == stream) return lanes_[i - 1];
    }
    lanes_.push_back({reader.member(part.rank, part.device), stream});
    return lanes_.back();
  }

  // Into the group whose first lane it is most like, or a new one.
  void join(std::size_t lane) {
    std::size_t best = groups_.size();
    Likeness nearest{std::numeric_limits<Ns>::max(), 0};
    for (std::size_t g = 0; g < groups_.size() && comparisons_ < kMostComparisons; ++g) {
      const Lane& first = lanes_[groups_[g].front()];
      if (lanes_[groups_[g].back()].member.row == lanes_[lane].member.row) continue;
      if (!first.member.clock_known || !lanes_[lane].member.clock_known) continue;
      ++comparisons_;
      const std::optional<Likeness> found = likeness(first, lanes_[lane]);
      if (!found || found->off >= nearest.off) continue;
      nearest = *found;
      best = g;
    }
    if (best == groups_.size()) groups_.emplace_back();
    groups_[best].push_back(lane);
  }

  void write(const std::vector<std::size_t>& group) {
    std::vector<Member> members;
    MatchGroup known{.label = {}, .description = {}, .ranks = {}, .inferred = true};
    for (const std::size_t lane : group) {
      members.push_back(std::move(lanes_[lane].member));
      known.ranks.push_back(members.back().rank);
    }
    known.label = "inferred[" + format_ranks(known.ranks) + "]";
    const std::size_t same_label = ++labels_[known.label];
    if (same_label > 1) known.label += " (" + std::to_string(same_label) + ")";
    const auto row = static_cast<std::int32_t>(matching_.groups.size());
    matching_.groups.push_back(std::move(known));
    Slots slots(members);
    place_on_one_clock(members, MatchedBy::inferred, slots);
    if (!ends_tell(members, slots)) {
      for (Slot& slot : slots.slots) slot.sure = false;
    }
    writer_.write_group(row, members, slots, all_members(members));
  }

  // Whether nobody outside can belong: every rank is inside, or those outside share the clock and
  // would have shown.
  bool all_members(const std::vector<Member>& members) const {
    std::size_t ranks = 0;
    for (const RankTimeline& rank : job_.ranks) ranks += rank.run == 0 ? 1 : 0;
    if (!job_.missing_ranks.empty() || job_.world_size > static_cast<std::int64_t>(ranks))
      return false;
    if (members.size() == ranks) return true;
    const std::string_view host = members.front().host;
    return !host.empty() &&
           std::all_of(job_.ranks.begin(), job_.ranks.end(),
                       [host](const RankTimeline& rank) { return rank.host == host; });
  }

  // Whether ends lie clearly closer together than starts.
  static bool ends_tell(const std::vector<Member>& members, const Slots& slots) {
    struct Span {
      Ns least_start = std::numeric_limits<Ns>::max();
      Ns most_start = std::numeric_limits<Ns>::min();
      Ns least_end = std::numeric_limits<Ns>::max();
      Ns most_end = std::numeric_limits<Ns>::min();
    };
    std::vector<Span> spans(slots.slots.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (std::size_t e = 0; e < members[m].events.size(); ++e) {
        if (slots.of[m][e] == kNoSlot) continue;
        Span& span = spans[static_cast<std::size_t>(slots.of[m][e])];
        const CommEvent& event = members[m].events[e];
        span = {std::min(span.least_start, event.start), std::max(span.most_start, event.start),
                std::min(span.least_end, event.end), std::max(span.most_end, event.end)};
      }
    }
    std::vector<Ns> starts;
    std::vector<Ns> ends;
    for (const Span& span : spans) {
      if (span.least_start > span.most_start) continue;
      starts.push_back(span.most_start - span.least_start);
      ends.push_back(span.most_end - span.least_end);
    }
    return !starts.empty() && 2 * median_of(ends) <= median_of(starts);
  }

  void leave(const Lane& lane) {
    writer_.leave({}, lane.member.rank, kUnknown,
                  static_cast<std::int64_t>(lane.member.events.size()),
                  comparisons_ < kMostComparisons
                      ? "no group is recorded, and no other rank's stream ends with this one's"
                      : "no group is recorded, and there are too many streams to compare");
  }

  const Job& job_;
  Matching& matching_;
  OperationWriter& writer_;
  std::vector<Lane> lanes_;                       // by rank
  std::vector<std::vector<std::size_t>> groups_;  // lanes, by rank
  std::map<std::string, std::size_t> labels_;
  std::size_t comparisons_ = 0;
};

}  // namespace

void match_inferred(const Job& job, const std::vector<Part>& parts, EventReader& reader,
                    Matching& matching, OperationWriter& writer) {
  Inference(job, parts, reader, matching, writer).run();
}

}  // namespace commlens
