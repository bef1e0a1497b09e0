// PyTorch's watchdog (ProcessGroupNCCL), all generations:
//
//   [E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout:
//       WorkNCCL(SeqNum=9, OpType=ALLREDUCE, TensorShape=[32], Timeout(ms)=1800000) ran for 1800116
//       milliseconds before timing out. 2.0, 2.1
//   [rank3]:[E1206 18:44:12.71 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught ...
//   WorkNCCL(SeqNum=9,
//       OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=32, Timeout(ms)=600000) ran for 600061
//       milliseconds ...
//   ... [PG 1 Rank 3] Exception (either an error or timeout) detected by watchdog at work: 9, last
//   enqueued NCCL work:
//       10, last completed NCCL
//       work: 8.                                                            2.3 - 2.5
//   ... [PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence id: 9
//   PG status: last enqueued work: 10, last completed work: 8                2.6 and newer
//   ... [PG ID 0 PG GUID 0(default_pg) Rank 3] Timeout at NCCL work: 9, last enqueued NCCL work:
//   10, last completed ...
//   ... Received a dump signal due to a collective timeout from  rank 1 and ... Last enqueued NCCL
//   work: 9, last ...
//   ... PG status: last enqueued work: 9, last started work: 9, last completed work: 8
//
// "[rank3]:" is the global rank; the rank inside the tag is the one in the group. Only a GUID, or
// the default group, means the same on every rank: "PG 5" is a counter of each process's own.
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

using Line = LogWatchdog;

// The first "[... Rank 3]" of the text: its inside, without brackets.
std::string_view tag_of(std::string_view text) {
  for (std::size_t open = text.find('['); open != std::string_view::npos;
       open = text.find('[', open + 1)) {
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return {};
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    if (inside.starts_with("Rank ") || inside.find(" Rank ") != std::string_view::npos)
      return inside;
  }
  return {};
}

void read_tag(std::string_view tag, Line& line) {
  const LogText text(tag, true);
  line.group_rank = text.number("Rank ").value_or(-1);
  const bool is_default = text.has("default_pg");
  if (const auto guid = text.value("PG GUID ", "(")) {
    line.group = "GUID " + (guid->size() > 80 ? safe_start(*guid, 80) : std::string(*guid));
    line.group_is_shared = true;
    line.group_is_default = is_default;
    return;
  }
  const auto number = text.number(text.has("PG ID ") ? "PG ID " : "PG ");
  if (!number) return;
  line.group_is_default = is_default || *number == 0;
  line.group = "PG " + std::to_string(*number);
  line.group_is_shared = line.group_is_default;
}

// Elements of "[32, 4]"; -1 where it is no list of numbers.
std::int64_t elements_of(std::string_view text) {
  const std::size_t close = text.find(']');
  if (!text.starts_with('[') || close == std::string_view::npos) return -1;
  std::int64_t elements = 1;
  for (const std::int64_t side : number_list(text.substr(0, close))) {
    if (__builtin_mul_overflow(elements, side, &elements)) return -1;
  }
  return elements;
}

// "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000)": false where
// cut.
bool read_work(const LogText& all, Line& line) {
  const LogText work = all.behind("WorkNCCL(");
  const auto op = work.value("OpType=", ",)");
  const auto timeout = work.number("Timeout(ms)=", ")");
  if (!op || !timeout ||
      work.text().find(')', work.text().find("Timeout(ms)=") + 12) == std::string_view::npos)
    return false;
  line.op = op->size() > 40 ? safe_start(*op, 40) : std::string(*op);
  line.timeout_ms = *timeout;
  line.seq = work.number("SeqNum=", ",").value_or(Line::kNotSaid);
  line.in_elements = work.number("NumelIn=", ",").value_or(-1);
  line.out_elements = work.number("NumelOut=", ",").value_or(-1);
  if (const std::size_t shape = work.text().find("TensorShape="); shape != std::string_view::npos)
    line.in_elements = line.out_elements = elements_of(work.text().substr(shape + 12));
  line.ran_ms = work.number("ran for ").value_or(-1);
  return true;
}

// "last enqueued NCCL work: 9, last completed NCCL work: 8.": false where absent or cut.
bool read_position(const LogText& text, Line& line) {
  for (const std::string_view word : {" NCCL work: ", " work: "}) {
    for (const std::string_view enqueued : {"last enqueued", "Last enqueued"}) {
      const auto first = text.number(std::string(enqueued) + std::string(word), ",");
      const auto last = text.number("last completed" + std::string(word), ".,;(");
      if (!first || !last) continue;
      line.enqueued = *first;
      line.completed = *last;
      return true;
    }
  }
  return false;
}

Line common_part(const LogRecord& record, LogBuilder& builder) {
  Line line;
  read_tag(tag_of(record.message), line);
  line.rank = record.torch_rank;
  if (line.rank < 0 && line.group_is_default) line.rank = line.group_rank;
  line.process = builder.process_of(record);
  line.line = record.line;
  line.when = record.time.in_year;
  line.dated = record.time.since_epoch;
  line.text = record_text(record);
  return line;
}

// Sentences that follow from a line that is read, or that say nothing about communication.
bool tells_nothing(const LogText& text) {
  constexpr std::array<std::string_view, 7> kKnown = {

      "To avoid data inconsistency",
      "Broadcasting flight-recorder dump signal",
      "initialization options",
      "ProcessGroupNCCL environments",
      "has no effect for point-to-point",
      "NCCL_DEBUG",
      "destroy_process_group() was not called"};
  for (const std::string_view words : kKnown) {
    if (text.has(words)) return true;
  }
  return false;
}

// Whether a line ends inside one of the sentences that matter.
bool ends_inside(std::string_view text) {
  constexpr std::array<std::string_view, 7> kEnds = {"terminated with",
                                                     "terminated with exception:",
                                                     "collective operation timeout:",
                                                     "detected by watchdog at work:",
                                                     "watchdog at work sequence id:",
                                                     "last enqueued",
                                                     "last enqueued NCCL work:"};
  text = trimmed(text);
  for (const std::string_view end : kEnds) {
    if (text.ends_with(end)) return true;
  }
  return false;
}

Understood read_timeout(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  Line line = common_part(record, builder);
  if (!read_work(text, line)) return Understood::cut;
  line.kind = Line::Kind::timed_out;
  read_position(text, line);
  builder.add(std::move(line));
  return Understood::yes;
}

// "... at work: 9, last enqueued ..." and "Timeout at NCCL work: 9, ..."
Understood read_at_work(const LogRecord& record, const LogText& text, LogBuilder& builder,
                        Line::Kind kind) {
  Line line = common_part(record, builder);
  line.kind = kind;
  if (!read_position(text, line)) return Understood::cut;
  line.seq =
      text.number("at work sequence id: ", " ")
          .value_or(text.number(text.has("at NCCL work: ") ? "at NCCL work: " : "at work: ", ",")
                        .value_or(Line::kNotSaid));
  builder.add(std::move(line));
  if (kind != Line::Kind::async_error) return Understood::yes;
  LogEvent event;
  event.kind = LogEventKind::async_error;
  builder.add(std::move(event), record);
  return Understood::yes;
}

Understood read_dump_signal(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  Line line = common_part(record, builder);
  line.kind = Line::Kind::dump_signal;
  if (!read_position(text, line)) return Understood::cut;
  const std::size_t from = text.text().find("timeout from ");
  if (from != std::string_view::npos) {
    const std::string_view rest = trimmed(text.text().substr(from + 13));
    line.signal_from = LogText(rest, true).begins("rank ")
                           ? LogText(rest, text.ended()).number("rank ").value_or(-1)
                           : -1;
  }
  builder.add(std::move(line));
  return Understood::yes;
}

// "Collective WorkNCCL(...) raised the following async exception: NCCL error: unhandled system
// error"
Understood read_async(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  Line line = common_part(record, builder);
  line.kind = Line::Kind::async_error;
  read_work(text, line);
  read_position(text, line);
  builder.add(std::move(line));
  LogEvent event;
  event.kind = LogEventKind::async_error;
  event.detail = safe_start(trimmed(text.behind("async exception:").text()), 200);
  builder.add(std::move(event), record);
  return Understood::yes;
}

}  // namespace

Understood read_watchdog(const LogRecord& record, LogBuilder& builder) {
  if (record.kind == LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  if (text.has("raised the following async exception")) return read_async(record, text, builder);
  if (text.has("Watchdog caught collective operation timeout"))
    return read_timeout(record, text, builder);
  if (text.has("Received a dump signal")) return read_dump_signal(record, text, builder);
  if (text.has("NCCL error is detected by watchdog at work:"))
    return read_at_work(record, text, builder, Line::Kind::async_error);
  if (text.has("detected by watchdog at work:") || text.has("watchdog at work sequence id:") ||
      text.has("Timeout at NCCL work:") || text.has("PG status: last enqueued work:"))
    return read_at_work(record, text, builder, Line::Kind::position);
  const bool gave_up = text.has("Some NCCL operations have failed or timed out");
  if (gave_up || text.has("Heartbeat monitor timed out")) {
    Line line = common_part(record, builder);
    line.kind = gave_up ? Line::Kind::gave_up : Line::Kind::heartbeat;
    builder.add(std::move(line));
    return Understood::yes;
  }
  if (record.kind == LogRecord::Kind::torch && ends_inside(text.text())) return Understood::cut;
  return tells_nothing(text) ? Understood::yes : Understood::no;
}

}  // namespace commlens
