// One file read by several threads gives the recording that one thread reads: whatever the number
// of threads, the size of the pieces and the damage. And a learned order of keys changes nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/kineto_event.h"
#include "kineto_noise.h"
#include "model/builder.h"
#include "notation.h"
#include "same_recording.h"

namespace commlens {
namespace {

// A file of its own for one text after the other.
class ScratchFile {
 public:
  ScratchFile()
      : path_(std::filesystem::temp_directory_path() /
              ("commlens-split-" + std::to_string(getpid()) + ".json")) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::filesystem::remove(path_); }
  void write(std::string_view text) {
    std::ofstream(path_, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Outcome {
  std::optional<Recording> recording;
  std::string refusal;
};

std::string take(Source& source, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const std::size_t got = source.read({text.data() + have, bytes - have});
    if (got == 0) break;
    have += got;
  }
  text.resize(have);
  return text;
}

// By one thread where `threads` is 0. The first `head_bytes` are taken as detection takes them,
// behind `passed_over` bytes.
Outcome read(const std::string& path, std::size_t head_bytes, unsigned threads,
             const ReadOptions& options, std::size_t passed_over = 0) {
  const Format& kineto = *find_format("kineto");
  Outcome outcome;
  try {
    Source source = Source::open(path);
    take(source, passed_over);
    const std::string head = take(source, head_bytes);
    TraceBuilder builder(path, kineto.name);
    if (threads == 0) {
      kineto.read(source, head, options, builder);
    } else {
      kineto.read_split(source, head, options, threads, builder);
    }
    outcome.recording = builder.finish();
  } catch (const Error& error) {
    outcome.refusal = error.what();
  }
  return outcome;
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.refusal != b.refusal) return "refusal: '" + a.refusal + "', '" + b.refusal + "'";
  return a.recording ? difference(*a.recording, *b.recording) : "";
}

constexpr std::size_t kWholeHead = std::size_t{64} << 10U;

// The text is read by every number of threads, in pieces from `smallest` bytes on.
::testing::AssertionResult splits_well(ScratchFile& file, const std::string& text,
                                       std::int64_t smallest = 64) {
  file.write(text);
  const Outcome one = read(file.path(), kWholeHead, 0, {});
  for (unsigned threads = 2; threads <= 7; ++threads) {
    const std::string odd =
        difference(one, read(file.path(), kWholeHead, threads, {.smallest_piece = smallest}));
    if (!odd.empty()) return ::testing::AssertionFailure() << threads << " threads: " << odd;
  }
  return ::testing::AssertionSuccess();
}

int cases(int usual) {
  const char* asked = std::getenv("COMMLENS_SPLIT_CASES");
  return asked != nullptr ? std::atoi(asked) : usual;
}

std::string kernel(int i) {
  const std::string number = std::to_string(i);
  return R"({"ph": "X", "cat": "kernel", "name": "k)" + number +
         R"(", "pid": 0, "tid": 7, "ts": )" + number +
         R"(.5, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": )" + number + "}}";
}

std::string kernels(int count, const std::string& between = ",\n") {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i > 1 ? between : "") + kernel(i);
  return text;
}

TEST(Split, Layouts) {
  using notation::Style;
  ScratchFile file;
  const notation::Situation s = notation::situation(
      "compute@7 [0,2) [3,5) [6,9) [10,11); all_reduce@20 [1,3) [5,8) bytes=1M n=8 group=tp "
      "ranks=0,1 seq=4 comms_id=77; all_gather@20 [14,15) n=8 seq=5; memcpy@7 [12,13); launch@3 "
      "[1] "
      "corr=5; record@3 [0,1] op=allreduce bytes=1K n=2 seq=4 rank=1; record@3 [2,3] op=allreduce "
      "n=2 seq=5 start=0 stride=1; "
      "range@4 [2,4] name=nccl:all_reduce; step#1@3 [0,7]; step#2@3 [7,20]; gpu_step#1@7 [1,8]");
  for (const Style style : {Style::classic, Style::lines, Style::compact}) {
    for (const std::uint64_t shuffle : {0, 1, 2, 3}) {
      for (const bool last : {false, true}) {
        EXPECT_TRUE(splits_well(
            file, kineto_text(s, {.style = style, .base_last = last, .shuffle = shuffle})));
      }
      EXPECT_TRUE(splits_well(file, kineto_text(s, {.style = style,
                                                    .clock = notation::Clock::no_base,
                                                    .shuffle = shuffle,
                                                    .bare_array = true})));
    }
  }
}

// What stands at a limit counts as it would anywhere else.
TEST(Split, Seams) {
  ScratchFile file;
  const std::string many = kernels(12);
  for (const std::string between :
       {",,\n", " , , ", "", "\n", ",7,", ",\"text\",", ",[{\"ph\": 1}],", ",null,,", "}", "]",
        ",{},", ",{\"ph\": \"a\nb\"},"})
    EXPECT_TRUE(splits_well(file, "{\"traceEvents\": [" + kernels(12, between) + "]}")) << between;
  for (const std::string& front :
       std::vector<std::string>{"", ",", std::string(900, ','), std::string(900, ' ') + ","})
    EXPECT_TRUE(splits_well(file, "{\"traceEvents\": [" + front + many + "]}")) << front;
  for (const std::string& behind :
       std::vector<std::string>{",", ",,", "," + std::string(900, ' '), std::string(900, ' ') + ",",
                                "," + std::string(900, ',')})
    EXPECT_TRUE(splits_well(file, "{\"traceEvents\": [" + many + behind + "]}")) << behind;
}

TEST(Split, WhatSurroundsTheEvents) {
  ScratchFile file;
  const std::string many = kernels(12);
  const std::string begin = "{\"schemaVersion\": 1, \"traceEvents\": [";
  EXPECT_TRUE(splits_well(file, "[" + many + "]"));
  EXPECT_TRUE(splits_well(file, "[" + many + "]\n\n  text after the end"));
  EXPECT_TRUE(splits_well(file, "[" + many));
  EXPECT_TRUE(splits_well(file, begin + many));
  EXPECT_TRUE(splits_well(file, begin + many + "]} and text {\"name\": \"x\"}" + many));
  EXPECT_TRUE(splits_well(file, begin + many + "], \"traceEvents\": [" + many + "]}"));
  EXPECT_TRUE(splits_well(file, begin + "], \"traceEvents\": [," + many + ",]}"));
  EXPECT_TRUE(splits_well(file, begin + many + "], \"INFO\": [" + many + many + "]}"));
  EXPECT_TRUE(splits_well(file, begin + kernel(1) + "], \"unknown\": [" + many + "]}"));
  EXPECT_TRUE(splits_well(
      file, begin + many + R"(], "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4,
                          "pg_config": [{"pg_name": "a"}]}, "baseTimeNanoseconds": 5})"));
  // What a later value takes back.
  EXPECT_TRUE(splits_well(
      file,
      R"({"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4}, "host_name": "a",
                "traceEvents": [)" +
          many + R"(], "host_name": "", "distributedInfo": {"backend": "", "rank": 77777777,
                "world_size": 0, "nccl_version": ""}})"));
  for (std::size_t length = 0; length < begin.size() + 1500; length += 7)
    EXPECT_TRUE(splits_well(file, (begin + many + "]}").substr(0, length))) << length;
}

// Detection passes over blanks in front, block by block: the pieces stand behind them.
TEST(Split, BlanksBeforeEverything) {
  ScratchFile file;
  const std::string many = kernels(300);
  file.write(std::string(3000, '\n') + "{\"traceEvents\": [" + many + ",{\"ph\": nothing}}]}");
  const Outcome one = read(file.path(), 1000, 0, {});
  ASSERT_TRUE(one.recording.has_value());
  EXPECT_EQ(one.recording->events, 301);
  for (const std::size_t blanks : {1U, 1000U, 3000U}) {
    EXPECT_EQ(difference(one, read(file.path(), 100, 0, {}, blanks)), "") << blanks;
    for (unsigned threads = 2; threads < 6; ++threads) {
      EXPECT_EQ(difference(one, read(file.path(), 100, threads, {.smallest_piece = 500}, blanks)),
                "")
          << blanks;
    }
  }
}

TEST(Split, InsidesThatLookLikeEvents) {
  ScratchFile file;
  const std::string inside = kernels(4);
  std::string quoted = inside;
  for (std::size_t at = 0; (at = quoted.find_first_of("\"\n", at)) != std::string::npos; at += 2)
    quoted.replace(at, 1, quoted[at] == '"' ? "\\\"" : "\\n");
  for (const std::string& value : std::vector<std::string>{
           "[" + inside + "]", "{\"extra\": [" + inside + "], \"traceName\": 1}",
           "\"" + quoted + "\"", "\"], \\\"traceName\\\": [{ {\"",
           "[[" + inside + "], \"INFO\"]"}) {
    const std::string outer =
        R"({"ph": "X", "cat": "kernel", "name": "outer", "ts": 3, "dur": 4, "args": {"stream": 7, "e": )" +
        value + "}}";
    EXPECT_TRUE(splits_well(
        file, "{\"traceEvents\": [" + outer + "," + kernel(1) + "," + outer + "," + outer + "]}"))
        << value;
  }
}

// Larger than any window; and values that reach over several pieces.
TEST(Split, OversizedEvents) {
  ScratchFile file;
  const std::string large(std::size_t{9} << 20U, 'x');
  const std::string many = kernels(300);
  for (const std::string& value : std::vector<std::string>{
           "\"" + large + "\"", "[\"" + large + "\", {\"ph\": \"X\", \"name\": \"y\"}]",
           "\"" + large + "\n", "[{" + large + "\""}) {
    EXPECT_TRUE(splits_well(file,
                            "{\"traceEvents\": [" + many + R"(, {"ph": "X", "args": {"a": )" +
                                value + "}}," + many + "]}",
                            std::int64_t{1} << 20U));
    EXPECT_TRUE(splits_well(file, "{\"traceEvents\": [" + many + "," + value + "," + many + "]}",
                            std::int64_t{1} << 20U));
    EXPECT_TRUE(splits_well(
        file, "{\"traceEvents\": [" + many + "], \"INFO\": " + value + ", \"schemaVersion\": 1}",
        std::int64_t{1} << 20U));
  }
}

// Windows of the usual size move over the text at other places in each piece.
TEST(Split, ManyWindows) {
  ScratchFile file;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    KinetoNoise noise(seed);
    noise.set_style(seed % 3, seed > 2, seed % 2 == 1);
    std::string text = "{\"traceEvents\": [";
    while (text.size() < (std::size_t{5} << 19U)) text += noise.event() + ",\n  ";
    EXPECT_TRUE(splits_well(file, text + kernel(1) + "]}", std::int64_t{200'000})) << seed;
  }
}

TEST(Split, RandomTraces) {
  ScratchFile file;
  const char* asked = std::getenv("COMMLENS_SPLIT_SEED");
  const std::uint64_t first = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 0;
  int failures = 0;
  for (int i = 0; i < cases(1500) && failures < 12; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    KinetoNoise noise(seed);
    const std::string text = noise.document();
    file.write(text);
    const bool host_compute = noise.one_in(3);
    const Outcome one = read(file.path(), kWholeHead, 0, {.host_compute = host_compute});
    const Outcome parted =
        read(file.path(), noise.below(text.size() + 1), 0, {.host_compute = host_compute});
    if (const std::string odd = difference(one, parted); !odd.empty()) {
      ADD_FAILURE() << "seed " << seed << ", by one thread with another head: " << odd;
      ++failures;
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      const auto threads = static_cast<unsigned>(2 + noise.below(6));
      const auto smallest =
          static_cast<std::int64_t>(64 + noise.below(noise.one_in(2) ? 64 : 2000));
      const std::size_t head = noise.one_in(2) ? kWholeHead : noise.below(text.size() + 1);
      const Outcome several = read(file.path(), head, threads,
                                   {.host_compute = host_compute, .smallest_piece = smallest});
      const std::string odd = difference(one, several);
      if (odd.empty()) continue;
      ADD_FAILURE() << "seed " << seed << ", " << threads << " threads, pieces from " << smallest
                    << " bytes, a head of " << head << ": " << odd;
      ++failures;
      break;
    }
  }
}

// ---------------------------------------------------------------------------------------------
// A learned order of keys (key_habit.h)

// One event at the begin of `text`, read by `events`; how far it went.
Scan read_one(KinetoEvents& events, const std::string& text, std::size_t length,
              std::ptrdiff_t& taken) {
  std::string piece = text.substr(0, length);
  piece.append(kScanPadding, '\0');
  const char* at = piece.data() + 1;
  const Scan scan = events.read(at, piece.data() + length, 0);
  taken = at - piece.data();
  return scan;
}

// Every event by a reader that has seen the others, and by one that has seen nothing.
::testing::AssertionResult habit_changes_nothing(const std::vector<std::string>& events,
                                                 bool cut_everywhere) {
  const ReadOptions options{.host_compute = true};
  TraceBuilder used("x", "kineto");
  TraceBuilder fresh("x", "kineto");
  KinetoEvents learned(used, options);
  for (const std::string& text : events) {
    KinetoEvents unlearned(fresh, options);
    std::ptrdiff_t here = 0;
    std::ptrdiff_t there = 0;
    for (std::size_t length = 1; cut_everywhere && length < text.size(); ++length) {
      const Scan scan = read_one(learned, text, length, here);
      if (scan == Scan::bad) break;
      if (scan == Scan::ok) return ::testing::AssertionFailure() << length << " of " << text;
    }
    const Scan scan = read_one(learned, text, text.size(), here);
    if (scan != read_one(unlearned, text, text.size(), there) ||
        (scan == Scan::ok && here != there))
      return ::testing::AssertionFailure() << here << ", " << there << ": " << text;
  }
  const std::string odd = difference(used.finish(), fresh.finish());
  if (!odd.empty()) return ::testing::AssertionFailure() << odd;
  return ::testing::AssertionSuccess();
}

TEST(KeyHabit, RandomEvents) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    KinetoNoise noise(seed);
    noise.set_style(seed % 3, seed % 2 == 1, seed % 5 == 1);
    std::vector<std::string> events(1 + noise.below(40));
    for (std::string& event : events) {
      if (noise.one_in(6)) noise.set_style(noise.below(3), noise.one_in(2), noise.one_in(2));
      event = noise.event();
    }
    EXPECT_TRUE(habit_changes_nothing(events, seed % 6 == 0)) << seed;
  }
}

TEST(KeyHabit, ArgumentsThatChange) {
  const std::vector<std::string> arguments = {
      R"("device": 0, "stream": 7, "correlation": 5)",
      R"("device": 0, "stream": 7, "correlation": 5)",
      R"("device": 1,"stream": 8, "correlation" : 6)",
      R"("device":   1, "stream":"8", "correlation":
         6)",
      R"("stream": 9, "device": 0, "correlation": 7)",
      R"("device": 0, "stream": 7, "stream": 8, "correlation": 5)",
      R"("device": 0, "stream": 7, "correlation": 5, "correlation": 6)",
      R"("d\u0065vice": 2, "stream": 7, "correlation": 5)",
      R"("device": 2, "str\u0065am": 7, "correlation": 5)",
      R"("device2": 2, "stream ": 7, "correlation": 5)",
      R"("device": 2,, "stream": 7, "correlation": 5)",
      R"(,"device": 2, "stream": 7, "correlation": 5,)",
      R"("device": 2, "stream": NaN, "correlation": 5)",
      R"("device": 2, "stream": , "correlation": 5)",
      R"("device": 2, "stream": 7, "correlation":)",
      R"("device": 2, "stream": 7, "correlation")",
      R"("device": 2, "stream": 7, )",
      R"("device": 2, "stream": {"device": 3, "stream": 9}, "correlation": [5, "stream"])",
      R"("device": 2 "stream": 7)",
      R"()",
      R"("device":2,"stream":7)",
      R"("Process Group Name": "0", "Process Group Description": "default_pg", "External id": 1)",
      R"("Process Group Description": "default_pg", "Process Group Name": "0", "External id": 1)",
      R"("a key that is longer than any habit keeps, by far": 1, "stream": 7)",
  };
  const auto event = [](std::string_view kind, const std::string& inside) {
    return R"({"ph": "X", "cat": ")" + std::string(kind) +
           R"(", "name": "nccl cudaLaunch", "pid": 1, "tid": 2, "ts": 5, "dur": 6, "args": {)" +
           inside + "}}";
  };
  for (const std::string& first : arguments) {
    for (const std::string& second : arguments) {
      const std::vector<std::string> events = {
          event("kernel", first), event("kernel", second), event("kernel", first),
          event("cuda_runtime", second), event("kernel", second)};
      EXPECT_TRUE(habit_changes_nothing(events, false)) << first << " then " << second;
    }
  }
  std::vector<std::string> all;
  for (const std::string& one : arguments) all.push_back(event("kernel", one));
  EXPECT_TRUE(habit_changes_nothing(all, true));
}

// More keys than a habit holds.
TEST(KeyHabit, ManyKeys) {
  std::string inside;
  for (int i = 0; i < 100; ++i) inside += "\"key" + std::to_string(i) + "\": 1, ";
  const std::string event =
      R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 6, "args": {)" + inside +
      R"("stream": 7}})";
  EXPECT_TRUE(habit_changes_nothing({event, event, event}, true));
}

}  // namespace
}  // namespace commlens
