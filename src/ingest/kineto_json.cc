// PyTorch Profiler (Kineto) traces: a JSON object whose "traceEvents" is nearly all of the file.
//
// Problem: files are gigabytes, most of it events that no analysis reads; they come from crashed
// jobs, with names that were not escaped. Neither the text nor a tree of it can be kept. Method:
// one pass with a moving window. Members of the top-level object are read whole, events one by one;
// what reaches beyond the window is read again after more was brought in. After damage, reading
// goes on at the next event. Cost: about 2 GB/s where Python stacks dominate; memory is the window
// plus the columns of wanted events. When it is wrong: damage that still looks like JSON (a quote
// lost in pairs) can hide up to one event without a note.
#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/kineto_reader.h"

// What this build can unpack.
#if defined(COMMLENS_WITH_ISAL) || defined(COMMLENS_WITH_ZLIB)
#define COMMLENS_GZIP ", .json.gz"
#else
#define COMMLENS_GZIP ""
#endif
#ifdef COMMLENS_WITH_ZSTD
#define COMMLENS_ZSTD ", .json.zst"
#else
#define COMMLENS_ZSTD ""
#endif

namespace commlens {

extern const Format kKineto;

namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Times from this on are microseconds since the epoch (1973 and later), not since some base.
constexpr Ns kEpochTimes = 100'000'000'000'000'000;

const char* behind_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Files of some months in 2024 count from a base that they don't name; older ones count from the
// epoch.
void settle_clock(TraceBuilder& builder) {
  Recording& about = builder.about();
  // Most of the times decide: single ones may be lost.
  std::int64_t votes = 0;
  const auto ask = [&votes](Ns start) {
    if (start != 0) votes += start >= kEpochTimes ? 1 : -1;
  };
  for (const Ns start : about.gpu.start) ask(start);
  if (votes == 0) {
    for (const Ns start : about.launches.start) ask(start);
    for (const HostRange& range : about.host_ranges) ask(range.start);
    if (about.span) ask(about.span->start);
  }
  if (votes > 0) {
    about.clock_base = 0;
    about.clock = ClockBase::epoch;
  } else if (about.clock == ClockBase::unknown) {
    about.notes.add(Note::no_clock_base);
  }
}

// What can be said only when everything was read.
void finish(const Source& source, bool saw_events, TraceBuilder& builder) {
  settle_clock(builder);
  if (saw_events) return;
  throw Error(
      ErrorKind::input,
      source.name() +
          ": holds JSON but no \"traceEvents\"; a memory snapshot or timeline is no trace: " +
          "give the file that export_chrome_trace or the trace handler wrote");
}

// A JSON object with one of the members that only these traces have, or an array of events.
bool sniff(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  const char* end = head.data() + head.size();
  const char* at = behind_blanks(head.data(), end);
  if (at == end) return false;
  const std::string_view text(at, static_cast<std::size_t>(end - at));
  if (*at == '[') {
    const char* next = behind_blanks(at + 1, end);
    return next < end && *next == '{' && begins_like_event(behind_blanks(next + 1, end), end);
  }
  if (*at != '{') return false;
  // Our own timelines are of the same form but hold no recording: reading one would count
  // everything twice.
  if (text.find("\"commlens.timeline/") != std::string_view::npos) return false;
  return holds_known_member(text);
}

void read(Source& source, std::string_view head, const ReadOptions& options,
          TraceBuilder& builder) {
  KinetoReader reader(source, head, options, builder);
  reader.read_head();
  reader.read_until(KinetoReader::kToTheEnd);
  finish(source, reader.saw_events(), builder);
}

// One piece of a file's events: from the first that begins in it to the first that begins behind
// it.
struct Piece {
  Piece(const std::string& path, std::int64_t from, std::int64_t to, const ReadOptions& options)
      : limit(to),
        source(Source::plain_from(path, from)),
        builder(path, kKineto.name),
        reader(source, {}, options, builder) {}

  std::int64_t first = 0;  // where its first event begins
  std::int64_t limit;
  Source source;
  TraceBuilder builder;
  KinetoReader reader;
};

// Cuts the events of a plain file into pieces of equal bytes, reads them at the same time and puts
// them together in order. A piece may take the inside of an event for its first event (an argument
// that looks like one); then the piece before it, which knows where that event ends, disagrees, and
// reads over the range itself: the result is that of one reader, always.
void read_split(Source& source, std::string_view head, const ReadOptions& options, unsigned threads,
                TraceBuilder& builder) {
  KinetoReader first_reader(source, head, options, builder);
  first_reader.read_head();
  const std::int64_t from = first_reader.position();
  const std::int64_t bytes = source.stored_bytes() - from;
  const auto count = first_reader.at_end()
                         ? std::int64_t{1}
                         : std::clamp<std::int64_t>(bytes / options.smallest_piece, 1, threads);
  const auto limit_of = [&](std::int64_t k) {
    return k + 1 >= count ? KinetoReader::kToTheEnd : from + bytes / count * (k + 1);
  };

  std::vector<std::unique_ptr<Piece>> pieces(static_cast<std::size_t>(count));
  std::exception_ptr failure;
  std::mutex guard;
  const auto read_piece = [&](std::int64_t k) {
    try {
      auto piece = std::make_unique<Piece>(source.name(), limit_of(k - 1), limit_of(k), options);
      piece->reader.find_first_event(first_reader);
      piece->first = piece->reader.position();
      piece->reader.read_until(piece->limit);
      pieces[static_cast<std::size_t>(k)] = std::move(piece);
    } catch (...) {
      const std::lock_guard lock(guard);
      failure = std::current_exception();
    }
  };
  std::vector<std::jthread> helpers;
  for (std::int64_t k = 1; k < count; ++k) helpers.emplace_back(read_piece, k);
  first_reader.read_until(limit_of(0));
  helpers.clear();  // joins
  if (failure) std::rethrow_exception(failure);

  const KinetoReader* last = &first_reader;
  std::unique_ptr<Piece> kept;  // the piece that `last` belongs to
  for (std::int64_t k = 1; k < count && !last->at_end(); ++k) {
    std::unique_ptr<Piece> piece = std::move(pieces[static_cast<std::size_t>(k)]);
    if (piece->first != last->position()) {
      piece = std::make_unique<Piece>(source.name(), last->position(), limit_of(k), options);
      piece->reader.resume_events(first_reader);
      piece->reader.read_until(piece->limit);
    }
    builder.append(std::move(piece->builder));
    kept = std::move(piece);
    last = &kept->reader;
  }
  finish(source, first_reader.saw_events(), builder);
}

}  // namespace

constinit const Format kKineto{
    .name = "kineto",
    .summary =
        "PyTorch Profiler traces (Kineto, torch 1.9 and later): .json" COMMLENS_GZIP COMMLENS_ZSTD,
    .sniff = sniff,
    .read = read,
    .read_split = read_split,
};

}  // namespace commlens
