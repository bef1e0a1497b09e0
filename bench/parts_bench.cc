// The parts that a run's time goes to, one by one. Whole runs are bench/compare's.
#include <benchmark/benchmark.h>

#ifdef COMMLENS_WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#ifdef COMMLENS_WITH_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/source.h"
#include "base/strings.h"
#include "ingest/format.h"
#include "ingest/json_scan.h"
#include "match/exposure.h"
#include "model/interval_set.h"
#include "model/kernel_name.h"
#include "trace_text.h"

namespace commlens {
namespace {

// Larger than the caches that one core has for itself, small enough to be made in a moment.
constexpr std::size_t kTextBytes = 32'000'000;
constexpr std::size_t kWindow = std::size_t{1} << 20U;

TraceMix mix_of(const benchmark::State& state) {
  return state.range(0) == 0 ? TraceMix::stack : TraceMix::lean;
}

// Made once for each mix; the padding behind it is part of the string.
const std::string& text_of(TraceMix mix) {
  static const std::string stack = trace_text(TraceMix::stack, kTextBytes);
  static const std::string lean = trace_text(TraceMix::lean, kTextBytes);
  return mix == TraceMix::stack ? stack : lean;
}

std::string padded(TraceMix mix) { return text_of(mix) + std::string(kScanPadding, '\0'); }

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.SetLabel(state.range(0) == 0 ? "stack" : "lean");
}

// ---- numbers, names

void microseconds(benchmark::State& state) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1024; ++i)
    texts.push_back("17404616794" + std::to_string(79712 + i * 7) + "." +
                    std::to_string(100 + i % 900));
  for ([[maybe_unused]] auto _ : state) {
    for (const std::string& text : texts) benchmark::DoNotOptimize(microseconds_to_ns(text));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(texts.size()));
}
BENCHMARK(microseconds);

// The general conversion: an exponent, more digits than nanoseconds have.
void microseconds_unusual(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(microseconds_to_ns("1.7404616794797121234e15"));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(microseconds_unusual);

void classify_name(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < kernel_name_count(); ++i)
      benchmark::DoNotOptimize(classify_kernel_name(kernel_name(i)));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kernel_name_count()));
}
BENCHMARK(classify_name);

void intern_known(benchmark::State& state) {
  StringPool pool;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 400; ++i)
    names.push_back(kernel_name(i % kernel_name_count()) + std::to_string(i));
  for (const std::string& name : names) pool.intern(name);
  for ([[maybe_unused]] auto _ : state) {
    for (const std::string& name : names) benchmark::DoNotOptimize(pool.intern(name));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(names.size()));
}
BENCHMARK(intern_known);

// ---- text

// Brackets and strings only: the speed at which unwanted text is passed over.
void skip_structure(benchmark::State& state) {
  const std::string text = padded(mix_of(state));
  const char* end = text.data() + text.size() - kScanPadding;
  for ([[maybe_unused]] auto _ : state) {
    const char* at = text.data() + 1;
    ContainerSkipper skipper;
    if (skipper.feed(at, end) != Scan::ok) state.SkipWithError("the text is not passed over whole");
  }
  count_bytes(state, text.size());
}
BENCHMARK(skip_structure)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// Every key and value of an event, arguments as one value.
void walk_members(benchmark::State& state) {
  const std::string text = padded(mix_of(state));
  const std::size_t events = text.find('[', text.find("traceEvents")) + 1;
  for ([[maybe_unused]] auto _ : state) {
    Walker list(text.data() + events, text.data() + text.size() - kScanPadding);
    std::int64_t members = 0;
    std::string_view key;
    while (list.next_element()) {
      list.enter_object();
      for (; list.next_key(key); ++members) list.skip_value();
    }
    benchmark::DoNotOptimize(members);
    if (list.state() != Scan::ok) state.SkipWithError("the text is not walked whole");
  }
  count_bytes(state, text.size() - events);
}
BENCHMARK(walk_members)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void read_text(benchmark::State& state) {
  const std::string& text = text_of(mix_of(state));
  const Format& format = *find_format("kineto");
  for ([[maybe_unused]] auto _ : state) {
    Source source = Source::memory("bench", text);
    TraceBuilder builder("bench", format.name);
    format.read(source, {}, {}, builder);
    benchmark::DoNotOptimize(builder.finish().gpu.size());
  }
  count_bytes(state, text.size());
}
BENCHMARK(read_text)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// ---- gzip

// Empty where this build has no gzip.
std::string gzipped([[maybe_unused]] const std::string& text) {
  std::string packed;
#if defined(COMMLENS_WITH_ISAL)
  packed.resize(text.size() + 4096);
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
  stream.avail_out = static_cast<std::uint32_t>(packed.size());
  isal_deflate(&stream);
  packed.resize(stream.total_out);
#elif defined(COMMLENS_WITH_ZLIB)
  packed.resize(text.size() + 4096);
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
#endif
  return packed;
}

void inflate(benchmark::State& state) {
  const std::string& text = text_of(mix_of(state));
  const std::string packed = gzipped(text);
  if (packed.empty()) return state.SkipWithError("this build has no gzip");
  std::vector<char> window(kWindow);
  for ([[maybe_unused]] auto _ : state) {
    Source source = Source::memory("bench", packed);
    std::size_t total = 0;
    while (const std::size_t got = source.read(window)) total += got;
    if (total != text.size()) state.SkipWithError("the text does not come back whole");
  }
  count_bytes(state, text.size());
}
BENCHMARK(inflate)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// ---- intervals

// `count` kernels of one stream: in order of time, with gaps after some.
std::vector<Interval> stream_of_kernels(std::size_t count, std::uint64_t seed) {
  std::vector<Interval> kernels;
  kernels.reserve(count);
  Ns at = static_cast<Ns>(seed % 1000);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const auto random = static_cast<Ns>(seed >> 40U);
    at += random % 3 == 0 ? 200 + random % 700 : 0;
    kernels.push_back({at, at + 1000 + random % 50000});
    at = kernels.back().end;
  }
  return kernels;
}

constexpr std::size_t kIntervals = 10'000'000;

// As a rank's figures are made: a union per stream (three of compute, one of communication), the
// unions merged, the intersection. Copying the inputs is not counted.
void overlap_10M(benchmark::State& state) {
  std::vector<std::vector<Interval>> streams;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    streams.push_back(stream_of_kernels(kIntervals / 4, seed));
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    std::vector<std::vector<Interval>> input = streams;
    state.ResumeTiming();
    IntervalSet compute;
    for (std::size_t i = 0; i < 3; ++i)
      compute = set_union(compute, IntervalSet(std::move(input[i])));
    const IntervalSet communication(std::move(input[3]));
    benchmark::DoNotOptimize(set_intersection(compute, communication).length());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kIntervals));
}
BENCHMARK(overlap_10M)->Unit(benchmark::kMillisecond);

// The same intervals in one list, which has to be sorted.
void union_10M_unsorted(benchmark::State& state) {
  std::vector<Interval> all;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<Interval> stream = stream_of_kernels(kIntervals / 4, seed);
    all.insert(all.end(), stream.begin(), stream.end());
  }
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    std::vector<Interval> input = all;
    state.ResumeTiming();
    benchmark::DoNotOptimize(IntervalSet(std::move(input)).length());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kIntervals));
}
BENCHMARK(union_10M_unsorted)->Unit(benchmark::kMillisecond);

// The shares of 1 million communications on four streams, beside compute.
void exposure_1M(benchmark::State& state) {
  DeviceTimeline device;
  device.compute = IntervalSet(stream_of_kernels(1'000'000, 99));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const Interval time : stream_of_kernels(250'000, seed))
      device.comm.push_back(
          {.time = time, .stream = StreamId::from(seed), .name = {}, .dtype = {}, .bytes = {}});
  }
  std::sort(device.comm.begin(), device.comm.end(),
            [](const CommOp& a, const CommOp& b) { return a.time.start < b.time.start; });
  for (const CommOp& op : device.comm) {
    device.starts.push_back(op.time.start);
    device.extent.end = std::max(device.extent.end, op.time.end);
  }
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(window_figures(device, device.extent).exposures.size());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(device.comm.size()));
}
BENCHMARK(exposure_1M)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace commlens

BENCHMARK_MAIN();
