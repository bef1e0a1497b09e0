// How bench/accuracy scores answers: by answers written by hand, on jobs of its grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "grid.h"
#include "score.h"
#include "scoreboard.h"
#include "simulate/profile.h"

namespace commlens::accuracy {
namespace {

constexpr auto kCertain = static_cast<std::size_t>(Confidence::certain);
constexpr auto kLikely = static_cast<std::size_t>(Confidence::likely);

TEST(AccuracyGrid, HoldsEveryKindAloneAndInPairs) {
  const std::vector<CaseKey> grid = make_grid(10);
  const std::size_t kinds = fault_kinds().size();
  EXPECT_GE(kinds, 10U);
  EXPECT_EQ(grid.size(), kinds * 10 + kinds * (kinds - 1) / 2 + 100);
  std::set<std::string> names;
  for (const CaseKey& key : grid) {
    names.insert(name_of(key));
    EXPECT_EQ(kinds_of(name_of(key)), key.kinds);
  }
  EXPECT_EQ(names.size(), kinds + kinds * (kinds - 1) / 2 + 1);
  EXPECT_EQ(make_grid(3).size(), kinds * 3 + kinds * (kinds - 1) / 2 * 3 / 10 + 30);
  EXPECT_EQ(kinds_of("clock+slow"), kinds_of("slow+clock"));
  EXPECT_THROW(kinds_of("slow+sleepy"), Error);
}

TEST(AccuracyGrid, MakesJobsThatCanBe) {
  std::set<int> worlds;
  for (const CaseKey& key : make_grid(20)) {
    SCOPED_TRACE(name_of(key));
    const simulate::Scenario scenario = make_scenario(key);
    EXPECT_NO_THROW(scenario.spec.validate());
    EXPECT_NO_THROW(validate(scenario.spec, scenario.faults));
    worlds.insert(scenario.spec.world());
    EXPECT_EQ(scenario.faults.end_jitter_ns, 3'000);
  }
  EXPECT_EQ(worlds, (std::set<int>{8, 16, 32, 64}));
}

// The first job of a kind whose fault must be found where clocks are known.
CaseKey plain_case(std::string_view kind) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const CaseKey key{.kinds = kinds_of(kind), .seed = seed};
    const simulate::FaultTruth truth = make_case(key).faults.at(0);
    if (truth.share_of_step > 0.02 && truth.hidden_by.empty()) return key;
  }
  ADD_FAILURE() << kind;
  return {};
}

// Knows the clocks of all ranks to be one.
Job answer_for(const Case& made) {
  Job answer;
  for (std::size_t rank = 0; rank < made.job.ranks.size(); ++rank) {
    if (made.job.ranks[rank].missing) continue;
    RankTimeline& row = answer.ranks.emplace_back();
    row.rank = static_cast<std::int64_t>(rank);
  }
  answer.clocks.known = true;
  answer.clocks.lines.resize(answer.ranks.size());
  answer.clocks.domain.assign(answer.ranks.size(), 0);
  answer.clocks.base.assign(answer.ranks.size(), simulate::kBaseNs);
  answer.waits.known = true;
  answer.waits.total = made.truth.waits.total;
  answer.stragglers.known = true;
  return answer;
}

Straggler named(std::int64_t rank, Cause cause, Confidence confidence) {
  Straggler row;
  row.rank = rank;
  row.cause = cause;
  row.confidence = confidence;
  return row;
}

TEST(AccuracyScore, TellsRightFromWrong) {
  const CaseKey key = plain_case("slow");
  const Case made = make_case(key);
  const int culprit = made.faults[0].fault.rank;
  const auto scored = [&](const std::vector<Straggler>& rows) {
    Job answer = answer_for(made);
    answer.stragglers.rows = rows;
    return score(key, made, answer);
  };
  const RunScore nobody = scored({});
  EXPECT_EQ(nobody.faults.at(0).excuse, Excuse::none);
  EXPECT_FALSE(nobody.faults.at(0).found);
  EXPECT_EQ(nobody.wait_error, 0);
  EXPECT_TRUE(nobody.waits_must_hold);

  const RunScore right = scored({named(culprit, Cause::compute, Confidence::certain)});
  EXPECT_TRUE(right.faults.at(0).found);
  EXPECT_TRUE(right.faults.at(0).certain);
  EXPECT_EQ(right.rows[kCertain].right, 1);

  const RunScore other = scored({named((culprit + 1) % 8, Cause::compute, Confidence::likely)});
  EXPECT_FALSE(other.faults.at(0).found);
  EXPECT_EQ(other.rows[kLikely].wrong_culprit, 1);

  const RunScore cause = scored({named(culprit, Cause::host, Confidence::likely)});
  EXPECT_FALSE(cause.faults.at(0).found);
  EXPECT_EQ(cause.rows[kLikely].wrong_cause, 1);

  const RunScore unsure = scored({named(culprit, Cause::compute, Confidence::undecidable)});
  EXPECT_FALSE(unsure.faults.at(0).found);
  EXPECT_TRUE(unsure.faults.at(0).pointed);
}

TEST(AccuracyScore, WantsBothEndsOfALink) {
  const CaseKey key = plain_case("slow_link");
  const Case made = make_case(key);
  const auto [low, high] = std::minmax({made.faults[0].fault.rank, made.faults[0].fault.peer});
  Job answer = answer_for(made);
  Straggler link;
  link.link = {low, high};
  link.cause = Cause::link;
  link.confidence = Confidence::likely;
  answer.stragglers.rows = {link, named(low, Cause::link, Confidence::likely)};
  const RunScore scored = score(key, made, answer);
  EXPECT_TRUE(scored.faults.at(0).found);
  EXPECT_EQ(scored.rows[kLikely].right, 1);
  EXPECT_EQ(scored.rows[kLikely].wrong_culprit, 1);
}

// Brings every rank to rank 0's clock by what the simulation knows; bounds of `slack` around that.
void relate_truly(const Case& made, Ns slack, Job& answer) {
  Clocks& clocks = answer.clocks;
  clocks.domains = answer.ranks.size();
  std::vector<Ns>& most = clocks.most.emplace_back();
  const auto offset = [&](std::size_t row) {
    const auto rank = static_cast<std::size_t>(answer.ranks[row].rank);
    return made.job.ranks[0].clock.offset_ns - made.job.ranks[rank].clock.offset_ns;
  };
  for (std::size_t a = 0; a < answer.ranks.size(); ++a) {
    clocks.domain[a] = static_cast<std::uint32_t>(a);
    clocks.lines[a].assumed = offset(a);
    for (std::size_t b = 0; b < answer.ranks.size(); ++b)
      most.push_back(offset(a) - offset(b) + slack);
  }
  clocks.bin_length = std::int64_t{1} << 60U;
  clocks.origin = simulate::kJobEpochNs;
}

TEST(AccuracyScore, ChecksBoundsAgainstTheTrueClocks) {
  const CaseKey key{.kinds = kinds_of("clock"), .seed = 1};
  const Case made = make_case(key);
  Job answer = answer_for(made);
  relate_truly(made, 50'000, answer);  // drifts of 40 ppm are 50 us in more than a second
  const RunScore right = score(key, made, answer);
  const auto ranks = static_cast<std::int64_t>(answer.ranks.size());
  EXPECT_EQ(right.bounds, 3 * ranks * (ranks - 1) / 2);
  EXPECT_EQ(right.bounds_missed, 0);
  EXPECT_FALSE(score(key, made, answer_for(made)).waits_must_hold);

  // Another offset for the last rank, with bounds around that: its pairs with others are wrong.
  for (std::size_t b = 0; b + 1 < answer.ranks.size(); ++b) {
    const std::size_t last = answer.ranks.size() - 1;
    answer.clocks.most[0][last * answer.ranks.size() + b] += 200'000;
    answer.clocks.most[0][b * answer.ranks.size() + last] -= 200'000;
  }
  answer.clocks.lines.back().assumed += 200'000;
  EXPECT_EQ(score(key, made, answer).bounds_missed, 3 * (ranks - 1));
}

TEST(AccuracyScore, ExcusesWhatLiesBelowTheClocks) {
  const CaseKey key = plain_case("slow");
  const Case made = make_case(key);
  Job answer = answer_for(made);
  relate_truly(made, 1'000, answer);
  EXPECT_EQ(score(key, made, answer).faults.at(0).excuse, Excuse::none);
  answer.clocks.most.clear();
  answer.clocks.lines.assign(answer.ranks.size(), {});
  relate_truly(made, 1'000'000'000, answer);
  EXPECT_EQ(score(key, made, answer).faults.at(0).excuse, Excuse::clocks);
}

RunScore healthy_run() { return {.key = {}, .faults = {}, .waits_known = true}; }

TEST(AccuracyScoreboard, NamesEachRequirementThatIsMissed) {
  std::vector<RunScore> runs(100, healthy_run());
  EXPECT_EQ(failures(runs, Demand::all), std::vector<std::string>{});
  runs[3].rows[kCertain].wrong_culprit = 1;
  runs[4].bounds_missed = 1;
  runs[5].waits_must_hold = true;
  runs[5].wait_error = 0.02;
  EXPECT_EQ(failures(runs, Demand::all),
            (std::vector<std::string>{
                "no wrong culprit is certain: 1 of 1",
                "clock bounds hold the truth in every run: not in 1 of 100",
                "total waiting within 1 % where everything was recorded: at most 2.00 % off in 1 "
                "runs",
                "at most 0.5 % of the healthy jobs name anybody: 1 of 100"}));
  EXPECT_NE(faulty_runs(runs).find("healthy 0: WRONG CULPRIT, certain\n"), std::string::npos);
}

TEST(AccuracyScoreboard, CountsOnlyWhatMustBeFound) {
  std::vector<RunScore> runs(40, healthy_run());
  for (RunScore& run : runs) {
    run.key.kinds = kinds_of("slow");
    run.faults = {{.kind = "slow", .found = true}};
  }
  runs[0].faults[0].found = runs[1].faults[0].found = false;  // 38 of 40: 95 %
  EXPECT_EQ(failures(runs, Demand::all), std::vector<std::string>{});
  runs[2].faults[0].found = false;
  EXPECT_EQ(failures(runs, Demand::all).size(), 1U);
  EXPECT_EQ(failures(runs, Demand::safe), std::vector<std::string>{});
  runs[2].faults[0].excuse = Excuse::small;  // 37 of 39 are 94.9 %
  EXPECT_EQ(failures(runs, Demand::all).size(), 1U);
  runs[1].faults[0].excuse = Excuse::hidden;
  EXPECT_EQ(failures(runs, Demand::all), std::vector<std::string>{});
  EXPECT_NE(scoreboard(runs, false).find("| slow | 38 | 37 (97.4 %) |"), std::string::npos)
      << scoreboard(runs, false);
}

}  // namespace
}  // namespace commlens::accuracy
