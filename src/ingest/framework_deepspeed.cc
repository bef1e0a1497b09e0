// DeepSpeed's communication logger: a line for each call, and a table of sums by log_summary().
//
//   [2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: all_reduce
//   | time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): 1204.52  | busbw (Gbps): 1129.23
//
//   Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)
//   ... broadcast
//                       2.0 KB              146                 11.12               0.08 ...
//
// While it is on, each call blocks and is timed by the host: the times include waiting, and nothing
// overlaps. Sizes are those of the call's tensor argument, rounded: of an all-gather this rank's
// part, of a reduce-scatter all of it. Lies: the bandwidths are of the world's size whatever the
// group, by formulas that changed; averages leave out the ends. None of these is read: count and
// total are.
//
// A call can be printed thrice: by itself, in each later table, and in the straggler block behind
// it. Tables are sums since the start, so that a later one that holds all of an earlier one
// replaces it; of calls that were printed one by one and in a table, what counts more of them
// counts.
#include "ingest/framework_deepspeed.h"

#include <algorithm>
#include <array>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr std::string_view kOpKey = "comm op: ";
constexpr std::string_view kCaller = "[Caller Func: ";

// Names of columns as headers print them; which a table has is told by its header alone.
constexpr std::array<std::string_view, 10> kColumns = {"Message Size",      "Count",
                                                       "Total Latency(ms)", "Total straggler(ms)",
                                                       "Avg Latency(ms)",   "Total comm lat(ms)",
                                                       "Avg comm lat(ms)",  "Avg straggler(ms)",
                                                       "tput_avg (Gbps)",   "busbw_avg (Gbps)"};

Op op_of(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kNames[] = {
      {"inference_all_reduce", Op::all_reduce},
      {"all_reduce_coalesced", Op::all_reduce},
      {"all_gather_base", Op::all_gather},
      {"all_gather_into_tensor", Op::all_gather},
      {"all_gather_coalesced", Op::all_gather},
      {"reduce_scatter_base", Op::reduce_scatter},
      {"reduce_scatter_tensor", Op::reduce_scatter},
      {"all_to_all_single", Op::all_to_all},
      {"isend", Op::send},
      {"irecv", Op::recv},
      {"monitored_barrier", Op::barrier}};
  for (const auto& [known, op] : kNames) {
    if (name == known) return op;
  }
  return op_from_name(name).value_or(Op::unknown);
}

// The text behind `key` up to the next bar.
std::string_view field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return trimmed_text(text.substr(0, text.find('|')));
}

// "broadcast | [Caller Func: _broadcast_model]" in two.
std::pair<std::string_view, std::string_view> name_and_caller(std::string_view text) {
  const std::size_t at = text.find(kCaller);
  if (at == std::string_view::npos) return {trimmed_text(text.substr(0, text.find('|'))), {}};
  std::string_view name = trimmed_text(text.substr(0, at));
  if (name.ends_with('|')) name = trimmed_text(name.substr(0, name.size() - 1));
  const std::string_view caller = text.substr(at + kCaller.size());
  return {name, caller.substr(0, caller.find(']'))};
}

bool begins_table(std::string_view line) {
  return line.find("Comm. Op") != std::string_view::npos &&
         line.find("Message Size") != std::string_view::npos &&
         line.find("Count") != std::string_view::npos;
}

// "2.0 KB", and what is meant to be one: "-2.0 KB", "2.0 QB", "nan B".
bool resembles_size(std::string_view text) {
  if (printed_size(text)) return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t letters = std::min(text.find_last_not_of("BKMGTPEZYRQi") + 1, text.size());
  const std::string_view unit = text.substr(letters);
  const std::string_view number = trimmed_text(text.substr(0, letters));
  return !unit.empty() && unit.size() <= 3 && unit.ends_with('B') &&
         (printed_number(number) || number == "nan" || number == "inf");
}

// A size, and behind it numbers or what stands for one: the figures of a table, whole or not.
bool looks_like_row(const std::vector<std::string_view>& words) {
  const auto is_figure = [](std::string_view word) {
    return printed_number(word).has_value() || word == "nan" || word == "inf" || word == "-nan" ||
           word == "-inf" || word == "-" || word == "*";
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool apart = i + 1 < words.size() && is_figure(words[i]) &&
                       resembles_size(std::string(words[i]) + std::string(words[i + 1]));
    if (!apart && !resembles_size(words[i])) continue;
    const auto figures = words.begin() + static_cast<std::ptrdiff_t>(i + (apart ? 2 : 1));
    return figures != words.end() && std::all_of(figures, words.end(), is_figure);
  }
  return false;
}

Ns least_known(Ns a, Ns b) { return a < 0 || b < 0 ? -1 : a + b; }

}  // namespace

bool is_deepspeed_line(std::string_view line) {
  return begins_table(line) || (line.find(kOpKey) != std::string_view::npos &&
                                line.find("time (ms): ") != std::string_view::npos);
}

MeasuredCall deepspeed_call(std::string_view name, std::int64_t message, Measured& measured) {
  MeasuredCall call;
  call.group = measured.add_group({});  // which group is not told
  call.op = op_of(name);
  call.op_text = measured.strings.intern(name);
  call.message = message;
  call.timed_by = TimedBy::blocking_call;
  const bool whole = call.op == Op::reduce_scatter || call.op == Op::all_to_all;
  call.bytes = whole ? message : tests_bytes(call.op, message, 0);
  return call;
}

bool DeepspeedReader::line(std::string_view text, std::int64_t number) {
  if (begins_table(text)) return header(text);
  bool any = false;
  // Lines of several writers can be fused.
  for (std::size_t at = text.find(kOpKey); at != std::string_view::npos;) {
    const std::size_t next = text.find(kOpKey, at + kOpKey.size());
    verbose(text.substr(at, next - at), number);
    any = true;
    at = next;
  }
  if (any) return true;
  if (columns_.empty()) return false;
  if (row(text, number) || op_line(text)) return true;
  const bool odd = looks_like_row(blank_separated(text));
  if (odd) measured_.notes.add(Note::odd_record, example_line(number, text));
  return odd;
}

bool DeepspeedReader::header(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const std::string_view column : kColumns) {
    if (const std::size_t at = text.find(column); at != std::string_view::npos)
      found.emplace_back(at, column);
  }
  std::sort(found.begin(), found.end());
  if (found.front().second != kColumns.front()) return false;
  // The block behind a table is of the same calls.
  straggler_block_ = text.find("Total comm lat(ms)") != std::string_view::npos;
  if (!straggler_block_) end_table();
  columns_.clear();
  for (const auto& [at, column] : found) columns_.push_back(column);
  name_.clear();
  return true;
}

// A bare name, behind what a launcher puts before lines.
bool DeepspeedReader::op_line(std::string_view text) {
  const auto [name, caller] = name_and_caller(text);
  const std::size_t blank = name.find_last_of(" \t:]");
  const std::string_view last = blank == std::string_view::npos ? name : name.substr(blank + 1);
  const std::string_view before = trimmed_text(name.substr(0, name.size() - last.size()));
  if (op_of(last) == Op::unknown) return false;
  if (!before.empty() && before.back() != ':' && before.back() != ']') return false;
  name_ = last;
  caller_ = caller;
  return true;
}

// "2.0 KB  146  11.12  0.08 ...": read from the end, since a prefix can stand before it.
bool DeepspeedReader::row(std::string_view text, std::int64_t number) {
  const std::vector<std::string_view> words = blank_separated(text);
  const std::size_t figures = columns_.size() - 1;  // without the size
  if (name_.empty() || words.size() < figures + 1) return false;
  const std::size_t first = words.size() - figures;
  const std::string_view unit = words[first - 1];
  std::string size(unit);
  const bool apart = !unit.empty() && !(unit.front() >= '0' && unit.front() <= '9');
  if (apart && first < 2) return false;
  if (apart) size = std::string(words[first - 2]) + std::string(unit);
  const auto message = printed_size(size);
  if (!message) return false;
  Row row{.where = number};
  Ns comm = -1;
  for (std::size_t i = 0; i < figures; ++i) {
    const std::string_view column = columns_[i + 1];
    const std::string_view word = words[first + i];
    if (column == "Count") {
      row.count = parse_int(word).value_or(0);
      continue;
    }
    const auto time = milliseconds_to_ns(word);
    if (!time) return false;
    if (column == "Total Latency(ms)") row.time = *time;
    if (column == "Total straggler(ms)") row.straggle = *time;
    if (column == "Total comm lat(ms)") comm = *time;
  }
  if (row.count <= 0) return false;
  if (row.time < 0) row.time = least_known(comm, row.straggle);
  if (!message->exact && message->bytes > 0)
    measured_.notes.add(Note::rounded_sizes, example_line(number, size));
  ++measured_.records;
  row.of_block = row.block_told = straggler_block_;
  const auto [place, is_new] = table_.try_emplace({name_, caller_, message->bytes}, row);
  if (!is_new) add_to(place->second, row, straggler_block_);
  return true;
}

// Sizes are printed rounded: several rows of one table can read alike. A straggler block repeats
// the rows of the table before it, and adds what its others waited.
void DeepspeedReader::add_to(Row& row, const Row& more, bool block) {
  const auto sum = [](Ns& into, Ns time) { into = into < 0 || time < 0 ? -1 : into + time; };
  if (block && !row.block_told) {
    row.straggle = more.straggle;
    row.block_told = true;
    return;
  }
  if (block || !row.block_told) sum(row.straggle, more.straggle);
  if (block && !row.of_block) return;
  row.count += more.count;
  sum(row.time, more.time);
}

void DeepspeedReader::verbose(std::string_view text, std::int64_t number) {
  const std::size_t times = text.find("time (ms):");
  const auto [name, caller] =
      name_and_caller(text.substr(kOpKey.size(), times - std::min(times, kOpKey.size())));
  const auto time = milliseconds_to_ns(field(text, "time (ms):"));
  const std::string_view size = field(text, "msg size:");
  const auto message = printed_size(size);
  if (!name.empty() && time && !message && resembles_size(size)) {
    measured_.notes.add(Note::odd_record, example_line(number, "msg size: " + std::string(size)));
    return;
  }
  if (name.empty() || !time || !message) {
    measured_.notes.add(Note::cut_log_line, example_line(number, text));
    return;
  }
  ++measured_.records;
  if (!message->exact && message->bytes > 0)
    measured_.notes.add(Note::rounded_sizes, example_line(number, field(text, "msg size:")));
  verbose_[{std::string(name), std::string(caller), message->bytes}].emplace_back(*time, number);
}

// A later table holds an earlier one where it counts each of its rows at least as often.
void DeepspeedReader::end_table() {
  if (table_.empty()) return;
  const auto holds = [this](const Table& earlier) {
    return std::all_of(earlier.begin(), earlier.end(), [this](const auto& row) {
      const auto mine = table_.find(row.first);
      return mine != table_.end() && mine->second.count >= row.second.count;
    });
  };
  std::erase_if(tables_, holds);
  tables_.push_back(std::move(table_));
  table_.clear();
}

void DeepspeedReader::add(const Kind& kind, std::int64_t count, Ns time, Ns straggle,
                          std::int64_t where) {
  MeasuredCall call = deepspeed_call(kind.name, kind.message, measured_);
  if (!kind.caller.empty()) call.caller = measured_.strings.intern(kind.caller);
  call.count = count;
  call.time = time;
  call.straggle = straggle;
  call.where = where;
  measured_.calls.push_back(call);
}

void DeepspeedReader::finish() {
  end_table();
  for (const Table& table : tables_) {
    for (const auto& [kind, row] : table) {
      const auto calls = verbose_.find(kind);
      const bool shown =
          calls != verbose_.end() && static_cast<std::int64_t>(calls->second.size()) >= row.count;
      if (shown) continue;
      if (calls != verbose_.end()) verbose_.erase(calls);
      add(kind, row.count, row.time, row.straggle, row.where);
      measured_.notes.add(Note::summed_calls, "line " + std::to_string(row.where));
    }
  }
  for (const auto& [kind, calls] : verbose_) {
    for (const auto& [time, where] : calls) add(kind, 1, time, -1, where);
  }
  if (!measured_.calls.empty()) measured_.notes.add(Note::unknown_group_size);
}

}  // namespace commlens
