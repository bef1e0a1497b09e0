// Numbers as text, strings, names, sinks, and sources in every compression and every state of
// damage.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#ifdef COMMLENS_WITH_ZSTD
#include <zstd.h>
#endif

#include "base/blocks.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/packed.h"
#include "base/saturated.h"
#include "base/sink.h"
#include "base/source.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "base/unfinished.h"
#include "base/utf8.h"
#include "slow_pipe.h"

namespace commlens {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// ---------------------------------------------------------------------------------------------
// saturated.h

TEST(SaturatedSum, StaysInside64Bits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(saturated_sum(3, 4), 7);
  EXPECT_EQ(saturated_sum(kMost - 1, 1), kMost);
  EXPECT_EQ(saturated_sum(kMost, 1), kMost);
  EXPECT_EQ(saturated_sum(kMost, kMost), kMost);
}

// decimal.h

// Worked case 6 of docs/numbers.md: a double holds only 0.25 us there.
TEST(Printable, TextIsNotTurned) {
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"
                      "c"),
            "a b c");
  EXPECT_EQ(printable("\xE2\x80\x94 \xC3\xA9"), "\xE2\x80\x94 \xC3\xA9");
}

TEST(Decimal, EpochMicrosecondsKeepTheirNanoseconds) {
  const auto a = microseconds_to_ns("1740461679479712.123");
  const auto b = microseconds_to_ns("1740461679479712.124");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, 1740461679479712123);
  EXPECT_EQ(*b - *a, 1);
}

TEST(Decimal, MicrosecondsInEverySpelling) {
  struct Case {
    std::string_view text;
    Ns ns;
  };
  constexpr Case kCases[] = {
      {"0", 0},
      {"0.0", 0},
      {"-0", 0},
      {"-0.000", 0},
      {"12", 12'000},
      {"12.", 12'000},
      {".5", 500},
      {"+1.5", 1'500},
      {"-3.25", -3'250},
      {"1.5e3", 1'500'000},
      {"1.5E+3", 1'500'000},
      {"15e-1", 1'500},
      {"1e-3", 1},
      {"0.001", 1},
      {"0.1", 100},  // not padded: nightlies of 2024
      {"00012.5", 12'500},
      {"123456789012345", 123'456'789'012'345'000},
      {"123456789012345.678", 123'456'789'012'345'678},
      {"1234567890123456.789", 1'234'567'890'123'456'789},
      {"1234567890123456", 1'234'567'890'123'456'000},
      // Beyond the third decimal: half away from zero.
      {"0.0004", 0},
      {"0.0005", 1},
      {"0.00049999999", 0},
      {"1.9995", 2'000},
      {"-0.0005", -1},
      {"-1.2345", -1'235},
      {"5e-4", 1},
      {"4.999e-4", 0},
      {"0.05e-2", 1},
      {"9e-5", 0},
      // The edge of 64 bits.
      {"9223372036854775.807", kMax},
      {"-9223372036854775.807", -kMax},
      {"9.223372036854775807e15", kMax},
      {"0e999999999", 0},
      {"1e-999999999", 0},
  };
  for (const auto& [text, ns] : kCases)
    EXPECT_EQ(microseconds_to_ns(text), std::optional<Ns>(ns)) << text;
}

TEST(Decimal, WhatIsNoNumberOrTooLargeIsNothing) {
  for (const std::string_view text : {"",
                                      "-",
                                      "+",
                                      ".",
                                      "e5",
                                      "1e",
                                      "1e+",
                                      "1e+-5",
                                      "1e5.0",
                                      "NaN",
                                      "-nan",
                                      "inf",
                                      "Infinity",
                                      "1.2.3",
                                      "1,5",
                                      " 1",
                                      "1 ",
                                      "0x10",
                                      "--1",
                                      "1-",
                                      "null",
                                      "12a",
                                      "1e999999999",
                                      "-1e999999999",
                                      "1e99999999999999999999",
                                      "9223372036854775.808",
                                      "92233720368547758070",
                                      "1e16"}) {
    EXPECT_FALSE(microseconds_to_ns(text)) << text;
  }
}

TEST(Decimal, HundredsOfDigits) {
  EXPECT_FALSE(microseconds_to_ns(std::string(400, '9')));
  EXPECT_FALSE(parse_int(std::string(400, '9')));
  EXPECT_FALSE(parse_uint(std::string(400, '9')));
  EXPECT_FALSE(microseconds_to_ns("1" + std::string(400, '0')));
  EXPECT_EQ(microseconds_to_ns(std::string(400, '0') + "7"), std::optional<Ns>(7'000));
  EXPECT_EQ(microseconds_to_ns("7." + std::string(400, '9')), std::optional<Ns>(8'000));
  EXPECT_EQ(microseconds_to_ns("0." + std::string(400, '0') + "1e404"),
            std::optional<Ns>(1'000'000));  // 1e-401 * 1e404 = 1e3 us
  EXPECT_EQ(parse_int("5" + std::string(400, '0') + "e-400"), std::optional<std::int64_t>(5));
}

TEST(Decimal, WholeNumbers) {
  EXPECT_EQ(parse_int("9223372036854775807"), kMax);
  EXPECT_EQ(parse_int("-9223372036854775808"), kMin);
  EXPECT_EQ(parse_int("12.0"), 12);
  EXPECT_EQ(parse_int("1e3"), 1000);
  EXPECT_EQ(parse_int("1200e-2"), 12);
  EXPECT_EQ(parse_int("-0"), 0);
  for (const std::string_view text :
       {"9223372036854775808", "12.5", "1e-1", "", "-", "x", "1e999999999", "0x7", "1 "})
    EXPECT_FALSE(parse_int(text)) << text;
  EXPECT_EQ(parse_uint("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_uint("18446744073709551615.0"), std::numeric_limits<std::uint64_t>::max());
  for (const std::string_view text : {"18446744073709551616", "-1", "1.5", "", "1e20"})
    EXPECT_FALSE(parse_uint(text)) << text;
}

// Against what printf makes of a number of nanoseconds.
TEST(Decimal, ReadsBackWhatWasPrinted) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random() >> (1 + random() % 60));
    char text[64];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    ASSERT_EQ(microseconds_to_ns(text), std::optional<Ns>(ns)) << text;
    ASSERT_EQ(microseconds_to_ns("-" + std::string(text)), std::optional<Ns>(-ns)) << text;
    ASSERT_EQ(parse_int(std::to_string(ns) + ".0"), std::optional(ns));
  }
}

// ---------------------------------------------------------------------------------------------
// strings.h, suggest.h, utf8.h

TEST(StringPool, EachTextOnceAndIdsInOrder) {
  StringPool pool;
  EXPECT_EQ(pool.get(StringId::none()), "");
  EXPECT_EQ(pool.intern("b").index(), 0U);
  EXPECT_EQ(pool.intern("").index(), 1U);
  EXPECT_EQ(pool.intern("b").index(), 0U);
  EXPECT_EQ(pool.intern(std::string_view("a\0b", 3)).index(), 2U);
  EXPECT_EQ(pool.intern(std::string_view("a\0c", 3)).index(), 3U);
  EXPECT_EQ(pool.get(StringId::from(2)), std::string_view("a\0b", 3));
  EXPECT_EQ(pool.size(), 4U);
  EXPECT_EQ(pool.bytes(), 7U);
}

TEST(StringPool, ManyTextsAndViewsThatStay) {
  StringPool pool;
  const std::string_view first = pool.get(pool.intern("the first"));
  for (int i = 0; i < 5'000; ++i)
    ASSERT_EQ(pool.intern("text " + std::to_string(i)).index(), static_cast<std::size_t>(i) + 1);
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(pool.intern("text " + std::to_string(i)).index(), static_cast<std::size_t>(i) + 1);
    ASSERT_EQ(pool.get(StringId::from(static_cast<std::size_t>(i) + 1)),
              "text " + std::to_string(i));
  }
  EXPECT_EQ(first, "the first");
  StringPool moved = std::move(pool);
  EXPECT_EQ(moved.intern("the first").index(), 0U);
}

TEST(Suggest, NearestName) {
  constexpr std::array<std::string_view, 4> kNames = {"report", "timeline", "compare", "check"};
  EXPECT_EQ(nearest_name("reprot", kNames), "report");
  EXPECT_EQ(nearest_name("time-line", kNames), "timeline");
  EXPECT_EQ(nearest_name("chekc", kNames), "check");
  EXPECT_EQ(nearest_name("report", kNames), "report");
  EXPECT_EQ(nearest_name("xyz", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("report", {}), "");
}

// A long argument is near to nothing, however many letters may differ in a third of it.
TEST(Suggest, LongNonsenseIsNearToNothing) {
  constexpr std::array<std::string_view, 2> kNames = {"report", "timeline"};
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), kNames), "");
  EXPECT_EQ(nearest_name(std::string(64, 'r'), kNames), "");
}

TEST(Utf8, Printable) {
  EXPECT_EQ(printable("a\x01\n\x7F"
                      "b"),
            "a   b");
  EXPECT_EQ(printable("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(printable("\xFF"
                      "a\xC3"),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
  EXPECT_EQ(utf8_length("\xC0\x80"), 0U);          // overlong
  EXPECT_EQ(utf8_length("\xED\xA0\x80"), 0U);      // a surrogate
  EXPECT_EQ(utf8_length("\xF4\x90\x80\x80"), 0U);  // beyond U+10FFFF
}

// ---------------------------------------------------------------------------------------------
// sink.h

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "commlens-base-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

template <class Work>
ErrorKind error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()), "");
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::internal;
}

TEST(Sink, Memory) {
  Sink sink;
  sink.append("ab");
  sink.append('c');
  sink.close();
  EXPECT_EQ(sink.text(), "abc");
}

TEST(Sink, FileAppearsOnlyAfterClose) {
  const Folder folder;
  const std::string path = folder.file("out.json");
  const std::string large(300'000, 'x');
  Sink sink(path);
  sink.append(large);
  sink.append('!');
  EXPECT_FALSE(std::filesystem::exists(path));
  sink.close();
  EXPECT_EQ(content(path), large + "!");
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Sink, WithoutCloseTheOldFileStays) {
  const Folder folder;
  const std::string path = folder.file("out.json");
  std::ofstream(path) << "old";
  {
    Sink sink(path);
    sink.append("new");
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(folder.entries(), 1U);
  Sink sink(path);
  sink.append("new");
  sink.close();
  EXPECT_EQ(content(path), "new");
}

TEST(Sink, UnwritablePathIsTheUsersFault) {
  const Folder folder;
  EXPECT_EQ(error_of([&] { Sink sink(folder.file("absent/out.json")); }), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { Sink sink(folder.file(".")); }), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { Sink sink(folder.file(std::string(300, 'x'))); }), ErrorKind::usage);
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(Sink, FullDiskIsInternal) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(error_of([] {
              Sink sink("/dev/full");
              sink.append("a little");
              sink.close();
            }),
            ErrorKind::internal);
  EXPECT_EQ(error_of([] {
              Sink sink("/dev/full");
              for (int i = 0; i < 100; ++i) sink.append(std::string(10'000, 'x'));
              sink.close();
            }),
            ErrorKind::internal);
}

TEST(Sink, SignalsLeaveNothingUnfinished) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Folder folder;
    std::ofstream(folder.file("old.json")) << "old";
    const pid_t child = fork();
    if (child == 0) {
      signal(number, SIG_DFL);
      remove_unfinished_on_signals();
      Sink done(folder.file("done.json"));
      done.close();
      Sink first(folder.file("old.json"));
      Sink second(folder.file("new.json"));
      raise(number);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(content(folder.file("old.json")), "old");
    EXPECT_EQ(folder.entries(), 2U) << "old.json and done.json";
  }
}

TEST(Sink, DeviceIsWrittenInPlace) {
  Sink sink("/dev/null");
  sink.append("x");
  sink.close();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// ---------------------------------------------------------------------------------------------
// source.h

struct ReadResult {
  std::string text;
  SourceEnd end = SourceEnd::not_yet;
  std::string trouble;
};

// Everything, with reads of at most `step` bytes.
ReadResult read_all(Source source, std::size_t step) {
  ReadResult result;
  std::string buffer(step, '\0');
  while (const std::size_t got = source.read({buffer.data(), buffer.size()}))
    result.text.append(buffer, 0, got);
  EXPECT_EQ(source.read({buffer.data(), buffer.size()}), 0U) << "after the end";
  result.end = source.end();
  result.trouble = source.trouble();
  EXPECT_EQ(result.trouble.empty(), result.end == SourceEnd::complete);
  return result;
}

ReadResult read_memory(std::string_view bytes, std::size_t step = 4096) {
  return read_all(Source::memory("memory", bytes), step);
}

ReadResult read_pipe(std::string_view bytes, std::size_t stored_step, std::size_t step) {
  const SlowPipe pipe(bytes, [stored_step] { return stored_step; });
  return read_all(Source::open(pipe.path()), step);
}

TEST(Source, Plain) {
  for (const std::string_view text : {"", "a", "ab", "abc", "abcd", "{\"traceEvents\": []}"}) {
    for (const std::size_t step : {1U, 2U, 3U, 5U, 100U}) {
      const ReadResult read = read_memory(text, step);
      EXPECT_TRUE(read.text == text);
      EXPECT_EQ(read.end, SourceEnd::complete);
    }
  }
  Source source = Source::memory("x", "abc");
  EXPECT_EQ(source.stored_bytes(), 3);
  EXPECT_EQ(source.name(), "x");
  EXPECT_EQ(source.read({}), 0U);
  EXPECT_EQ(source.end(), SourceEnd::not_yet) << "an empty buffer is no end";
}

TEST(Source, WhatCannotBeOpened) {
  const Folder folder;
  EXPECT_EQ(error_of([&] { Source::open(folder.file("absent")); }), ErrorKind::input);
  EXPECT_EQ(error_of([&] { Source::open(folder.file(".")); }), ErrorKind::input);
}

TEST(Source, EndlessDevicesAreRefused) {
  if (access("/dev/zero", R_OK) != 0) GTEST_SKIP() << "no /dev/zero here";
  EXPECT_EQ(error_of([] { Source::open("/dev/zero"); }), ErrorKind::input);
  EXPECT_NO_THROW(Source::open("/dev/null")) << "which ends at once, and is called empty";
}

TEST(Source, FileAndPipe) {
  const Folder folder;
  const std::string path = folder.file("x.json");
  const std::string text(100'000, 'y');
  std::ofstream(path) << text;
  Source source = Source::open(path);
  EXPECT_EQ(source.stored_bytes(), 100'000);
  EXPECT_EQ(read_all(std::move(source), 777).text, text);
  EXPECT_EQ(Source::open(SlowPipe("abc", [] { return 1; }).path()).stored_bytes(), -1);
  EXPECT_EQ(read_pipe("hello pipe", 1, 3).text, "hello pipe");
}

#if defined(COMMLENS_WITH_ISAL) || defined(COMMLENS_WITH_ZLIB)

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// What `gzip -9` makes of `small_text()`: one block with codes of its own.
std::string small_gzip() {
  return from_hex(
      "1f8b080000000000020375d43d8a1d410c04e0dca758263642a57fed497c0487063b5b7c77ebc5ae970d14cd"
      "747f5deaafe7d7cfe7f3e3f9f17cff78fefcbe4f1555fdfbedebbfa0172beacd3247758976d085b086006021"
      "ac5a431043d3eded144cb2d4267542cc8cee69461d62b92c4dad41896db1b402e12beefe4e4255bca9d3e660"
      "5742a91410ea5e1241ade03e0e480cd7ca3458488273f5a0cf2b937ba9b5d5ad5e0a6636930b29a36296959d"
      "2555f5e632a673a5d5df36e4d03a289ac79af5ad6edeaff14b4b06542d308b844c52b5c88247c80c558b8df5"
      "535ba36ae9e976abb7a85a76dbdebf77a95ad955f476aece8b56b973e7d6f6b7a3736a001fc982e2cc11546d"
      "a0ab776318aa36657e55bef9a16a271a7e6db1a46adbaaafaedde16915d5caf5aaea6e3c9fb82701e2b56fe6"
      "c4535f83a2c5df0d8de8d79cc5c9fd03fdcad9dac7040000");
}

std::string small_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "{\"ph\": \"X\", \"ts\": %d.%03d}\n", i * i * 7919,
                  i * 37 % 1000);
    text += line;
  }
  return text;
}

std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

// One gzip member of blocks that are stored as they are.
std::string gzip_stored(std::string_view text) {
  const auto little = [](std::uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
    return out;
  };
  std::string out("\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  std::string_view rest = text;
  do {
    const std::string_view block = rest.substr(0, 65'535);
    rest.remove_prefix(block.size());
    const auto length = static_cast<std::uint32_t>(block.size());
    out += rest.empty() ? '\x01' : '\x00';
    out += little(length, 2) + little(length ^ 0xFFFFU, 2);
    out += block;
  } while (!rest.empty());
  return out + little(crc32_of(text), 4) + little(static_cast<std::uint32_t>(text.size()), 4);
}

constexpr std::size_t kSteps[] = {1, 2, 3, 7, 64, 4096, 1'000'000};

TEST(Gzip, OneMemberReadInAnySteps) {
  for (const std::size_t step : kSteps) {
    EXPECT_TRUE(read_memory(small_gzip(), step).text == small_text()) << step;
    EXPECT_EQ(read_memory(small_gzip(), step).end, SourceEnd::complete) << step;
    EXPECT_EQ(read_memory(gzip_stored("hello"), step).text, "hello") << step;
  }
  const ReadResult empty = read_memory(gzip_stored(""));
  EXPECT_EQ(empty.text, "");
  EXPECT_EQ(empty.end, SourceEnd::complete);
}

TEST(Gzip, SeveralMembersReadInAnySteps) {
  const std::string bytes = small_gzip() + gzip_stored("") + gzip_stored("between") + small_gzip();
  const std::string text = small_text() + "between" + small_text();
  for (const std::size_t step : kSteps) {
    const ReadResult read = read_memory(bytes, step);
    EXPECT_TRUE(read.text == text) << step;
    EXPECT_EQ(read.end, SourceEnd::complete) << step;
  }
}

// The decoder reads ahead of what it has used; what it gives back at a member's end may come from
// an earlier read.
TEST(Gzip, StoredBytesComeInAnySteps) {
  const std::string bytes = small_gzip() + gzip_stored("between") + small_gzip() + gzip_stored("");
  const std::string text = small_text() + "between" + small_text();
  for (const std::size_t stored : {1U, 2U, 3U, 5U, 7U, 8U, 11U, 100U, 331U, 332U, 333U}) {
    for (const std::size_t step : {1U, 5U, 4096U}) {
      const ReadResult read = read_pipe(bytes, stored, step);
      EXPECT_TRUE(read.text == text) << stored << " " << step << " got " << read.text.size();
      EXPECT_EQ(read.end, SourceEnd::complete) << stored << " " << step;
    }
  }
}

// A member that ends at every place around the decoder's own window of 256 KiB.
TEST(Gzip, MembersEndAroundTheWindow) {
  const std::string small = small_gzip();
  for (std::int64_t before = -24; before <= 24; ++before) {
    const auto edge = static_cast<std::size_t>((std::int64_t{256} << 10U) + before);
    // A stored member has 10 bytes of header, 5 for each of five blocks, and 8 at its end.
    const std::string first(edge - 43, 'a');
    const ReadResult stored = read_memory(gzip_stored(first) + small, 50'000);
    ASSERT_EQ(stored.end, SourceEnd::complete) << before;
    ASSERT_TRUE(stored.text == first + small_text()) << before;
    const std::string filler(edge - 43 - small.size(), 'a');
    const ReadResult coded = read_memory(gzip_stored(filler) + small + small, 50'000);
    ASSERT_EQ(coded.end, SourceEnd::complete) << before;
    ASSERT_TRUE(coded.text == filler + small_text() + small_text()) << before;
  }
}

TEST(Gzip, TruncatedAtEveryByte) {
  const std::string bytes = small_gzip();
  const std::string text = small_text();
  for (std::size_t size = 2; size < bytes.size(); ++size) {
    for (const std::size_t step : {1U, 4096U}) {
      const ReadResult read = read_memory(std::string_view(bytes).substr(0, size), step);
      ASSERT_EQ(read.end, SourceEnd::truncated) << size;
      ASSERT_TRUE(text.starts_with(read.text)) << size;
      // All but the checksum: the whole text is readable.
      if (size + 8 >= bytes.size()) {
        ASSERT_TRUE(read.text == text) << size << " " << step;
      }
    }
  }
}

TEST(Gzip, SecondMemberTruncatedAtEveryByte) {
  const std::string bytes = gzip_stored("first ") + small_gzip();
  const std::size_t first = gzip_stored("first ").size();
  for (std::size_t size = first; size < bytes.size(); ++size) {
    const ReadResult read = read_memory(std::string_view(bytes).substr(0, size));
    ASSERT_EQ(read.end, size == first ? SourceEnd::complete : SourceEnd::truncated) << size;
    ASSERT_TRUE(read.text.starts_with("first ")) << size;
  }
}

TEST(Gzip, DamagedChecksumAndLength) {
  const std::string bytes = small_gzip();
  for (std::size_t behind = 1; behind <= 8; ++behind) {
    std::string damaged = bytes;
    damaged[damaged.size() - behind] = static_cast<char>(damaged[damaged.size() - behind] ^ 0x10);
    const ReadResult read = read_memory(damaged);
    EXPECT_EQ(read.end, SourceEnd::corrupt) << behind;
    EXPECT_TRUE(read.text == small_text()) << "what was readable is delivered first";
  }
}

// No changed bit behind the header leads to another text without a word. (Bits that fill up the
// last byte mean nothing.)
TEST(Gzip, AnyDamagedBitShows) {
  const std::string bytes = small_gzip();
  for (std::size_t at = 10; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const ReadResult read = read_memory(damaged);
      ASSERT_TRUE(read.end == SourceEnd::corrupt || read.end == SourceEnd::truncated ||
                  read.text == small_text())
          << at << " " << bit;
    }
  }
}

TEST(Gzip, WhatFollowsTheStream) {
  const ReadResult padded = read_memory(small_gzip() + std::string(1000, '\0'));
  EXPECT_TRUE(padded.text == small_text());
  EXPECT_EQ(padded.end, SourceEnd::complete);
  const ReadResult padded_between =
      read_memory(small_gzip() + std::string(300'000, '\0') + gzip_stored("x"));
  EXPECT_TRUE(padded_between.text == small_text() + "x");
  EXPECT_EQ(padded_between.end, SourceEnd::complete);
  for (const std::string_view garbage : {"garbage", "\x1F", "\x1F\x8B", "\x1Fx", "{}"}) {
    const ReadResult read = read_memory(small_gzip() + std::string(garbage));
    EXPECT_TRUE(read.text == small_text()) << garbage;
    EXPECT_TRUE(read.end == SourceEnd::corrupt || read.end == SourceEnd::truncated) << garbage;
  }
}

TEST(Gzip, LargeStoredText) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + '\n';
  for (const std::size_t step : {1'000U, 65'536U, 10'000'000U})
    ASSERT_TRUE(read_memory(gzip_stored(text), step).text == text);
}

#endif

#ifdef COMMLENS_WITH_ZSTD

std::string zstd(std::string_view text, bool checksum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string zstd_text() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
  return text;
}

TEST(Zstd, FramesReadInAnySteps) {
  const std::string bytes = zstd(zstd_text()) + zstd("") + zstd("between") + zstd(zstd_text());
  for (const std::size_t step : {1U, 2U, 3U, 64U, 4096U, 1'000'000U}) {
    const ReadResult read = read_memory(bytes, step);
    EXPECT_TRUE(read.text == zstd_text() + "between" + zstd_text()) << step;
    EXPECT_EQ(read.end, SourceEnd::complete) << step;
  }
  for (const std::size_t stored : {1U, 2U, 3U, 5U, 100U}) {
    const ReadResult read = read_pipe(bytes, stored, 7);
    EXPECT_TRUE(read.text == zstd_text() + "between" + zstd_text()) << stored;
    EXPECT_EQ(read.end, SourceEnd::complete) << stored;
  }
  EXPECT_EQ(read_memory(zstd("")).end, SourceEnd::complete);
}

TEST(Zstd, TruncatedAtEveryByte) {
  const std::string first = zstd("first ");
  const std::string bytes = first + zstd(zstd_text());
  for (std::size_t size = 4; size < bytes.size(); ++size) {
    const ReadResult read =
        read_memory(std::string_view(bytes).substr(0, size), size % 2 ? 1 : 512);
    ASSERT_EQ(read.end, size == first.size() ? SourceEnd::complete : SourceEnd::truncated) << size;
    ASSERT_TRUE(("first " + zstd_text()).starts_with(read.text)) << size;
  }
}

TEST(Zstd, DamagedChecksumAndGarbage) {
  std::string damaged = zstd(zstd_text());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_EQ(read_memory(damaged).end, SourceEnd::corrupt);
  const ReadResult read = read_memory(zstd(zstd_text()) + "garbage");
  EXPECT_TRUE(read.text == zstd_text());
  EXPECT_EQ(read.end, SourceEnd::corrupt);
}

TEST(Zstd, LargeText) {
  std::string text;
  for (std::int64_t i = 0; i < 300'000; ++i) text += std::to_string(i * 7919) + '\n';
  for (const std::size_t step : {1'000U, 10'000'000U})
    ASSERT_TRUE(read_memory(zstd(text), step).text == text);
}

#endif

// ---------------------------------------------------------------------------------------------
// Reading ahead in a thread of its own

// Everything of a source, in steps of `step` bytes, reading ahead from byte `from` on.
ReadResult read_with(std::string_view bytes, std::size_t step, std::optional<std::size_t> from) {
  Source source = Source::memory("x", bytes);
  ReadResult result;
  std::string buffer(step, '\0');
  for (;;) {
    if (from && result.text.size() >= *from) {
      source.read_ahead();
      from.reset();
    }
    const std::size_t got = source.read(buffer);
    EXPECT_EQ(source.position(), static_cast<std::int64_t>(result.text.size() + got));
    if (got == 0) break;
    result.text.append(buffer, 0, got);
  }
  EXPECT_EQ(source.read(buffer), 0U);
  result.end = source.end();
  result.trouble = source.trouble();
  return result;
}

void expect_same_ahead(std::string_view bytes, const std::string& what) {
  for (const std::size_t step : {std::size_t{7}, std::size_t{70'000}, std::size_t{3'000'000}}) {
    const ReadResult usual = read_with(bytes, step, {});
    for (const std::size_t from :
         {std::size_t{0}, std::size_t{1}, usual.text.size() / 2, usual.text.size()}) {
      const ReadResult ahead = read_with(bytes, step, from);
      EXPECT_TRUE(ahead.text == usual.text) << what << " " << step << " " << from;
      EXPECT_EQ(ahead.end, usual.end) << what << " " << step << " " << from;
      EXPECT_EQ(ahead.trouble, usual.trouble) << what << " " << step << " " << from;
    }
  }
}

// Text of several buffers, and one that ends with a buffer.
std::string long_text(std::size_t size) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < size; ++i) text += std::to_string(i * i * 7919) + '\n';
  text.resize(size);
  return text;
}

void expect_same_ahead_however_damaged(const std::string& bytes, const std::string& what) {
  expect_same_ahead(bytes, what);
  expect_same_ahead(bytes + "garbage", what + " and garbage");
  for (const std::size_t part : {3U, 2U}) {
    expect_same_ahead(std::string_view(bytes).substr(0, bytes.size() - bytes.size() / part),
                      what + " cut");
    std::string damaged = bytes;
    damaged[damaged.size() / part] = static_cast<char>(damaged[damaged.size() / part] ^ 0x55);
    expect_same_ahead(damaged, what + " damaged");
  }
  std::string checksum = bytes;
  checksum[checksum.size() - 2] = static_cast<char>(checksum[checksum.size() - 2] ^ 1);
  expect_same_ahead(checksum, what + " with a wrong end");
}

constexpr std::size_t kAheadBuffer = std::size_t{256} << 10U;

TEST(ReadAhead, PlainText) {
  for (const std::size_t size : {std::size_t{5}, kAheadBuffer - 1, kAheadBuffer, kAheadBuffer + 1,
                                 4 * kAheadBuffer, 9 * kAheadBuffer})
    expect_same_ahead(long_text(size), std::to_string(size));
}

// Nobody reads on: the thread ends with its source, wherever it is.
void leave_early(std::string_view bytes) {
  for (const std::size_t taken : {0U, 1U, 1000U, 300'000U, 2'000'000U}) {
    Source source = Source::memory("x", bytes);
    source.read_ahead();
    std::string buffer(1000, '\0');
    for (std::size_t have = 0; have < taken;) {
      const std::size_t got = source.read({buffer.data(), std::min(buffer.size(), taken - have)});
      if (got == 0) break;
      have += got;
    }
    Source moved = std::move(source);  // the thread stays with the text
    EXPECT_EQ(moved.end(), SourceEnd::not_yet);
    EXPECT_GT(moved.read(buffer), 0U);
  }
}

TEST(ReadAhead, LeftEarly) { leave_early(long_text(std::size_t{3} << 20U)); }

#if defined(COMMLENS_WITH_ISAL) || defined(COMMLENS_WITH_ZLIB)
TEST(ReadAhead, Gzip) {
  expect_same_ahead_however_damaged(small_gzip(), "small");
  const std::string large = gzip_stored(long_text(kAheadBuffer * 5)) + small_gzip();
  expect_same_ahead_however_damaged(large, "large");
  expect_same_ahead_however_damaged(gzip_stored("") + large + gzip_stored(long_text(kAheadBuffer)),
                                    "members");
  leave_early(gzip_stored(long_text(std::size_t{3} << 20U)));
}
#endif

#ifdef COMMLENS_WITH_ZSTD
TEST(ReadAhead, Zstd) {
  expect_same_ahead_however_damaged(zstd(zstd_text()), "small");
  const std::string large = zstd(long_text(kAheadBuffer * 5)) + zstd("") + zstd(zstd_text());
  expect_same_ahead_however_damaged(large, "large");
  leave_early(zstd(long_text(std::size_t{3} << 20U)));
}
#endif

// ---------------------------------------------------------------------------------------------
// blocks.h

struct Odd {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  friend bool operator==(const Odd&, const Odd&) = default;
};

template <class T>
class BlocksTest : public ::testing::Test {
 public:
  static T value(std::size_t i) {
    if constexpr (std::is_same_v<T, Odd>) {
      return {i, i + 1, ~std::uint64_t{i}};
    } else {
      return static_cast<T>(i * 7);
    }
  }
  static Blocks<T> blocks(std::size_t size, std::size_t first = 0) {
    Blocks<T> made;
    for (std::size_t i = 0; i < size; ++i) made.push_back(value(first + i));
    return made;
  }
  static std::vector<T> list(std::size_t size) {
    std::vector<T> made;
    for (std::size_t i = 0; i < size; ++i) made.push_back(value(i));
    return made;
  }
  // Sizes around the borders of the first blocks.
  static std::vector<std::size_t> sizes() {
    const std::size_t block = std::size_t{1} << (17U - std::bit_width(sizeof(T)) + 1U);
    return {0, 1, 2, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1};
  }
};
using BlockValues = ::testing::Types<std::uint8_t, std::uint32_t, std::int64_t, Odd>;
TYPED_TEST_SUITE(BlocksTest, BlockValues);

TYPED_TEST(BlocksTest, PushAndRead) {
  for (const std::size_t size : this->sizes()) {
    const Blocks<TypeParam> made = this->blocks(size);
    const std::vector<TypeParam> list = this->list(size);
    ASSERT_EQ(made.size(), size);
    ASSERT_EQ(made.empty(), size == 0);
    ASSERT_TRUE(made == list);
    ASSERT_TRUE(std::equal(made.begin(), made.end(), list.begin(), list.end()));
    ASSERT_EQ(made.end() - made.begin(), static_cast<std::ptrdiff_t>(size));
  }
}

TYPED_TEST(BlocksTest, AppendAndShrink) {
  for (const std::size_t first : this->sizes()) {
    for (const std::size_t second : this->sizes()) {
      Blocks<TypeParam> made = this->blocks(first);
      made.append(this->blocks(second, first));
      ASSERT_TRUE(made == this->list(first + second)) << first << " " << second;
      made.shrink(first);
      ASSERT_TRUE(made == this->list(first)) << first << " " << second;
      made.push_back(this->value(first));
      ASSERT_TRUE(made == this->list(first + 1)) << first << " " << second;
    }
    Blocks<TypeParam> twice = this->blocks(first);
    twice.append(twice);
    ASSERT_EQ(twice.size(), 2 * first);
    if (first > 0) {
      ASSERT_TRUE(twice[first] == this->value(0));
    }
    twice.clear();
    ASSERT_TRUE(twice.empty());
    twice.push_back(this->value(0));
    ASSERT_TRUE(twice == this->list(1));
  }
}

TYPED_TEST(BlocksTest, CopyMoveCompare) {
  for (const std::size_t size : this->sizes()) {
    Blocks<TypeParam> made = this->blocks(size);
    Blocks<TypeParam> copy = made;
    ASSERT_TRUE(copy == made);
    copy.push_back(this->value(1));
    ASSERT_FALSE(copy == made);
    ASSERT_TRUE(made == this->list(size)) << "a copy stands alone";
    if (size > 0) {
      Blocks<TypeParam> other = made;
      other[size - 1] = this->value(size + 5);
      ASSERT_FALSE(other == made);
    }
    Blocks<TypeParam> moved = std::move(made);
    ASSERT_TRUE(moved == this->list(size));
    made = {};  // what was moved from can be used again
    made.push_back(this->value(0));
    ASSERT_TRUE(made == this->list(1));
    made = moved;
    ASSERT_TRUE(made == moved);
    made = std::move(moved);
    ASSERT_TRUE(made == this->list(size));
  }
}

TEST(Blocks, IteratorsServeAlgorithms) {
  Blocks<std::int64_t> made;
  std::mt19937 random(3);
  for (int i = 0; i < 40'000; ++i) made.push_back(static_cast<std::int64_t>(random() % 1000));
  std::vector<std::int64_t> list(made.begin(), made.end());
  std::sort(made.begin(), made.end());
  std::sort(list.begin(), list.end());
  EXPECT_TRUE(made == list);
  EXPECT_EQ(std::lower_bound(made.begin(), made.end(), 500) - made.begin(),
            std::lower_bound(list.begin(), list.end(), 500) - list.begin());
  std::fill(made.begin() + 16'380, made.begin() + 16'390, -1);
  EXPECT_EQ(std::count(made.begin(), made.end(), -1), 10);
  EXPECT_EQ(made.begin()[16'384], -1);
  EXPECT_EQ(*(made.end() - 1), list.back());
}

// ---------------------------------------------------------------------------------------------
// packed.h

template <class T>
void expect_packs(const std::vector<T>& list) {
  Packed<T> made;
  for (const T& value : list) made.push_back(value);
  ASSERT_EQ(made.size(), list.size());
  ASSERT_TRUE(made == list);
  ASSERT_TRUE(std::equal(made.begin(), made.end(), list.begin(), list.end()));
  Packed<T> copy = made;
  copy.push_back(T{});
  ASSERT_TRUE(made == list) << "a copy stands alone";
  Packed<T> moved = std::move(made);
  ASSERT_TRUE(moved == list);
  made = {};  // what was moved from can be used again
  made.push_back(T{});
  ASSERT_EQ(made.size(), 1U);
  moved.clear();
  ASSERT_TRUE(moved.empty());
}

// Values within `range` of each other, "none" now and then; sizes around the borders of runs.
template <class T>
std::vector<T> near(std::size_t size, std::uint64_t range, T none, std::mt19937_64& random) {
  std::vector<T> list;
  const std::uint64_t from = random();
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t distance = range == 0 ? random() : random() % range;
    list.push_back(random() % 16 == 0 ? none : static_cast<T>(from + distance));
  }
  return list;
}

TEST(Packed, EveryWidth) {
  std::mt19937_64 random(5);
  for (const std::size_t size : {0U, 1U, 127U, 128U, 129U, 255U, 256U, 257U, 1000U}) {
    for (unsigned bits = 0; bits <= 64; ++bits) {
      const std::uint64_t range = bits == 64 ? 0 : std::uint64_t{1} << bits;
      expect_packs(near<Ns>(size, range, std::numeric_limits<Ns>::min(), random));
      expect_packs(near<std::uint64_t>(size, range, 0, random));
      expect_packs(near<std::uint32_t>(size, range, ~0U, random));
    }
  }
}

TEST(Packed, ExtremesAndNothing) {
  using Limits = std::numeric_limits<Ns>;
  std::vector<Ns> list;
  for (int i = 0; i < 100; ++i)
    for (const Ns value : {Limits::min(), Limits::max(), Ns{0}, Ns{-1}, Limits::min() + 1})
      list.push_back(value);
  expect_packs(list);
  expect_packs(std::vector<Ns>(300, Limits::min()));
  expect_packs(std::vector<Ns>(300, 7));
  expect_packs(std::vector<StringId>(300));
  std::vector<StringId> names(300, StringId::from(5));
  names[140] = StringId::none();
  expect_packs(names);
}

// More than one chunk of bytes, of runs whose widths do not divide it.
TEST(Packed, Large) {
  std::mt19937_64 random(6);
  std::vector<Ns> list;
  for (std::size_t i = 0; i < 2'000; ++i) {
    const std::vector<Ns> run =
        near<Ns>(128, std::uint64_t{1} << (i % 60), std::numeric_limits<Ns>::min(), random);
    list.insert(list.end(), run.begin(), run.end());
  }
  expect_packs(list);
}

TEST(Packed, Set) {
  std::mt19937_64 random(7);
  std::vector<Ns> list = near<Ns>(1'000, 1'000, std::numeric_limits<Ns>::min(), random);
  Packed<Ns> made;
  for (const Ns value : list) made.push_back(value);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t at = random() % list.size();
    const Ns near_it = list[at] ^ static_cast<Ns>(random() % 256);
    const Ns value = i % 50 == 0  ? static_cast<Ns>(random())
                     : i % 7 == 0 ? std::numeric_limits<Ns>::min()
                                  : near_it;
    list[at] = value;
    made.set(at, value);
    ASSERT_EQ(made[at], value);
  }
  EXPECT_TRUE(made == list);
  made.assign(3, 9);
  EXPECT_TRUE(made == (std::vector<Ns>{9, 9, 9}));
}

TEST(Packed, IteratorsServeAlgorithms) {
  Packed<std::uint64_t> made;
  for (std::uint64_t i = 0; i < 1'000; ++i) made.push_back(3 * i);
  EXPECT_EQ(std::lower_bound(made.begin(), made.end(), 500U) - made.begin(), 167);
  EXPECT_EQ(*(made.end() - 1), 2'997U);
  EXPECT_EQ(made.begin()[130], 390U);
  EXPECT_EQ(std::count(made.begin(), made.end(), 390U), 1);
}

}  // namespace
}  // namespace commlens
