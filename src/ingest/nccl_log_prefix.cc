#include "ingest/nccl_log_prefix.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ingest/nccl_log_fields.h"
#include "ingest/nccl_log_time.h"

namespace commlens {
namespace {

// Where a record begins in a line, and what its prefix says.
struct Start {
  std::size_t begin = 0;    // of the record, with the time before it
  LogRecord record;         // without text, message's end, line and hints
  std::size_t message = 0;  // where the message begins
};

std::size_t digits_end(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of("0123456789", at), text.size());
}

// "INFO " and its likes at the start of `text`; how long, 0: none.
struct Level {
  std::size_t length = 0;
  bool warning = false;
  bool call = false;
};

Level level_at(std::string_view text, bool with_nccl) {
  std::size_t length = 0;
  if (with_nccl) {
    if (!text.starts_with("NCCL ")) return {};
    length = 5;
  }
  constexpr std::array<std::string_view, 5> kWords = {"INFO", "WARN", "TRACE", "CALL", "ABORT"};
  for (const std::string_view word : kWords) {
    const std::string_view behind = text.substr(length);
    if (!behind.starts_with(word)) continue;
    if (behind.size() > word.size() && behind[word.size()] != ' ') continue;
    const std::size_t blank = behind.size() > word.size() ? 1 : 0;
    return {length + word.size() + blank, word == "WARN" || word == "ABORT", word == "CALL"};
  }
  return {};
}

// "[5] " at the start; its length, 0: none.
std::size_t device_at(std::string_view text, std::int64_t& device) {
  if (!text.starts_with('[')) return 0;
  const std::size_t end = digits_end(text, 1);
  if (end == 1 || end > 6 || end >= text.size() || text[end] != ']') return 0;
  device = *decimal_number(text.substr(1, end - 1));
  return end + 1 < text.size() && text[end + 1] == ' ' ? end + 2 : end + 1;
}

// What may stand between device and level: "transport/net_ib.cc:94", "(commAlloc)", "12.5 f:120",
// a counter. Words without a colon, bracket or digit are no part of a prefix.
bool is_middle_word(std::string_view word) {
  return word.find_first_of(":(") != std::string_view::npos ||
         word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Fills what stands from the device on; false where no level follows.
bool read_rest(std::string_view line, std::size_t at, Start& start) {
  LogRecord& record = start.record;
  const std::size_t device = device_at(line.substr(at), record.device);
  at += device;
  for (int words = 0; words < 4; ++words) {
    Level level = level_at(line.substr(at), true);
    // 2.2 says no NCCL; only behind a device is that no word of a program's.
    if (level.length == 0 && device > 0) level = level_at(line.substr(at), false);
    if (level.length > 0) {
      record.kind = LogRecord::Kind::nccl;
      record.warning = level.warning;
      record.call_trace = level.call;
      start.message = at + level.length;
      return true;
    }
    const std::size_t blank = line.find(' ', at);
    if (blank == std::string_view::npos || blank - at > 300) return false;
    const std::string_view word = line.substr(at, blank - at);
    if (!is_middle_word(word)) return false;
    if (words == 0) record.place = word;
    at = blank + 1;
  }
  return false;
}

bool ends_host(char c) {
  return std::string_view(" \t<>*:[]()|\"'`,;").find(c) != std::string_view::npos;
}

// "10:11:12" is a time, not a host with pid and tid.
bool looks_like_time(std::string_view host, std::int64_t pid, std::int64_t thread) {
  return host.size() <= 2 && decimal_number(host) && pid < 60 && thread < 60;
}

// The time that stands directly before `at` ("[2026-05-05 06:16:47] "); its length, 0: none.
std::size_t time_before(std::string_view line, std::size_t at) {
  if (at < 2 || line[at - 1] != ' ' || line[at - 2] != ']') return 0;
  const std::size_t from = at - std::min<std::size_t>(at, 48);
  const std::size_t inside = line.substr(from, at - from).rfind('[');
  const std::size_t open = inside == std::string_view::npos ? inside : from + inside;
  if (open == std::string_view::npos || find_log_time(line.substr(open, at - open)).in_year < 0)
    return 0;
  return at - open;
}

// "node-a:42:43 " around its first colon.
struct Core {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view host;
  std::int64_t pid = -1;
  std::int64_t thread = -1;
};

std::optional<Core> core_at(std::string_view line, std::size_t colon) {
  const std::size_t pid_end = digits_end(line, colon + 1);
  if (pid_end == colon + 1 || pid_end >= line.size() || line[pid_end] != ':') return std::nullopt;
  const std::size_t thread_end = digits_end(line, pid_end + 1);
  if (thread_end == pid_end + 1 || thread_end >= line.size() || line[thread_end] != ' ')
    return std::nullopt;
  std::size_t host = colon;
  while (host > 0 && !ends_host(line[host - 1]) && colon - host < 255) --host;
  const auto pid = decimal_number(line.substr(colon + 1, pid_end - colon - 1));
  const auto thread = decimal_number(line.substr(pid_end + 1, thread_end - pid_end - 1));
  if (host == colon || !pid || !thread) return std::nullopt;
  const Core core{host, thread_end + 1, line.substr(host, colon - host), *pid, *thread};
  return looks_like_time(core.host, *pid, *thread) ? std::nullopt : std::optional(core);
}

// A start whose ":pid:tid " begins at `colon`.
std::optional<Start> start_at_core(std::string_view line, std::size_t colon) {
  const auto core = core_at(line, colon);
  if (!core) return std::nullopt;
  Start start;
  start.record.host = core->host;
  start.record.pid = core->pid;
  start.record.thread = core->thread;
  if (!read_rest(line, core->end, start)) return std::nullopt;
  start.begin = core->begin - time_before(line, core->begin);
  return start;
}

// The host of a record whose prefix another record broke off ("node-a:42:43 [0] NCCL
// INnode-b:..."); empty: none stands there.
std::string_view broken_off_host(std::string_view before) {
  std::string_view host;
  for (std::size_t at = before.find(':'); at != std::string_view::npos;
       at = before.find(':', at + 1)) {
    if (const auto core = core_at(before, at)) host = core->host;
  }
  return host;
}

// "[5] NCCL INFO ..." and "NCCL WARN ..." without a process.
std::optional<Start> bare_start(std::string_view line, std::size_t at) {
  Start start;
  start.begin = at;
  if (at >= 4 && line[at - 1] == ' ' && line[at - 2] == ']') {
    const std::size_t from = at - std::min<std::size_t>(at, 12);
    const std::size_t inside = line.substr(from, at - from).rfind('[');
    const std::size_t open = inside == std::string_view::npos ? inside : from + inside;
    std::int64_t device = -1;
    if (open != std::string_view::npos && device_at(line.substr(open), device) == at - open) {
      start.begin = open;
      start.record.device = device;
    }
  }
  const Level level = level_at(line.substr(at), true);
  if (level.length == 0) return std::nullopt;
  start.record.kind = LogRecord::Kind::nccl;
  start.record.warning = level.warning;
  start.record.call_trace = level.call;
  start.message = at + level.length;
  return start;
}

// "[rank3]:" (torch's) or "[default3]:" (torchrun's, a local rank, so no more than a mark).
std::optional<Start> torch_rank_start(std::string_view line, std::size_t at) {
  constexpr std::string_view kOpen = "[rank";
  if (!line.substr(at).starts_with(kOpen)) return std::nullopt;
  const std::size_t end = digits_end(line, at + kOpen.size());
  if (end == at + kOpen.size() || !line.substr(end).starts_with("]:")) return std::nullopt;
  const auto rank = decimal_number(line.substr(at + kOpen.size(), end - at - kOpen.size()));
  if (!rank || *rank > 10'000'000) return std::nullopt;
  Start start;
  start.begin = at;
  start.message = end + 2;
  start.record.kind = LogRecord::Kind::torch;
  start.record.torch_rank = *rank;
  return start;
}

// "[E1129 11:56:57.642513817 ProcessGroupNCCL.cpp:1834] ", "[E ProcessGroupNCCL.cpp:523] ": how
// long, 0: none.
std::size_t c10_header(std::string_view text) {
  if (text.size() < 4 || text[0] != '[' ||
      std::string_view("EWIF").find(text[1]) == std::string_view::npos)
    return 0;
  const std::size_t number = digits_end(text, 2);
  if (number >= text.size() || text[number] != ' ' || number > 6) return 0;
  const std::size_t close = text.substr(0, 200).find(']', number);
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(number, close - number);
  return inside.find(".cpp:") == std::string_view::npos &&
                 inside.find(".hpp:") == std::string_view::npos
             ? 0
             : close + 1;
}

// "[Rank 3] " and "[PG 0 (default_pg) Rank 3] " stay in the message: they name the group.
void enter_c10_header(std::string_view line, Start& start) {
  std::size_t at = start.message;
  while (at < line.size() && line[at] == ' ') ++at;
  start.message = at + c10_header(line.substr(at));
}

std::vector<Start> find_starts(std::string_view line) {
  std::vector<Start> starts;
  std::size_t behind = 0;  // the end of the last start's prefix
  const auto add = [&starts, &behind](const std::optional<Start>& start) {
    if (!start || start->begin < behind) return;
    behind = start->message;
    starts.push_back(*start);
  };
  for (std::size_t at = line.find_first_of(":N["); at != std::string_view::npos;
       at = line.find_first_of(":N[", at + 1)) {
    if (at < behind) continue;
    const char c = line[at];
    if (c == ':' && at > 0) add(start_at_core(line, at));
    if (c == 'N' && line.substr(at).starts_with("NCCL ")) add(bare_start(line, at));
    if (c != '[') continue;
    auto start = torch_rank_start(line, at);
    if (!start && c10_header(line.substr(at)) > 0) {
      start.emplace();
      start->begin = start->message = at;
      start->record.kind = LogRecord::Kind::torch;
    }
    if (!start) continue;
    enter_c10_header(line, *start);
    add(start);
  }
  return starts;
}

// The number that a launcher put before the line: "[1,3]<stdout>:", "3: ", "[3] ".
std::int64_t launcher_hint(std::string_view before) {
  before = trimmed(before);
  if (before.starts_with('[')) {
    const std::size_t comma = digits_end(before, 1);
    if (comma > 1 && comma < before.size() && before[comma] == ',') {
      const std::size_t end = digits_end(before, comma + 1);
      if (before.substr(end).starts_with("]<std"))
        return decimal_number(before.substr(comma + 1, end - comma - 1)).value_or(-1);
    }
    if (comma > 1 && comma < before.size() && before[comma] == ']')
      return decimal_number(before.substr(1, comma - 1)).value_or(-1);
    return -1;
  }
  const std::size_t end = digits_end(before, 0);
  if (end == 0 || end > 7 || end >= before.size() || before[end] != ':') return -1;
  if (end + 1 < before.size() && before[end + 1] != ' ') return -1;  // a time
  return decimal_number(before.substr(0, end)).value_or(-1);
}

// "[1,3]<stderr>:" of Open MPI's, which stands before every line; how long, 0: none.
std::size_t mpi_length(std::string_view line) {
  if (!line.starts_with('[')) return 0;
  const std::size_t tag = line.find("]<std");
  const std::size_t end = line.find(">:");
  return tag < 24 && end != std::string_view::npos && end > tag && end < tag + 12 ? end + 2 : 0;
}

std::string_view without_launcher(std::string_view line) { return line.substr(mpi_length(line)); }

// Whether something of another record stands directly before.
bool is_glued(std::string_view line, std::size_t at) {
  return at > 0 && std::string_view(" \t>:|").find(line[at - 1]) == std::string_view::npos;
}

}  // namespace

std::size_t launcher_length(std::string_view line) {
  if (const std::size_t mpi = mpi_length(line); mpi > 0) return mpi;
  // What stands in brackets, with a number at its end: "[3] ", "[default0]:", "(Worker pid=99) ".
  if (line.starts_with('[') || line.starts_with('(')) {
    const std::size_t close = line.substr(0, 100).find(line.front() == '[' ? ']' : ')');
    if (close == std::string_view::npos || close + 1 >= line.size()) return 0;
    if (digits_end(line, close - 1) != close) return 0;
    return line[close + 1] == ' ' || line[close + 1] == ':' ? close + 2 : 0;
  }
  const std::size_t end = digits_end(line, 0);
  return end > 0 && end <= 7 && line.substr(end).starts_with(": ") ? end + 2 : 0;
}

std::vector<LogRecord> split_records(std::string_view line, std::int64_t number, bool ended) {
  std::vector<Start> starts = find_starts(line);
  std::vector<LogRecord> records;
  const std::size_t first = starts.empty() ? line.size() : starts.front().begin;
  const std::string_view before = line.substr(0, first);
  const std::int64_t hint = launcher_hint(starts.empty() ? line : before);
  if (starts.empty() || trimmed(before).size() > 80) {  // a program's text, with a record behind it
    LogRecord plain;
    plain.text = plain.message = without_launcher(before);
    plain.ended = starts.empty() && ended;
    records.push_back(plain);
  }
  const std::string_view broken_host =
      starts.empty() ? std::string_view() : broken_off_host(before);
  const LogTime launcher_time = starts.empty() ? LogTime{} : find_log_time(before);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const bool last = i + 1 == starts.size();
    const std::size_t end = last ? line.size() : starts[i + 1].begin;
    LogRecord record = starts[i].record;
    record.text = line.substr(starts[i].begin, end - starts[i].begin);
    record.message = line.substr(starts[i].message, end - starts[i].message);
    record.ended = last && ended;
    record.glued = i > 0 || is_glued(line, starts[i].begin) || !broken_host.empty();
    if (i == 0 && !broken_host.empty() && record.host.ends_with(broken_host))
      record.host = record.host.substr(record.host.size() - broken_host.size());
    record.time = find_log_time(line.substr(starts[i].begin, starts[i].message - starts[i].begin));
    if (record.time.in_year < 0) record.time = launcher_time;
    records.push_back(record);
  }
  for (LogRecord& record : records) {
    record.line = number;
    record.hint = hint;
  }
  return records;
}

}  // namespace commlens
