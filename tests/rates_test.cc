// Fits of transfers, the user's bandwidths, tables of nccl-tests: against values worked out by
// hand.
#include "model/rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <random>

#include "base/error.h"
#include "ingest/nccl_tests.h"
#include "model/hardware.h"
#include "model/transfer_fit.h"

namespace commlens {
namespace {

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing";
}

// --- Fits ---

TEST(TransferFit, FindsALine) {
  // 10 us, and 10 bytes in a nanosecond.
  const auto fit =
      fit_transfers({{100'000, 20'000}, {1'000'000, 110'000}, {10'000'000, 1'010'000}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->alpha_ns, 10'000);
  EXPECT_NEAR(fit->ns_per_byte, 0.1, 1e-9);
  EXPECT_NEAR(fit->spread, 0, 1e-12);
  EXPECT_EQ(fit->samples, 3);
  EXPECT_EQ(fit->sizes, 3);
  EXPECT_EQ(fit->half_bandwidth_bytes(), 100'000);  // as long as alpha
  EXPECT_EQ(fit->at(2'000'000), 210'000);
}

TEST(TransferFit, SlowOnesDoNotBendIt) {
  // Of each size two are right and one takes five times as long; one whole size is off.
  std::vector<TransferSample> samples{{5'000, 90'000}};
  for (const std::int64_t bytes : {1'000, 100'000, 10'000'000}) {
    const Ns time = 10'000 + bytes / 10;
    samples.insert(samples.end(), {{bytes, time}, {bytes, 5 * time}, {bytes, time}});
  }
  const auto fit = fit_transfers(samples);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->alpha_ns, 10'000);
  EXPECT_NEAR(fit->ns_per_byte, 0.1, 1e-9);
  EXPECT_NEAR(fit->spread, 0, 1e-9);
}

TEST(TransferFit, OneSizeTellsNoAlpha) {
  const auto fit = fit_transfers({{1'000, 300}, {1'000, 200}, {1'000, 900}, {1'000, 800}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->at(1'000), 300);  // the second of four
  EXPECT_EQ(fit->alpha_ns, 0);
  EXPECT_EQ(fit->sizes, 1);
  EXPECT_FALSE(fit->half_bandwidth_bytes());
  // By 100, 600, 0 and 500 of 300 away: the second is 1/3.
  EXPECT_NEAR(fit->spread, 1.0 / 3, 1e-12);
}

// 1 % apart in size and 3 % in time: a line through both begins at 500 of 600 us, by chance.
TEST(TransferFit, NearlyEqualSizesTellNoAlpha) {
  std::vector<TransferSample> samples;
  for (const Ns off : {-20'000, -10'000, 0, 10'000, 20'000}) {
    samples.push_back({60'000'000, 600'000 + off});
    samples.push_back({59'400'000, 599'000 + off});
  }
  const auto fit = fit_transfers(samples);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->alpha_ns, 0);
  EXPECT_EQ(fit->sizes, 2);
  EXPECT_NEAR(fit->ns_per_byte, 0.01, 0.0002);
  EXPECT_GT(fit->alpha_error_ns, 100'000);
  EXPECT_FALSE(fit->half_bandwidth_bytes());
}

TEST(TransferFit, NeitherPartIsNegative) {
  // Larger messages took less: no size costs time. Then: time grows faster than size.
  const auto falling = fit_transfers({{1'000, 500}, {2'000, 400}, {3'000, 300}});
  EXPECT_EQ(falling->ns_per_byte, 0);
  EXPECT_FALSE(falling->half_bandwidth_bytes());
  const auto steep = fit_transfers({{1'000, 100}, {2'000, 1'000}, {3'000, 9'000}});
  EXPECT_EQ(steep->alpha_ns, 0);
  EXPECT_GT(steep->ns_per_byte, 0);
}

TEST(TransferFit, NothingWithoutTime) {
  EXPECT_FALSE(fit_transfers({}));
  EXPECT_FALSE(fit_transfers({{1'000, 0}, {5, -3}}));
  EXPECT_EQ(fit_transfers({{0, 70}})->at(0), 70);
}

// Thousands of sizes, each seen once, 3 % scatter: the line is still found.
TEST(TransferFit, ManySizesAndScatter) {
  std::mt19937 random(7);
  std::normal_distribution<double> scatter(1, 0.03);
  std::vector<TransferSample> samples;
  for (int i = 0; i < 4'000; ++i) {
    const auto bytes = static_cast<std::int64_t>(1'000 * std::pow(1.0025, i));
    const double time = 20'000 + 0.02 * static_cast<double>(bytes);
    samples.push_back({bytes, static_cast<Ns>(time * scatter(random))});
  }
  const auto fit = fit_transfers(samples);
  EXPECT_NEAR(static_cast<double>(fit->alpha_ns), 20'000, 600);
  EXPECT_NEAR(fit->ns_per_byte, 0.02, 0.0006);
  EXPECT_NEAR(fit->spread, 0.67 * 0.03, 0.003);  // half of a normal distribution
}

// --- Peaks ---

// By hand: 8 H100 on one host, 1 GB: 14 steps of 3.4 us and 8.4 us of protocol Simple, then
// 2 * 7 / 8 of the bytes at 360 GB/s.
TEST(Hardware, ModelsARingInsideAHost) {
  const auto large = modelled_transfer("NVIDIA H100 80GB HBM3", Op::all_reduce, 8, 1'000'000'000);
  ASSERT_TRUE(large.has_value());
  EXPECT_NEAR(large->ns, 8'400 + 14 * 3'400 + 1.75e9 / 360, 1);
  EXPECT_NEAR(large->algbw_gbs, 360 / 1.75, 0.001);
  // 8 bytes go by protocol LL: 6.6 us and 14 hops of 0.6.
  const auto small = modelled_transfer("NVIDIA H100 80GB HBM3", Op::all_reduce, 8, 8);
  ASSERT_TRUE(small.has_value());
  EXPECT_NEAR(small->ns, 6'600 + 14 * 600, 1);
  const auto gather = modelled_transfer("Tesla V100-SXM2-16GB", Op::all_gather, 4, 400'000'000);
  ASSERT_TRUE(gather.has_value());
  EXPECT_NEAR(gather->ns, 8'400 + 3 * 3'400 + 0.75 * 400e6 / 120, 1);
}

TEST(Hardware, SaysNothingOfWhatItDoesNotKnow) {
  EXPECT_FALSE(modelled_transfer("AMD Instinct MI300X", Op::all_reduce, 8, 1000).has_value());
  EXPECT_FALSE(modelled_transfer("", Op::all_reduce, 8, 1000).has_value());
  EXPECT_FALSE(modelled_transfer("NVIDIA A100-PCIE-40GB", Op::all_reduce, 8, 1000).has_value());
  EXPECT_FALSE(modelled_transfer("NVIDIA H100 NVL", Op::all_reduce, 2, 1000).has_value());
  EXPECT_FALSE(modelled_transfer("NVIDIA H200", Op::barrier, 8, 1000).has_value());
  EXPECT_FALSE(modelled_transfer("NVIDIA H200", Op::all_reduce, 1, 1000).has_value());
}

TEST(Peaks, AreReadInEveryForm) {
  const auto peaks = parse_peaks("180,all_reduce=360.5,dp:all_gather=40,mesh_tp=300");
  ASSERT_EQ(peaks.size(), 4U);
  EXPECT_EQ(peaks[0].gbs, 180);
  EXPECT_FALSE(peaks[0].op);
  EXPECT_TRUE(peaks[0].group.empty());
  EXPECT_EQ(peaks[1].op, Op::all_reduce);
  EXPECT_EQ(peaks[1].gbs, 360.5);
  EXPECT_EQ(peaks[2].group, "dp");
  EXPECT_EQ(peaks[2].op, Op::all_gather);
  EXPECT_EQ(peaks[3].group, "mesh_tp");
  EXPECT_FALSE(peaks[3].op);
}

TEST(Peaks, RefusesWhatIsNoBandwidth) {
  for (const char* text : {"", "fast", "180GB", "-5", "0", "nan", "inf", "1e300", "180,", "=5",
                           "all_reduce=", "dp:all_shrink=4", "1 80"}) {
    EXPECT_NE(complaint([&] { parse_peaks(text); }), "nothing") << text;
  }
}

// --- Tables of nccl-tests ---

constexpr const char* kHead =
    "# nThread 1 nGpus 4 minBytes 1024\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid 42 on node-a device  0 [0x00] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid 43 on node-a device  1 [0x00] NVIDIA H100\n"
    "#  Rank  2 Group  0 Pid 44 on node-b device  0 [0x00] NVIDIA H100\n"
    "#  Rank  3 Group  0 Pid 45 on node-b device  1 [0x00] NVIDIA H100\n";
constexpr const char* kColumns =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n";
const std::string kRows =
    "        1024           256     float     sum      -1    20.00    0.05    0.08      0    22.00 "
    " "
    "  0.05    0.07      0\n"
    "node-a:42:42 [0] NCCL INFO Launch mode Parallel\n"
    "     1048576        262144     float     sum      -1    80.00   13.11   19.66      0    40.00 "
    " "
    " 26.21   39.32      0\n";
const std::string kTable =
    std::string("# Collective test starting: all_reduce_perf\n") + kHead + kColumns + kRows;

TEST(NcclTests, ReadsATable) {
  const auto tables = parse_nccl_tests(kTable, "t.txt", {});
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].op, Op::all_reduce);
  EXPECT_EQ(tables[0].ranks, 4);
  EXPECT_EQ(tables[0].hosts, 2);
  ASSERT_EQ(tables[0].rows.size(), 2U);
  EXPECT_EQ(tables[0].rows[0].ns, 20'000);  // out of place is faster
  EXPECT_EQ(tables[0].rows[1].ns, 40'000);  // in place is
}

TEST(NcclTests, TimesBetweenAndBeyondRows) {
  const CalibrationTable table = parse_nccl_tests(kTable, "t.txt", {})[0];
  EXPECT_EQ(table.time_of(10), 20'000);  // below the first: as long as that
  EXPECT_EQ(table.time_of(1024), 20'000);
  // Half way from 2^10 to 2^20 in logarithms: 20 us times the root of 2.
  EXPECT_NEAR(table.time_of(32'768), 20'000 * std::sqrt(2.0), 1e-6);
  EXPECT_EQ(table.time_of(1'048'576), 40'000);
  EXPECT_EQ(table.time_of(10'485'760), 400'000);  // at the bandwidth of the last
}

// Rows without a reduction leave a column blank; a test cannot always run in place.
TEST(NcclTests, CountsColumnsFromTheEnd) {
  const std::string text =
      std::string(
          "#       size         count    type   redop     time   algbw  "
          " busbw  error     time   algbw   busbw  error\n") +
      "  32   1   float   89.00  0.00  0.00    N/A   N/A   0.00  0.00    N/A\n";
  const auto tables = parse_nccl_tests(text, "t.txt", Op::all_to_all);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].op, Op::all_to_all);
  EXPECT_EQ(tables[0].ranks, 0);
  EXPECT_EQ(tables[0].rows[0].ns, 89'000);
}

TEST(NcclTests, SeveralRunsAndTheirTagsInOneFile) {
  std::string tagged;
  for (std::size_t from = 0; from < kTable.size();) {
    const std::size_t end = kTable.find('\n', from);
    tagged += "[1,0]<stdout>:" + kTable.substr(from, end - from + 1);
    from = end + 1;
  }
  std::string other = kTable;
  other.replace(other.find("all_reduce_perf"), 15, "./build/alltoall_perf");
  const auto tables = parse_nccl_tests(tagged + other, "t.txt", {});
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].op, Op::all_reduce);
  EXPECT_EQ(tables[1].op, Op::all_to_all);
  EXPECT_EQ(tables[1].ranks, 4);
}

TEST(NcclTests, RefusesWithFileAndLine) {
  const std::string head = std::string("# all_reduce_perf\n") + kColumns;
  const auto said = [&](const std::string& text) {
    return complaint([&] { parse_nccl_tests(text, "t.txt", {}); });
  };
  EXPECT_EQ(said(head + " 1024 256 float sum -1 20 0.1\n"),
            "t.txt, line 4: a row of the table ends early");
  EXPECT_EQ(said(head + " 1024 256 float sum -1 2x0 0.1 0.1 0 20 0.1 0.1 0\n"),
            "t.txt, line 4: \"2x0\" stands where a time in microseconds should");
  EXPECT_NE(said(head + " 1024 256 float sum -1 -20 0.1 0.1 0 20 0.1 0.1 0\n"), "nothing");
  EXPECT_NE(said(head + " 1024 256 float sum -1 inf 0.1 0.1 0 20 0.1 0.1 0\n"), "nothing");
  EXPECT_EQ(said(kRows),
            "t.txt, line 1: a row of figures before the heading that names its columns");
  EXPECT_NE(said(kColumns + kRows).find("does not say which operation"), std::string::npos);
  EXPECT_NE(said("").find("holds no table"), std::string::npos);
  EXPECT_NE(said(head).find("holds no table"), std::string::npos);
  EXPECT_NE(said(std::string(5'000'000, '7')).find("holds no table"), std::string::npos);
}

// Whatever a file holds: an answer, or one sentence.
TEST(NcclTests, DamagedTablesNeverDoMore) {
  for (unsigned seed = 1; seed <= 2'000; ++seed) {
    std::mt19937 random(seed);
    std::string text = kTable;
    for (unsigned change = 0; change < 1 + seed % 8; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 30); break;
        case 2: text.insert(at, std::to_string(random())); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 200)); break;
      }
    }
    SCOPED_TRACE(seed);
    try {
      for (const CalibrationTable& table : parse_nccl_tests(text, "t.txt", {})) {
        ASSERT_FALSE(table.rows.empty());
        for (const std::int64_t bytes : {0L, 1L, 5'000L, 1L << 40U, 1L << 62U}) {
          EXPECT_TRUE(std::isfinite(table.time_of(bytes)));
          EXPECT_GT(table.time_of(bytes), 0);
        }
      }
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(NcclTests, FilesAndTheirNames) {
  const std::string path = testing::TempDir() + "commlens_rates_test.txt";
  std::ofstream(path) << kColumns << kRows;
  EXPECT_EQ(read_nccl_tests("sendrecv=" + path)[0].op, Op::send_recv);
  EXPECT_EQ(read_nccl_tests("all_gather=" + path)[0].op, Op::all_gather);
  EXPECT_NE(complaint([&] { read_nccl_tests(path); }), "nothing");
  EXPECT_NE(complaint([&] { read_nccl_tests("all_reduce="); }), "nothing");
  EXPECT_NE(complaint([&] { read_nccl_tests("-"); }), "nothing");
  EXPECT_NE(complaint([&] { read_nccl_tests("no-such-file"); }), "nothing");
}

}  // namespace
}  // namespace commlens
