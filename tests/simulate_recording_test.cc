// A simulated rank as a recording in memory equals what reading its file gives.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/sink.h"
#include "ingest/load.h"
#include "same_recording.h"
#include "simulate/kineto_writer.h"
#include "simulate/recording.h"

namespace commlens::simulate {
namespace {

Recording read_written(const SimulatedJob& job, int rank, const RecordOptions& options) {
  const std::string folder = testing::TempDir() + "commlens_simulate_recording";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/rank-" + std::to_string(rank) + ".json";
  {
    Sink sink(path);
    write_kineto(job, rank, sink, options);
    sink.close();
  }
  std::vector<LoadedInput> inputs = load({{path, true}}, {.input_format = {}, .progress = {}});
  EXPECT_TRUE(inputs[0].usable) << inputs[0].trouble;
  std::filesystem::remove_all(folder);
  return std::move(inputs[0].recording);
}

void expect_same(const SimulatedJob& job, const RecordOptions& options = {}) {
  for (int rank = 0; rank < job.spec.world(); ++rank) {
    const Recording read = read_written(job, rank, options);
    Recording made = record_rank(job, rank, options);
    EXPECT_EQ(made.path, "rank-" + std::to_string(rank) + ".json");
    EXPECT_GT(made.gpu.size(), 0U);
    made.path = read.path;
    made.stored_bytes = read.stored_bytes;
    EXPECT_EQ(difference(made, read), "") << "rank " << rank;
  }
}

TEST(SimulateRecording, EqualsReadingTheFile) {
  expect_same(simulate({.dp = 2, .tp = 2, .layers = 2, .steps = 2}));
  expect_same(simulate({.dp = 2,
                        .pp = 2,
                        .ranks_per_host = 2,
                        .layers = 3,
                        .steps = 2,
                        .microbatches = 3,
                        .fsdp = true,
                        .moe = true}));
  expect_same(simulate({.dp = 33, .layers = 1, .steps = 1}));  // a list of ranks that is cut
}

TEST(SimulateRecording, EqualsReadingTheFileForEveryOption) {
  const SimulatedJob job = simulate({.dp = 2, .pp = 2, .layers = 2, .steps = 2});
  expect_same(job, {.sync_records = false, .flows = false, .kernel_seq = true});
  expect_same(job, {.launches = false, .hosts = false});
  expect_same(job, {.metadata = false, .seq = SeqKind::none});
  expect_same(job, {.kernel_seq = true, .seq = SeqKind::process});
}

TEST(SimulateRecording, LeavesOutWhatWasNotRecorded) {
  SimulatedJob job = simulate({.dp = 2, .layers = 2, .steps = 2});
  const std::size_t all = record_rank(job, 1).gpu.size();
  job.ranks[1].clock = {.offset_ns = -70'000, .drift_ppb = 50'000};
  job.ranks[1].lost.assign(all, false);
  job.ranks[1].lost[3] = job.ranks[1].lost[7] = true;
  expect_same(job);
  EXPECT_EQ(record_rank(job, 1).gpu.size(), all - 2);
  job.ranks[1].opens = 2'000'000;
  expect_same(job);
  const Recording late = record_rank(job, 1);
  EXPECT_LT(late.gpu.size(), all - 4);
  // The first step's range began before; its work on the GPU is still there.
  ASSERT_EQ(late.steps.size(), 2U);
  EXPECT_EQ(late.steps[0].host.length(), 0);
  EXPECT_GT(late.steps[0].gpu_annotation->length(), 0);
}

}  // namespace
}  // namespace commlens::simulate
