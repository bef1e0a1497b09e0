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
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "ingest/format.h"
#include "ingest/kineto_context.h"
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

// Times from this on are microseconds since the epoch (1973 and later), not since some base.
constexpr Ns kEpochTimes = 100'000'000'000'000'000;

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
  std::int64_t first = 0;   // where its first event begins
  std::int64_t behind = 0;  // where the first event behind it begins
  bool at_end = false;      // nothing comes behind it
  TraceBuilder builder;
};

// More pieces than threads: kernels come in one half of a file, what is passed over in the other.
constexpr std::int64_t kPiecesPerThread = 8;

// Reads the events of a plain file in pieces of equal bytes. Each piece's window goes with its
// reader: what is kept of it are its columns.
class SplitReader {
 public:
  SplitReader(const std::string& path, const ReadOptions& options, const KinetoReader& head,
              std::int64_t from, std::int64_t size)
      : path_(path), options_(options), head_(head), from_(from), size_(size) {}

  std::int64_t limit(std::int64_t k, std::int64_t count) const {
    return k + 1 >= count ? KinetoReader::kToTheEnd : from_ + size_ * (k + 1);
  }
  // A piece whose first event is still to be found behind `from`; or begins there.
  Piece read(std::int64_t from, std::int64_t limit, bool at_event) const {
    Source source = Source::plain_from(path_, from);
    Piece piece{.builder = TraceBuilder(path_, kKineto.name)};
    KinetoReader reader(source, {}, options_, piece.builder);
    at_event ? reader.resume_events(head_) : reader.find_first_event(head_);
    piece.first = reader.position();
    reader.read_until(limit);
    piece.behind = reader.position();
    piece.at_end = reader.at_end();
    return piece;
  }

 private:
  const std::string& path_;
  const ReadOptions& options_;
  const KinetoReader& head_;
  std::int64_t from_;
  std::int64_t size_;
};

// Cuts the events of a plain file into pieces of equal bytes, reads them at the same time and puts
// them together in order. A piece may take the inside of an event for its first event (an argument
// that looks like one); then the piece before it, which knows where that event ends, disagrees, and
// the range is read again from there: the result is that of one reader, always.
void read_split(Source& source, std::string_view head, const ReadOptions& options, unsigned threads,
                TraceBuilder& builder) {
  KinetoReader first(source, head, options, builder);
  first.read_head();
  const std::int64_t from = first.position();
  const std::int64_t bytes = source.stored_bytes() - from;
  const auto count = first.at_end()
                         ? std::int64_t{1}
                         : std::clamp<std::int64_t>(bytes / options.smallest_piece, 1,
                                                    std::int64_t{threads} * kPiecesPerThread);
  const SplitReader split(source.name(), options, first, from, bytes / count);

  std::vector<std::optional<Piece>> pieces(static_cast<std::size_t>(count));
  std::atomic<std::int64_t> next{1};
  std::exception_ptr failure;
  std::mutex guard;
  const auto read_pieces = [&] {
    try {
      for (std::int64_t k = next++; k < count; k = next++)
        pieces[static_cast<std::size_t>(k)] =
            split.read(split.limit(k - 1, count), split.limit(k, count), false);
    } catch (...) {
      const std::lock_guard lock(guard);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> helpers;
  for (std::int64_t k = 1; k < std::min<std::int64_t>(threads, count); ++k)
    helpers.emplace_back(read_pieces);
  first.read_until(split.limit(0, count));
  read_pieces();
  helpers.clear();  // joins
  if (failure) std::rethrow_exception(failure);

  std::int64_t behind = first.position();
  bool at_end = first.at_end();
  for (std::int64_t k = 1; k < count && !at_end; ++k) {
    std::optional<Piece> piece = std::move(pieces[static_cast<std::size_t>(k)]);
    if (piece->first != behind) piece = split.read(behind, split.limit(k, count), true);
    behind = piece->behind;
    at_end = piece->at_end;
    builder.append(std::move(piece->builder));
  }
  finish(source, first.saw_events(), builder);
}

}  // namespace

constinit const Format kKineto{
    .name = "kineto",
    .summary =
        "PyTorch Profiler traces (Kineto, torch 1.9 and later): .json" COMMLENS_GZIP COMMLENS_ZSTD,
    .sniff = sniff,
    .read = read,
    .read_split = read_split,
    .read_contexts = read_kineto_contexts,
};

}  // namespace commlens
