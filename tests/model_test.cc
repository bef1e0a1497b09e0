// Interval algebra against bitmaps, notes, rank lists, and what the builder mends.
#include <gtest/gtest.h>

#include <bitset>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/builder.h"
#include "model/interval_set.h"
#include "model/notes.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// ---------------------------------------------------------------------------------------------
// interval_set.h

constexpr Ns kPlaces = 96;
using Bitmap = std::bitset<kPlaces>;

Bitmap bitmap_of(std::span<const Interval> intervals) {
  Bitmap bits;
  for (const Interval interval : intervals) {
    for (Ns at = interval.start; at < interval.end; ++at) bits.set(static_cast<std::size_t>(at));
  }
  return bits;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
  std::vector<Interval> intervals(random() % 9);
  // Short ones and long ones, empty ones, now and then reversed or already sorted.
  const Ns longest = random() % 2 == 0 ? 6 : kPlaces / 2;
  for (Interval& interval : intervals) {
    interval.start = static_cast<Ns>(random() % kPlaces);
    interval.end = std::min(kPlaces, interval.start + static_cast<Ns>(random()) % (longest + 1));
    if (random() % 16 == 0) std::swap(interval.start, interval.end);
  }
  if (random() % 4 == 0)
    std::sort(intervals.begin(), intervals.end(),
              [](Interval a, Interval b) { return a.start < b.start; });
  return intervals;
}

// Disjoint, sorted, not touching, none empty: so that one set has one form.
bool is_canonical(const IntervalSet& set) {
  const auto parts = set.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].length() <= 0) return false;
    if (i > 0 && parts[i].start <= parts[i - 1].end) return false;
  }
  return true;
}

bool is(const IntervalSet& set, const Bitmap& bits) {
  return is_canonical(set) && bitmap_of(set.parts()) == bits &&
         set.length() == static_cast<Ns>(bits.count()) && set.empty() == bits.none();
}

TEST(IntervalSet, AgreesWithBitmaps) {
  std::mt19937 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<Interval> raw_a = random_intervals(random);
    const std::vector<Interval> raw_b = random_intervals(random);
    const Bitmap bits_a = bitmap_of(raw_a);
    const Bitmap bits_b = bitmap_of(raw_b);
    const IntervalSet a(raw_a);
    const IntervalSet b(raw_b);
    ASSERT_TRUE(is(a, bits_a)) << i;
    ASSERT_TRUE(is(b, bits_b)) << i;
    ASSERT_TRUE(is(set_union(a, b), bits_a | bits_b)) << i;
    ASSERT_TRUE(is(set_intersection(a, b), bits_a & bits_b)) << i;
    ASSERT_TRUE(is(set_difference(a, b), bits_a & ~bits_b)) << i;
    const Ns start = static_cast<Ns>(random() % kPlaces);
    const Interval probe{start, start + static_cast<Ns>(random()) % (kPlaces - start + 1)};
    const Bitmap bits_probe = bitmap_of(std::span(&probe, 1));
    ASSERT_EQ(a.overlap(probe), static_cast<Ns>((bits_a & bits_probe).count())) << i;
    const auto parts = a.parts();
    const std::size_t first = a.first_ending_after(probe.start);
    ASSERT_TRUE(first == parts.size() || parts[first].end > probe.start) << i;
    ASSERT_TRUE(first == 0 || parts[first - 1].end <= probe.start) << i;
  }
}

TEST(IntervalSet, TouchingPartsAreOne) {
  const IntervalSet set({{4, 8}, {0, 4}, {8, 8}, {9, 10}});
  ASSERT_EQ(set.parts().size(), 2U);
  EXPECT_EQ(set.parts()[0], (Interval{0, 8}));
  EXPECT_EQ(set.parts()[1], (Interval{9, 10}));
  EXPECT_EQ(set.overlap({8, 9}), 0);
  EXPECT_EQ(set.overlap({3, 3}), 0);
}

TEST(IntervalSet, Clip) {
  EXPECT_EQ(clip({2, 8}, {4, 6}), (Interval{4, 6}));
  EXPECT_EQ(clip({2, 5}, {4, 6}), (Interval{4, 5}));
  EXPECT_EQ(clip({0, 3}, {4, 6}).length(), 0);
  EXPECT_EQ(clip({7, 9}, {4, 6}).length(), 0);
  EXPECT_EQ(clip({5, 5}, {4, 6}), (Interval{5, 5}));
}

// ---------------------------------------------------------------------------------------------
// notes.h

TEST(Notes, EveryRowSaysWhatAndWhatToDo) {
  std::set<std::string_view> codes;
  for (const NoteInfo& info : all_notes()) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code;
    EXPECT_FALSE(info.message.empty()) << info.code;
    EXPECT_NE(severity_name(info.severity), "?");
  }
  EXPECT_EQ(codes.size(), Notes::kCount);
  EXPECT_EQ(note_info(Note::truncated).code, "truncated");
  EXPECT_EQ(note_info(Note::no_critical_path).code, "no_critical_path");
}

TEST(Notes, CountsAndKeepsTheFirstExample) {
  Notes notes;
  EXPECT_FALSE(notes.any());
  notes.add(Note::extra_comma, 3);
  notes.add(Note::extra_comma, "first");
  notes.add(Note::extra_comma, "second", 2);
  EXPECT_EQ(notes.count(Note::extra_comma), 6);
  EXPECT_EQ(notes.example(Note::extra_comma), "first");
  EXPECT_TRUE(notes.any());
  Notes other;
  other.add(Note::extra_comma, "other");
  other.add(Note::truncated, "at byte 7");
  notes.merge(other);
  EXPECT_EQ(notes.count(Note::extra_comma), 7);
  EXPECT_EQ(notes.example(Note::extra_comma), "first");
  EXPECT_EQ(notes.example(Note::truncated), "at byte 7");
}

TEST(Notes, LongAndDirtyExamplesAreMadePrintable) {
  Notes notes;
  notes.add(Note::malformed_event, "\x1B[31m\xFF" + std::string(100'000, 'x'));
  const std::string& example = notes.example(Note::malformed_event);
  EXPECT_LT(example.size(), 300U);
  EXPECT_EQ(example.find('\x1B'), std::string::npos);
  EXPECT_TRUE(example.ends_with("..."));
}

// ---------------------------------------------------------------------------------------------
// rank_list.h

TEST(RankList, AsTracesWriteIt) {
  using Ranks = std::vector<int>;
  EXPECT_EQ(parse_rank_list("[0, 1, 2]"), (Ranks{0, 1, 2}));
  EXPECT_EQ(parse_rank_list("[3,1,2,1]"), (Ranks{1, 2, 3}));
  EXPECT_EQ(parse_rank_list("[7]"), (Ranks{7}));
  for (const std::string_view text : {"", "[]", "[0, 1, ...]", "[0, -1]", "[0, 1000000]",
                                      "[99999999999999999999]", "[0-3]", "null"})
    EXPECT_EQ(parse_rank_list(text), Ranks{}) << text;
}

TEST(RankList, Printed) {
  EXPECT_EQ(format_ranks(std::vector<int>{}), "");
  EXPECT_EQ(format_ranks(std::vector<int>{0, 1, 2, 3, 7}), "0-3,7");
  EXPECT_EQ(format_ranks(std::vector<std::int64_t>{0, 1, 5, 8, 9, 10}), "0,1,5,8-10");
}

TEST(RankList, AsUsersWriteRanges) {
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(parse_ranges("0-3,7", "--ranks"), (Values{0, 1, 2, 3, 7}));
  EXPECT_EQ(parse_ranges("2..5", "--ranks"), (Values{2, 3, 4, 5}));
  EXPECT_EQ(parse_ranges("4,4,0", "--steps"), (Values{0, 4}));
  for (const std::string_view text : {"", ",", "1,", "3-1", "-1", "1-", "1..", "x", "0-1000000",
                                      "0..9223372036854775807", "1.5", "99999999999999999999"}) {
    try {
      parse_ranges(text, "--ranks");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_TRUE(std::string_view(error.what()).starts_with("--ranks")) << error.what();
    }
  }
}

// The largest number ends a loop too.
TEST(RankList, RangesReachTheEndOfTheNumbers) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse_ranges("9223372036854775806-9223372036854775807", "--steps"),
            (std::vector<std::int64_t>{kMax - 1, kMax}));
}

// Every printed list reads back.
TEST(RankList, ReadsBackWhatIsPrinted) {
  std::mt19937 random(3);
  for (int i = 0; i < 2'000; ++i) {
    std::set<std::int64_t> ranks;
    for (auto n = 1 + random() % 12; n > 0; --n) ranks.insert(random() % 24);
    const std::vector<std::int64_t> wanted(ranks.begin(), ranks.end());
    ASSERT_EQ(parse_ranges(format_ranks(wanted), "--ranks"), wanted);
  }
}

// ---------------------------------------------------------------------------------------------
// builder.h

constexpr Ns kSecond = 1'000'000'000;
constexpr Ns kHour = 3600 * kSecond;
// Some moment that is not 0, which would be a lost time stamp.
constexpr Ns kStart = 100 * kHour;

ActivityInput kernel(Ns start, Ns end, std::string_view name = "gemm") {
  return {.start = start, .end = end, .name = name, .stream = {0, 1, 7}, .meta = {}};
}

TEST(Builder, KeepsColumnsInFileOrder) {
  TraceBuilder builder("path", "format");
  builder.add_activity(kernel(kStart + 20, kStart + 30, "b"));
  ActivityInput other = kernel(kStart + 10, kStart + 15, "a");
  other.stream = {1, 1, 7};
  other.kind = ActivityKind::memcpy;
  other.correlation = 5;
  other.external_id = 6;
  builder.add_activity(other);
  builder.add_activity(kernel(kStart + 40, kStart + 50, "b"));
  const Recording recording = builder.finish();
  ASSERT_EQ(recording.gpu.size(), 3U);
  EXPECT_EQ(recording.path, "path");
  EXPECT_EQ(recording.streams, (std::vector<Stream>{{0, 1, 7}, {1, 1, 7}}));
  EXPECT_EQ(recording.gpu.stream[2], recording.gpu.stream[0]);
  EXPECT_EQ(recording.gpu.name[2], recording.gpu.name[0]);
  EXPECT_EQ(recording.gpu.interval(1), (Interval{kStart + 10, kStart + 15}));
  EXPECT_EQ(recording.gpu.kind[1], ActivityKind::memcpy);
  EXPECT_EQ(recording.gpu.correlation[1], 5U);
  EXPECT_EQ(recording.gpu.external_id[1], 6U);
  EXPECT_FALSE(recording.notes.any());
}

TEST(Builder, SameStreamNumberInAnotherContextIsAnother) {
  TraceBuilder builder("", "");
  ActivityInput activity = kernel(kStart, kStart + 1);
  builder.add_activity(activity);
  activity.stream.context = 2;
  builder.add_activity(activity);
  const Recording recording = builder.finish();
  EXPECT_EQ(recording.streams.size(), 2U);
  EXPECT_NE(recording.gpu.stream[0], recording.gpu.stream[1]);
}

TEST(Builder, EqualMetadataIsKeptOnce) {
  TraceBuilder builder("", "");
  CollectiveMeta meta{.collective = builder.intern("allreduce"),
                      .dtype = builder.intern("Float"),
                      .group_name = {},
                      .group_description = {},
                      .group_ranks = {}};
  EXPECT_EQ(builder.add_meta(meta).index(), 0U);
  EXPECT_EQ(builder.add_meta(meta).index(), 0U);
  meta.in_elements = 4;
  EXPECT_EQ(builder.add_meta(meta).index(), 1U);
  EXPECT_EQ(builder.thread(1, 2).index(), 0U);
  EXPECT_EQ(builder.thread(1, 3).index(), 1U);
  EXPECT_EQ(builder.thread(1, 2).index(), 0U);
}

TEST(Builder, EndBeforeStartHasNoTime) {
  TraceBuilder builder("", "");
  builder.add_activity(kernel(kStart + 10, kStart + 4));
  EXPECT_EQ(builder.finish().gpu.interval(0), (Interval{kStart + 10, kStart + 10}));
}

TEST(Builder, LostTimesAreLeftOut) {
  TraceBuilder builder("", "");
  builder.about().span = Interval{kStart, kStart + kSecond};
  builder.add_activity(kernel(0, 10, "at zero"));
  builder.add_activity(kernel(kStart + 1, kStart + 2, "first"));
  builder.add_activity(kernel(kStart - kHour - 1, kStart - kHour, "too early"));
  builder.add_activity(kernel(kStart - kHour, kStart - kHour + 1, "just not too early"));
  builder.add_activity(kernel(kStart + 5, kStart + 6, "last"));
  const Recording recording = builder.finish();
  ASSERT_EQ(recording.gpu.size(), 3U);
  EXPECT_EQ(recording.strings.get(recording.gpu.name[0]), "first");
  EXPECT_EQ(recording.strings.get(recording.gpu.name[1]), "just not too early");
  EXPECT_EQ(recording.strings.get(recording.gpu.name[2]), "last");
  for (const std::size_t column : {recording.gpu.end.size(), recording.gpu.correlation.size(),
                                   recording.gpu.external_id.size(), recording.gpu.stream.size(),
                                   recording.gpu.meta.size(), recording.gpu.kind.size()})
    EXPECT_EQ(column, 3U);
  EXPECT_EQ(recording.notes.count(Note::zero_timestamp), 2);
  EXPECT_EQ(recording.notes.example(Note::zero_timestamp), "at zero");
}

TEST(Builder, AbsurdDurationsEndWithTheRecording) {
  TraceBuilder builder("", "");
  builder.about().span = Interval{kStart, kStart + 100};
  builder.add_activity(kernel(kStart + 10, kStart + 110, "as long as the recording"));
  builder.add_activity(kernel(kStart + 10, kStart + 111, "longer"));
  builder.add_activity(kernel(kStart + 500, kStart + 5000, "longer, and begins behind it"));
  const Recording recording = builder.finish();
  EXPECT_EQ(recording.gpu.end[0], kStart + 110);
  EXPECT_EQ(recording.gpu.end[1], kStart + 100);
  EXPECT_EQ(recording.gpu.end[2], kStart + 500);
  EXPECT_EQ(recording.notes.count(Note::absurd_duration), 2);
}

// Without the recording's span: an hour behind what the host's records cover, and a day where there
// are none.
TEST(Builder, AbsurdDurationsWithoutASpan) {
  {
    TraceBuilder builder("", "");
    builder.add_launch(1, kStart, builder.thread(1, 1));
    builder.add_launch(2, kStart + 50, builder.thread(1, 1));
    builder.add_activity(kernel(kStart + 10, kStart + 10 + kHour + 50, "long"));
    builder.add_activity(kernel(kStart + 10, kStart + 10 + kHour + 51, "too long"));
    const Recording recording = builder.finish();
    EXPECT_EQ(recording.gpu.end[0], kStart + 10 + kHour + 50);
    EXPECT_EQ(recording.gpu.end[1], kStart + 50);
    EXPECT_EQ(recording.notes.count(Note::absurd_duration), 1);
  }
  TraceBuilder builder("", "");
  builder.add_activity(kernel(kStart, kStart + 24 * kHour));
  builder.add_activity(kernel(kStart, kStart + 24 * kHour + 1));
  const Recording recording = builder.finish();
  EXPECT_EQ(recording.gpu.end[0], kStart + 24 * kHour);
  EXPECT_EQ(recording.gpu.end[1], kStart);
}

// A step that is known only by its copies on the GPU has no host range; its absence is no moment 0.
TEST(Builder, StepsWithoutAHostRangeBoundNothing) {
  TraceBuilder builder("", "");
  builder.add_step(1, {kStart, kStart + 10}, true);
  builder.add_launch(1, kStart, builder.thread(1, 1));
  builder.add_activity(kernel(kStart, kStart + 50 * kHour));
  EXPECT_EQ(builder.finish().notes.count(Note::absurd_duration), 1);
}

TEST(Builder, ASpanWithoutTimeIsNoSpan) {
  TraceBuilder builder("", "");
  builder.about().span = Interval{kStart, kStart};
  builder.add_activity(kernel(kStart + 1, kStart + 2));
  const Recording recording = builder.finish();
  EXPECT_EQ(recording.gpu.interval(0), (Interval{kStart + 1, kStart + 2}));
  EXPECT_FALSE(recording.notes.any());
}

Recording with_external_ids(int equal, int others) {
  TraceBuilder builder("", "");
  for (int i = 0; i < equal + others; ++i) {
    ActivityInput activity = kernel(kStart + i, kStart + i + 1);
    activity.correlation = static_cast<std::uint64_t>(100 + i);
    activity.external_id = static_cast<std::uint64_t>(i < equal ? 100 + i : 7);
    builder.add_activity(activity);
  }
  return builder.finish();
}

TEST(Builder, ExternalIdsThatRepeatTheCorrelationLinkNothing) {
  const Recording half = with_external_ids(2, 2);
  EXPECT_EQ(half.gpu.external_id, (std::vector<std::uint64_t>{0, 0, 7, 7}));
  EXPECT_EQ(half.notes.count(Note::unlinked_external_ids), 0);
  // More than half: what is left may equal an operation's id by chance.
  const Recording most = with_external_ids(3, 2);
  EXPECT_EQ(most.gpu.external_id, (std::vector<std::uint64_t>(5, 0)));
  EXPECT_EQ(most.notes.count(Note::unlinked_external_ids), 1);
  EXPECT_FALSE(with_external_ids(0, 0).notes.any());
}

TEST(Builder, StepsBecomeOneRowEach) {
  TraceBuilder builder("", "");
  builder.add_step(8, {40, 50}, true);
  builder.add_step(8, {45, 60}, true);  // on another stream
  builder.add_step(8, {30, 44}, false);
  builder.add_step(7, {10, 20}, false);
  const Recording recording = builder.finish();
  ASSERT_EQ(recording.steps.size(), 2U);
  EXPECT_EQ(recording.steps[0].number, 7);
  EXPECT_EQ(recording.steps[0].host, (Interval{10, 20}));
  EXPECT_FALSE(recording.steps[0].gpu_annotation);
  EXPECT_EQ(recording.steps[1].host, (Interval{30, 44}));
  EXPECT_EQ(recording.steps[1].gpu_annotation, (Interval{40, 60}));
}

TEST(Builder, HostComputeIsAUnionOverThreads) {
  TraceBuilder builder("", "");
  builder.add_host_compute({0, 10}, builder.thread(1, 1));
  builder.add_host_compute({2, 5}, builder.thread(1, 1));
  builder.add_host_compute({8, 12}, builder.thread(1, 2));
  builder.add_host_compute({20, 21}, builder.thread(1, 1));
  const Recording recording = builder.finish();
  EXPECT_EQ(recording.host_compute.length(), 13);
}

}  // namespace
}  // namespace commlens
