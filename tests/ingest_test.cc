// The JSON scanner in pieces of every size, the moving window, and the Kineto reader: every layout,
// every known oddity, events across the window's edge.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#ifdef COMMLENS_WITH_ZSTD
#include <zstd.h>
#endif

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/json_scan.h"
#include "ingest/kineto_context.h"
#include "ingest/window.h"
#include "model/builder.h"
#include "notation.h"
#include "slow_pipe.h"

namespace commlens {
namespace {

using notation::Clock;
using notation::KinetoLayout;
using notation::situation;
using notation::Situation;
using notation::Style;

// ---------------------------------------------------------------------------------------------
// json_scan.h

// Text with the padding that the scanner may read, filled with what would mislead it.
class Padded {
 public:
  explicit Padded(std::string_view text, char filler = '}') : text_(text), size_(text.size()) {
    text_.append(kScanPadding, filler);
  }
  const char* begin() const { return text_.data(); }
  const char* end() const { return text_.data() + size_; }

 private:
  std::string text_;
  std::size_t size_;
};

struct Skipped {
  Scan scan = Scan::need_more;
  std::size_t at = 0;
  friend bool operator==(const Skipped&, const Skipped&) = default;
};
void PrintTo(const Skipped& s, std::ostream* out) {
  *out << static_cast<int>(s.scan) << " at " << s.at;
}

// Byte by byte, from inside one open bracket.
Skipped skip_slowly(std::string_view text, std::int64_t depth = 1) {
  bool in_string = false;
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\n') return {Scan::bad, i};
    const bool was_escaped = escaped;
    escaped = c == '\\' && !was_escaped;
    if (c == '"' && !was_escaped) in_string = !in_string;
    if (in_string) continue;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return {Scan::ok, i + 1};
  }
  return {Scan::need_more, text.size()};
}

Skipped skip_in_pieces(std::string_view text, const std::vector<std::size_t>& cuts,
                       std::int64_t depth = 1,
                       SkipContainer skip_container = usable_skip_containers().front()) {
  ContainerSkip skip{.depth = depth};
  std::size_t from = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t to = i < cuts.size() ? cuts[i] : text.size();
    const Padded piece(text.substr(from, to - from), "}\"\\{\n"[i % 5]);
    const char* at = piece.begin();
    const Scan scan = skip_container(skip, at, piece.end());
    if (scan != Scan::need_more) return {scan, from + static_cast<std::size_t>(at - piece.begin())};
    EXPECT_EQ(at, piece.end());
    from = to;
  }
  return {Scan::need_more, text.size()};
}

std::string random_json_like(std::mt19937& random, std::size_t longest) {
  // More quotes and closing brackets in some, none in others.
  static constexpr std::string_view kAlphabets[] = {"{}[]\"\\ab", "{}[]\"aaaaaaaaaaaaaaa",
                                                    "{[\"\\\\\\", "{}[]\"\\\n,:0123456789"};
  const std::string_view alphabet = kAlphabets[random() % std::size(kAlphabets)];
  std::string text(random() % longest, ' ');
  for (char& c : text) c = alphabet[random() % alphabet.size()];
  return text;
}

TEST(ContainerSkipper, AgreesWithTheSlowWayInAnyPieces) {
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_json_like(random, 300);
    const auto depth = static_cast<std::int64_t>(1 + random() % 4);
    std::vector<std::size_t> cuts(random() % 6);
    for (std::size_t& cut : cuts) cut = random() % (text.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    const Skipped slow = skip_slowly(text, depth);
    for (const SkipContainer walk : usable_skip_containers()) {
      ASSERT_EQ(skip_in_pieces(text, {}, depth, walk), slow) << text;
      ASSERT_EQ(skip_in_pieces(text, cuts, depth, walk), slow) << text;
    }
  }
}

TEST(ContainerSkipper, EveryPieceSize) {
  const std::string text =
      R"("a": "}\"]\\", "b\\\"": [1, {"c": "\\\\"}, [], "{[{["], "d": {}, "e": "\u0041"}, "next": 1)";
  const std::size_t closing = text.find("}, \"next\"") + 1;
  for (std::size_t size = 1; size <= 130; ++size) {
    std::vector<std::size_t> cuts;
    for (std::size_t at = size; at < text.size(); at += size) cuts.push_back(at);
    ASSERT_EQ(skip_in_pieces(text, cuts), (Skipped{Scan::ok, closing})) << size;
  }
}

TEST(ContainerSkipper, TenThousandDeep) {
  const std::string text = std::string(10'000, '[') + std::string(10'000, ']') + "] behind";
  EXPECT_EQ(skip_in_pieces(text, {}), (Skipped{Scan::ok, 20'001}));
  EXPECT_EQ(skip_in_pieces(text, {9'999, 10'001, 19'999}), (Skipped{Scan::ok, 20'001}));
}

constexpr std::string_view kEveryKind = R"({
  "string": "a\"b\\", "number": -1.5e+3, "true": true, "null": null , "nan": NaN, "inf": -inf,
  "object": {"a": [1, "}", {}]}, "array": [[], {}, 1, "]"], "empty": {}, "last":"x\u00e9" })";

struct Member {
  std::string key;
  TokenKind kind;
  std::string text;
  friend bool operator==(const Member&, const Member&) = default;
};

Scan walk(std::string_view text, std::vector<Member>& members) {
  const Padded padded(text);
  Walker walker(padded.begin() + 1, padded.end());
  std::string_view key;
  while (walker.next_key(key)) {
    const std::string name(key);
    const Token token = walker.value();
    if (walker.state() == Scan::ok) members.push_back({name, token.kind, std::string(token.text)});
  }
  return walker.state();
}

TEST(Walker, EveryKindOfValue) {
  std::vector<Member> members;
  ASSERT_EQ(walk(kEveryKind, members), Scan::ok);
  const std::vector<Member> wanted = {{"string", TokenKind::string, R"(a\"b\\)"},
                                      {"number", TokenKind::number, "-1.5e+3"},
                                      {"true", TokenKind::literal, "true"},
                                      {"null", TokenKind::literal, "null"},
                                      {"nan", TokenKind::literal, "NaN"},
                                      {"inf", TokenKind::literal, "-inf"},
                                      {"object", TokenKind::object, R"({"a": [1, "}", {}]})"},
                                      {"array", TokenKind::array, R"([[], {}, 1, "]"])"},
                                      {"empty", TokenKind::object, "{}"},
                                      {"last", TokenKind::string, R"(x\u00e9)"}};
  EXPECT_TRUE(members == wanted);
}

// A text that stops anywhere asks for more, and what was given before is what the whole gives.
TEST(Walker, EveryPrefixNeedsMore) {
  std::vector<Member> whole;
  ASSERT_EQ(walk(kEveryKind, whole), Scan::ok);
  for (std::size_t size = 1; size < kEveryKind.size(); ++size) {
    std::vector<Member> members;
    ASSERT_EQ(walk(kEveryKind.substr(0, size), members), Scan::need_more) << size;
    ASSERT_LE(members.size(), whole.size());
    ASSERT_TRUE(std::equal(members.begin(), members.end(), whole.begin())) << size;
  }
}

Scan walk_state(std::string_view text) {
  std::vector<Member> members;
  return walk(text, members);
}

TEST(Walker, WhatIsNoJson) {
  for (const std::string_view text :
       {R"({"a" 1})", R"({"a": 1 "b": 2})", R"({a: 1})", R"({"a": })", R"({"a": x"y"})",
        R"({"a": "b"c"})", "{\"a\": \"b\nc\"}", "{\"a\": \"b\\\nc\"}",
        R"({"a": [1, "b)"
        "\n]}",
        R"({1: 2})", R"({"a":: 1})", R"({"a"})", R"({"a": 1]})"})
    EXPECT_EQ(walk_state(text), Scan::bad) << text;
}

TEST(Walker, SurplusCommasAndOddNumbers) {
  const Padded padded(R"({,"a": 1,, "b": [NaN], "c": -nan(ind), "d": {}, "e": {"f": {}}, })");
  Walker walker(padded.begin() + 1, padded.end());
  std::string_view key;
  std::string keys;
  while (walker.next_key(key)) {
    keys += key;
    if (walker.enter_object()) {
      while (walker.next_key(key)) {
        keys += key;
        if (walker.enter_object()) {
          while (walker.next_key(key)) walker.skip_value();
        }
      }
    }
  }
  EXPECT_EQ(walker.state(), Scan::ok);
  EXPECT_EQ(walker.at(), padded.end());
  EXPECT_EQ(keys, "abcdef");
  EXPECT_EQ(walker.surplus_commas(), 3);  // before a, between a and b, behind e
  EXPECT_EQ(walker.odd_numbers(), 1);     // what is passed over with its container is not looked at
}

// An object that was walked through and was empty leaves nothing behind.
TEST(Walker, BehindAnEmptyObjectACommaIsDue) {
  const Padded good(R"({"a": {}, "b": 1})");
  Walker walker(good.begin() + 1, good.end());
  std::string_view key;
  ASSERT_TRUE(walker.next_key(key));
  ASSERT_TRUE(walker.enter_object());
  ASSERT_FALSE(walker.next_key(key));
  ASSERT_TRUE(walker.next_key(key));
  EXPECT_EQ(key, "b");
  EXPECT_EQ(walker.surplus_commas(), 0);
  const Padded bad(R"({"a": {} "b": 1})");
  Walker other(bad.begin() + 1, bad.end());
  ASSERT_TRUE(other.next_key(key));
  ASSERT_TRUE(other.enter_object());
  ASSERT_FALSE(other.next_key(key));
  EXPECT_FALSE(other.next_key(key));
  EXPECT_EQ(other.state(), Scan::bad);
}

TEST(Walker, ArraysAndLeaving) {
  const Padded padded(R"([1, "a", {"b": 2, "c": [3]}, ], "behind")");
  Walker walker(padded.begin() + 1, padded.end());
  ASSERT_TRUE(walker.next_element());
  EXPECT_EQ(walker.value().text, "1");
  ASSERT_TRUE(walker.next_element());
  EXPECT_FALSE(walker.enter_object());
  ASSERT_TRUE(walker.next_element());
  ASSERT_TRUE(walker.enter_object());
  walker.leave();
  EXPECT_FALSE(walker.next_element());
  EXPECT_EQ(walker.state(), Scan::ok);
  EXPECT_EQ(*walker.at(), ',');
}

TEST(Walker, TenThousandDeep) {
  std::string text = "{\"a\": ";
  for (int i = 0; i < 10'000; ++i) text += i % 2 == 0 ? "[" : "{\"x\": ";
  text += "1";
  for (int i = 9'999; i >= 0; --i) text += i % 2 == 0 ? "]" : "}";
  std::vector<Member> members;
  EXPECT_EQ(walk(text + ", \"b\": 1}", members), Scan::ok);
  EXPECT_EQ(members.size(), 2U);
}

TEST(Unescaped, EveryEscape) {
  EXPECT_EQ(unescaped(R"(a\"\\\/\b\f\n\r\tz)"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(unescaped(R"(\u0041\u00e9\u20AC)"), "A\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(unescaped(R"(\ud83d\ude00!)"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(unescaped(R"(\ud83d!)"), "\xEF\xBF\xBD!");
  EXPECT_EQ(unescaped(R"(\ude00\ud83d\u0041)"),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "A");
  // Wrong escapes stay.
  EXPECT_EQ(unescaped(R"(C:\dir\x\u12)"), R"(C:\dir\x\u12)");
  EXPECT_EQ(unescaped(R"(\u-123\u+123)"), R"(\u-123\u+123)");
  EXPECT_EQ(unescaped("\\"), "\\");
  EXPECT_EQ(unescaped(""), "");
}

// ---------------------------------------------------------------------------------------------
// window.h

TEST(Window, MovesOverTheText) {
  std::string text;
  for (int i = 0; text.size() < std::size_t{5} << 20U; ++i) text += std::to_string(i) + ' ';
  const std::string_view all = text;
  Source source = Source::memory("x", all);
  std::string head(1'000, ' ');
  head.resize(source.read(head));
  Window window(source, head);
  std::string seen;
  std::mt19937 random(5);
  for (;;) {
    const std::size_t take = std::min<std::size_t>(window.size(), 1 + random() % 700'000);
    ASSERT_EQ(window.offset(window.begin()), static_cast<std::int64_t>(seen.size()));
    seen.append(window.begin(), take);
    window.use(window.begin() + take);
    for (std::size_t i = 0; i < kScanPadding; ++i) ASSERT_EQ(window.end()[i], '\0');
    if (!window.refill() && window.size() == 0) break;
  }
  EXPECT_TRUE(seen == text);
  EXPECT_FALSE(window.full());
}

TEST(Window, GrowsToItsLimit) {
  const std::string text(std::size_t{20} << 20U, 'x');
  Source source = Source::memory("x", text);
  Window window(source, "");
  while (window.refill()) {
  }
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.size(), std::size_t{8} << 20U);
  window.use(window.end());
  EXPECT_TRUE(window.refill());
  EXPECT_FALSE(window.full());
}

TEST(Window, AHeadLargerThanUsual) {
  const std::string head(std::size_t{3} << 20U, 'h');
  Source source = Source::memory("x", "tail");
  Window window(source, head);
  EXPECT_EQ(window.size(), head.size());
  EXPECT_TRUE(window.refill());
  EXPECT_EQ(std::string_view(window.begin(), window.size()).substr(head.size()), "tail");
}

// ---------------------------------------------------------------------------------------------
// The Kineto reader

const Format& kineto() { return *find_format("kineto"); }

Recording read_source(Source source, std::string_view head, bool host_compute = false) {
  TraceBuilder builder("test.json", "kineto");
  const ReadOptions options{.host_compute = host_compute};
  kineto().read(source, head, options, builder);
  return builder.finish();
}

// `head` bytes are handed over as already read.
Recording read_text(std::string_view text, std::size_t head = 0, bool host_compute = false) {
  head = std::min(head, text.size());
  return read_source(Source::memory("test.json", text.substr(head)), text.substr(0, head),
                     host_compute);
}

Recording read_pieces(std::string_view text, std::function<std::size_t()> step) {
  const SlowPipe pipe(text, std::move(step));
  return read_source(Source::open(pipe.path()), "");
}

// Everything that a recording says but for its notes, as text: equal texts are equal recordings.
std::string described(const Recording& r) {
  std::string out;
  const auto put = [&out](auto... values) {
    ((out += std::to_string(values) + ' '), ...);
    out += '\n';
  };
  const auto meta = [&](MetaId id) {
    if (!id.valid()) return;
    const CollectiveMeta& m = r.metas[id.index()];
    for (const StringId text :
         {m.collective, m.dtype, m.group_name, m.group_description, m.group_ranks})
      out += std::string(r.strings.get(text)) + '|';
    put(m.in_elements, m.out_elements, m.group_size);
  };
  const auto thread = [&r](ThreadId id) { return r.threads[id.index()]; };
  put(r.rank.value_or(-1), r.world_size, r.process, static_cast<int>(r.clock), r.clock_base);
  out += r.backend + '|' + r.nccl_version + '|' + r.host + '\n';
  for (const ProcessGroup& group : r.groups) {
    out += group.name + '|' + group.description + '|';
    put(group.size, group.ranks.size());
    for (const int rank : group.ranks) put(rank);
  }
  if (r.span) put(r.span->start, r.span->end);
  for (std::size_t i = 0; i < r.gpu.size(); ++i) {
    const Stream& stream = r.streams[r.gpu.stream[i].index()];
    out += std::string(r.strings.get(r.gpu.name[i])) + ": ";
    put(r.gpu.start[i], r.gpu.end[i], stream.device, stream.context, stream.stream,
        r.gpu.correlation[i], r.gpu.external_id[i], static_cast<int>(r.gpu.kind[i]));
    meta(r.gpu.meta[i]);
  }
  for (std::size_t i = 0; i < r.launches.size(); ++i)
    put(r.launches.correlation[i], r.launches.start[i], thread(r.launches.thread[i]).first,
        thread(r.launches.thread[i]).second);
  for (const SyncCall& call : r.sync_calls)
    put(call.start, call.end, call.correlation, thread(call.thread).second,
        static_cast<int>(call.kind));
  for (const SyncRecord& record : r.sync_records)
    put(record.start, record.correlation, record.record_correlation, record.stream.device,
        record.stream.context, record.stream.stream, record.source.stream,
        static_cast<int>(record.kind));
  for (const HostRange& range : r.host_ranges) {
    out += std::string(r.strings.get(range.backend)) + ':' +
           std::string(r.strings.get(range.name)) + ' ';
    put(range.start, range.end, thread(range.thread).first, thread(range.thread).second,
        range.external_id, static_cast<int>(range.kind));
    meta(range.meta);
  }
  for (const StepRange& step : r.steps) {
    put(step.number, step.host.start, step.host.end);
    if (step.gpu_annotation) put(step.gpu_annotation->start, step.gpu_annotation->end);
  }
  for (const Interval part : r.host_compute.parts()) put(part.start, part.end);
  return out;
}

// "code=count" of the notes that fired.
std::string noted(const Notes& notes) {
  std::string out;
  for (std::size_t i = 0; i < Notes::kCount; ++i) {
    const auto note = static_cast<Note>(i);
    if (notes.count(note) == 0) continue;
    out += (out.empty() ? "" : " ") + std::string(note_info(note).code) + '=' +
           std::to_string(notes.count(note));
  }
  return out;
}

// Names of the GPU activities, in order.
std::string names_of(const Recording& r) {
  std::string out;
  for (const StringId name : r.gpu.name)
    out += (out.empty() ? "" : " ") + std::string(r.strings.get(name));
  return out;
}

std::string kernel_event(std::string_view name, int ts, std::string_view more = "") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + std::string(name) +
         R"(", "pid": 0, "tid": 7, "ts": )" + std::to_string(ts) +
         R"(.125, "dur": 2.5, "args": {"device": 0, "stream": 7, "correlation": )" +
         std::to_string(ts) + std::string(more) + "}}";
}

std::string trace_of(std::initializer_list<std::string_view> events) {
  std::string text = R"({"schemaVersion": 1, "baseTimeNanoseconds": 1735632360000000000,
 "traceEvents": [
)";
  std::string_view separator;
  for (const std::string_view event : events) {
    text += std::string(separator) + "  " + std::string(event);
    separator = ",\n";
  }
  return text + "\n ],\n \"traceName\": \"x\"\n}\n";
}

constexpr std::string_view kRich =
    "compute@0/1/7 [0,2) [3,5) corr=11; all_reduce@0/1/20 [1,2.5us) corr=12 id=70 bytes=1M n=4 "
    "group=tp ranks=0,1,2,3; all_gather@1/2/20 [7us,9us) corr=13; memcpy@7 [6,7] corr=14; "
    "memset@7 [8,8]; launch@5 [0] corr=11; launch@5 [1] corr=12; record@5 [0,4] id=70 op=allreduce "
    "bytes=1M n=4 group=tp ranks=0,1,2,3; record@5 [5,6] op=wait; record@6 [5,6]; range@5 [0,5) "
    "name=nccl:all_reduce; step#3 [0,10); gpu_step#3 [0,12); step#4 [10,30)";

Situation rich() {
  Situation s = situation(kRich);
  s.rank = 2;
  s.world_size = 4;
  return s;
}

std::vector<KinetoLayout> all_layouts() {
  std::vector<KinetoLayout> layouts;
  for (const Style style : {Style::classic, Style::lines, Style::compact}) {
    for (const bool base_last : {false, true}) {
      for (const std::uint64_t shuffle : {0U, 1U, 2U, 3U})
        layouts.push_back({.style = style, .base_last = base_last, .shuffle = shuffle});
    }
  }
  return layouts;
}

TEST(Kineto, EveryLayoutGivesTheSame) {
  const Situation s = rich();
  Recording wanted = notation::recording(s);
  wanted.backend = "nccl";
  for (const KinetoLayout& layout : all_layouts()) {
    const std::string text = notation::kineto_text(s, layout);
    ASSERT_TRUE(detect_format(text) == &kineto());
    const Recording got = read_text(text);
    ASSERT_EQ(described(got), described(wanted)) << text;
    ASSERT_EQ(noted(got.notes), "");
    ASSERT_EQ(got.events, 15);
  }
}

TEST(Kineto, AbsoluteAndRelativeTimes) {
  const Situation s = situation("compute@7 [0,2); compute@7 [3,4)");
  const Recording absolute = read_text(notation::kineto_text(s, {.clock = Clock::absolute}));
  EXPECT_EQ(absolute.clock, ClockBase::epoch);
  EXPECT_EQ(absolute.clock_base, 0);
  EXPECT_EQ(absolute.gpu.start[0], notation::kBase + s.origin);
  EXPECT_EQ(absolute.gpu.end[1], notation::kBase + s.origin + 4);
  EXPECT_EQ(noted(absolute.notes), "");
  const Recording relative = read_text(notation::kineto_text(s, {.clock = Clock::no_base}));
  EXPECT_EQ(relative.clock, ClockBase::unknown);
  EXPECT_EQ(relative.gpu.start[0], s.origin);
  EXPECT_EQ(noted(relative.notes), "no_clock_base=1");
}

// Worked case 6, through the reader.
TEST(Kineto, NanosecondsOfEpochTimes) {
  const Recording r = read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1740461679479712.123, "dur": 0.001},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1740461679479712.124, "dur": 0}]})");
  ASSERT_EQ(r.gpu.size(), 2U);
  EXPECT_EQ(r.gpu.start[1] - r.gpu.start[0], 1);
  EXPECT_EQ(r.gpu.end[0], r.gpu.start[1]);
}

TEST(Kineto, BareArrays) {
  const Situation s = situation("compute@7 [0,2); all_reduce@20 [1,3) corr=4; launch [0] corr=4");
  for (const Style style : {Style::classic, Style::lines, Style::compact}) {
    const std::string text =
        notation::kineto_text(s, {.style = style, .clock = Clock::no_base, .bare_array = true});
    EXPECT_TRUE(detect_format(text) == &kineto()) << text;
    const Recording r = read_text(text);
    EXPECT_EQ(r.gpu.size(), 2U);
    EXPECT_EQ(r.launches.size(), 1U);
    EXPECT_EQ(noted(r.notes), "no_clock_base=1");
    // The closing bracket was never required by Chrome's viewer, but a file without it was cut.
    const Recording cut = read_text(text.substr(0, text.rfind(']')));
    EXPECT_EQ(cut.gpu.size(), 2U);
    EXPECT_EQ(cut.notes.count(Note::truncated), 1);
  }
}

// ---------------------------------------------------------------------------------------------
// Order of keys

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string event_of(const Pairs& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs)
    text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  return text + "}";
}

TEST(Kineto, EveryOrderOfKeysGivesTheSame) {
  const std::string kernel_args =
      R"({"device": 0, "stream": 7, "correlation": 5, "occupancy": NaN, "Collective name": "allreduce",
          "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Half", "Process Group Ranks": [0, 1],,})";
  const std::vector<Pairs> events = {
      {{"ph", "\"X\""},
       {"cat", "\"kernel\""},
       {"name", "\"ncclKernel\""},
       {"ts", "7.5"},
       {"args", kernel_args}},
      {{"ph", "\"X\""},
       {"cat", "\"Kernel\""},
       {"name", "\"k \\\"x\\\"\""},
       {"ts", "7"},
       {"args", "{}"}},
      {{"ph", "\"X\""},
       {"cat", "\"gpu_memcpy\""},
       {"name", "\"Memcpy PtoP\""},
       {"ts", "7"},
       {"args", R"({"fromDevice": 0, "inDevice": 1, "toDevice": 2, "inContext": 3, "stream": 4})"}},
      {{"ph", "\"X\""},
       {"cat", "\"cpu_op\""},
       {"name", "\"record_param_comms\""},
       {"ts", "1"},
       {"args", R"({"External id": 9, "Collective name": "_allgather_base", "Group size": 2})"}},
      {{"ph", "\"X\""},
       {"cat", "\"cpu_op\""},
       {"name", "\"record_param_comms\""},
       {"ts", "1"},
       {"args", R"({"External id": 9, "Collective name": "wait"})"}},
      {{"ph", "\"X\""},
       {"cat", "\"cpu_op\""},
       {"name", "\"aten::mm\""},
       {"ts", "1"},
       {"args", "{}"}},
      {{"ph", "\"X\""},
       {"cat", "\"cuda_runtime\""},
       {"name", "\"cudaLaunchKernel\""},
       {"ts", "1"},
       {"args", R"({"correlation": 5})"}},
      {{"ph", "\"X\""},
       {"cat", "\"cuda_runtime\""},
       {"name", "\"cudaEventQuery\""},
       {"ts", "1"},
       {"args", R"({"correlation": 5})"}},
      {{"ph", "\"X\""},
       {"cat", "\"user_annotation\""},
       {"name", "\"ProfilerStep#5\""},
       {"ts", "1"},
       {"args", R"({"External id": 1})"}},
      {{"ph", "\"X\""},
       {"cat", "\"user_annotation\""},
       {"name", "\"nccl:broadcast\""},
       {"ts", "1"},
       {"args", "{}"}},
      {{"ph", "\"X\""},
       {"cat", "\"gpu_user_annotation\""},
       {"name", "\"nccl:broadcast\""},
       {"ts", "1"},
       {"args", "{}"}},
      {{"ph", "\"X\""},
       {"cat", "\"python_function\""},
       {"name", "\"nn.Module: Linear\""},
       {"ts", "1"},
       {"args", R"({"Python id": 1})"}},
      {{"ph", "\"f\""}, {"cat", "\"kernel\""}, {"name", "\"ac2g\""}, {"ts", "1"}, {"args", "{}"}},
  };
  for (const Pairs& event : events) {
    Pairs order = event;
    std::sort(order.begin(), order.end());
    std::optional<std::string> wanted;
    do {
      Pairs whole = order;
      whole.insert(whole.begin() + 2, {{"pid", "1"}, {"tid", "2"}, {"dur", "3"}});
      const std::string text = trace_of({event_of(whole), kernel_event("next", 50)});
      const Recording r = read_text(text);
      const std::string got = described(r) + noted(r.notes);
      if (!wanted) wanted = got;
      ASSERT_EQ(got, *wanted) << text;
      ASSERT_EQ(r.events, 2);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Damage inside the arguments costs the event, wherever they stand in it.
TEST(Kineto, DamagedArgumentsInAnyOrder) {
  const Pairs parts = {{"cat", "\"kernel\""}, {"name", "\"bad\""}, {"args", R"({"device" 0})"}};
  Pairs order = parts;
  std::sort(order.begin(), order.end());
  do {
    Pairs whole = order;
    whole.insert(whole.begin(), {{"ph", "\"X\""}, {"ts", "9"}, {"dur", "1"}});
    const Recording r =
        read_text(trace_of({kernel_event("a", 5), event_of(whole), kernel_event("b", 50)}));
    ASSERT_EQ(names_of(r), "a b") << event_of(whole);
    ASSERT_EQ(noted(r.notes), "malformed_event=1") << event_of(whole);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Kineto, TopLevelKeysInEveryOrder) {
  std::vector<std::string> members = {
      R"("schemaVersion": 1)", R"("baseTimeNanoseconds": 1735632360000000000)",
      "\"traceEvents\": [" + kernel_event("a", 5) + "," + kernel_event("b", 9) + "]",
      R"("distributedInfo": {"rank": 3, "world_size": 8})", R"("host_name": "node\u0031")"};
  std::sort(members.begin(), members.end());
  std::optional<std::string> wanted;
  do {
    std::string text;
    for (const std::string& member : members) text += (text.empty() ? "{" : ", ") + member;
    const Recording r = read_text(text + "}");
    if (!wanted) wanted = described(r);
    ASSERT_EQ(described(r), *wanted);
    ASSERT_EQ(noted(r.notes), "");
    ASSERT_EQ(r.rank, 3);
    ASSERT_EQ(r.host, "node1");
    ASSERT_EQ(r.clock_base, 1735632360000000000);
  } while (std::next_permutation(members.begin(), members.end()));
}

// ---------------------------------------------------------------------------------------------
// Splits and the window's edge

TEST(Kineto, AHeadOfAnySizeGivesTheSame) {
  const std::string text = notation::kineto_text(rich());
  const std::string wanted = described(read_text(text));
  for (std::size_t head = 0; head <= text.size(); ++head)
    ASSERT_EQ(described(read_text(text, head)), wanted) << head;
}

TEST(Kineto, ReadsOfAnySizeGiveTheSame) {
  std::mt19937 random(6);
  for (const KinetoLayout& layout : all_layouts()) {
    const std::string text = notation::kineto_text(rich(), layout);
    const Recording whole = read_text(text);
    const std::size_t largest = 1 + random() % 200;
    const Recording pieces =
        read_pieces(text, [&random, largest] { return 1 + random() % largest; });
    ASSERT_EQ(described(pieces), described(whole));
    ASSERT_EQ(noted(pieces.notes), noted(whole.notes));
  }
}

// Damaged texts too: what is found must not depend on how the bytes came. Each byte alone is the
// hardest way.
TEST(Kineto, ReadsOfAnySizeOfOddTexts) {
  const std::string text = trace_of(
      {kernel_event("a", 5), kernel_event("b \" c", 9), "null", "[1, 2]", "\"}\"",
       kernel_event("d", 13, R"(, "x": NaN, "y": "\\" )"), kernel_event("e\n", 17),
       R"({"ph": "X", "cat": "kernel", "ts": 3, "dur": 1, "args": {},,})", kernel_event("f", 21)});
  const Recording whole = read_text(text);
  EXPECT_TRUE(names_of(whole).ends_with(" f"));
  for (const std::size_t step : {1U, 2U, 3U, 7U, 64U}) {
    const Recording pieces = read_pieces(text, [step] { return step; });
    ASSERT_EQ(described(pieces), described(whole)) << step;
    ASSERT_EQ(noted(pieces.notes), noted(whole.notes)) << step;
  }
}

// An event at each of the last places before the first window ends, and behind it.
void read_across(std::size_t edge) {
  const std::string before = R"({"traceEvents": [)";
  const std::string wanted_event = kernel_event("edge", 77, R"(, "External id": 3)");
  const std::string behind = "," + kernel_event("behind", 99) + "]}";
  const std::string filler_head = R"({"ph": "X", "cat": "python_function", "name": ")";
  const std::string filler_tail = R"(", "pid": 1, "tid": 1, "ts": 1, "dur": 1},)";
  std::optional<std::string> wanted;
  for (std::size_t start = edge - 300; start <= edge + 3; ++start) {
    std::string text = before;
    const std::size_t fixed = before.size() + filler_head.size() + filler_tail.size();
    text += filler_head + std::string(start - fixed, 'x') + filler_tail;
    ASSERT_EQ(text.size(), start);
    text += wanted_event + behind;
    for (const std::size_t head : {std::size_t{0}, std::size_t{65'536}}) {
      const Recording r = read_text(text, head);
      const std::string got = described(r) + noted(r.notes);
      if (!wanted) wanted = got;
      ASSERT_EQ(names_of(r), "edge behind") << start;
      ASSERT_EQ(got, *wanted) << start;
      ASSERT_EQ(r.events, 3);
    }
  }
}

TEST(Kineto, EventsAcrossTheWindowsEdge) {
  for (const std::size_t edge : {std::size_t{1} << 19U, std::size_t{1} << 20U}) read_across(edge);
}

// Many windows' worth of events of every kind, against the same events one by one.
TEST(Kineto, ManyWindows) {
  std::string text = R"({"traceEvents": [)";
  std::mt19937 random(7);
  int kernels = 0;
  while (text.size() < std::size_t{6} << 20U) {
    text += text.back() == '[' ? "\n" : ",\n";
    if (random() % 3 == 0) {
      text += kernel_event("k", 1'000 + kernels++);
    } else {
      text += R"({"ph": "X", "cat": "python_function", "name": ")" +
              std::string(random() % 2'000, 'p') + R"(", "ts": 1, "args": {"x": "{[\"]}"}})";
    }
  }
  const Recording r = read_text(text + "]}");
  ASSERT_EQ(r.gpu.size(), static_cast<std::size_t>(kernels));
  for (int i = 0; i < kernels; ++i)
    ASSERT_EQ(r.gpu.start[static_cast<std::size_t>(i)], (1'000 + i) * 1'000 + 125);
  EXPECT_EQ(noted(r.notes), "no_clock_base=1");
}

// ---------------------------------------------------------------------------------------------
// What is larger than any window

constexpr std::size_t kHuge = std::size_t{9} << 20U;

TEST(Kineto, OversizedEvents) {
  const std::string huge(kHuge, 'x');
  const Recording r =
      read_text(trace_of({kernel_event("a", 5), kernel_event(huge, 9), kernel_event("b", 13),
                          kernel_event("c", 17, ", \"y\": [\"" + huge + "]\"]"),
                          "[\"" + huge + "\"]", "\"" + huge + "\"", kernel_event("d", 21)}));
  EXPECT_EQ(names_of(r), "a b d");
  EXPECT_EQ(noted(r.notes), "oversized_event=4");
}

// An event that is large and still fits is read.
TEST(Kineto, LargeEventsThatFit) {
  const std::string large((std::size_t{7} << 20U), 'x');
  const Recording r =
      read_text(trace_of({kernel_event("a", 5), kernel_event("b", 9, ", \"y\": \"" + large + "\""),
                          kernel_event("c", 13)}));
  EXPECT_EQ(names_of(r), "a b c");
  EXPECT_EQ(noted(r.notes), "");
}

TEST(Kineto, OversizedTopLevelValues) {
  const std::string huge(kHuge, 'x');
  const std::string events =
      "\"traceEvents\": [" + kernel_event("a", 5) + "], \"distributedInfo\": {\"rank\": 3}}";
  for (const std::string& value :
       {"\"" + huge + "\"", "[\"" + huge + "\"]", "{\"" + huge + "\": {\"a\": [1]}}"}) {
    const Recording r =
        read_text("{\"mine\": " + value + ", \"baseTimeNanoseconds\": 5, " + events);
    EXPECT_EQ(names_of(r), "a");
    EXPECT_EQ(r.rank, 3);
    EXPECT_EQ(r.clock_base, 5);
    EXPECT_EQ(noted(r.notes), "malformed_metadata=1");
  }
}

// Escapes in an oversized text: whether a backslash at a piece's end is open depends on those
// before it. Shifted so that the pieces end at each place in a pair.
TEST(Kineto, OversizedStringsOfEscapes) {
  for (const std::string_view unit : {R"(\\)", R"(\")", R"(\\\")", R"(a\\)"}) {
    std::string huge;
    while (huge.size() < kHuge) huge += unit;
    for (std::size_t shift = 0; shift < 2; ++shift) {
      const Recording r = read_text("{\"mine" + std::string(shift, '_') + "\": \"" + huge +
                                    "\", \"traceEvents\": [" + kernel_event("a", 5) + ", \"" +
                                    huge + "\", " + kernel_event("b", 9) + "]}");
      ASSERT_EQ(names_of(r), "a b") << unit << shift;
      ASSERT_EQ(noted(r.notes), "malformed_metadata=1 oversized_event=1 no_clock_base=1")
          << unit << shift;
    }
  }
}

TEST(Kineto, OversizedKey) {
  const Recording r = read_text("{\"" + std::string(kHuge, 'k') + "\": 1, \"traceEvents\": [" +
                                kernel_event("a", 5) + "]}");
  EXPECT_EQ(names_of(r), "a");
  EXPECT_EQ(r.notes.count(Note::malformed_metadata), 1);
}

// ---------------------------------------------------------------------------------------------
// Odd inputs

struct Odd {
  std::string_view what;
  std::string text;
  std::string names;  // of the GPU activities that survive
  std::string notes;
};

TEST(Kineto, OddInputs) {
  const std::string a = kernel_event("a", 5);
  const std::string z = kernel_event("z", 90);
  const auto raw = [](std::string_view fields) {
    return R"({"ph": "X", "cat": "kernel", "name": "odd", "pid": 0, "tid": 7, )" +
           std::string(fields) + "}";
  };
  const std::string clock = R"("baseTimeNanoseconds": 5, )";
  const std::vector<Odd> odd = {
      {"unescaped quotes in a name", trace_of({a, kernel_event("x \"y\" z", 9), z}), "a z",
       "malformed_event=1"},
      {"one unescaped quote", trace_of({a, kernel_event("x \" y", 9), z}), "a z",
       "malformed_event=1"},
      {"a line break in a name", trace_of({a, kernel_event("x\ny", 9), z}), "a z",
       "malformed_event=1"},
      {"a path that ends in a backslash", trace_of({a, kernel_event("C:\\dir\\", 9), z}), "a z",
       "malformed_event=1"},
      {"a path with wrong escapes", trace_of({a, kernel_event("C:\\dir", 9), z}), "a C:\\dir z",
       ""},
      {"bytes that are no UTF-8", trace_of({a, kernel_event("\xFF\xFE", 9), z}), "a \xFF\xFE z",
       "invalid_utf8=1"},
      {"control characters", trace_of({a, kernel_event("\x01\x02", 9), z}), "a \x01\x02 z", ""},
      {"escapes in a name", trace_of({a, kernel_event(R"(k\u003c\"4\"\u003e)", 9), z}),
       "a k<\"4\"> z", ""},
      {"NaN, inf, -nan(ind) as arguments",
       trace_of({a, kernel_event("k", 9, R"(, "x": NaN, "y": inf, "z": -nan(ind))"), z}), "a k z",
       "not_a_number=3"},
      {"NaN as a duration", trace_of({a, raw(R"("ts": 9, "dur": NaN)"), z}), "a odd z",
       "not_a_number=1 missing_duration=1"},
      {"NaN as a start", trace_of({a, raw(R"("ts": NaN, "dur": 1)"), z}), "a z",
       "not_a_number=1 missing_time=1"},
      {"surplus commas", trace_of({a, "", z, ""}), "a z", "extra_comma=2"},
      {"a comma first", trace_of({"", a, z}), "a z", "extra_comma=1"},
      {"surplus commas in an event", trace_of({a, raw(R"(,"ts": 9, "dur": 1,)"), z}), "a odd z",
       "extra_comma=2"},
      {"no comma between events", trace_of({a + z}), "a z", ""},
      {"no duration", trace_of({a, raw(R"("ts": 9)"), z}), "a odd z", "missing_duration=1"},
      {"duration 0", trace_of({a, raw(R"("ts": 9, "dur": 0)"), z}), "a odd z", ""},
      {"no start", trace_of({a, raw(R"("dur": 9)"), z}), "a z", "missing_time=1"},
      {"a start that is a word", trace_of({a, raw(R"("ts": "soon", "dur": 1)"), z}), "a z",
       "absurd_time=1"},
      {"a start beyond 64 bits", trace_of({a, raw(R"("ts": 1e300, "dur": 1)"), z}), "a z",
       "absurd_time=1"},
      {"a start as text", trace_of({a, raw(R"("ts": "9.5", "dur": "1")"), z}), "a odd z", ""},
      {"a lost time stamp", trace_of({a, raw(R"("ts": 0, "dur": 1)"), z}), "a z",
       "zero_timestamp=1"},
      {"a duration without end", trace_of({a, raw(R"("ts": 9, "dur": 18446744073709551.615)"), z}),
       "a odd z", "absurd_duration=1"},
      {"a duration beyond all numbers", trace_of({a, raw(R"("ts": 9, "dur": 1e400)"), z}),
       "a odd z", "absurd_duration=1"},
      {"a negative duration", trace_of({a, raw(R"("ts": 9, "dur": -1)"), z}), "a odd z",
       "negative_duration=1"},
      {"the same key twice", trace_of({a, kernel_event("x", 9, R"(, "stream": 8)"), z}), "a x z",
       "duplicate_key=1"},
      {"entries that are no events", trace_of({a, "null", "1", "\"text\"", "[1, [2]]", z}), "a z",
       "not_an_event=4"},
      {"an unknown category",
       trace_of({a, R"({"ph": "X", "cat": "brand_new", "name": "n", "ts": 1, "dur": 1})", z}),
       "a z", ""},
      {"no category at all", trace_of({a, R"({"ph": "X", "name": "n", "ts": 1})", "{}", z}), "a z",
       ""},
      {"not sorted by time", trace_of({z, a}), "z a", ""},
      {"a byte-order mark", "\xEF\xBB\xBF" + trace_of({a, z}), "a z", ""},
      {"text behind the end", trace_of({a, z}) + "}}]] \"", "a z", ""},
      // Quotes in pairs hide nothing but the text between them.
      {"unescaped quotes before the events",
       R"({"INFO": ["he said "no", and left"], )" + clock + R"("traceEvents": [)" + a + "]}", "a",
       ""},
      {"a line break before the events",
       "{\"WARNING\": [\"broken\nin two\"], " + clock + R"("traceEvents": [)" + a + "]}", "a",
       "malformed_metadata=1"},
      {"unescaped quotes behind the events",
       "{" + clock + R"("traceEvents": [)" + a +
           R"(], "INFO": ["he said "no""], "traceName": "x"})",
       "a", ""},
      {"events that are no array",
       R"({)" + clock + R"("traceEvents": {"a": 1}, "traceEvents": [)" + a + "]}", "a",
       "malformed_metadata=1"},
      {"cut in an event", R"({)" + clock + R"("traceEvents": [)" + a + "," + z.substr(0, 70), "a",
       "truncated=1"},
      {"cut behind an event", R"({)" + clock + R"("traceEvents": [)" + a + "," + z, "a z",
       "truncated=1"},
      {"cut behind the events", R"({)" + clock + R"("traceEvents": [)" + a + "," + z + "], \"trace",
       "a z", "truncated=1"},
  };
  for (const Odd& o : odd) {
    const Recording r = read_text(o.text);
    EXPECT_EQ(names_of(r), o.names) << o.what;
    EXPECT_EQ(noted(r.notes), o.notes) << o.what;
  }
}

// Damage of any kind costs the damaged event and no other, in every style.
TEST(Kineto, NeighboursOfDamageSurvive) {
  for (const std::string_view name : {"x \" y", "x \"\" y", "\"", "x\n", "\n\n", "x \", \"y",
                                      "x\": {", "\\", "}", "]}", "\"}, {\""}) {
    std::string bad(name);
    for (const bool pretty : {false, true}) {
      std::string text = "{\"traceEvents\": [";
      for (int i = 0; i < 9; ++i) {
        const std::string event = kernel_event(i == 4 ? "BAD" : "k" + std::to_string(i), 5 + i);
        text += (i > 0 ? "," : "") + std::string(pretty ? "\n  " : "") + event;
      }
      text += pretty ? "\n  ]\n}\n" : "]}";
      text.replace(text.find("BAD"), 3, bad);
      const Recording r = read_text(text);
      std::string survivors;
      for (const StringId id : r.gpu.name) {
        const std::string_view survivor = r.strings.get(id);
        if (survivor[0] == 'k') survivors += survivor.substr(1);
      }
      EXPECT_EQ(survivors, "01235678") << text;
    }
  }
}

TEST(Kineto, TruncatedAnywhereKeepsCompleteEvents) {
  const std::string text =
      trace_of({kernel_event("a", 5), kernel_event("b", 9), kernel_event("c", 13)});
  const std::size_t first = text.find("traceEvents\": [") + 15;
  std::size_t complete = 0;
  for (std::size_t size = first; size + 1 < text.size(); ++size) {
    const std::string_view cut = std::string_view(text).substr(0, size);
    if (cut.ends_with("}}")) ++complete;
    const Recording r = read_text(cut);
    ASSERT_EQ(r.gpu.size(), complete) << size;
    ASSERT_EQ(r.notes.count(Note::truncated), 1) << size;
  }
  EXPECT_EQ(complete, 3U);
}

TEST(Kineto, WhatIsNoTraceIsRefused) {
  for (const std::string_view text :
       {R"({"segments": [], "device_traces": []})", R"({"traceName": "x"})", "{}", "{", "", "   ",
        R"({"traceEvents": 7})", "null", "\"x\""}) {
    try {
      read_text(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string_view(error.what()).find("traceEvents"), std::string_view::npos);
    }
  }
  EXPECT_FALSE(detect_format("{\"segments\": []}"));
  EXPECT_FALSE(detect_format(""));
  EXPECT_FALSE(detect_format("[1, 2]"));
}

// The clock is told by the events' times; a lost time stamp says nothing about it.
TEST(Kineto, LostTimesDoNotDecideTheClock) {
  const Recording r = read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "lost", "pid": 0, "tid": 7, "ts": 0, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1740461679479712, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1740461679479713, "dur": 1}]})");
  EXPECT_EQ(names_of(r), "a b");
  EXPECT_EQ(r.clock, ClockBase::epoch);
  EXPECT_EQ(noted(r.notes), "zero_timestamp=1");
}

// Recordings of the host alone have a clock too.
TEST(Kineto, ClockOfARecordingWithoutGpuEvents) {
  const Recording r = read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 9, "tid": 7, "ts": 1740461679479712, "dur": 1}]})");
  EXPECT_EQ(r.clock, ClockBase::epoch);
  EXPECT_EQ(noted(r.notes), "");
}

// No base makes times that leave 64 bits.
TEST(Kineto, AbsurdClockBase) {
  for (const std::string_view base :
       {"9223372036854775807", "-9223372036854775808", "1e30", "\"x\"", "-1"}) {
    const Recording r = read_text("{\"baseTimeNanoseconds\": " + std::string(base) +
                                  ", \"traceEvents\": [" + kernel_event("a", 5) + "]}");
    EXPECT_EQ(r.clock, ClockBase::unknown) << base;
    EXPECT_EQ(r.clock_base, 0) << base;
    EXPECT_EQ(names_of(r), "a");
  }
}

TEST(Kineto, RecordingSpan) {
  const std::string span =
      R"({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler 0", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 50})";
  const Recording r = read_text(trace_of({span, kernel_event("a", 5)}));
  EXPECT_EQ(r.span, (Interval{1'000, 51'000}));
  // An event longer than that was never ended.
  const Recording long_one = read_text(trace_of(
      {span,
       R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 9, "dur": 60})"}));
  EXPECT_EQ(long_one.gpu.end[0], 51'000);
  EXPECT_EQ(noted(long_one.notes), "absurd_duration=1");
}

// ---------------------------------------------------------------------------------------------
// Spellings over the years

Recording read_event(const std::string& event) { return read_text(trace_of({event})); }

TEST(Kineto, OldSpellings) {
  const Recording old = read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 10, "dur": 2, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 5, "external id": 5}},
    {"ph": "X", "cat": "Memcpy", "name": "m", "pid": 0, "tid": "stream 20", "ts": 12, "dur": 2, "args": {"external id": 9, "correlation": 6}},
    {"ph": "X", "cat": "Memset", "name": "s", "pid": 1, "tid": 7, "ts": 14, "dur": 2},
    {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": "77", "ts": 1, "dur": 1, "args": {"correlation": 5}},
    {"ph": "X", "cat": "Operator", "name": "record_param_comms", "pid": 77, "tid": "77", "ts": 1, "dur": 1, "args": {"External id": 9}},
    {"ph": "X", "cat": "gpu_user_Annotation", "name": "ProfilerStep#2", "pid": 0, "tid": "stream 7 user", "ts": 10, "dur": 6},
    {"ph": "X", "cat": "User", "name": "ProfilerStep#2", "pid": 77, "tid": "77", "ts": 1, "dur": 4}]})");
  EXPECT_EQ(names_of(old), "k m s");
  EXPECT_EQ(old.streams, (std::vector<Stream>{{0, 1, 7}, {0, kUnknown, 20}, {1, kUnknown, 7}}));
  EXPECT_EQ(old.gpu.external_id, (std::vector<std::uint64_t>{0, 9, 0}));
  EXPECT_EQ(old.launches.size(), 1U);
  EXPECT_EQ(old.host_ranges.size(), 1U);
  ASSERT_EQ(old.steps.size(), 1U);
  EXPECT_TRUE(old.steps[0].gpu_annotation);
  EXPECT_EQ(old.process, 77);
}

TEST(Kineto, CollectiveMetadata) {
  const Recording r = read_event(kernel_event(
      "ncclKernel", 5,
      R"(, "Collective name": "_allgather_base", "In msg size": 16, "Out msg size": 32, "Group size": "2",
         "dtype": "BFloat16", "Process Group ID": 3, "Process Group Description": "mesh_\u0074p",
         "Process Group Ranks": [4, 5], "In split size": [], "Comms Id": 18446744073709551615)"));
  ASSERT_EQ(r.metas.size(), 1U);
  const CollectiveMeta& meta = r.metas[0];
  EXPECT_EQ(r.strings.get(meta.collective), "_allgather_base");
  EXPECT_EQ(r.strings.get(meta.dtype), "BFloat16");
  EXPECT_EQ(meta.in_elements, 16);
  EXPECT_EQ(meta.out_elements, 32);
  EXPECT_EQ(meta.group_size, 2);
  EXPECT_EQ(r.strings.get(meta.group_name), "3");
  EXPECT_EQ(r.strings.get(meta.group_description), "mesh_tp");
  EXPECT_EQ(r.strings.get(meta.group_ranks), "[4, 5]");
  // 32 bits that overflowed are unknown.
  const Recording overflown = read_event(kernel_event(
      "k", 5,
      R"(, "Collective name": "allreduce", "In msg nelems": -2147483648, "Group size": -1)"));
  EXPECT_EQ(overflown.metas[0].in_elements, kUnknown);
  EXPECT_EQ(overflown.metas[0].group_size, 0);
  // Records that communicate nothing.
  EXPECT_TRUE(read_event(kernel_event("k", 5, R"(, "Collective name": "wait")")).metas.empty());
  EXPECT_TRUE(read_event(kernel_event("k", 5, R"(, "Collective name": "init")")).metas.empty());
  EXPECT_TRUE(read_event(kernel_event("k", 5, R"(, "Collective name": null)")).metas.empty());
}

TEST(Kineto, DistributedInfo) {
  const auto about = [](std::string_view info) {
    return read_text("{\"distributedInfo\": " + std::string(info) + ", \"traceEvents\": []}");
  };
  const Recording r = about(R"({"backend": "cpu:gloo,cuda:nccl", "rank": 1, "world_size": 4,
    "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]},
                  {}, {"pg_name": "7", "ranks": "[1, 3]"}, {"pg_name": 8, "ranks": "[0, 1, ...]"}, 9],
    "nccl_version": "2.21.5"})");
  EXPECT_EQ(r.rank, 1);
  EXPECT_EQ(r.world_size, 4);
  EXPECT_EQ(r.backend, "cpu:gloo,cuda:nccl");
  EXPECT_EQ(r.nccl_version, "2.21.5");
  ASSERT_EQ(r.groups.size(), 4U);
  EXPECT_EQ(r.groups[0].ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(r.groups[0].description, "default_pg");
  EXPECT_EQ(r.groups[1].name, "");
  EXPECT_EQ(r.groups[2].ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(r.groups[3].name, "8");
  EXPECT_TRUE(r.groups[3].ranks.empty());
  EXPECT_EQ(r.notes.count(Note::extra_comma), 0);

  EXPECT_EQ(about(R"({"rank": 0})").rank, 0);
  EXPECT_FALSE(about(R"({"backend": "nccl"})").rank);
  EXPECT_FALSE(about(R"({"rank": -1, "world_size": -4})").rank);
  EXPECT_EQ(about(R"({"rank": 99999999999, "world_size": 99999999999})").rank, std::nullopt);
  EXPECT_EQ(about(R"({"nccl_version": "unknown"})").nccl_version, "");
  EXPECT_EQ(noted(about("7").notes), "no_clock_base=1");
  EXPECT_EQ(about(R"({"rank" 1})").notes.count(Note::malformed_metadata), 1);
}

TEST(Kineto, WhatIsKeptOfTheHost) {
  const std::string text = trace_of({
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaEventQuery", "pid": 9, "tid": 9, "ts": 1, "dur": 1, "args": {"correlation": 1}})",
      R"({"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 9, "tid": 9, "ts": 2, "dur": 1, "args": {"correlation": 2}})",
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 9, "tid": 9, "ts": 3, "dur": 1, "args": {"correlation": 3}})",
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 4, "dur": 1, "args": {}})",
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 5, "dur": 4})",
      R"({"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 9, "tid": 9, "ts": 9, "dur": 4})",
      R"({"ph": "X", "cat": "cpu_op", "name": "gloo:all_reduce", "pid": 9, "tid": 9, "ts": 6, "dur": 1})",
      R"({"ph": "X", "cat": "user_annotation", "name": "nccl:send 0->1", "pid": 9, "tid": 9, "ts": 7, "dur": 1})",
      R"({"ph": "X", "cat": "user_annotation", "name": "my:own", "pid": 9, "tid": 9, "ts": 8, "dur": 1})",
      R"({"ph": "X", "cat": "gpu_user_annotation", "name": "nccl:send 0->1", "pid": 0, "tid": 9, "ts": 8, "dur": 1})",
      R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#x", "pid": 9, "tid": 9, "ts": 8, "dur": 1})",
  });
  const Recording r = read_text(text);
  EXPECT_EQ(r.launches.correlation, (std::vector<std::uint64_t>{2, 3}));
  ASSERT_EQ(r.host_ranges.size(), 2U);
  EXPECT_EQ(r.strings.get(r.host_ranges[0].backend), "gloo");
  EXPECT_EQ(r.strings.get(r.host_ranges[1].name), "send 0->1");
  EXPECT_TRUE(r.steps.empty());
  EXPECT_EQ(r.gpu.size(), 0U);
  EXPECT_TRUE(r.host_compute.empty());
  // aten::mm computes; c10d's own operations and gloo's ranges do not.
  const Recording again = read_text(text, 0, true);
  EXPECT_EQ(again.host_compute.length(), 4'000);
}

// A range holds its start, not its end; of nested ones the innermost counts, of each kind; other
// threads, steps, collectives' ranges and the records of their calls do not.
TEST(KinetoContext, FindsTheInnermostRanges) {
  const auto event = [](std::string_view category, std::string_view name, int thread, int ts,
                        int dur) {
    return ",{\"ph\":\"X\",\"cat\":\"" + std::string(category) + "\",\"name\":\"" +
           std::string(name) + "\",\"pid\":1,\"tid\":" + std::to_string(thread) +
           ",\"ts\":" + std::to_string(ts) + ",\"dur\":" + std::to_string(dur) +
           ",\"args\":{\"ts\":[{}]}}";
  };
  const std::string text =
      "{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"M\",\"name\":\"x\"}" +
      event("cpu_op", "aten::linear", 7, 10, 50) + event("cpu_op", "aten::mm", 7, 20, 10) +
      event("cpu_op", "aten::add", 8, 22, 1) + event("cpu_op", "aten::t", 7, 12, 8) +
      event("user_annotation", "## \\\"forward\\\" ##", 7, 0, 90) +
      event("user_annotation", "ProfilerStep#3", 7, 5, 80) +
      event("user_annotation", "nccl:all_reduce", 7, 19, 3) +
      event("python_function", "nn.Module: Linear_3", 7, 9, 60) +
      event("python_function", "model.py(7): forward", 7, 9, 61) +
      event("python_function", "<built-in method linear>", 7, 9, 52) +
      event("kernel", "gemm", 7, 20, 10) + "]}";
  const std::vector<CallPlace> places{
      {.time = 22'000, .thread = 7}, {.time = 95'000, .thread = 7}, {.time = 20'000, .thread = 7}};
  for (const std::size_t length : {text.size(), text.size() - 40}) {
    Source source = Source::memory("x", std::string_view(text).substr(0, length));
    const std::vector<CallContext> found = read_kineto_contexts(source, places);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].operation, "aten::mm");
    EXPECT_EQ(found[0].module, "nn.Module: Linear_3");
    EXPECT_EQ(found[0].function, "model.py(7): forward");
    EXPECT_EQ(found[0].annotation, "## \"forward\" ##");
    EXPECT_TRUE(found[1].empty());
    EXPECT_EQ(found[2].operation, "aten::mm");
  }
  for (std::size_t length = 0; length < text.size(); length += 7) {
    Source source = Source::memory("x", std::string_view(text).substr(0, length));
    EXPECT_EQ(read_kineto_contexts(source, places).size(), 3U);
  }
}

#ifdef COMMLENS_WITH_ZSTD
TEST(Kineto, DamagedCompression) {
  std::string text = "{\"traceEvents\": [";
  std::mt19937 random(8);
  for (int i = 0; i < 20'000; ++i)
    text += (i > 0 ? ",\n" : "") + kernel_event("k" + std::to_string(random()), i + 1);
  text += "]}";
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  const Recording cut =
      read_source(Source::memory("x", std::string_view(packed).substr(0, packed.size() / 2)), "");
  EXPECT_EQ(cut.notes.count(Note::truncated), 1);
  EXPECT_GT(cut.gpu.size(), 5'000U);
  EXPECT_LT(cut.gpu.size(), 15'000U);
  std::string damaged = packed;
  for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 2'000; ++i) damaged[i] = '\0';
  const Recording corrupt = read_source(Source::memory("x", damaged), "");
  EXPECT_EQ(corrupt.notes.count(Note::corrupt_compression), 1);
  EXPECT_GT(corrupt.gpu.size(), 1'000U);
}
#endif

}  // namespace
}  // namespace commlens
