// What NCCL's RAS client (ncclras, since NCCL 2.24) prints of a running job:
//
//   #0-0 (fa93daea854b060b) MISMATCH
//     Communicator ranks have different AllGather operation counts
//     30 ranks have launched up to operation 640
//     2 ranks have launched up to operation 641
//     Rank 12 -- GPU 4 managed by process 323032 on node 10.100.0.124
//     Rank 13 -- GPU 5 managed by process 323033 on node 10.100.0.124
//
// Ranks are listed below the smaller sets only, which can be the ones ahead as well as those
// behind: the counts decide. Counters are of one operation each, so that a number here is not the
// one of another witness. Ranks are those of the communicator.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "base/error.h"
#include "ingest/witness_format.h"
#include "ingest/witness_lines.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::string_view kCounts = "operation counts";
constexpr std::string_view kDifferent = "Communicator ranks have different ";
constexpr std::string_view kUpTo = " have launched up to operation ";

// Of one communicator: twice the largest job, and a bound for what a few bytes can ask for.
constexpr std::int64_t kMostMembers = std::int64_t{1} << 18U;

bool sniff(std::string_view head) {
  return head.find("Communicators...") != std::string_view::npos &&
         head.find("Ranks") != std::string_view::npos &&
         head.find("Status") != std::string_view::npos;
}

// Some ranks that launched as many operations.
struct RankSet {
  std::int64_t count = 0;
  std::int64_t launched = 0;
  std::int64_t line = 0;
  std::vector<std::int64_t> listed;
};

std::string_view trimmed(std::string_view line) {
  const std::size_t from = line.find_first_not_of(" \t");
  return from == std::string_view::npos ? std::string_view() : line.substr(from);
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  return parse_int(text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size())));
}

// "all_gather" for "AllGather".
std::string underscored(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !out.empty()) out += '_';
    out += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

class RasReader {
 public:
  explicit RasReader(Witness& witness) : witness_(witness) {}
  void line(std::string_view text, std::int64_t number);
  void finish() { end_block(); }
  bool seen() const { return seen_; }

 private:
  void end_block();
  void add_ranks(const std::vector<std::int64_t>& ranks, const RankSet& set, bool ahead);

  Witness& witness_;
  bool seen_ = false;  // the table of communicators
  std::string name_;   // hash of the communicator of the block
  std::string op_;
  std::vector<RankSet> sets_;
};

void RasReader::line(std::string_view text, std::int64_t number) {
  text = trimmed(text);
  seen_ |= text.starts_with("Communicators...");
  if (text.starts_with('#') && text.find('(') != std::string_view::npos) {
    end_block();
    const std::size_t open = text.find('(') + 1;
    name_ = text.substr(open, std::min<std::size_t>(text.find(')', open) - open, 40));
    return;
  }
  if (text.starts_with(kDifferent) && text.find(kCounts) != std::string_view::npos) {
    const std::string name = name_;
    end_block();
    name_ = name;
    text.remove_prefix(kDifferent.size());
    op_ = text.substr(0, std::min<std::size_t>(text.find(' '), 40));
    return;
  }
  if (const std::size_t at = text.find(kUpTo); at != std::string_view::npos && !op_.empty()) {
    const auto count = leading_number(text);
    const auto launched = leading_number(text.substr(at + kUpTo.size()));
    if (count && launched && *count > 0 && *count <= kMostMembers)
      sets_.push_back({*count, *launched, number, {}});
    return;
  }
  if (text.starts_with("Rank ") && text.find(" -- ") != std::string_view::npos && !sets_.empty()) {
    if (const auto rank = leading_number(text.substr(5)); rank && *rank < kMostRanks)
      sets_.back().listed.push_back(*rank);
  }
}

// Those who launched the most are in it; for the others it is not called.
void RasReader::add_ranks(const std::vector<std::int64_t>& ranks, const RankSet& set, bool ahead) {
  const auto group = static_cast<std::uint32_t>(witness_.groups.size() - 1);
  for (const std::int64_t rank : ranks) {
    WitnessProgress row;
    row.group = group;
    row.rank = rank;
    row.enqueued = set.launched;
    row.where = set.line;
    witness_.progress.push_back(row);
    if (!ahead) continue;
    WitnessCall call;
    call.group = group;
    call.rank = rank;
    call.group_rank = rank;
    call.number = set.launched;
    call.state = CallState::scheduled;
    call.op_text = witness_.strings.intern(op_);
    call.op = op_from_name(underscored(op_)).value_or(Op::unknown);
    call.where = set.line;
    witness_.calls.push_back(call);
  }
}

void RasReader::end_block() {
  std::vector<RankSet> sets = std::move(sets_);
  sets_.clear();
  std::int64_t size = 0;
  std::set<std::int64_t> listed;
  std::size_t unlisted = 0;
  for (const RankSet& set : sets) {
    size += set.count;
    listed.insert(set.listed.begin(), set.listed.end());
    if (set.listed.empty()) ++unlisted;
  }
  // One set may be unlisted: it is all the others.
  const bool whole = sets.size() > 1 && unlisted <= 1 && size <= kMostMembers &&
                     (listed.empty() || *listed.rbegin() < size);
  if (whole) {
    std::vector<int> members;
    std::vector<std::int64_t> others;
    for (std::int64_t rank = 0; rank < size; ++rank) {
      members.push_back(static_cast<int>(rank));
      if (!listed.contains(rank)) others.push_back(rank);
    }
    witness_.groups.push_back(
        {.name = name_, .description = {}, .members = std::move(members), .size = size});
    const auto most = std::max_element(
        sets.begin(), sets.end(),
        [](const RankSet& a, const RankSet& b) { return a.launched < b.launched; });
    for (const RankSet& set : sets)
      add_ranks(set.listed.empty() ? others : set.listed, set, set.launched == most->launched);
  } else if (!sets.empty()) {
    witness_.notes.add(Note::odd_entry, "line " + std::to_string(sets.front().line));
  }
  if (!sets.empty()) ++witness_.records;
  op_.clear();
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
