// Which communications of different ranks are one operation: worked cases, and jobs made by chance
// of which the truth is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "made_job.h"
#include "match/collectives.h"

namespace commlens {
namespace {

using made::Comm;
using made::Rank;

GroupIdentity group(std::vector<int> ranks, std::string description = "pg",
                    std::string name = "0") {
  return {.name = std::move(name),
          .description = std::move(description),
          .size = static_cast<std::int64_t>(ranks.size()),
          .ranks = std::move(ranks)};
}

// The true operations of an operation's parts.
std::vector<std::int64_t> truths(const Job& job, const Matching& found, const MatchedOp& op) {
  std::vector<std::int64_t> truth;
  for (std::uint32_t i = 0; i < op.count; ++i)
    truth.push_back(
        static_cast<std::int64_t>(made::comm_of(job, found.parts[op.first + i]).source));
  return truth;
}

bool right(const Job& job, const Matching& found, const MatchedOp& op) {
  const std::vector<std::int64_t> truth = truths(job, found, op);
  return std::all_of(truth.begin(), truth.end(),
                     [&](std::int64_t one) { return one == truth.front(); });
}

const Mismatch* row_of(const Matching& found, std::string_view kind) {
  for (const Mismatch& row : found.mismatches) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

// Every communication is in an operation, or counted as unmatched: nothing is dropped in silence.
void expect_all_accounted(const Job& job, const Matching& found) {
  std::set<Part> parts(found.parts.begin(), found.parts.end());
  std::int64_t all = 0;
  for (const RankTimeline& rank : job.ranks) {
    for (const DeviceTimeline& device : rank.devices)
      all += static_cast<std::int64_t>(device.comm.size());
  }
  EXPECT_EQ(static_cast<std::int64_t>(parts.size()) + found.unmatched, all);
  EXPECT_EQ(found.matched + found.partial + found.mismatched,
            static_cast<std::int64_t>(found.ops.size()));
}

TEST(Matching, IdentifiersDecideWhateverElseIsWritten) {
  Rank a{.rank = 0, .host = "", .groups = {group({0, 1})}, .comm = {}};
  Rank b = a;
  b.rank = 1;
  // Two kernels have the identifier 7 on each; the counters are nonsense.
  a.comm = {{.start = 0, .end = 10, .seq = 3, .comms_id = 7, .truth = 0},
            {.start = 20, .end = 30, .seq = 3, .comms_id = 7, .truth = 1},
            {.start = 40, .end = 50, .seq = 9, .comms_id = 8, .truth = 2}};
  b.comm = {{.start = 500, .end = 510, .seq = 100, .comms_id = 7, .truth = 0},
            {.start = 520, .end = 530, .seq = 200, .comms_id = 7, .truth = 1},
            {.start = 540, .end = 550, .seq = 300, .comms_id = 8, .truth = 2}};
  const Job job = made::job({a, b}, 2);
  const Matching found = match_collectives(job);
  ASSERT_EQ(found.ops.size(), 3U);
  EXPECT_TRUE(found.known);
  EXPECT_EQ(found.matched, 3);
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(right(job, found, op));
    EXPECT_EQ(op.by, MatchedBy::comms_id);
    EXPECT_TRUE(op.whole && op.agreed && op.sure);
  }
}

TEST(Matching, CountersDecideWhereWindowsBeginElsewhere) {
  Rank a{.rank = 0, .host = "", .groups = {group({0, 1})}, .comm = {}};
  Rank b = a;
  b.rank = 1;
  for (std::int64_t i = 0; i < 8; ++i)
    a.comm.push_back({.start = i * 100, .end = i * 100 + 50, .seq = i, .truth = i});
  for (std::int64_t i = 3; i < 10; ++i) {
    if (i == 5) continue;  // lost
    b.comm.push_back({.start = i * 100, .end = i * 100 + 50, .seq = i, .truth = i});
  }
  const Job job = made::job({a, b}, 2);
  const Matching found = match_collectives(job);
  EXPECT_EQ(found.matched, 4);    // 3 4 6 7
  EXPECT_EQ(found.unmatched, 6);  // 0 1 2 5 of rank 0, 8 9 of rank 1
  for (const MatchedOp& op : found.ops) {
    EXPECT_TRUE(right(job, found, op));
    EXPECT_EQ(op.by, MatchedBy::sequence);
    EXPECT_EQ(op.seq, truths(job, found, op).front());
  }
  expect_all_accounted(job, found);
  const Mismatch* row = row_of(found, "missing_member");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->ranks, std::vector<std::int64_t>{1});
  EXPECT_EQ(row->count, 4);
  EXPECT_EQ(row->group, "pg[0,1]");
}

// A training loop over one group, as each rank's clock and window show it.
struct Loop {
  int ranks = 4;
  int steps = 6;
  std::vector<std::pair<Op, std::int64_t>> step = {{Op::all_reduce, 4096}};  // op, bytes
  Ns gap = 2'000'000;           // from one operation's end to the next one's
  Ns step_jitter = 300'000;     // of each gap
  Ns end_jitter = 4'000;        // of a rank's end of one operation
  Ns clock_offset = 5'000'000;  // ranks' clocks lie so far apart, at most
  double drift = 0;             // of the ranks' clocks, at most
  bool hosts_known = false;     // all on one host; then clocks agree
  bool step_numbers = false;
  enum class Seq : std::uint8_t { none, right, of_process, off_by_start } seq = Seq::none;
  int lose_start = 0, lose_end = 0, lose_middle = 0;  // at most, of each rank
  int window_shift = 0;  // at most so many operations are not in a rank's window
};

Job make(const Loop& loop, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto upto = [&random](std::int64_t most) {
    return most <= 0 ? 0 : std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  std::vector<int> all;
  for (int r = 0; r < loop.ranks; ++r) all.push_back(r);
  struct True {
    Op op;
    std::int64_t bytes;
    Ns end;
    std::int64_t step;
  };
  std::vector<True> operations;
  Ns now = 1'000'000'000;
  for (int s = 0; s < loop.steps; ++s) {
    for (const auto& [op, bytes] : loop.step) {
      now += loop.gap + upto(loop.step_jitter);
      operations.push_back({op, bytes, now, s});
    }
  }
  std::vector<Rank> ranks;
  for (int r = 0; r < loop.ranks; ++r) {
    Rank rank{
        .rank = r, .host = loop.hosts_known ? "node" : "", .groups = {group(all)}, .comm = {}};
    const Ns offset = loop.hosts_known ? 0 : upto(2 * loop.clock_offset) - loop.clock_offset;
    const double drift =
        loop.hosts_known ? 0 : loop.drift * (static_cast<double>(upto(2000)) / 1000 - 1);
    const auto first = static_cast<std::size_t>(upto(loop.lose_start) + upto(loop.window_shift));
    const auto cut = static_cast<std::size_t>(upto(loop.lose_end) + upto(loop.window_shift));
    std::set<std::size_t> lost;
    for (std::int64_t i = upto(loop.lose_middle); i > 0; --i)
      lost.insert(static_cast<std::size_t>(upto(static_cast<std::int64_t>(operations.size()) - 1)));
    const std::int64_t own_start = upto(50);
    for (std::size_t i = first; i + cut < operations.size(); ++i) {
      if (lost.contains(i)) continue;
      const True& op = operations[i];
      const Ns wait = upto(loop.gap / 3);
      const auto clock = [&](Ns time) {
        return time + offset + static_cast<Ns>(drift * static_cast<double>(time));
      };
      Comm comm{.op = op.op, .bytes = op.bytes};
      comm.end = clock(op.end + upto(loop.end_jitter));
      comm.start = clock(op.end - 20'000 - wait);
      comm.truth = static_cast<std::int64_t>(i);
      if (loop.step_numbers) comm.step = op.step;
      const auto number = static_cast<std::int64_t>(i);
      if (loop.seq == Loop::Seq::right) comm.seq = number;
      if (loop.seq == Loop::Seq::of_process) comm.seq = number * (2 + r);
      if (loop.seq == Loop::Seq::off_by_start) comm.seq = number + own_start;
      rank.comm.push_back(comm);
    }
    ranks.push_back(std::move(rank));
  }
  return made::job(ranks, loop.ranks);
}

struct Score {
  std::int64_t findable = 0;  // parts of operations that at least two ranks recorded
  std::int64_t found = 0;     // of these, in a right operation with another
  std::int64_t sure = 0;      // of these, that are sure
  std::int64_t wrong = 0;     // operations of different truths
  std::int64_t wrong_sure = 0;
};

Score score(const Job& job, const Matching& found) {
  Score score;
  std::map<std::size_t, int> ranks_of;
  for (const RankTimeline& rank : job.ranks) {
    for (const CommOp& op : rank.devices.front().comm) ++ranks_of[op.source];
  }
  for (const auto& [truth, ranks] : ranks_of) score.findable += ranks > 1 ? ranks : 0;
  for (const MatchedOp& op : found.ops) {
    if (right(job, found, op)) {
      score.found += op.count > 1 ? op.count : 0;
      score.sure += op.count > 1 && op.sure ? op.count : 0;
    } else {
      ++score.wrong;
      score.wrong_sure += op.sure ? 1 : 0;
    }
  }
  return score;
}

// Over many seeds: the sums, and that nothing is wrong and sure.
Score over_seeds(const Loop& loop, std::uint32_t seeds = 60) {
  Score sum;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    const Job job = make(loop, seed);
    const Matching found = match_collectives(job);
    expect_all_accounted(job, found);
    const Score one = score(job, found);
    EXPECT_EQ(one.wrong_sure, 0) << "seed " << seed;
    sum.findable += one.findable;
    sum.found += one.found;
    sum.sure += one.sure;
    sum.wrong += one.wrong;
    sum.wrong_sure += one.wrong_sure;
  }
  return sum;
}

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

const std::vector<std::pair<Op, std::int64_t>> kUneven = {{Op::all_reduce, 4096},
                                                          {Op::all_gather, 8192},
                                                          {Op::all_reduce, 4096},
                                                          {Op::reduce_scatter, 512}};

TEST(MatchingOfLoops, KnownHostsDecideEverything) {
  for (const bool uneven : {false, true}) {
    Loop loop{
        .hosts_known = true, .lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.99);
  }
}

TEST(MatchingOfLoops, JitterOfTheStepsDecidesTheShiftBetweenUnknownHosts) {
  for (const bool uneven : {false, true}) {
    Loop loop{.lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = uneven ? 8 : 30;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.98);
  }
}

TEST(MatchingOfLoops, ClocksThatDrift) {
  Loop loop{.steps = 400, .drift = 150e-6, .lose_start = 3, .lose_middle = 20, .window_shift = 10};
  loop.step = kUneven;
  const Score sum = over_seeds(loop, 10);
  EXPECT_EQ(sum.wrong, 0);
  EXPECT_GE(share(sum.sure, sum.findable), 0.98);
}

TEST(MatchingOfLoops, WithoutJitterTheShiftIsUndecidableAndSaidToBe) {
  for (const bool uneven : {false, true}) {
    Loop loop{.step_jitter = 0, .window_shift = 6};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_LE(share(sum.sure, sum.findable), uneven ? 0.9 : 0.05);
  }
}

TEST(MatchingOfLoops, StepNumbersDecideIt) {
  for (const bool uneven : {false, true}) {
    Loop loop{.step_jitter = 0,
              .step_numbers = true,
              .lose_start = 2,
              .lose_end = 2,
              .lose_middle = 2,
              .window_shift = 3};
    loop.steps = 12;
    if (uneven) loop.step = kUneven;
    const Score sum = over_seeds(loop);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_GE(share(sum.sure, sum.findable), 0.97);
  }
}

TEST(MatchingOfLoops, RightCountersDecideIt) {
  Loop loop{.steps = 30,
            .step_jitter = 0,
            .seq = Loop::Seq::right,
            .lose_start = 3,
            .lose_end = 3,
            .lose_middle = 3,
            .window_shift = 4};
  const Score sum = over_seeds(loop);
  EXPECT_EQ(sum.sure, sum.findable);
}

TEST(MatchingOfLoops, WrongCountersAreSeenThrough) {
  for (const auto seq : {Loop::Seq::of_process, Loop::Seq::off_by_start}) {
    Loop loop{.seq = seq, .lose_start = 3, .lose_end = 3, .lose_middle = 3, .window_shift = 4};
    loop.steps = 30;
    const Score sum = over_seeds(loop);
    EXPECT_GE(share(sum.sure, sum.findable), 0.97);
  }
}

TEST(MatchingOfLoops, OrderOfRanksDoesNotMatter) {
  Loop loop{.lose_start = 3, .lose_middle = 5, .window_shift = 4};
  loop.step = kUneven;
  Job job = make(loop, 7);
  const auto described = [](const Job& of, const Matching& found) {
    std::vector<std::string> lines;
    for (const MatchedOp& op : found.ops) {
      std::string line =
          std::to_string(op.group) + (op.sure ? " sure" : "") + (op.whole ? " whole" : "");
      for (std::uint32_t i = 0; i < op.count; ++i) {
        const Part& part = found.parts[op.first + i];
        line += " " + std::to_string(of.ranks[part.rank].rank) + ":" + std::to_string(part.op);
      }
      lines.push_back(line);
    }
    return lines;
  };
  const std::vector<std::string> before = described(job, match_collectives(job));
  std::reverse(job.ranks.begin(), job.ranks.end());
  std::swap(job.ranks[0], job.ranks[2]);
  EXPECT_EQ(described(job, match_collectives(job)), before);
  EXPECT_FALSE(before.empty());
}

}  // namespace
}  // namespace commlens
