#include "ingest/nccl_tests_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/decimal.h"
#include "base/utf8.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr std::string_view kJsonName = "\"nccl-tests structured output\"";

// "build/all_reduce_perf" anywhere in a line.
std::optional<Op> program_in(const std::vector<std::string_view>& words) {
  constexpr std::string_view kEnd = "_perf";
  for (std::string_view word : words) {
    word.remove_prefix(std::min(word.size(), word.rfind('/') + 1));
    if (word.ends_with(kEnd)) {
      if (const auto op = op_of_nccl_test(word.substr(0, word.size() - kEnd.size()))) return op;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// One row of the structured output; the walker is in its object.
NcclTestsRow json_row(Walker& walker, std::int64_t bytes) {
  NcclTestsRow row{.bytes = bytes};
  double out = 0;
  double in = 0;
  double algbw = 0;
  double busbw = 0;
  std::string_view key;
  while (walker.next_key(key)) {
    const std::string name(key);
    const Token token = walker.value();
    const auto number = [&] { return printed_number(token.text).value_or(0); };
    const auto time = [&] {
      const auto value = nccl_tests_time(token.text);
      if (!value && token.text != "null") row.odd_figures.emplace_back(token.text.substr(0, 40));
      return value.value_or(0);
    };
    if (name == "count") {
      const auto count = whole_number(token.text);
      if (!count) row.odd_figures.emplace_back(token.text.substr(0, 40));
      row.count = count.value_or(0);
    }
    if (name == "type") row.type = token.text.substr(0, 40);
    if (name == "redop" && token.text != "none") row.redop = token.text.substr(0, 40);
    if (name == "oop_time") out = time();
    if (name == "ip_time") in = time();
    if (name == "oop_wrong" || name == "ip_wrong") {
      const auto wrong = nccl_tests_any_wrong(token.text);
      if (!wrong && token.text != "null") row.odd_wrong = token.text.substr(0, 40);
      row.wrong = row.wrong || wrong.value_or(false);
    }
    if (name == "oop_algbw") algbw = number();
    if (name == "oop_busbw") busbw = number();
  }
  row.times = {out, in};
  row.bus_ratio = nccl_tests_bus_ratio(algbw, busbw);
  return row;
}

}  // namespace

std::optional<double> nccl_tests_time(std::string_view text) {
  if (text == "N/A") return 0;
  const auto time = printed_number(text);
  return time && *time >= 0 && *time <= kLongestNcclTest ? time : std::nullopt;
}

std::optional<bool> nccl_tests_any_wrong(std::string_view text) {
  constexpr double kMostResults = 1e15;
  if (text == "N/A") return false;
  const auto number = printed_number(text);
  if (!number || *number < 0 || *number > kMostResults || *number != std::floor(*number))
    return std::nullopt;
  return *number > 0;
}

// Two decimals say little of small bandwidths.
double nccl_tests_bus_ratio(double algbw, double busbw) { return algbw >= 1 ? busbw / algbw : 0; }

std::optional<Op> op_of_nccl_test(std::string_view name) {
  // Hypercube is no operation of NCCL's.
  constexpr std::pair<std::string_view, Op> kOther[] = {
      {"alltoall", Op::all_to_all}, {"alltoallv", Op::all_to_all}, {"sendrecv", Op::send_recv}};
  for (const auto& [program, op] : kOther) {
    if (name == program) return op;
  }
  return op_from_name(name);
}

std::int64_t nccl_tests_element(std::string_view type) {
  constexpr std::pair<std::string_view, std::int64_t> kSizes[] = {
      {"int8", 1},   {"uint8", 1},  {"int32", 4},    {"uint32", 4},  {"int64", 8},
      {"uint64", 8}, {"half", 2},   {"bfloat16", 2}, {"float", 4},   {"double", 8},
      {"f8e4m3", 1}, {"f8e5m2", 1}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == type) return size;
  }
  return -1;
}

NcclTestsLines::Kind NcclTestsLines::line(std::string_view text) {
  if (const std::size_t name = text.find(kJsonName); name != std::string_view::npos) {
    const std::size_t begin = text.rfind('{', name);
    json_ = text.substr(begin == std::string_view::npos ? name : begin);
    return Kind::json;
  }
  // What mpirun puts before a line.
  if (text.starts_with('[')) {
    if (const std::size_t tag = text.find(">:"); tag < text.find(' ')) text.remove_prefix(tag + 2);
  }
  const Words words = blank_separated(text);
  if (words.empty()) return Kind::other;
  if (words.front().starts_with('#')) return comment(words);
  // A row begins with size and count; anything else is a log's.
  if (words.size() > 2 && whole_number(words[0]) && whole_number(words[1])) return read_row(words);
  const auto op = program_in(words);
  if (!op) return Kind::other;
  name_run(op);
  return Kind::begins;
}

void NcclTestsLines::name_run(std::optional<Op> op) {
  op_ = op;
  named_ahead_ = op.has_value();
}

// What was said of the run before holds no longer. Its program is named before this line, if at
// all.
void NcclTestsLines::begin_run() {
  if (!named_ahead_) op_.reset();
  named_ahead_ = false;
  iterations_ = 0;
  forget_devices();
}

void NcclTestsLines::forget_devices() {
  hosts_.clear();
  ranks_.clear();
  rows_since_devices_ = false;
}

NcclTestsLines::Kind NcclTestsLines::comment(const Words& words) {
  const auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (const auto op = program_in(words)) {
    // "Collective test concluded: all_reduce_perf" names the run that ends.
    name_run(has("concluded:") ? std::nullopt : op);
    return Kind::begins;
  }
  if (has("Using") && has("devices")) {
    forget_devices();
    return Kind::begins;
  }
  // "#  Rank  0 Group  0 Pid 4242 on node-a device  0 [...]"
  const auto rank = std::find(words.begin(), words.end(), "Rank");
  const auto on = std::find(words.begin(), words.end(), "on");
  if (has("Pid") && rank + 1 < words.end() && on + 1 < words.end()) {
    const bool anew = rows_since_devices_;
    if (anew) forget_devices();
    if (const auto number = whole_number(*(rank + 1))) ranks_.insert(*number);
    hosts_.emplace(*(on + 1));
    return anew ? Kind::begins : Kind::other;
  }
  const bool begins = has("nThread") && has("nGpus");
  if (begins) begin_run();
  // "warmup iters: 5 iters: 20 agg iters: 1"
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "iters:" && words[i - 1] != "warmup" && words[i - 1] != "agg")
      iterations_ = std::min<std::int64_t>(whole_number(words[i + 1]).value_or(0), 1'000'000);
  }
  if (begins) return Kind::begins;
  if (!has("size") || !(has("time") || has("cputime")) || !has("busbw")) return Kind::other;
  heading(words);
  return Kind::heads;
}

void NcclTestsLines::heading(const Words& words) {
  timestamped_ = words.back() == "timestamp";
  cpu_times_ = std::find(words.begin(), words.end(), "cputime") != words.end();
  const std::size_t end = words.size() - (timestamped_ ? 1 : 0);
  times_.clear();
  wrongs_.clear();
  for (std::size_t i = 0; i < end; ++i) {
    if (words[i] == "time" || words[i] == "cputime") times_.push_back(end - i);
    if (words[i] == "#wrong") wrongs_.push_back(end - i);
  }
}

NcclTestsLines::Kind NcclTestsLines::odd(std::string why) {
  fault_ = std::move(why);
  return Kind::odd;
}

NcclTestsLines::Kind NcclTestsLines::read_row(Words words) {
  // "2025-10-03 12:34:56"
  if (timestamped_ && words.back().find(':') != std::string_view::npos) words.pop_back();
  if (timestamped_ && words.back().find('-', 1) != std::string_view::npos) words.pop_back();
  if (words.size() < 3) return odd("a row of the table ends early");
  if (times_.empty()) return odd("a row of figures before the heading that names its columns");
  row_ = {.bytes = *whole_number(words[0]),
          .count = *whole_number(words[1]),
          .type = std::string(words[2].substr(0, 40)),
          .cpu_time = cpu_times_};
  for (const std::size_t place : times_) {
    if (place + 2 > words.size()) return odd("a row of the table ends early");
    const std::string_view text = words[words.size() - place];
    const auto time = nccl_tests_time(text);
    if (!time)
      return odd("\"" + printable(text.substr(0, 40)) +
                 "\" stands where a time in microseconds should");
    row_.times.push_back(*time);
  }
  for (const std::size_t place : wrongs_) {
    if (place > words.size()) continue;
    const std::string_view text = words[words.size() - place];
    const auto wrong = nccl_tests_any_wrong(text);
    if (!wrong)
      return odd("\"" + printable(text.substr(0, 40)) +
                 "\" stands where the number of wrong results should");
    row_.wrong = row_.wrong || *wrong;
  }
  const std::size_t first = words.size() - times_.front();
  if (first > 3 && !whole_number(words[3]) && words[3] != "-1" && words[3] != "none")
    row_.redop = words[3].substr(0, 40);
  if (first + 2 < words.size())
    row_.bus_ratio = nccl_tests_bus_ratio(printed_number(words[first + 1]).value_or(0),
                                          printed_number(words[first + 2]).value_or(0));
  rows_since_devices_ = true;
  return Kind::row;
}

NcclTestsJson read_nccl_tests_json(std::string_view text) {
  NcclTestsJson result;
  PaddedText padded;
  text = padded.set(text);
  const char* const end = text.data() + text.size();
  const std::size_t list = text.find("\"benchmark\"");
  const std::size_t open = std::min(text.find('[', list), text.size());
  if (list == std::string_view::npos || open == text.size()) return {.rows = {}, .whole = false};
  Walker walker(text.data() + open + 1, end);
  std::string_view key;
  while (walker.next_element()) {
    if (!walker.enter_object()) continue;
    while (walker.next_key(key)) {
      const auto bytes = whole_number(key);
      if (!bytes) ++result.odd_sizes;
      if (!walker.enter_object()) continue;
      NcclTestsRow row = json_row(walker, bytes.value_or(0));
      if (walker.state() == Scan::ok && bytes) result.rows.push_back(std::move(row));
    }
  }
  result.whole = walker.state() == Scan::ok;
  return result;
}

}  // namespace commlens
