// How the harness of the critical path and "what if" chooses its cases and scores them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cases.h"
#include "tables.h"

namespace commlens::whatif_accuracy {
namespace {

TEST(WhatIfCases, AreMadeFromTheirNumber) {
  const Question question = make_question(17);
  EXPECT_EQ(make_question(17).words, question.words);
  EXPECT_EQ(make_question(17).scenario.spec.seed, question.scenario.spec.seed);
  EXPECT_NE(make_question(26).scenario.spec.seed, question.scenario.spec.seed);
  EXPECT_EQ(make_job(2, 5).spec.seed, make_job(2, 5).spec.seed);
  EXPECT_NE(make_job(3, 5).spec.seed, make_job(2, 5).spec.seed);
}

TEST(WhatIfCases, AreOfAllLayoutsAndChanges) {
  std::set<std::string> kinds;
  std::set<std::string> layouts;
  std::set<simulate::ChangeKind> changes;
  for (std::uint64_t number = 0; number < 108; ++number) {
    const Question question = make_question(number);
    kinds.insert(question.kind);
    layouts.insert(question.words.substr(0, question.words.find(' ')));
    for (const simulate::Change& change : question.changes) changes.insert(change.kind);
    question.scenario.spec.validate();
    simulate::validate(question.scenario.spec, question.scenario.faults);
  }
  EXPECT_EQ(kinds.size(), 9U);
  EXPECT_EQ(layouts.size(), kLayoutCount);
  EXPECT_EQ(changes.size(), 5U);  // all but hosts_on_time: no tool can ask for that alone
}

// Faster communication never makes a job longer, nor does any other relief.
TEST(WhatIfCases, TruthsGoTheRightWay) {
  for (std::uint64_t number = 0; number < 48; ++number) {
    const Question question = make_question(number);
    if (question.changes.size() > 1) continue;
    const simulate::Change& change = question.changes[0];
    const simulate::SimulatedJob before =
        simulate::simulate(question.scenario.spec, question.scenario.faults);
    const simulate::SimulatedJob after =
        simulate::simulate_changed(question.scenario, question.changes);
    const Ns was = simulate::find_step_time(before).step();
    const Ns is = simulate::find_step_time(after).step();
    const bool slower = change.speed_ppm < simulate::kMillion;
    if (change.kind == simulate::ChangeKind::bucket) continue;
    // The window's start moves too.
    const Ns slack = was / 50;
    EXPECT_TRUE(slower ? is >= was - slack : is <= was + slack)
        << question.kind << question.words << " " << was << " " << is;
  }
}

PathScore path(bool sync_records, bool sure, double transfer) {
  return {.sync_records = sync_records, .known = true, .sure = sure, .off = {0.002, transfer}};
}

TEST(WhatIfScores, OfPaths) {
  EXPECT_DOUBLE_EQ(path(true, true, -0.02).worst(), 0.02);
  EXPECT_TRUE(missed({path(true, true, -0.009)}, {}).empty());
  const std::vector<std::string> far{"1 critical paths are far off"};
  EXPECT_EQ(missed({path(true, true, -0.011), path(true, true, 0)}, {}), far);
  // Doubt is no excuse where the trace says who waited for whom.
  EXPECT_EQ(missed({path(true, false, -0.011)}, {}), far);
  PathScore clocks = path(true, false, -0.011);
  clocks.one_clock = false;
  EXPECT_TRUE(missed({clocks}, {}).empty());
  clocks.sure = true;
  EXPECT_EQ(missed({clocks}, {}), far);
  EXPECT_TRUE(missed({path(false, true, 0.049)}, {}).empty());
  EXPECT_EQ(missed({path(false, true, 0.051)}, {}), far);
  EXPECT_TRUE(missed({path(false, false, 0.2)}, {}).empty());
  EXPECT_EQ(missed({{.known = false}}, {}),
            (std::vector<std::string>{"1 jobs without a critical path"}));
}

WhatIfScore answer(Ns predicted, Ns half = 10) {
  return {.kind = "a",
          .known = true,
          .before = 150,
          .truth = 100,
          .predicted = predicted,
          .lower = predicted - half,
          .upper = predicted + half};
}

TEST(WhatIfScores, OfAnswers) {
  EXPECT_DOUBLE_EQ(answer(97).error(), 0.03);
  EXPECT_DOUBLE_EQ(answer(97).change(), 0.5);
  EXPECT_TRUE(answer(90).inside());
  EXPECT_FALSE(answer(89).inside());
  EXPECT_TRUE(missed({}, {answer(103), answer(98)}).empty());
  EXPECT_EQ(missed({}, {answer(104)}), (std::vector<std::string>{"the mean error is 4.00 %"}));
  EXPECT_EQ(missed({}, {answer(109), answer(100), answer(100), answer(100)}),
            (std::vector<std::string>{"the worst error is 9.00 %"}));
  EXPECT_EQ(missed({}, {answer(101, 0), answer(100)}),
            (std::vector<std::string>{"only 50.00 % of the truths are inside the interval"}));
  EXPECT_EQ(missed({}, {answer(100), {.kind = "b", .truth = 100}}),
            (std::vector<std::string>{"1 questions without an answer"}));
}

TEST(WhatIfScores, AsATable) {
  const std::string table = what_if_table({answer(101), answer(97)});
  EXPECT_NE(table.find("| all | 2 | 2 | 50.00 % | 2.00 % | 3.00 % | 100.00 % | 20.00 % |\n"),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace commlens::whatif_accuracy
