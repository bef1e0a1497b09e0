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
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "match/alignment.h"
#include "match/shift_search.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::size_t kFewestTogether = 3;  // operations that end together
constexpr double kNearlyAllTogether = 0.8;  // of the shorter lane's, where both were recorded
constexpr Ns kFarthestEnds = 300'000;       // ends of one operation on one clock
constexpr Ns kPartOfLaneGap = 5;            // and no more than this part of the time between two
constexpr double kByChance = 1e-5;          // so improbable must an accident be
constexpr Ns kStampResolution = 1'000;      // of time stamps
constexpr Ns kEndsOfOne = 20'000;           // on one host, of one operation
constexpr Ns kClockNoise = 10'000;          // an end before the other's start by less says nothing
constexpr Ns kTimesClosest = 5;             // lanes of one group are about equally close
constexpr std::size_t kWitnesses = 4;       // lanes that are compared with each other, too
constexpr std::size_t kLookedAt = 16;       // ends, before lanes are compared in earnest
constexpr std::size_t kMostCompared = 512;  // operations of a lane that are compared
constexpr std::size_t kMostComparisons = 200'000;  // of two lanes

// One stream of one rank.
struct Lane {
  Member member;
  StreamId stream;
};

struct Like {
  std::size_t lane = 0;
  Ns off = 0;  // so close nearly all of its ends lie to the first lane's
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

// Whether so many ends could lie so close together without being of one operation. `density`: of
// the other's ends, in one nanosecond. Distances are sorted.
bool may_be_accident(const std::vector<Ns>& distances, std::size_t tries, double density) {
  double least = 0;
  for (const std::size_t hits :
       {(distances.size() + 1) / 2, distances.size() * 4 / 5, distances.size()}) {
    if (hits == 0) continue;
    const auto within = static_cast<double>(distances[hits - 1] + kStampResolution);
    least = std::min(least, log_of_accident(hits, tries, 2 * within * density));
  }
  return least > std::log(kByChance);
}

double length_of(Ns from, Ns to) { return static_cast<double>(std::max<Ns>(1, to - from)); }

// A look at a few of b's ends, since most lanes have nothing in common: false where they show it.
bool may_be_alike(const Lane& a, const Lane& b, Ns from, Ns to) {
  const std::vector<CommEvent>& theirs = a.member.events;
  const std::vector<CommEvent>& mine = b.member.events;
  const std::size_t stride = std::max<std::size_t>(1, mine.size() / kLookedAt);
  std::size_t looked = 0;
  std::size_t hits = 0;
  for (std::size_t i = 0; i < mine.size(); i += stride) {
    const Ns end = mine[i].end;
    if (end < from || end > to) continue;
    ++looked;
    // Starts are in order and ends nearly: those around the position are enough.
    const auto at = static_cast<std::size_t>(
        std::partition_point(theirs.begin(), theirs.end(),
                             [end](const CommEvent& event) { return event.end < end; }) -
        theirs.begin());
    for (std::size_t k = at - std::min<std::size_t>(at, 2); k < std::min(theirs.size(), at + 2);
         ++k) {
      if (std::abs(theirs[k].end - end) > kFarthestEnds) continue;
      ++hits;
      break;
    }
  }
  return 2 * hits >= looked;
}

// How close nearly all ends of two lanes lie together; nothing where they do not end together.
std::optional<Ns> likeness(const Lane& a, const Lane& b) {
  const Ns from =
      std::max(a.member.events.front().start, b.member.events.front().start) - kFarthestEnds;
  const Ns to = std::min(a.member.events.back().end, b.member.events.back().end) + kFarthestEnds;
  if (!may_be_alike(a, b, from, to)) return std::nullopt;
  const std::vector<CommEvent> of_a = common_part(a, from, to);
  const std::vector<CommEvent> of_b = common_part(b, from, to);
  const std::size_t shorter = std::min(of_a.size(), of_b.size());
  if (shorter < kFewestTogether) return std::nullopt;
  const EventsByEnd reference(of_a);
  const EventsByEnd own(of_b);
  std::vector<Ns> gaps;
  for (std::size_t i = 1; i < of_a.size(); ++i) gaps.push_back(of_a[i].end - of_a[i - 1].end);
  const Ns tolerance =
      std::min(kFarthestEnds, std::max<Ns>(1'000, median_in_place(gaps) / kPartOfLaneGap));
  const std::vector<TimePair> pairs = match_by_time(reference, own, {}, tolerance);
  const auto hits = static_cast<double>(pairs.size());
  if (pairs.size() < kFewestTogether || hits < kNearlyAllTogether * static_cast<double>(shorter))
    return std::nullopt;
  std::vector<Ns> distances;
  for (const TimePair& pair : pairs) distances.push_back(pair.off);
  std::sort(distances.begin(), distances.end());
  if (may_be_accident(distances, shorter, static_cast<double>(of_a.size()) / length_of(from, to)))
    return std::nullopt;
  std::size_t impossible = 0;
  for (const TimePair& pair : pairs) {
    const CommEvent& x = of_a[pair.reference];
    const CommEvent& y = of_b[pair.own];
    if (x.end + kClockNoise < y.start || y.end + kClockNoise < x.start) ++impossible;
  }
  if (20 * impossible > pairs.size()) return std::nullopt;
  return distances[distances.size() * 4 / 5 == 0 ? 0 : distances.size() * 4 / 5 - 1];
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
    taken_.assign(lanes_.size(), 0);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (taken_[lane] == 0) gather(lane);
    }
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

  // The lanes that end with the first one that has no group yet, and about as closely as the
  // closest: others are a group that does the same work at nearly the same time.
  void gather(std::size_t first) {
    std::vector<Like> likes;
    for (std::size_t lane = first + 1; lane < lanes_.size(); ++lane) {
      if (taken_[lane] == 0) compare(first, lane, likes);
    }
    keep_close(likes);
    keep_one_a_rank(likes);
    if (likes.size() > 1 && !belongs(likes)) likes.clear();
    std::vector<std::size_t> group = {first};
    for (const Like& like : likes) group.push_back(like.lane);
    for (const std::size_t lane : group) taken_[lane] = 1;
    groups_.push_back(std::move(group));
  }

  void compare(std::size_t first, std::size_t lane, std::vector<Like>& likes) {
    const Member& a = lanes_[first].member;
    const Member& b = lanes_[lane].member;
    if (a.row == b.row || !a.clock_known || !b.clock_known) return;
    if (comparisons_ == kMostComparisons) return;
    ++comparisons_;
    if (const std::optional<Ns> off = likeness(lanes_[first], lanes_[lane]))
      likes.push_back({lane, *off});
  }

  static void keep_close(std::vector<Like>& likes) {
    if (likes.empty()) return;
    const Ns closest =
        std::min_element(likes.begin(), likes.end(), [](const Like& a, const Like& b) {
          return a.off < b.off;
        })->off;
    std::erase_if(likes, [closest](const Like& like) {
      return like.off > kTimesClosest * closest + kClockNoise;
    });
  }

  // A rank's streams stand together: of each the closest.
  void keep_one_a_rank(std::vector<Like>& likes) const {
    std::vector<Like> kept;
    for (const Like& like : likes) {
      if (!kept.empty() && lanes_[kept.back().lane].member.row == lanes_[like.lane].member.row) {
        if (like.off < kept.back().off) kept.back() = like;
      } else {
        kept.push_back(like);
      }
    }
    likes = std::move(kept);
  }

  // Whether the first lane is as close to the others as they are to each other.
  bool belongs(const std::vector<Like>& likes) {
    const Ns off = likes[0].off;
    for (std::size_t i = 1; i < std::min(likes.size(), kWitnesses); ++i) {
      const std::optional<Ns> between = likeness(lanes_[likes[0].lane], lanes_[likes[i].lane]);
      if (between && kTimesClosest * *between + kClockNoise < std::min(off, likes[i].off))
        return false;
    }
    return true;
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
    if (!ends_tell(members, slots, ranks_missing())) {
      for (Slot& slot : slots.slots) slot.sure = false;
    }
    writer_.write_group(row, members, slots, all_members(members));
  }

  bool ranks_missing() const {
    std::int64_t ranks = 0;
    for (const RankTimeline& rank : job_.ranks) ranks += rank.run == 0 ? 1 : 0;
    return !job_.missing_ranks.empty() || job_.world_size > ranks;
  }

  // Whether nobody outside can belong: every rank is inside, or those outside share the clock and
  // would have shown.
  bool all_members(const std::vector<Member>& members) const {
    if (ranks_missing()) return false;
    std::size_t ranks = 0;
    for (const RankTimeline& rank : job_.ranks) ranks += rank.run == 0 ? 1 : 0;
    if (members.size() == ranks) return true;
    const std::string_view host = members.front().host;
    return !host.empty() &&
           std::all_of(job_.ranks.begin(), job_.ranks.end(),
                       [host](const RankTimeline& rank) { return rank.host == host; });
  }

  // Whether ends lie clearly closer together than starts. Where ranks are missing, the true
  // partners may be among them: then only as close as ends of one operation are on one host.
  static bool ends_tell(const std::vector<Member>& members, const Slots& slots, bool missing) {
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
    if (starts.empty()) return false;
    const Ns of_ends = median_in_place(ends);
    return 2 * of_ends <= median_in_place(starts) && (!missing || of_ends <= kEndsOfOne);
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
  std::vector<char> taken_;                       // by lane: it has a group
  std::map<std::string, std::size_t> labels_;
  std::size_t comparisons_ = 0;
};

}  // namespace

void match_inferred(const Job& job, const std::vector<Part>& parts, EventReader& reader,
                    Matching& matching, OperationWriter& writer) {
  Inference(job, parts, reader, matching, writer).run();
}

}  // namespace commlens
