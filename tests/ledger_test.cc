// The ledger against values worked out by hand, against simulated jobs counted in another way, and
// its sum over all of them.
#include "match/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "answer.h"
#include "base/error.h"
#include "match/transfer_fits.h"
#include "match/waiting.h"
#include "model/bandwidth.h"
#include "simulate/faults.h"
#include "simulate/recording.h"
#include "small_job.h"

namespace commlens {
namespace {

using notation::SmallJob;

RateOptions peak(double gbs) {
  return {.peaks = {{.group = {}, .op = {}, .gbs = gbs}}, .tables = {}};
}

void expect_sum(const Ledger& ledger) {
  ASSERT_TRUE(ledger.known);
  Ns sum = 0;
  for (const Ns row : ledger.rows) {
    EXPECT_GE(row, 0);
    sum += row;
  }
  EXPECT_EQ(sum, ledger.step);
  EXPECT_LE(ledger.wait_or_transfer, ledger.of(LedgerRow::wait_undecided));
}

// Ends every rank at `end`; its idle time with nothing queued is `host`.
void cut_at(Job& job, Ns end, const std::vector<Ns>& host) {
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    DeviceTimeline& device = job.ranks[rank].devices[0];
    device.extent.end = device.extent.start + end;
    device.breakdown.window = device.extent;
    device.breakdown.host_idle = host[rank];
  }
}

void set_bytes(Job& job, std::size_t op, std::int64_t bytes) {
  const MatchedOp& row = job.matching.ops[op];
  for (std::uint32_t i = 0; i < row.count; ++i) {
    const Part& part = job.matching.parts[row.first + i];
    job.ranks[part.rank].devices[part.device].comm[part.op].bytes = bytes;
  }
}

Ledger ledger_of(Job job, const RateOptions& rates = {}) {
  job.waits = find_waits(job);
  job.transfer_fits = find_transfer_fits(job);
  return find_ledger(job, rates);
}

// The worked example of docs/ledger.md.
Job worked_example() {
  SmallJob job(2);
  job.together(Op::barrier, {0, 1}, {{0, 2}, {0, 2}});
  job.compute(0, 2, 14);
  job.compute(1, 2, 20);
  job.together(Op::all_reduce, {0, 1}, {{14, 26}, {20, 26}});
  job.compute(0, 26, 36);
  job.compute(1, 26, 40);
  Job done = job.done();
  cut_at(done, 40, {4, 0});
  set_bytes(done, 1, 400);
  return done;
}

TEST(Ledger, WorkedExample) {
  // The factor of two ranks is 1: 400 bytes at 100 GB/s take 4 ns.
  const Ledger ledger = ledger_of(worked_example(), peak(100));
  EXPECT_EQ(ledger.step, 40);
  EXPECT_EQ(ledger.of(LedgerRow::compute), 27);      // (22 + 32) / 2
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 6);      // 2 of the barrier, 4 of the all-reduce
  EXPECT_EQ(ledger.of(LedgerRow::link_deficit), 2);  // it moved data for 6
  EXPECT_EQ(ledger.of(LedgerRow::wait_compute), 3);  // 6 on one of two ranks
  EXPECT_EQ(ledger.of(LedgerRow::host), 2);
  EXPECT_EQ(ledger.steps, 0);
  EXPECT_EQ(ledger.gpus, 2);
  expect_sum(ledger);
}

TEST(Ledger, WithoutTheUsersRatesTheFitIsAchievable) {
  const Ledger ledger = ledger_of(worked_example());
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 8);  // one operation: it is its own measure
  EXPECT_EQ(ledger.of(LedgerRow::link_deficit), 0);
  ASSERT_EQ(ledger.rates.size(), 1U);
  EXPECT_EQ(ledger.rates[0].from, RateSource::fit);
  EXPECT_EQ(ledger.rates[0].kind, (TransferKind{Op::all_reduce, 2, 0}));
  EXPECT_EQ(ledger.rates[0].operations, 2);
  expect_sum(ledger);
}

// Three all-reduces of one size: two move their data in 4, one in 10.
TEST(Ledger, SlowerThanTheOthersOfItsKindIsADeficit) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 4}, {0, 4}});
  job.together(Op::all_reduce, {0, 1}, {{10, 20}, {10, 20}});
  job.together(Op::all_reduce, {0, 1}, {{30, 34}, {30, 34}});
  Job done = job.done();
  for (std::size_t op = 0; op < 3; ++op) set_bytes(done, op, 400);
  cut_at(done, 40, {22, 22});
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 12);
  EXPECT_EQ(ledger.of(LedgerRow::link_deficit), 6);
  EXPECT_EQ(ledger.of(LedgerRow::host), 22);
}

// Two at once: each instant is shared, whatever each of them does then.
TEST(Ledger, SeveralAtOnceShareEachInstant) {
  SmallJob job(2);
  // A: rank 0 waits in [0, 10), both move in [10, 14). B: rank 0 moves in [4, 12), rank 1 too.
  job.together(Op::all_reduce, {0, 1}, {{0, 14}, {10, 14}});
  job.together(Op::broadcast, {0, 1}, {{4, 12}, {4, 12}}, 1);
  Job done = job.done();
  cut_at(done, 14, {0, 4});
  const Ledger ledger = ledger_of(done);
  // Rank 0: A waits alone 4, with B 6 (3 each), both move 2, A moves 2: waits 7, moves 7.
  // Rank 1: idle 4, B moves 6, both 2, A 2: moves 10.
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 9);  // 17 / 2; rounded up: the waits have 7 / 2
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 3);
  EXPECT_EQ(ledger.of(LedgerRow::host), 2);
  expect_sum(ledger);
}

TEST(Ledger, UnderComputeNothingIsExposed) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 12}, {10, 12}});
  job.compute(0, 2, 11);
  Job done = job.done();
  cut_at(done, 12, {0, 10});
  const Ledger ledger = ledger_of(done);
  // Rank 0 waits 2 in the open and moves 1 in the open; rank 1 moves 2.
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 1);
  EXPECT_EQ(ledger.of(LedgerRow::compute) + ledger.of(LedgerRow::transfer), 6);  // 4.5 and 1.5
  EXPECT_EQ(ledger.of(LedgerRow::host), 5);
  expect_sum(ledger);
}

// What may be waiting or transfer is neither.
TEST(Ledger, WhatCannotBeToldIsUndecided) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{0, 12}, {10, 12}}).whole = false;
  Job done = job.done();
  cut_at(done, 12, {0, 10});
  Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 7);  // (12 + 2) / 2
  EXPECT_EQ(ledger.wait_or_transfer, 7);
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 0);

  // By the user's word 300 bytes at 100 GB/s need 3: the last 3, or all of a shorter one.
  set_bytes(done, 0, 300);
  ledger = ledger_of(done, peak(100));
  EXPECT_EQ(ledger.of(LedgerRow::transfer) + ledger.of(LedgerRow::wait_undecided), 7);
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 4);  // 9 / 2; the transfer, 5 / 2, is rounded up
  EXPECT_EQ(ledger.of(LedgerRow::link_deficit), 0);    // what is beyond may be waiting
}

TEST(Ledger, ASenderBeforeItsReceiverIsUndecided) {
  SmallJob job(2);
  job.pair(0, 1, {0, 14}, {10, 14});
  Job done = job.done();
  cut_at(done, 14, {0, 10});
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 5);  // 10 on one of two
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 4);
  EXPECT_EQ(ledger.of(LedgerRow::host), 5);
}

TEST(Ledger, OneRankAlone) {
  SmallJob job(1);
  job.compute(0, 0, 10);
  job.together(Op::all_reduce, {0}, {{8, 16}});
  Job done = job.done();
  done.matching = {};
  done.clocks = {};
  cut_at(done, 20, {3});
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.step, 20);
  EXPECT_EQ(ledger.of(LedgerRow::compute), 10);
  EXPECT_EQ(ledger.of(LedgerRow::wait_undecided), 6);
  EXPECT_EQ(ledger.of(LedgerRow::host), 3);
  EXPECT_EQ(ledger.of(LedgerRow::unexplained), 1);
  EXPECT_TRUE(ledger.rates.empty());
}

// Two GPUs of one process: one clock, whether or not anything relates it to others.
TEST(Ledger, OneRankWithTwoGpus) {
  SmallJob job(1);
  job.compute(0, 0, 10);
  Job done = job.done();
  done.matching = {};
  done.clocks = {};
  cut_at(done, 20, {3});
  DeviceTimeline second = done.ranks[0].devices[0];
  second.device = 1;
  second.extent = second.breakdown.window = {12, 30};
  done.ranks[0].devices.push_back(second);
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.step, 30);  // not 20
  EXPECT_EQ(ledger.gpus, 2);
  EXPECT_EQ(ledger.of(LedgerRow::compute), 10);
  EXPECT_EQ(ledger.of(LedgerRow::host), 3);
  EXPECT_EQ(ledger.of(LedgerRow::unexplained), 17);
}

TEST(Ledger, NothingRanNothingIsKnown) {
  Job job;
  EXPECT_FALSE(find_ledger(job, {}).known);
  job.ranks.emplace_back();
  EXPECT_FALSE(find_ledger(job, {}).known);
}

// A rank whose clock is related to nobody's: its window is laid at the beginning.
TEST(Ledger, AClockThatIsNotRelated) {
  SmallJob job(3);
  job.together(Op::all_reduce, {0, 1}, {{0, 4}, {0, 4}});
  Job done = job.done();
  cut_at(done, 10, {6, 6, 10});
  done.ranks[2].devices[0].breakdown.window =
      done.ranks[2].devices[0].extent = {5'000'000, 5'000'007};
  done.ranks[2].devices[0].breakdown.host_idle = 0;
  done.clocks.lines[2].offset.reset();
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.step, 10);
  EXPECT_EQ(ledger.gpus_placed, 2);
  EXPECT_EQ(ledger.of(LedgerRow::host), 4);         // 12 / 3
  EXPECT_EQ(ledger.of(LedgerRow::unexplained), 3);  // 10 / 3 and a rounding
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 3);     // 8 / 3
  expect_sum(ledger);
}

// What lies outside a rank's own window but in its recording is the host's; else nobody knows.
TEST(Ledger, OutsideItsOwnWindow) {
  SmallJob job(2);
  job.together(Op::all_reduce, {0, 1}, {{10, 20}, {10, 20}});
  Job done = job.done();
  cut_at(done, 40, {30, 30});
  DeviceTimeline& later = done.ranks[1].devices[0];
  later.extent = later.breakdown.window = {10, 20};
  later.breakdown.host_idle = 0;
  done.ranks[1].recording.extent = Interval{4, 25};
  const Ledger ledger = ledger_of(done);
  EXPECT_EQ(ledger.of(LedgerRow::transfer), 10);
  EXPECT_EQ(ledger.of(LedgerRow::host), 21);        // (30 + 6 + 5) / 2, up
  EXPECT_EQ(ledger.of(LedgerRow::unexplained), 9);  // (4 + 15) / 2, down
  expect_sum(ledger);
}

TEST(Ledger, ADriftingClockKeepsTheSum) {
  for (const double drift : {-150.0, 3.0, 150.0}) {
    Job job = worked_example();
    job.clocks.lines[1].drift_ppm = drift;
    job.clocks.lines[1].offset = job.clocks.lines[1].assumed = 123'456'789;
    job.clocks.origin = -1'000'000'000;
    expect_sum(ledger_of(job, peak(100)));
  }
}

TEST(Ledger, TimesNearTheEndsOf64Bits) {
  for (const Ns start : {std::numeric_limits<Ns>::min() / 4, std::numeric_limits<Ns>::max() / 4}) {
    Job job = worked_example();
    for (RankTimeline& rank : job.ranks) {
      rank.devices[0].extent = rank.devices[0].breakdown.window = {start, start + (Ns{1} << 61U)};
    }
    job.clocks.lines[1].offset = job.clocks.lines[1].assumed = -start;
    expect_sum(ledger_of(job, peak(100)));
  }
}

TEST(Ledger, TheUsersRatesInTheirOrder) {
  Job job = worked_example();
  for (RankTimeline& rank : job.ranks) {
    rank.groups.push_back({.name = "7", .description = "mesh_dp", .size = 2, .ranks = {0, 1}});
    for (CommOp& op : rank.devices[0].comm) op.group = 0;
  }
  const auto deficit = [&](const RateOptions& rates) {
    return ledger_of(job, rates).of(LedgerRow::link_deficit);
  };
  const CalibrationTable table{
      .file = "t", .op = Op::all_reduce, .ranks = 2, .hosts = 1, .rows = {{400, 5}}};
  EXPECT_EQ(deficit({.peaks = {}, .tables = {table}}), 1);
  EXPECT_EQ(deficit({.peaks = parse_peaks("100"), .tables = {table}}), 2);
  EXPECT_EQ(deficit({.peaks = parse_peaks("all_gather=100"), .tables = {table}}), 1);
  EXPECT_EQ(deficit({.peaks = parse_peaks("1,all_reduce=100"), .tables = {}}), 2);
  EXPECT_EQ(deficit({.peaks = parse_peaks("mesh_dp=200,all_reduce=100,1"), .tables = {}}), 4);
  EXPECT_EQ(deficit({.peaks = parse_peaks("mesh_dp:all_reduce=400,mesh_dp=200"), .tables = {}}), 5);
  EXPECT_THROW(deficit({.peaks = parse_peaks("mesh_pp=1"), .tables = {}}), Error);
  // Four ranks pass 3/2 of the bytes, two ranks as many as there are: 6 ns are 4 here.
  CalibrationTable other = table;
  other.ranks = 4;
  other.rows = {{400, 6}};
  EXPECT_EQ(deficit({.peaks = {}, .tables = {other}}), 2);
  EXPECT_EQ(deficit({.peaks = {}, .tables = {other, table}}), 1);  // the one of as many ranks
  // Measured between hosts, it says nothing about ranks on one.
  other.hosts = 2;
  for (RankTimeline& rank : job.ranks) rank.host = "node-a";
  EXPECT_EQ(deficit({.peaks = {}, .tables = {other}}), 0);
}

// --- Simulated jobs, counted by cells ---

Job analysed(const simulate::SimulatedJob& job) {
  std::vector<Recording> recordings;
  for (int rank = 0; rank < job.spec.world(); ++rank)
    recordings.push_back(simulate::record_rank(job, rank));
  Job found = accuracy::analyse(std::move(recordings)).job;
  found.transfer_fits = find_transfer_fits(found);
  return found;
}

constexpr std::size_t kPieces = 4;  // waiting, not known which, transfer, beyond

// Where the pieces of a member's time begin: by what happened, not by what a trace shows.
std::array<Ns, kPieces + 1> true_cuts(const simulate::SimulatedJob& job, int collective, int member,
                                      double gbs) {
  const simulate::Collective& what = job.collectives[static_cast<std::size_t>(collective)];
  const auto& all = job.attendance[static_cast<std::size_t>(collective)];
  const simulate::Attendance& mine = all[static_cast<std::size_t>(member)];
  Ns together = mine.entry;
  Ns moving = mine.entry;
  if (what.point_to_point) {
    if (member == 1) together = moving = std::clamp(all[0].entry, mine.entry, mine.exit);
    if (member == 0) moving = std::clamp(all[1].entry, mine.entry, mine.exit);
  } else {
    for (const auto& other : all) together = std::max(together, other.entry);
    moving = together;
  }
  std::int64_t bytes = 0;
  for (const simulate::Member& one : what.members)
    bytes = std::max(bytes, simulate::message_bytes_of(one));
  const Op op = what.point_to_point ? Op::send_recv : what.op;
  const double factor = *bus_factor(op, static_cast<int>(what.members.size()));
  Ns usual = mine.exit;
  if (factor > 0)
    usual = std::min<Ns>(usual, moving + std::llround(static_cast<double>(bytes) * factor / gbs));
  return {mine.entry, together, moving, usual, mine.exit};
}

struct TrueRows {
  Ns compute = 0, waits = 0, open = 0, moves = 0, beyond = 0, memory = 0, host = 0, rest = 0;
};

// Every cell between two neighbouring instants at which anything changes.
TrueRows true_rows(const simulate::SimulatedJob& job, int rank, Interval window, double gbs) {
  const simulate::RankTrace& trace = job.ranks[static_cast<std::size_t>(rank)];
  struct Comm {
    std::array<Ns, kPieces + 1> cuts;
  };
  std::vector<Comm> comms;
  std::set<Ns> instants{window.start, window.end};
  for (const simulate::GpuEvent& event : trace.gpu) {
    instants.insert({event.start, event.end});
    instants.insert(std::clamp(trace.calls[static_cast<std::size_t>(event.call)].start,
                               window.start, window.end));
    if (event.kind != simulate::GpuKind::communication) continue;
    comms.push_back({true_cuts(job, event.collective, event.member, gbs)});
    instants.insert(comms.back().cuts.begin(), comms.back().cuts.end());
  }
  Interval own{window.end, window.start};
  for (const simulate::GpuEvent& event : trace.gpu)
    own = {std::min(own.start, event.start), std::max(own.end, event.end)};
  Interval recorded = own;
  for (const simulate::Step& step : trace.steps)
    recorded = {std::min(recorded.start, step.start), std::max(recorded.end, step.end)};
  instants.insert({std::max(window.start, recorded.start), std::min(window.end, recorded.end)});
  const std::vector<Ns> edges(instants.begin(), instants.end());
  const auto place = [&edges](Ns at) {
    return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), at) -
                                    edges.begin());
  };
  struct Cell {
    int compute = 0, memory = 0, queued = 0;
    std::array<Ns, kPieces> pieces{};
  };
  std::vector<Cell> cells(edges.size());
  for (const simulate::GpuEvent& event : trace.gpu) {
    const Ns call = trace.calls[static_cast<std::size_t>(event.call)].start;
    for (std::size_t i = place(event.start); i < place(event.end); ++i) {
      cells[i].compute += event.kind == simulate::GpuKind::compute;
      cells[i].memory +=
          event.kind == simulate::GpuKind::memcpy || event.kind == simulate::GpuKind::memset;
    }
    for (std::size_t i = place(std::max(call, window.start)); i < place(event.start); ++i)
      ++cells[i].queued;
  }
  for (const Comm& comm : comms) {
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      for (std::size_t i = place(comm.cuts[piece]); i < place(comm.cuts[piece + 1]); ++i)
        ++cells[i].pieces[piece];
    }
  }
  TrueRows rows;
  std::map<Ns, std::array<Ns, kPieces>> by_count;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const Ns length = edges[i + 1] - edges[i];
    const Ns count = std::accumulate(cells[i].pieces.begin(), cells[i].pieces.end(), Ns{0});
    if (cells[i].compute > 0) {
      rows.compute += length;
    } else if (count > 0) {
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        by_count[count][piece] += length * cells[i].pieces[piece];
    } else if (cells[i].memory > 0) {
      rows.memory += length;
    } else {
      // Outside its own activities nothing is taken to be queued, as far as its recording goes.
      const bool inside = edges[i] >= own.start && edges[i] < own.end;
      const bool known = edges[i] >= recorded.start && edges[i] < recorded.end;
      ((inside ? cells[i].queued > 0 : !known) ? rows.rest : rows.host) += length;
    }
  }
  for (const auto& [count, sums] : by_count) {
    // Largest remainder, one after the other.
    std::array<Ns, kPieces> shares{};
    std::array<Ns, kPieces> rests{};
    Ns left = std::accumulate(sums.begin(), sums.end(), Ns{0}) / count;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      shares[piece] = sums[piece] / count;
      rests[piece] = sums[piece] % count;
      left -= shares[piece];
    }
    for (; left > 0; --left) {
      const auto most = std::max_element(rests.begin(), rests.end());
      ++shares[static_cast<std::size_t>(most - rests.begin())];
      *most = -1;
    }
    rows.waits += shares[0];
    rows.open += shares[1];
    rows.moves += shares[2];
    rows.beyond += shares[3];
  }
  return rows;
}

// A row of the mean is rounded down or up; `rows` of them together are away by less than as many.
void expect_mean(Ns found, Ns sum, Ns per, Ns rows, const char* what) {
  EXPECT_LT(std::abs(found * per - sum), rows * per)
      << what << " is " << found << ", not " << static_cast<double>(sum) / static_cast<double>(per);
}

void expect_truth(const simulate::SimulatedJob& job, double gbs) {
  const Ledger ledger = find_ledger(analysed(job), peak(gbs));
  expect_sum(ledger);
  std::optional<Interval> window;
  for (const simulate::RankTrace& trace : job.ranks) {
    for (const simulate::GpuEvent& event : trace.gpu) {
      if (!window) window = Interval{event.start, event.end};
      window = Interval{std::min(window->start, event.start), std::max(window->end, event.end)};
    }
  }
  TrueRows all;
  for (int rank = 0; rank < job.spec.world(); ++rank) {
    const TrueRows rows = true_rows(job, rank, *window, gbs);
    all.compute += rows.compute;
    all.waits += rows.waits;
    all.open += rows.open;
    all.moves += rows.moves;
    all.beyond += rows.beyond;
    all.memory += rows.memory;
    all.host += rows.host;
    all.rest += rows.rest;
  }
  EXPECT_EQ(ledger.window, window->length());
  EXPECT_EQ(ledger.steps, job.spec.steps);
  EXPECT_EQ(ledger.gpus, job.spec.world());
  const Ns per = Ns{job.spec.world()} * job.spec.steps;
  const auto of = [&ledger](LedgerRow row) { return ledger.of(row); };
  expect_mean(of(LedgerRow::compute), all.compute, per, 1, "compute");
  expect_mean(of(LedgerRow::transfer), all.moves, per, 1, "transfer");
  expect_mean(of(LedgerRow::link_deficit), all.beyond, per, 1, "link deficit");
  expect_mean(of(LedgerRow::wait_compute) + of(LedgerRow::wait_host) + of(LedgerRow::wait_link) +
                  of(LedgerRow::wait_imbalance) + of(LedgerRow::wait_undecided),
              all.waits + all.open, per, 5, "waiting");
  expect_mean(of(LedgerRow::memory), all.memory, per, 1, "memory");
  expect_mean(of(LedgerRow::host), all.host, per, 1, "host");
  expect_mean(of(LedgerRow::unexplained), all.rest, per, 1, "unexplained");
  EXPECT_GT(all.waits, 0);
  EXPECT_GT(all.moves, 0);
}

TEST(LedgerTruth, OfSimulatedJobs) {
  const std::vector<simulate::JobSpec> specs{
      {.dp = 2, .layers = 2, .steps = 2, .layer_forward_ns = 100'000},
      {.dp = 2, .tp = 2, .layers = 2, .steps = 3},
      {.dp = 1, .pp = 2, .layers = 4, .steps = 2, .microbatches = 3},
      {.dp = 2, .pp = 2, .layers = 2, .steps = 2, .microbatches = 2, .noise = 0.3},
      {.dp = 4, .layers = 2, .steps = 2, .fsdp = true},
      {.dp = 2, .tp = 2, .layers = 2, .steps = 1, .fsdp = true, .layer_forward_ns = 40'000},
      {.dp = 4, .layers = 2, .steps = 2, .moe = true},
  };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    SCOPED_TRACE(i);
    simulate::JobSpec spec = specs[i];
    spec.seed = i + 1;
    expect_truth(simulate::simulate(spec), 100 + 30 * static_cast<double>(i));
  }
}

TEST(LedgerTruth, OfFaultyJobs) {
  for (const simulate::Faults& faults :
       {simulate::Faults{
            .list = {{.kind = simulate::FaultKind::slow, .rank = 1, .factor_ppm = 1'500'000}}},
        simulate::Faults{
            .list = {{.kind = simulate::FaultKind::late, .rank = 2, .amount_ns = 900'000}}},
        simulate::Faults{.list = {{.kind = simulate::FaultKind::slow_link,
                                   .rank = 0,
                                   .peer = 1,
                                   .factor_ppm = 4'000'000}}},
        simulate::Faults{.list = {}, .end_jitter_ns = 3'000}}) {
    expect_truth(simulate::simulate({.dp = 2, .tp = 2, .layers = 2, .steps = 2}, faults), 120);
  }
}

Ledger faulty(const simulate::Fault& fault) {
  const auto job =
      simulate::simulate({.dp = 2, .tp = 2, .layers = 4, .steps = 4}, {.list = {fault}});
  return find_ledger(analysed(job), {});
}

TEST(LedgerTruth, WaitingGoesToTheCauseThatIsThere) {
  const Ledger slow =
      faulty({.kind = simulate::FaultKind::slow, .rank = 1, .factor_ppm = 1'500'000});
  const Ledger late =
      faulty({.kind = simulate::FaultKind::late, .rank = 2, .amount_ns = 9'000'000});
  for (const LedgerRow row : {LedgerRow::wait_host, LedgerRow::wait_link, LedgerRow::wait_imbalance,
                              LedgerRow::wait_undecided})
    EXPECT_GT(slow.of(LedgerRow::wait_compute), 5 * slow.of(row)) << static_cast<int>(row);
  for (const LedgerRow row :
       {LedgerRow::wait_compute, LedgerRow::wait_link, LedgerRow::wait_imbalance})
    EXPECT_GT(late.of(LedgerRow::wait_host), 5 * late.of(row)) << static_cast<int>(row);
}

// Of two tensor-parallel groups one has links of a quarter of the speed: the other is the measure.
TEST(LedgerTruth, TheOwnFitShowsASlowLink) {
  const Ledger healthy =
      faulty({.kind = simulate::FaultKind::slow, .rank = 1, .factor_ppm = 1'000'001});
  const Ledger ledger = faulty(
      {.kind = simulate::FaultKind::slow_link, .rank = 0, .peer = 1, .factor_ppm = 4'000'000});
  EXPECT_GT(ledger.of(LedgerRow::link_deficit), 20 * healthy.of(LedgerRow::link_deficit));
  EXPECT_GT(ledger.of(LedgerRow::link_deficit), ledger.of(LedgerRow::transfer) / 2);
}

TEST(LedgerTruth, TheFitFindsTheLinks) {
  // Activations and gradients over links of 150 GB/s and 10 us; two ranks pass all bytes once.
  const auto job = simulate::simulate({.dp = 2, .tp = 2, .layers = 3, .steps = 3, .noise = 0});
  const Job found = analysed(job);
  const auto fit = found.transfer_fits.find({Op::all_reduce, 2, 1});
  ASSERT_NE(fit, found.transfer_fits.end());
  ASSERT_GT(fit->second.sizes, 1);
  EXPECT_NEAR(static_cast<double>(fit->second.alpha_ns), 10'000, 10);
  EXPECT_NEAR(fit->second.ns_per_byte, 1 / 150.0, 1e-6);
  EXPECT_NEAR(static_cast<double>(*fit->second.half_bandwidth_bytes()), 1'500'000, 2'000);
  EXPECT_LT(fit->second.spread, 1e-4);
}

TEST(LedgerTruth, SumsHoldWhateverIsMissing) {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    simulate::JobSpec spec{.dp = 2, .tp = 2, .layers = 2, .steps = 2, .seed = seed};
    spec.ranks_per_host = seed % 2 == 0 ? 2 : 8;
    simulate::Faults faults;
    const int rank = static_cast<int>(seed % 4);
    if (seed % 3 == 0)
      faults.list.push_back({.kind = simulate::FaultKind::lose, .rank = rank, .count = 20});
    if (seed % 4 == 1)
      faults.list.push_back(
          {.kind = simulate::FaultKind::window_shift, .rank = rank, .amount_ns = 3'000'000});
    if (seed % 2 == 0)
      faults.list.push_back({.kind = simulate::FaultKind::clock,
                             .host = 1,
                             .amount_ns = 700'000,
                             .drift_ppb = 40'000});
    const simulate::SimulatedJob job = simulate::simulate(spec, faults);
    simulate::RecordOptions record;
    record.hosts = seed % 5 != 0;
    record.launches = seed % 7 != 0;
    record.metadata = seed % 11 != 0;
    std::vector<Recording> recordings;
    for (int one = 0; one < spec.world(); ++one) {
      if (seed % 6 != 5 || one != rank)
        recordings.push_back(simulate::record_rank(job, one, record));
    }
    Job found = accuracy::analyse(std::move(recordings)).job;
    found.transfer_fits = find_transfer_fits(found);
    SCOPED_TRACE(seed);
    expect_sum(find_ledger(found, {}));
    expect_sum(find_ledger(found, peak(70)));
  }
}

}  // namespace
}  // namespace commlens
