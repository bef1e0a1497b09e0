// Timelines are read back with a strict little JSON reader that keeps numbers as text, so that
// times are compared to the nanosecond.
#include "report/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "match/classify.h"
#include "match/exposure.h"
#include "report/chrome_events.h"
#include "report/perfetto_events.h"
#include "report/timeline_lanes.h"
#include "report/timeline_style.h"
#include "report/timeline_texts.h"

namespace commlens {
namespace {

struct JsonMember;
struct Json {
  std::string text;  // of a string (unescaped), number or word
  std::vector<JsonMember> members;
  std::vector<Json> items;

  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const {
    const Json* found = find(key);
    if (found == nullptr) throw std::runtime_error("no member " + std::string(key));
    return *found;
  }
};
struct JsonMember {
  std::string name;
  Json value;
};

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  Json read_all() {
    Json json = read();
    blanks();
    if (at_ != text_.size()) fail();
    return json;
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error("bad JSON at " + std::to_string(at_)); }
  char peek() const {
    if (at_ >= text_.size()) fail();
    return text_[at_];
  }
  void take(char wanted) {
    if (peek() != wanted) fail();
    ++at_;
  }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  Json read() {
    blanks();
    if (peek() == '{') return read_members();
    if (peek() == '[') return read_items();
    Json json;
    if (peek() == '"') {
      json.text = read_string();
      return json;
    }
    while (at_ < text_.size() && std::string_view(",]} \n").find(text_[at_]) == std::string::npos)
      json.text += text_[at_++];
    if (json.text.empty()) fail();
    return json;
  }
  Json read_members() {
    Json json;
    take('{');
    for (blanks(); peek() != '}'; blanks()) {
      if (!json.members.empty()) take(',');
      blanks();
      std::string key = read_string();
      blanks();
      take(':');
      if (json.find(key) != nullptr) fail();
      json.members.push_back({std::move(key), read()});
    }
    take('}');
    return json;
  }
  Json read_items() {
    Json json;
    take('[');
    for (blanks(); peek() != ']'; blanks()) {
      if (!json.items.empty()) take(',');
      json.items.push_back(read());
    }
    take(']');
    return json;
  }
  std::string read_string() {
    std::string out;
    take('"');
    while (peek() != '"') {
      if (peek() == '\\') {
        ++at_;
        const char escape = peek();
        ++at_;
        if (escape == 'u') {
          out += static_cast<char>(std::stoi(std::string(text_.substr(at_, 4)), nullptr, 16));
          at_ += 4;
        } else {
          out += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape == 'r' ? '\r' : escape;
        }
        continue;
      }
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0 || static_cast<unsigned char>(peek()) < 0x20) fail();
      out += text_.substr(at_, length);
      at_ += length;
    }
    take('"');
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// "12.345" us -> 12345 ns; exactly three decimals.
Ns nanoseconds(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || dot == 0 || text.size() != dot + 4 || text[0] == '-')
    throw std::runtime_error("not a time: " + text);
  return std::stoll(text.substr(0, dot)) * 1000 + std::stoll(text.substr(dot + 1));
}

struct Slice {
  std::string process;
  std::string track;
  std::string name;
  std::string category;
  Interval time;
  Json event;
  std::string arg(std::string_view key) const {
    const Json* found = event.at("args").find(key);
    return found == nullptr ? "absent" : found->text;
  }
};

struct Timeline {
  Json json;
  std::vector<Slice> slices;
  std::vector<std::string> processes;
  std::vector<std::string> tracks;

  std::vector<Slice> on(std::string_view track) const {
    std::vector<Slice> found;
    for (const Slice& slice : slices) {
      if (slice.track == track) found.push_back(slice);
    }
    return found;
  }
};

Timeline read_timeline(const std::string& text) {
  Timeline timeline;
  timeline.json = JsonReader(text).read_all();
  std::map<std::string, std::string> processes;
  std::map<std::pair<std::string, std::string>, std::string> threads;
  for (const Json& event : timeline.json.at("traceEvents").items) {
    const std::string pid = event.at("pid").text;
    const std::string phase = event.at("ph").text;
    if (phase == "s" || phase == "f") continue;  // an arrow's end
    const std::string kind = phase == "X" ? "slice" : event.at("name").text;
    if (kind == "process_name") {
      timeline.processes.push_back(processes[pid] = event.at("args").at("name").text);
    } else if (kind == "thread_name") {
      const std::string name = event.at("args").at("name").text;
      EXPECT_TRUE(threads.emplace(std::pair(pid, event.at("tid").text), name).second);
      timeline.tracks.push_back(name);
    } else if (kind == "slice") {
      const Ns start = nanoseconds(event.at("ts").text);
      timeline.slices.push_back({.process = processes.at(pid),
                                 .track = threads.at({pid, event.at("tid").text}),
                                 .name = event.at("name").text,
                                 .category = event.at("cat").text,
                                 .time = {start, start + nanoseconds(event.at("dur").text)},
                                 .event = event});
    }
  }
  return timeline;
}

std::string write(const Job& job, const TimelineOptions& options = {}) {
  Sink sink;
  write_timeline(job, options, sink);
  return sink.text();
}

struct Kernel {
  std::string name;
  Interval time;
  std::int64_t stream = 7;
  ActivityKind kind = ActivityKind::kernel;
  std::int64_t device = 0;
};

const std::string kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";

RankTimeline make_rank(std::int64_t number, const std::vector<Kernel>& kernels) {
  RankTimeline rank;
  rank.rank = number;
  rank.recording.clock = ClockBase::epoch;
  std::map<Stream, StreamId> streams;
  for (const Kernel& kernel : kernels) {
    const auto [found, inserted] =
        streams.try_emplace(Stream{.device = kernel.device, .stream = kernel.stream},
                            StreamId::from(rank.recording.streams.size()));
    if (inserted) rank.recording.streams.push_back(found->first);
    GpuActivities& gpu = rank.recording.gpu;
    gpu.start.push_back(kernel.time.start);
    gpu.end.push_back(kernel.time.end);
    gpu.correlation.push_back(0);
    gpu.external_id.push_back(0);
    gpu.name.push_back(rank.recording.strings.intern(kernel.name));
    gpu.stream.push_back(found->second);
    gpu.meta.push_back(MetaId::none());
    gpu.kind.push_back(kernel.kind);
  }
  return rank;
}

void finish(RankTimeline& rank) {
  classify(rank, {});
  for (DeviceTimeline& device : rank.devices) {
    WindowFigures figures = window_figures(device, device.extent);
    device.breakdown = figures.breakdown;
    device.exposures = std::move(figures.exposures);
  }
}

Job make_job(std::vector<RankTimeline> ranks) {
  Job job;
  job.ranks = std::move(ranks);
  for (RankTimeline& rank : job.ranks) finish(rank);
  return job;
}

TEST(Lanes, LowestFreeLane) {
  Lanes lanes;
  EXPECT_EQ(lanes.place({0, 10}), 0U);
  EXPECT_EQ(lanes.place({2, 6}), 1U);
  EXPECT_EQ(lanes.place({3, 3}), 2U);
  EXPECT_EQ(lanes.place({3, 4}), 2U);  // what has no length frees its lane at once
  EXPECT_EQ(lanes.place({6, 20}), 1U);
  EXPECT_EQ(lanes.place({10, 12}), 0U);
  EXPECT_EQ(lanes.count(), 3U);
}

TEST(TraceText, TimesAreExact) {
  const auto text = [](Ns time) {
    std::string out;
    append_microseconds(out, time);
    return out;
  };
  EXPECT_EQ(text(0), "0.000");
  EXPECT_EQ(text(7), "0.007");
  EXPECT_EQ(text(1740461679479712123), "1740461679479712.123");
}

TEST(TraceText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_text("abcd", 4), "abcd");
  EXPECT_EQ(cut_text("abcde", 4), "abcd...");
  EXPECT_EQ(cut_text("abc\u00E4e", 4), "abc...");
  EXPECT_EQ(cut_text("ab\u20ACe", 4), "ab...");
  EXPECT_EQ(cut_text("\x80\x80\x80\x80\x80\x80", 4), "\x80...");
}

// Without blanks, as in "0a15 5001".
std::string packed(std::string text) {
  std::erase(text, ' ');
  return text;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4U];
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

// Bytes by hand: each packet is 0a and its length; 50 01 is the sequence; a field's number times
// eight plus its wire type is its tag.
TEST(PerfettoText, PacketsByHand) {
  TimelineTexts texts;
  Sink sink;
  PerfettoEvents events(texts, sink);
  events.begin(1000);
  events.name_process(1, "p");
  events.name_thread(1, 2, "t");
  SliceEvent slice{.process = 1,
                   .thread = 2,
                   .start = 5,
                   .length = 3,
                   .name = {},
                   .colour = {},
                   .arguments = {},
                   .arrow_out = 1};
  slice.name.before = texts.id("g");
  slice.category = texts.id("c");
  events.slice(slice);
  EXPECT_EQ(hex(sink.text()),
            packed("0a15 5001 6801 320f 0a04 0806 1000 0a05 0801 10e807 1006"
                   "0a10 5001 e2030b 0801 1a07 0801 1801 320170"
                   "0a12 5001 e2030d 0802 2209 0801 1002 1802 2a0174"
                   "0a0d 5001 6802 6207 1205 0802 120167"
                   "0a0d 5001 6802 6207 0a05 0803 120163"
                   "0a1a 5001 4005 6802 5a12 4801 5802 5002 1803 f9020100000000000000"
                   "0a0a 5001 4008 5a04 4802 5802"));
}

// Arguments of each type: text 3 is the key (number 4), 64 bits of 2.5, -1 as the largest varint.
TEST(PerfettoText, Arguments) {
  TimelineTexts texts;
  Sink sink;
  PerfettoEvents events(texts, sink);
  SliceEvent slice{.thread = 2, .name = {}, .colour = {}, .arguments = {}};
  slice.name.before = slice.category = texts.id("g");
  texts.id("not used");
  const TextId key = texts.id("k");
  const std::vector<Argument> arguments{
      {key, std::int64_t{-1}}, {key, 2.5}, {key, true}, {key, key}};
  slice.arguments = arguments;
  events.slice(slice);
  const std::string text = hex(sink.text());
  const std::string expected = packed(
      "220d 0804 20ffffffffffffffffff01 220b 0804 290000000000000440 2204 0804 1001"
      "2205 0804 880104");
  EXPECT_NE(text.find(expected), std::string::npos) << text;
}

// Where the end does not fit, it is the last moment; bytes of a name that a reader trips over are
// replaced.
TEST(PerfettoText, HostileTimesAndNames) {
  TimelineTexts texts;
  Sink sink;
  PerfettoEvents events(texts, sink);
  SliceEvent slice{.thread = 2,
                   .start = std::numeric_limits<Ns>::max() - 1,
                   .length = 5,
                   .name = {},
                   .colour = {},
                   .arguments = {}};
  slice.name.before = texts.id(std::string_view("bad \xFF\xC3(\0", 8));
  slice.category = texts.id("c");
  events.slice(slice);
  EXPECT_NE(sink.text().find("bad \uFFFD\uFFFD(\uFFFD"), std::string::npos);
  EXPECT_TRUE(hex(sink.text())
                  .ends_with("40ffffffffffffffff7f"
                             "5a04"
                             "4802"
                             "5802"));
}

// Hues worked out with the function of Perfetto's interface, in JavaScript's arithmetic.
TEST(CommStyle, PerfettoHue) {
  EXPECT_EQ(perfetto_hue("exposed"), 44);
  EXPECT_EQ(perfetto_hue("hidden"), 174);
  EXPECT_EQ(perfetto_hue("exposed communication"), 56);
  EXPECT_EQ(perfetto_hue("step 12"), perfetto_hue("step"));
  EXPECT_EQ(perfetto_hue("all_reduce (exposed 41 %)"), perfetto_hue("all_reduce (exposed %)"));
}

TEST(CommStyle, StatesHaveTheirHues) {
  const Exposure hidden{.busy = 100, .hidden = 95, .exposed = 5, .in_window = true};
  const Exposure partly{.busy = 100, .hidden = 59, .exposed = 41, .in_window = true};
  const Exposure exposed{.busy = 100, .hidden = 0, .exposed = 100, .in_window = true};
  TimelineTexts texts;
  const CommWords words(texts);
  for (int i = 0; i < kOpCount; ++i) {
    const auto hue = [&](const Exposure& figures) {
      const SliceName name = words.name(static_cast<Op>(i), comm_state(figures), figures);
      return perfetto_hue(std::string(texts.get(name.before)) + std::to_string(*name.number) +
                          std::string(texts.get(name.after)));
    };
    EXPECT_TRUE(hue(hidden) >= 95 && hue(hidden) < 190);
    EXPECT_TRUE(hue(partly) >= 45 && hue(partly) < 90);
    EXPECT_TRUE(hue(exposed) >= 340 || hue(exposed) < 30);
  }
}

TEST(CommStyle, States) {
  const auto state = [](Ns hidden, Ns exposed) {
    return comm_state(
        {.busy = hidden + exposed, .hidden = hidden, .exposed = exposed, .in_window = true});
  };
  EXPECT_EQ(state(5, 0), CommState::hidden);
  EXPECT_EQ(state(90, 10), CommState::hidden);
  EXPECT_EQ(state(89, 11), CommState::partly_exposed);
  EXPECT_EQ(state(11, 89), CommState::partly_exposed);
  EXPECT_EQ(state(10, 90), CommState::exposed);
  EXPECT_EQ(state(0, 5), CommState::exposed);
  EXPECT_EQ(state(0, 0), CommState::no_time);
  EXPECT_EQ(comm_state({}), CommState::outside);
}

// compute [0,4000) [6000,8000), all-reduce [3000,7000): hidden 2000, exposed [4000,6000).
TEST(Timeline, OneRank) {
  Job job =
      make_job({make_rank(3, {{"gemm", {1'000'000, 1'004'000}},
                              {"gemm", {1'006'000, 1'008'000}},
                              {"Memcpy HtoD", {1'000'500, 1'000'501}, 8, ActivityKind::memcpy},
                              {kAllReduce, {1'003'000, 1'007'000}, 24}})});
  job.ranks[0].host = "node-a";
  job.ranks[0].recording.clock_base = 1'740'461'679'000'000'123;
  job.ranks[0].devices[0].comm[0].bytes = 8000;
  job.ranks[0].devices[0].steps = {{12, {1'000'000, 1'008'000}}};
  const Timeline timeline = read_timeline(write(job));
  EXPECT_EQ(timeline.processes, std::vector<std::string>{"rank 3 (node-a, GPU 0)"});
  EXPECT_EQ(timeline.tracks,
            (std::vector<std::string>{"steps", "stream 7: compute", "stream 8: memory",
                                      "stream 24: communication", "exposed communication"}));
  EXPECT_EQ(timeline.json.at("otherData").at("origin_epoch_ns").text, "1740461679001000123");
  EXPECT_EQ(timeline.on("steps").at(0).name, "step 12");
  EXPECT_EQ(timeline.on("stream 7: compute").at(1).time, (Interval{6000, 8000}));
  EXPECT_EQ(timeline.on("stream 8: memory").at(0).time, (Interval{500, 501}));
  const Slice comm = timeline.on("stream 24: communication").at(0);
  EXPECT_TRUE(comm.name.starts_with("all_reduce (partly exposed 50 %)"));
  EXPECT_EQ(comm.category, "communication,partly exposed");
  EXPECT_EQ(comm.time, (Interval{3000, 7000}));
  EXPECT_EQ(comm.arg("kernel"), kAllReduce);
  EXPECT_EQ(comm.arg("op"), "all_reduce");
  EXPECT_EQ(comm.arg("bytes"), "8000");
  EXPECT_EQ(comm.arg("evidence"), "kernel_name");
  EXPECT_EQ(comm.arg("busy_ns"), "4000");
  EXPECT_EQ(comm.arg("hidden_ns"), "2000");
  EXPECT_EQ(comm.arg("exposed_ns"), "2000");
  EXPECT_EQ(comm.arg("exclusive_exposed_ns"), "2000");
  EXPECT_EQ(comm.arg("algbw_gbs"), "2");
  EXPECT_EQ(comm.arg("group_size"), "absent");
  ASSERT_EQ(timeline.on("exposed communication").size(), 1U);
  EXPECT_EQ(timeline.on("exposed communication")[0].time, (Interval{4000, 6000}));
}

TEST(Timeline, GroupsAndTypes) {
  Job job = make_job({make_rank(0, {{kAllReduce, {0, 10}, 24}})});
  CommOp& op = job.ranks[0].devices[0].comm[0];
  job.ranks[0].groups = {{.name = "3", .description = "mesh_tp", .size = 4, .ranks = {0, 1, 2, 3}}};
  op.group = 0;
  op.dtype = job.ranks[0].recording.strings.intern("BFloat16");
  const Slice slice = read_timeline(write(job)).on("stream 24: communication").at(0);
  EXPECT_EQ(slice.arg("group"), "mesh_tp");
  EXPECT_EQ(slice.arg("group_ranks"), "0-3");
  EXPECT_EQ(slice.arg("group_size"), "4");
  EXPECT_EQ(slice.arg("dtype"), "BFloat16");
}

TEST(Timeline, OverlapGoesToLanes) {
  const Job job = make_job({make_rank(0, {{"a", {0, 10}},
                                          {"b", {2, 6}},   // inside a
                                          {"c", {4, 12}},  // partly over a
                                          {"d", {6, 8}},
                                          {"e", {10, 10}}})});
  const Timeline timeline = read_timeline(write(job));
  const auto names = [&timeline](std::string_view track) {
    std::string all;
    for (const Slice& slice : timeline.on(track)) all += slice.name;
    return all;
  };
  EXPECT_EQ(names("stream 7: compute"), "ae");
  EXPECT_EQ(names("stream 7: compute (2)"), "bd");
  EXPECT_EQ(names("stream 7: compute (3)"), "c");
}

TEST(Timeline, OddNames) {
  std::string longest(399, 'x');
  longest += "\u20AC and more";
  const Job job = make_job({make_rank(0, {{"quote \" back \\ line \n bell \a del \x7F", {0, 1}},
                                          {"bad \xFF\xC3( end", {1, 2}},
                                          {longest, {2, 3}},
                                          {"", {3, 4}}})});
  const std::vector<Slice> slices = read_timeline(write(job)).on("stream 7: compute");
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[0].name, "quote \" back \\ line \n bell \a del \x7F");
  EXPECT_EQ(slices[1].name, "bad \uFFFD\uFFFD( end");
  EXPECT_EQ(slices[2].name, std::string(399, 'x') + "...");
  EXPECT_EQ(slices[3].name, "");
}

// Rank 0 starts 1 us before rank 1 by the clock; rank 2 does not tell the time of day.
TEST(Timeline, Clocks) {
  std::vector<RankTimeline> ranks;
  for (int i = 0; i < 3; ++i) ranks.push_back(make_rank(i, {{"gemm", {5000, 6000}}}));
  ranks[0].recording.clock_base = 1'000'000'000'000;
  ranks[1].recording.clock_base = 1'000'000'001'000;
  ranks[2].recording.clock = ClockBase::unknown;
  const Job job = make_job(std::move(ranks));
  Timeline timeline = read_timeline(write(job));
  EXPECT_EQ(timeline.slices.at(0).time.start, 0);
  EXPECT_EQ(timeline.slices.at(1).time.start, 1000);
  EXPECT_EQ(timeline.slices.at(2).time.start, 0);
  EXPECT_EQ(timeline.processes.at(2), "rank 2 (GPU 0, clock unknown)");
  EXPECT_EQ(timeline.json.at("otherData").at("origin_epoch_ns").text, "1000000005000");

  // An offset brings rank 1 before rank 0.
  timeline = read_timeline(write(job, {.clock_offsets = {0, -1500}}));
  EXPECT_EQ(timeline.slices.at(0).time.start, 500);
  EXPECT_EQ(timeline.slices.at(1).time.start, 0);
}

// Rank 0 computes until 1000, then the path is on rank 1, then on rank 0 again.
TEST(Timeline, TheCriticalPathHasTracksAndArrows) {
  std::vector<RankTimeline> ranks;
  ranks.push_back(make_rank(0, {{"gemm", {0, 1000}}, {"relu", {2500, 4000}}}));
  ranks.push_back(make_rank(1, {{kAllReduce, {500, 2500}}}));
  Job job = make_job(std::move(ranks));
  for (RankTimeline& rank : job.ranks) {
    for (std::uint32_t i = 0; i < rank.recording.gpu.size(); ++i)
      rank.work.name.push_back(rank.recording.gpu.name[i]);
  }
  job.ranks[1].work.comm = {{.node = 0, .device = 0, .op = 0}};
  job.path.known = true;
  job.path.window = {0, 4000};
  job.path.segments = {{.time = {0, 1000}, .rank = 0, .node = 0, .kind = PathClass::compute},
                       {.time = {1000, 2500}, .rank = 1, .node = 0, .kind = PathClass::transfer},
                       {.time = {2500, 4000}, .rank = 0, .node = 1, .kind = PathClass::compute}};
  const Timeline timeline = read_timeline(write(job));
  const std::vector<Slice> path = timeline.on("critical path");
  ASSERT_EQ(path.size(), 3U);
  EXPECT_EQ(path[0].process, "rank 0 (GPU 0)");
  EXPECT_EQ(path[0].time, (Interval{0, 1000}));
  EXPECT_EQ(path[0].arg("what"), "gemm");
  EXPECT_EQ(path[1].arg("what"), "relu");
  EXPECT_EQ(path[2].process, "rank 1 (GPU 0)");
  EXPECT_EQ(path[2].name, "transfer");
  EXPECT_EQ(path[2].category, "critical path,transfer");
  EXPECT_EQ(path[2].arg("what"), "all_reduce");
  EXPECT_EQ(path[2].time, (Interval{1000, 2500}));

  // Each arrow begins inside the slice that it leaves and ends at the one that it goes to.
  std::vector<std::string> ends;
  for (const Json& event : timeline.json.at("traceEvents").items) {
    const std::string phase = event.at("ph").text;
    if (phase == "s" || phase == "f")
      ends.push_back(phase + event.at("id").text + "@" + event.at("ts").text);
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"s1@0.999", "f1@1.000", "s2@2.499", "f2@2.500"}));
  EXPECT_TRUE(read_timeline(write(job, {.clip_to_window = true})).on("critical path").empty());
}

TEST(Timeline, RunsDevicesAndEmptyRanks) {
  std::vector<RankTimeline> ranks;
  ranks.push_back(make_rank(0, {{"gemm", {0, 1}}, {"gemm", {0, 1}, 7, ActivityKind::kernel, 1}}));
  ranks.push_back(make_rank(1, {{"gemm", {0, 1}}}));
  ranks.push_back(make_rank(1, {{"gemm", {0, 1}}}));
  ranks[2].run = 1;
  ranks.push_back(make_rank(2, {}));
  EXPECT_EQ(read_timeline(write(make_job(std::move(ranks)))).processes,
            (std::vector<std::string>{"rank 0 (GPU 0)", "rank 0 (GPU 1)", "rank 1, run 0 (GPU 0)",
                                      "rank 1, run 1 (GPU 0)", "rank 2 (nothing recorded)"}));
  EXPECT_TRUE(read_timeline(write(Job{})).slices.empty());
}

TEST(Timeline, HostIntervals) {
  RankTimeline rank = make_rank(0, {});
  Recording& recording = rank.recording;
  recording.threads = {{1, 1}};
  recording.host_ranges.push_back({.start = 4,
                                   .end = 9,
                                   .thread = ThreadId::from(0),
                                   .name = recording.strings.intern("all_reduce"),
                                   .backend = recording.strings.intern("gloo"),
                                   .meta = {}});
  recording.host_compute = IntervalSet({{0, 5}});
  const Timeline timeline = read_timeline(write(make_job({std::move(rank)})));
  EXPECT_EQ(timeline.processes.at(0), "rank 0 (CPU)");
  EXPECT_EQ(timeline.on("host compute").at(0).time, (Interval{0, 5}));
  EXPECT_EQ(timeline.on("host communication").at(0).time, (Interval{4, 9}));
  EXPECT_EQ(timeline.on("exposed communication").at(0).time, (Interval{5, 9}));
}

// Window [10, 20): whole slices that meet it, exposed spans cut to it.
TEST(Timeline, ClipsToWindow) {
  Job job = make_job({make_rank(0, {{"before", {0, 10}},
                                    {"in", {18, 22}},
                                    {"after", {20, 30}},
                                    {kAllReduce, {5, 12}, 24},
                                    {kAllReduce, {24, 40}, 24}})});
  DeviceTimeline& device = job.ranks[0].devices[0];
  WindowFigures figures = window_figures(device, {10, 20});
  device.breakdown = figures.breakdown;
  device.exposures = figures.exposures;
  const Timeline clipped = read_timeline(write(job, {.clip_to_window = true}));
  ASSERT_EQ(clipped.slices.size(), 3U);
  EXPECT_EQ(clipped.slices[0].name, "in");
  EXPECT_EQ(clipped.slices[1].time, (Interval{5, 12}));
  EXPECT_EQ(clipped.slices[1].arg("busy_ns"), "2");
  EXPECT_EQ(clipped.slices[2].time, (Interval{10, 12}));

  const Timeline whole = read_timeline(write(job));
  EXPECT_EQ(whole.on("stream 7: compute").size() + whole.on("stream 7: compute (2)").size(), 3U);
  const Slice outside = whole.on("stream 24: communication").at(1);
  EXPECT_EQ(outside.name, "all_reduce (outside the window)");
  EXPECT_EQ(outside.arg("busy_ns"), "absent");
}

Job random_job(std::mt19937& random) {
  const auto upto = [&random](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1));
  };
  std::vector<RankTimeline> ranks;
  const std::int64_t count = 1 + upto(2);
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<Kernel> kernels;
    for (std::int64_t left = 1 + upto(40); left > 0; --left) {
      static const std::vector<std::string> names{
          "gemm", "Memcpy HtoD", kAllReduce, "ncclDevKernel_AllGather_RING_LL", "odd \"\x01\xFE\""};
      const std::int64_t name = upto(4);
      const Ns start = 1'000'000'000 + upto(3000);
      kernels.push_back({.name = names[static_cast<std::size_t>(name)],
                         .time = {start, start + upto(3) * upto(200)},
                         .stream = 7 + upto(2),
                         .kind = name == 1 ? ActivityKind::memcpy : ActivityKind::kernel,
                         .device = upto(1)});
    }
    ranks.push_back(make_rank(i, kernels));
    ranks.back().recording.clock_base = upto(5000);
    if (upto(4) == 0) ranks.back().recording.clock = ClockBase::unknown;
  }
  return make_job(std::move(ranks));
}

using Bag = std::multiset<std::pair<Ns, Ns>>;

// What one rank's slices must be on the timeline, each activity once.
void check_rank(const RankTimeline& rank, const Timeline& timeline, Ns shift) {
  for (const DeviceTimeline& device : rank.devices) {
    const std::string start =
        "rank " + std::to_string(rank.rank) + " (GPU " + std::to_string(*device.device);
    Bag expected;
    Bag written;
    Ns exposed = 0;
    const GpuActivities& gpu = rank.recording.gpu;
    for (std::size_t i = 0; i < gpu.size(); ++i) {
      if (rank.recording.streams[gpu.stream[i].index()].device == device.device)
        expected.emplace(gpu.start[i] + shift, gpu.end[i] + shift);
    }
    for (const Slice& slice : timeline.slices) {
      if (!slice.process.starts_with(start)) continue;
      if (slice.category == "exposed") {
        exposed += slice.time.length();
      } else {
        written.emplace(slice.time.start, slice.time.end);
      }
    }
    EXPECT_EQ(written, expected);
    EXPECT_EQ(exposed, device.breakdown.exposed_comm);
  }
}

TEST(Timeline, RandomJobs) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Job job = random_job(random);
    const std::string text = write(job);
    EXPECT_EQ(text, write(job));
    const Timeline timeline = read_timeline(text);

    Ns origin = std::numeric_limits<Ns>::max();
    std::vector<Ns> first;
    for (const RankTimeline& rank : job.ranks) {
      const auto& starts = rank.recording.gpu.start;
      first.push_back(*std::min_element(starts.begin(), starts.end()));
      if (rank.recording.clock == ClockBase::epoch)
        origin = std::min(origin, first.back() + rank.recording.clock_base);
    }
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      const Recording& recording = job.ranks[i].recording;
      check_rank(job.ranks[i], timeline,
                 recording.clock == ClockBase::epoch ? recording.clock_base - origin : -first[i]);
    }

    std::map<std::pair<std::string, std::string>, std::vector<Interval>> tracks;
    for (const Slice& slice : timeline.slices)
      tracks[{slice.process, slice.track}].push_back(slice.time);
    for (const auto& [track, times] : tracks) {
      for (std::size_t i = 1; i < times.size(); ++i)
        EXPECT_LE(times[i - 1].end, times[i].start) << track.second;
    }
  }
}

}  // namespace
}  // namespace commlens
