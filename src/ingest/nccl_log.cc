// NCCL's debug log, with what PyTorch's watchdog and the program wrote between its lines.
//
//   node-a:4242:4250 [3] NCCL INFO comm 0x7f rank 3 nranks 8 ... - Init COMPLETE nccl_log_prefix.h:
//   who [rank3]:[E1129 11:56:57.64 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught ...
//
// Lines of all ranks lie mixed, on top of each other, wrapped by terminals and cut anywhere. So a
// line is first freed of what others put around it (nccl_log_lines.cc), then split into records
// (nccl_log_prefix.cc), and each record is shown to one reader per subject, of which each searches
// keys and takes a value only where something closes it. A record that ends inside a value is tried
// again with the next line, if that has no prefix of its own.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"
#include "ingest/witness_fingerprint.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

// From the most frequent in long logs to what all is left to.
constexpr std::array kSubjects = {
    read_calls,   read_call_trace, read_channels, read_tuning,   read_communicators,
    read_timings, read_settings,   read_network,  read_watchdog, read_desync,
    read_errors,  read_last_error, read_program,  read_known};

Understood read_record(const LogRecord& record, LogBuilder& builder) {
  for (const auto& subject : kSubjects) {
    const Understood outcome = subject(record, builder);
    if (outcome != Understood::no) return outcome;
  }
  return Understood::no;
}

// "Foo 0x7f12 bar 12" and "Foo 0x7f34 bar 7" are one shape.
std::string shape_of(std::string_view message) {
  std::string shape;
  for (std::size_t at = 0; at < message.size() && shape.size() < 60;) {
    const bool hex = message.substr(at).starts_with("0x");
    const std::size_t to = hex ? message.find_first_not_of("0123456789abcdef", at + 2)
                               : message.find_first_not_of("0123456789", at);
    if (hex || to != at) {
      shape += '#';
      at = std::min(to, message.size());
    } else {
      shape += message[at++];
    }
  }
  return evidence_text(shape);
}

// A call whose beginning, with who made it, is lost: "AllReduce: opCount 1 ...", "ount 1 sendbuff
// 0x7f recvbuff 0x7f count 8 datatype 7 ...".
bool is_headless_call(std::string_view text) {
  if (const std::size_t colon = text.find(": opCount "); colon != std::string_view::npos) {
    const std::string_view name = text.substr(0, colon);
    return op_of_nccl_name(name.substr(name.find_last_of(" \t") + 1)) != Op::unknown;
  }
  return text.find(" recvbuff ") != std::string_view::npos &&
         text.find(" datatype ") != std::string_view::npos &&
         text.find(" comm 0x") != std::string_view::npos;
}

// A record that was cut, and how far it got with the lines behind it.
struct Waiting {
  std::string text;
  LogRecord record;  // its views point into what is gone; message and text are set anew
  int joined = 0;
};

class Reader {
 public:
  explicit Reader(LogFacts& facts) : facts_(facts), builder_(facts) {}

  void line(const LogLine& line) {
    const auto records = split_records(line.text, line.number, line.ended);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const bool plain = records[i].kind == LogRecord::Kind::plain;
      if (plain && waiting_ && continues(records[i])) continue;
      if (!plain) give_up();
      record(records[i]);
    }
  }
  void finish(Notes& notes) {
    facts_.ends_cut = waiting_.has_value();
    give_up();
    builder_.finish();
    if (facts_.unknown > 0)
      notes.add(Note::unknown_log_line, most_frequent_shapes(), facts_.unknown);
    if (facts_.cut > 0) notes.add(Note::cut_log_line, first_cut_, facts_.cut);
  }

 private:
  static constexpr int kMostJoined = 4;
  static constexpr std::size_t kMostShaped = 300;

  void record(const LogRecord& record) {
    const bool plain = record.kind == LogRecord::Kind::plain;
    if (record.torch_rank >= 0 && record.hint >= 0 && record.torch_rank != record.hint)
      facts_.hints_are_ranks = false;
    switch (read_record(record, builder_)) {
      case Understood::yes: understood(record.line, plain); break;
      case Understood::cut: wait_for_rest(record); break;
      case Understood::no:
        if (!plain)
          unknown(record);
        else if (!waiting_ && is_headless_call(record.text))
          count_cut(record.line);
        break;
    }
    if (plain && !trimmed(record.text).empty()) facts_.last_program_line = record.line;
  }
  void understood(std::int64_t line, bool plain) {
    ++facts_.understood;
    if (!plain) facts_.last_log_line = line;
  }
  void unknown(const LogRecord& record) {
    facts_.last_log_line = record.line;
    if (record.kind == LogRecord::Kind::torch) return;  // mostly the program's own exceptions
    ++facts_.unknown;
    const std::string shape = shape_of(safe_start(trimmed(record.message), kMostShaped));
    if (shapes_.size() < 1000 || shapes_.contains(shape)) ++shapes_[shape];
  }
  void wait_for_rest(const LogRecord& record) {
    give_up();
    facts_.last_log_line = record.line;
    waiting_.emplace();
    waiting_->record = record;
    host_ = record.host;
    place_ = record.place;
    waiting_->text = record.message;
    waiting_line_ = record.line;
  }
  // Whether a line without a prefix is the rest of the record that waits.
  bool continues(const LogRecord& rest) {
    if (trimmed(rest.text).empty() || ++waiting_->joined > kMostJoined) {
      give_up();
      return false;
    }
    // A terminal breaks inside words; an editor at a blank that it may drop.
    for (const std::string_view between : {"", " "}) {
      std::string joined = waiting_->text + std::string(between) + std::string(rest.text);
      LogRecord whole = waiting_->record;
      whole.host = host_;
      whole.place = place_;
      whole.message = whole.text = joined;
      whole.ended = rest.ended;
      const Understood outcome = read_record(whole, builder_);
      if (outcome == Understood::yes) {
        understood(whole.line, false);
        waiting_.reset();
        return true;
      }
      if (outcome == Understood::cut && between == " ") waiting_->text = std::move(joined);
    }
    return false;
  }
  void give_up() {
    if (!waiting_) return;
    count_cut(waiting_line_);
    waiting_.reset();
  }
  void count_cut(std::int64_t line) {
    ++facts_.cut;
    if (first_cut_.empty()) first_cut_ = "line " + std::to_string(line);
  }
  std::string most_frequent_shapes() const {
    std::vector<std::pair<std::int64_t, std::string>> order;
    for (const auto& [shape, count] : shapes_) order.emplace_back(-count, shape);
    std::sort(order.begin(), order.end());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i)
      text +=
          (i > 0 ? "; " : "") + std::to_string(-order[i].first) + " x \"" + order[i].second + "\"";
    return text;
  }

  LogFacts& facts_;
  LogBuilder builder_;
  std::optional<Waiting> waiting_;
  std::string host_;
  std::string place_;
  std::int64_t waiting_line_ = 0;
  std::string first_cut_;
  std::map<std::string, std::int64_t, std::less<>> shapes_;
};

// Words that no other format's text begins with; a program's own output may come before them.
bool sniff_log(std::string_view head) {
  constexpr std::array<std::string_view, 9> kMarks = {
      "NCCL INFO ",
      "NCCL WARN ",
      "NCCL version ",
      "ProcessGroupNCCL.cpp",
      "Watchdog caught collective operation timeout",
      "NCCL CALL ",
      "NCCL TRACE ",
      "RCCL version ",
      "failed to pass monitoredBarrier"};
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  // JSON and binary texts may quote such lines.
  if (head.find('\0') != std::string_view::npos) return false;
  if (head[start] == '{') return false;
  if (std::any_of(kMarks.begin(), kMarks.end(),
                  [head](auto mark) { return head.find(mark) != std::string_view::npos; }))
    return true;
  // 2.2 has no such word.
  return head.find("] INFO NET") != std::string_view::npos ||
         head.find("] INFO comm 0x") != std::string_view::npos;
}

void read_log(Source& source, std::string_view head, Witness& witness) {
  witness.log = std::make_unique<LogFacts>();
  witness.counts_lines = true;
  LogFacts& facts = *witness.log;
  Reader reader(facts);
  LogLines lines(source, head);
  LogLine line;
  bool ended = true;
  while (lines.next(line)) {
    reader.line(line);
    if (line.text.find(kFingerprintLine) != std::string::npos)
      add_fingerprints(line.text, line.number, witness);
    ended = line.ended;
  }
  reader.finish(witness.notes);
  facts.lines = lines.count();
  witness.records = facts.lines;
  witness.damaged = !ended || facts.ends_cut;
  if (source.end() != SourceEnd::complete && !source.trouble().empty())
    witness.notes.add(Note::truncated, source.trouble());
  for (const LogProcess& process : facts.processes) {
    if (process.version.empty()) continue;
    witness.library = (process.rccl ? "RCCL " : "NCCL ") + process.version;
    break;
  }
}

}  // namespace

extern constinit const WitnessFormat kNcclLog{
    .name = "nccl_log",
    .summary = "debug log of NCCL and RCCL (NCCL_DEBUG=INFO), with PyTorch's watchdog lines",
    .sniff = sniff_log,
    .read = read_log,
};

}  // namespace commlens
