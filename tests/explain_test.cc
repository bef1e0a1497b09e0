// What --explain says: of a rank that waits, of one that others wait for, of one that does both.
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "match/trail.h"
#include "match/waiting.h"
#include "small_job.h"

namespace commlens {

extern const Analysis kExplain;

namespace {

using notation::SmallJob;

std::vector<std::string> explained(Job job, std::int64_t rank) {
  job.waits = find_waits(job);
  job.trails = trails_of(job, static_cast<std::size_t>(rank), 5);
  return kExplain.run(job, {.by = {}, .explain = rank}).lines;
}

// Ranks 0 and 1 wait 10 and 4 for rank 2, twice.
Job late_third() {
  SmallJob job(3);
  for (const Ns at : {0, 20})
    job.together(Op::all_reduce, {0, 1, 2}, {{at, at + 12}, {at + 6, at + 12}, {at + 10, at + 12}});
  return job.done();
}

TEST(Explain, ARankThatWaits) {
  const auto lines = explained(late_third(), 1);
  ASSERT_EQ(lines.size(), 3U);  // nothing comes from it
  EXPECT_EQ(lines[0], "Why rank 1 waited, its longest exposed waits first:");
}

TEST(Explain, TheCulpritPointsToWhoWaitsLongestForIt) {
  const auto lines = explained(late_third(), 2);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "Rank 2 waited for nobody; --explain 0 follows a rank that waits for it.");
}

// Nobody waits in the first operation; rank 0 waits 5 under its own compute in the second.
TEST(Explain, HiddenWaitingIsNotNobody) {
  SmallJob job(2);
  job.compute(0, 10, 20);
  job.together(Op::all_reduce, {0, 1}, {{0, 2}, {0, 2}});
  job.together(Op::all_reduce, {0, 1}, {{10, 17}, {15, 17}});
  const Job done = job.done();
  EXPECT_EQ(explained(done, 0),
            std::vector<std::string>{"Rank 0 waited for nobody outside its own compute."});
  EXPECT_EQ(explained(done, 1),
            std::vector<std::string>{
                "Rank 1 waited for nobody; --explain 0 follows a rank that waits for it."});
}

TEST(Explain, NobodyWaitsAtAll) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 2}, {0, 2}});
  EXPECT_EQ(explained(job.done(), 1), std::vector<std::string>{"Rank 1 waited for nobody."});
}

// Rank 1 waits 1 for rank 0, and then computes 20 longer.
TEST(Explain, ACulpritThatWaitsALittle) {
  SmallJob job(2);
  job.compute(0, 12, 20);
  job.compute(1, 12, 40);
  job.together(Op::all_reduce, {0, 1}, {{10, 12}, {9, 12}});
  job.together(Op::all_reduce, {0, 1}, {{20, 42}, {40, 42}});
  const Job done = job.done();
  const auto lines = explained(done, 1);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines.back(),
            "More waiting came from rank 1 than it waited itself; --explain 0 follows a rank that "
            "waits for it.");
  EXPECT_EQ(explained(done, 0).back().find("More waiting"), std::string::npos);
}

TEST(Explain, WaitingThatIsNotKnown) {
  Job job = late_third();
  job.waits = {};
  EXPECT_EQ(kExplain.run(job, {.by = {}, .explain = 1}).lines,
            std::vector<std::string>{"Rank 1: waiting is not known (see the notes)."});
}

}  // namespace
}  // namespace commlens
