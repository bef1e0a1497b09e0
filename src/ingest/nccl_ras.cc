// What NCCL's RAS client (ncclras, since NCCL 2.24) prints of a running job:
//
//   Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
//       #  in group  per comm  per node  per comm  in group
//       0         1         4         8        32        32   RUNNING  MISMATCH
//   ...
//   DEAD
//     1 job process is considered dead (unreachable via the RAS network)
//     Process 3748990 on node node1 managing GPU 3
//
//   #0-0 (fa93daea854b060b) MISMATCH
//     Communicator ranks have different AllGather operation counts
//     30 ranks have launched up to operation 640
//     2 ranks have launched up to operation 641
//     Rank 12 -- GPU 4 managed by process 323032 on node 10.100.0.124
//     Rank 13 -- GPU 5 managed by process 323033 on node 10.100.0.124
//
// Ranks are listed below the smaller sets only, which can be the ones ahead as well as those
// behind. A set of one is a line: "Rank 7 has launched up to operation 60 -- GPU 3 managed by ...".
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ingest/nccl_log_fields.h"
#include "ingest/nccl_log_prefix.h"
#include "ingest/witness_format.h"
#include "ingest/witness_lines.h"
#include "ingest/witness_secrets.h"
#include "model/rank_list.h"
#include "model/witness_ras.h"

namespace commlens {
namespace {

constexpr std::string_view kCommunicators = "Communicators...";
constexpr std::string_view kNoData = "No communicator data collected!";

// Of one communicator: twice the largest job.
constexpr std::int64_t kMostMembers = std::int64_t{1} << 18U;
constexpr std::int64_t kMostLaunches = std::int64_t{1} << 62U;
// Of one output, more than any job has.
constexpr std::size_t kMostRows = 1024;
constexpr std::size_t kMostBlocks = std::size_t{1} << 16U;

bool sniff(std::string_view head) {
  const auto holds = [head](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  return holds(kCommunicators) && ((holds("Ranks") && holds("Status")) || holds(kNoData));
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  return decimal_number(
      text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size())));
}

// A host's name, the words of an error: what others wrote, and as much of it as anybody reads.
std::string shown_text(std::string_view text) {
  return without_secrets(text.substr(0, 1000)).substr(0, 100);
}

bool is_made_of(std::string_view text, std::string_view characters, std::size_t most) {
  return !text.empty() && text.size() <= most &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

// What stands in `text` from behind `from` to `to`, or to the end.
std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + from.size());
  return to.empty() ? text : text.substr(0, text.find(to));
}

// "GPU 3 managed by process 1650386 on node node1", "[process information not found]"
RasProcess manager_of(std::string_view text, std::int64_t line) {
  RasProcess process{.pid = -1, .node = {}, .gpu = {}, .line = line};
  if (text.find(" managed by process ") == std::string_view::npos) return process;
  process.gpu = shown_text(between(text, "GPU ", " managed by"));
  process.pid = decimal_number(between(text, " managed by process ", " ")).value_or(-1);
  process.node = shown_text(between(text, " on node ", {}));
  return process;
}

// "Process 3748990 on node node1 managing GPU 3"
RasProcess listed_process(std::string_view text, std::int64_t line) {
  RasProcess process{.pid = -1, .node = {}, .gpu = {}, .line = line};
  process.pid = decimal_number(between(text, "Process ", " ")).value_or(-1);
  process.node = shown_text(between(text, " on node ", " managing GPU"));
  const std::string_view gpus = between(text, " managing GPU", {});
  process.gpu = shown_text(gpus.substr(std::min(gpus.find(' ') + 1, gpus.size())));
  return process;
}

bool are_words_of(std::string_view text, std::span<const std::string_view> known) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (std::find(known.begin(), known.end(), text.substr(0, end)) == known.end()) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

constexpr std::array<std::string_view, 5> kStatuses = {"NOCOMM", "INIT", "RUNNING", "FINALIZE",
                                                       "ABORT"};
constexpr std::array<std::string_view, 4> kErrors = {"OK", "MISMATCH", "ERROR", "INCOMPLETE"};

class RasReader {
 public:
  explicit RasReader(Witness& witness) : witness_(witness) {}
  void line(std::string_view text, std::int64_t number);
  void finish();
  bool seen() const { return !facts_.snapshots.empty(); }
  RasFacts take() { return std::move(facts_); }

 private:
  std::optional<std::string_view> own_text(std::string_view text);
  void before_table(std::string_view text);
  void in_snapshot(std::string_view text, std::int64_t number);
  bool heading(std::string_view text, std::int64_t number);
  bool row(std::string_view text, std::int64_t number);
  bool absent(std::string_view text, std::int64_t number);
  bool block_heading(std::string_view text, std::int64_t number);
  void in_block(std::string_view text, std::int64_t number);
  bool one_rank(std::string_view text, std::int64_t number);
  bool many_ranks(std::string_view text, std::int64_t number);
  bool fill_set(std::string_view what, RasSet& set) const;
  RasBlock* start_block(RasBlock::Kind kind, std::int64_t number);

  Witness& witness_;
  RasFacts facts_;
  std::string tag_;         // what a launcher put before the table's heading
  bool known_ = false;      // whether there is a table's heading
  std::int64_t gpus_ = -1;  // the last number of the last line of numbers: the job's total
  bool in_table_ = false;
  RasAbsent* absent_ = nullptr;  // whose processes are being listed
  RasBlock communicator_;        // label and hash of the blocks that follow
  RasBlock* block_ = nullptr;
  bool ends_in_set_ = false;  // the last line is one of a set, whose number may have been cut
};

// Without what a launcher put before it; nothing for lines of other processes.
std::optional<std::string_view> RasReader::own_text(std::string_view text) {
  const std::size_t launcher = launcher_length(text);
  const std::string_view tag = text.substr(0, launcher);
  if (known_ && tag != tag_ && !tag.empty()) return std::nullopt;
  text = trimmed(text.substr(launcher));
  if (!known_ && text.starts_with(kCommunicators)) {
    known_ = true;
    tag_ = tag;
  }
  return text;
}

void RasReader::line(std::string_view text, std::int64_t number) {
  const auto own = own_text(text);
  if (!own) return;
  ends_in_set_ = false;
  if (own->starts_with(kCommunicators)) {
    facts_.snapshots.push_back(
        {.gpus = gpus_, .line = number, .rows = {}, .dead = {}, .silent = {}, .blocks = {}});
    in_table_ = true;
    absent_ = nullptr;
    block_ = nullptr;
    communicator_ = {};
  } else if (*own == "Job summary") {
    gpus_ = -1;
    block_ = nullptr;
    absent_ = nullptr;
    in_table_ = false;
  } else if (!seen() || (!in_table_ && block_ == nullptr)) {
    before_table(*own);
    if (seen()) in_snapshot(*own, number);
  } else {
    in_snapshot(*own, number);
  }
}

void RasReader::before_table(std::string_view text) {
  const auto words = words_of_line(text);
  if (words.size() < 3 || words.size() > 5) return;
  if (!std::all_of(words.begin(), words.end(),
                   [](std::string_view word) { return decimal_number(word).has_value(); }))
    return;
  gpus_ = *decimal_number(words.back());
}

void RasReader::in_snapshot(std::string_view text, std::int64_t number) {
  if (heading(text, number)) return;
  if (in_table_ && row(text, number)) return;
  if (absent_ != nullptr && absent(text, number)) return;
  if (!communicator_.label.empty()) in_block(text, number);
}

bool RasReader::heading(std::string_view text, std::int64_t number) {
  RasSnapshot& snapshot = facts_.snapshots.back();
  if (text.starts_with(kNoData)) {
    snapshot.no_data = true;
    return true;
  }
  const bool closes = text == "Errors" || text == "Warnings" || text == "TIMEOUT" ||
                      text == "DEAD" || text == "INCOMPLETE";
  if (closes) {
    in_table_ = false;
    block_ = nullptr;
    communicator_ = {};
    absent_ = text == "DEAD" ? &snapshot.dead : text == "INCOMPLETE" ? &snapshot.silent : nullptr;
    snapshot.whole |= text == "Warnings";
    return true;
  }
  return block_heading(text, number);
}

// "#0-1 (fa93daea854b0600) MISMATCH"
bool RasReader::block_heading(std::string_view text, std::int64_t number) {
  if (!text.starts_with('#')) return false;
  const std::size_t open = text.find(" (");
  const std::size_t close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  const std::string_view label = text.substr(1, open - 1);
  const std::string_view hash = text.substr(open + 2, close - open - 2);
  if (!is_made_of(label, "0123456789-", 20) || !is_made_of(hash, "0123456789abcdefx", 40))
    return false;
  in_table_ = false;
  absent_ = nullptr;
  block_ = nullptr;
  communicator_.label = label;
  communicator_.hash = hash;
  communicator_.line = number;
  return true;
}

bool RasReader::row(std::string_view text, std::int64_t number) {
  const auto words = words_of_line(text);
  if (words.size() != 8 || !are_words_of(words[6], kStatuses) || !are_words_of(words[7], kErrors))
    return false;
  const auto group = decimal_number(words[0]);
  const auto comms = decimal_number(words[1]);
  const auto size = decimal_number(words[4]);
  if (!group || !comms || !size || facts_.snapshots.back().rows.size() >= kMostRows) return false;
  facts_.snapshots.back().rows.push_back({.group = *group,
                                          .comms = *comms,
                                          .size = *size,
                                          .status = std::string(words[6]),
                                          .errors = std::string(words[7]),
                                          .line = number});
  ++witness_.records;
  return true;
}

bool RasReader::absent(std::string_view text, std::int64_t number) {
  if (text.find(" job process") != std::string_view::npos) {
    const std::string_view dead = text.starts_with("Missing ") ? between(text, " from ", {}) : text;
    absent_->count = std::min(leading_number(dead).value_or(0), kMostMembers);
    absent_->line = number;
    ++witness_.records;
    return true;
  }
  if (!text.starts_with("Process ") || absent_->count == 0) return false;
  absent_->listed.push_back(listed_process(text, number));
  return true;
}

RasBlock* RasReader::start_block(RasBlock::Kind kind, std::int64_t number) {
  RasBlock block = communicator_;
  block.kind = kind;
  block.line = number;
  std::vector<RasBlock>& blocks = facts_.snapshots.back().blocks;
  if (blocks.size() >= kMostBlocks) blocks.pop_back();
  blocks.push_back(std::move(block));
  ++witness_.records;
  return &blocks.back();
}

void RasReader::in_block(std::string_view text, std::int64_t number) {
  constexpr std::string_view kDifferent = "Communicator ranks have different ";
  if (text.starts_with(kDifferent)) {
    text.remove_prefix(kDifferent.size());
    block_ = nullptr;
    if (text == "status") block_ = start_block(RasBlock::Kind::status, number);
    if (!text.ends_with(" operation counts")) return;
    block_ = start_block(RasBlock::Kind::counts, number);
    block_->op = shown_text(text.substr(0, text.find(" operation counts")));
  } else if (text.starts_with("Initialization error")) {
    block_ = start_block(RasBlock::Kind::init_error, number);
  } else if (text.starts_with("Asynchronous error")) {
    block_ = start_block(RasBlock::Kind::async_error, number);
  } else if (text.starts_with("Missing communicator data from ")) {
    block_ = start_block(RasBlock::Kind::incomplete, number);
    const auto count = leading_number(between(text, " from ", {}));
    if (count && *count > 0 && *count <= kMostMembers) {
      block_->sets.push_back(
          {.count = *count, .launched = 0, .word = {}, .line = number, .listed = {}});
    } else {
      block_->broken = true;
    }
  } else if (block_ != nullptr && !one_rank(text, number) && !many_ranks(text, number)) {
    // A blank line ends it, and so does what others print. The heading of a list tells nothing.
    const bool of_ranks = text.starts_with("Rank ") || leading_number(text);
    if (of_ranks) witness_.notes.add(Note::odd_entry, "line " + std::to_string(number));
    block_->broken |= of_ranks;
    if (!of_ranks && !text.ends_with(':') && !text.starts_with("[could not find")) block_ = nullptr;
  }
}

// "has launched up to operation 60", "have not launched any operations", "reported internal error",
// "has status ABORT": what is said of a set.
bool RasReader::fill_set(std::string_view what, RasSet& set) const {
  constexpr std::string_view kUpTo = "launched up to operation ";
  constexpr std::string_view kReported = "reported ";
  constexpr std::string_view kStatus = " status ";
  switch (block_->kind) {
    case RasBlock::Kind::counts: {
      if (what.find("not launched any operations") != std::string_view::npos) return true;
      const std::size_t at = what.find(kUpTo);
      if (at == std::string_view::npos) return false;
      const auto launched = decimal_number(trimmed(what.substr(at + kUpTo.size())));
      set.launched = launched.value_or(0);
      return launched.has_value() && *launched <= kMostLaunches;
    }
    case RasBlock::Kind::status: set.word = shown_text(trimmed(between(what, kStatus, {}))); break;
    default: set.word = shown_text(trimmed(between(what, kReported, {}))); break;
  }
  return !set.word.empty();
}

// "Rank 12 -- GPU 4 managed by ...": of the last set. "Rank 7 has status ABORT -- GPU 3 ...": a
// set.
bool RasReader::one_rank(std::string_view text, std::int64_t number) {
  constexpr std::string_view kRank = "Rank ";
  const std::size_t dash = text.find(" -- ");
  if (!text.starts_with(kRank) || dash == std::string_view::npos) return false;
  const std::string_view what = text.substr(kRank.size(), dash - kRank.size());
  const auto rank = leading_number(what);
  if (!rank || *rank >= kMostRanks) return false;
  RasRank listed{.rank = *rank, .process = manager_of(text.substr(dash + 4), number)};
  const std::size_t blank = what.find(' ');
  if (blank == std::string_view::npos) {
    if (block_->sets.empty()) return false;
    block_->sets.back().listed.push_back(std::move(listed));
    return true;
  }
  RasSet set{.count = 1, .launched = 0, .word = {}, .line = number, .listed = {}};
  if (!fill_set(what.substr(blank + 1), set)) return false;
  set.listed.push_back(std::move(listed));
  block_->sets.push_back(std::move(set));
  return true;
}

// "30 ranks have launched up to operation 640"
bool RasReader::many_ranks(std::string_view text, std::int64_t number) {
  const auto count = leading_number(text);
  const std::size_t at = text.find(" rank");
  if (!count || *count <= 0 || *count > kMostMembers || at == std::string_view::npos) return false;
  RasSet set{.count = *count, .launched = 0, .word = {}, .line = number, .listed = {}};
  if (!fill_set(text.substr(at + 1), set)) return false;
  block_->sets.push_back(std::move(set));
  ends_in_set_ = true;
  return true;
}

// What the file ends with may be half of a number.
void RasReader::finish() {
  if (!ends_in_set_ || block_ == nullptr || block_->sets.empty()) return;
  block_->sets.pop_back();
  block_->broken = true;
}

void read(Source& source, std::string_view head, Witness& witness) {
  witness.counts_lines = true;
  RasReader reader(witness);
  for_each_line(source, head, [&reader](std::string_view line, std::int64_t number) {
    reader.line(line, number);
  });
  reader.finish();
  if (!reader.seen())
    throw Error(ErrorKind::input, source.name() +
                                      ": is no output of ncclras: it has no table of "
                                      "communicators; run ncclras -v again");
  witness.ras = std::make_unique<RasFacts>(reader.take());
}

}  // namespace

extern const WitnessFormat kNcclRas;
constinit const WitnessFormat kNcclRas{
    .name = "nccl_ras",
    .summary = "Output of NCCL's RAS client (ncclras), as text",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
