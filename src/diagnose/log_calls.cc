// Calls that should be the same on all ranks and are not (NCCL_DEBUG_SUBSYS=COLL or CALL).
//
// Collectives of one communicator must be called in one order by all ranks. So the k-th of each
// rank are compared: from the start where the log shows the communicator's initialisation, else
// from the op counts that the ranks have in common, if these count calls (before 2.9, and where
// each call is launched alone). The first difference is the answer; what comes after it only
// follows.
//
// When it is wrong: a log that lost lines of one rank shifts all that follow. So calls of excerpts
// are compared only where the op counts agree, and communicators that only their size joins need
// two ranks that agree with each other. From the start, too, the k-th of each rank must have one op
// count (less those of its sends and receives). From the first on that has not, a difference counts
// only if it stays whether calls are lined up by place or by op count, and then nobody is named.
//
// Traced calls (CALL) have no op count. They are compared from the start only, and what comes of it
// is no more than likely. Where processes share a file, and the odd one's call is one that others
// make at another time, lines may be lost or written twice, and nobody is named either.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/log_view.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

// What must be the same on all ranks.
struct Same {
  Op op = Op::unknown;
  std::int64_t count = 0;  // -1: may differ
  int datatype = -1;
  int reduction = -1;
  std::int64_t root = -1;
  friend auto operator<=>(const Same&, const Same&) = default;
};

bool has_root(Op op) {
  return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter;
}

bool reduces(Op op) { return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter; }

Same same_of(const LogCall& call) {
  if (call.uneven) return {.op = call.op, .count = -1, .datatype = call.datatype};
  // User-made reductions have a handle of each process's own.
  const int reduction = reduces(call.op) && call.reduction < 5 ? call.reduction : -1;
  return {call.op, call.count, call.datatype, reduction, has_root(call.op) ? call.root : -1};
}

bool is_collective(const LogCall& call) {
  return call.op != Op::send && call.op != Op::recv && call.op != Op::put_get;
}

struct Side {
  const LogMember* member = nullptr;
  std::vector<const LogCall*> calls;  // collectives, in order
  std::vector<std::int64_t> numbers;  // their op counts, without what sends and receives took
  bool pairwise = false;              // there are sends and receives
  bool from_start = false;            // the communicator's initialisation is in the log
  bool traced = false;                // calls without op counts
};

// What is called in each communicator of each log.
struct CommCalls {
  std::vector<const LogCall*> collectives;  // in order
  std::vector<std::int64_t> pairwise;       // op counts of sends and receives
};
using CallsOf = std::map<std::pair<const Witness*, LogCommId>, CommCalls>;

CallsOf comm_calls(const LogView& view) {
  CallsOf calls;
  for (const Witness* witness : view.logs) {
    for (const LogCall& call : witness->log->calls) {
      CommCalls& all = calls[{witness, call.comm}];
      if (is_collective(call))
        all.collectives.push_back(&call);
      else
        all.pairwise.push_back(call.op_count);
    }
  }
  return calls;
}

std::vector<std::int64_t> numbers_of(const CommCalls& calls) {
  std::vector<std::int64_t> numbers;
  for (const LogCall* call : calls.collectives) numbers.push_back(call->op_count);
  std::vector<std::int64_t> own = numbers;
  std::sort(own.begin(), own.end());
  std::vector<std::int64_t> taken = calls.pairwise;
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  // One group holds both, and is one number.
  std::erase_if(taken, [&own](std::int64_t number) {
    return std::binary_search(own.begin(), own.end(), number);
  });
  for (std::int64_t& number : numbers)
    number -= std::lower_bound(taken.begin(), taken.end(), number) - taken.begin();
  return numbers;
}

std::vector<Side> sides_of(const LogGroup& group, const CallsOf& calls) {
  std::vector<Side> sides;
  for (const LogMember& member : group.members) {
    Side side;
    side.member = &member;
    const LogComm& comm = member.facts();
    const auto found = calls.find({member.witness, member.comm});
    if (found == calls.end() || found->second.collectives.empty()) continue;
    side.calls = found->second.collectives;
    side.numbers = numbers_of(found->second);
    side.pairwise = !found->second.pairwise.empty();
    side.traced = side.calls.front()->traced;
    // A line that was lost in the middle shifts those behind it.
    side.from_start = comm.rank >= 0 && comm.first_line < side.calls.front()->line &&
                      member.witness->log->cut == 0;
    sides.push_back(std::move(side));
  }
  return sides;
}

bool any_traced(const std::vector<Side>& sides) {
  return std::any_of(sides.begin(), sides.end(), [](const Side& side) { return side.traced; });
}

// Whether op counts number the calls: each one more than the last.
bool counts_calls(const Side& side) {
  for (std::size_t i = 1; i < side.calls.size(); ++i) {
    if (side.calls[i]->op_count != side.calls[i - 1]->op_count + 1) return false;
  }
  return true;
}

// One operation as the ranks called it.
struct Row {
  std::int64_t number = 0;
  bool by_op_count = false;
  bool doubtful = false;  // lines of a rank are lost before it
  std::vector<std::pair<const Side*, const LogCall*>> calls;
};

using NumberOf = std::int64_t (*)(const Side&, std::size_t place);

// The calls of all sides from `first` on to before `end`, by a number.
std::vector<Row> rows_by(const std::vector<Side>& sides, NumberOf number_of, std::size_t first,
                         std::size_t end) {
  std::map<std::int64_t, Row> rows;
  for (const Side& side : sides) {
    for (std::size_t i = first; i < std::min(side.calls.size(), end); ++i) {
      Row& row = rows[number_of(side, i)];
      row.number = number_of(side, i);
      row.calls.emplace_back(&side, side.calls[i]);
    }
  }
  std::vector<Row> result;
  for (auto& [number, row] : rows) {
    if (row.calls.size() > 1) result.push_back(std::move(row));
  }
  return result;
}

std::int64_t place_number(const Side& /*side*/, std::size_t place) {
  return static_cast<std::int64_t>(place);
}

std::int64_t op_count_number(const Side& side, std::size_t place) {
  return side.calls[place]->op_count;
}

// The first place at which two sides have different numbers.
std::size_t numbers_agree_until(const std::vector<Side>& sides) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const auto longest = std::max_element(
      sides.begin(), sides.end(),
      [](const Side& a, const Side& b) { return a.numbers.size() < b.numbers.size(); });
  std::size_t agreed = kAll;
  for (const Side& side : sides) {
    const auto [own, other] =
        std::mismatch(side.numbers.begin(), side.numbers.end(), longest->numbers.begin());
    if (own != side.numbers.end())
      agreed = std::min(agreed, static_cast<std::size_t>(own - side.numbers.begin()));
  }
  return agreed;
}

bool any_pairwise(const std::vector<Side>& sides) {
  return std::any_of(sides.begin(), sides.end(), [](const Side& side) { return side.pairwise; });
}

// Whether each op count names one call.
bool numbers_rise(const Side& side) {
  return std::adjacent_find(side.numbers.begin(), side.numbers.end(), std::greater_equal<>()) ==
         side.numbers.end();
}

std::map<Same, std::size_t> variants(const Row& row) {
  std::map<Same, std::size_t> counts;
  for (const auto& [side, call] : row.calls) ++counts[same_of(*call)];
  return counts;
}

std::string hex(std::int64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  auto rest = static_cast<std::uint64_t>(value);
  do {
    text.insert(text.begin(), kDigits[rest & 15U]);
    rest >>= 4U;
  } while (rest != 0);
  return text;
}

std::string type_text(int datatype) {
  const std::string_view name = log_datatype_name(datatype);
  return name.empty() ? "datatype " + std::to_string(datatype) : std::string(name);
}

std::string call_text(const LogCall& call) {
  return std::string(op_name(call.op)) +
         (call.traced ? ": count " : ": opCount " + hex(call.op_count) + " count ") +
         std::to_string(call.count) + " " + type_text(call.datatype) +
         (call.root > 0 ? " root " + std::to_string(call.root) : "");
}

// Which field of two calls differs, in the order of what is graver.
struct Difference {
  DiagnosisKind kind = DiagnosisKind::op_mismatch;
  std::string_view field;
};

std::int64_t bytes_of(const Same& same) { return same.count * log_datatype_bytes(same.datatype); }

std::optional<Difference> difference(const Same& a, const Same& b) {
  if (a.op != b.op) return Difference{DiagnosisKind::op_mismatch, "op"};
  if (a.count < 0 || b.count < 0) return std::nullopt;
  const bool same_bytes = bytes_of(a) == bytes_of(b) && bytes_of(a) > 0;
  // Without a reduction only bytes are moved.
  const bool only_bytes = !reduces(a.op) && same_bytes;
  if (a.datatype != b.datatype && !only_bytes)
    return Difference{DiagnosisKind::dtype_mismatch, "dtype"};
  if (a.count != b.count && !only_bytes) return Difference{DiagnosisKind::size_mismatch, "count"};
  if (a.root != b.root) return Difference{DiagnosisKind::op_mismatch, "root"};
  if (a.reduction != b.reduction) return Difference{DiagnosisKind::op_mismatch, "reduction"};
  return std::nullopt;
}

std::string field_text(const Same& same, std::string_view field) {
  if (field == "op") return std::string(op_name(same.op));
  if (field == "dtype") return type_text(same.datatype);
  if (field == "count") return std::to_string(same.count);
  return std::to_string(field == "root" ? same.root : same.reduction);
}

// The calls of one side, by the thread that made them.
std::map<std::int64_t, std::vector<Same>> by_thread(const Side& side) {
  std::map<std::int64_t, std::vector<Same>> threads;
  for (const LogCall* call : side.calls) threads[call->thread].push_back(same_of(*call));
  return threads;
}

std::vector<std::vector<Same>> sorted_threads(const Side& side) {
  std::vector<std::vector<Same>> lists;
  for (auto& [thread, list] : by_thread(side)) lists.push_back(std::move(list));
  std::sort(lists.begin(), lists.end());
  return lists;
}

// Each thread calls the same on all ranks, and only how they mix differs: then it is not the
// program's order, but chance, that decides.
bool threads_race(const std::vector<Side>& sides) {
  const auto first = sorted_threads(sides.front());
  if (first.size() < 2) return false;
  return std::all_of(sides.begin(), sides.end(),
                     [&first](const Side& s) { return sorted_threads(s) == first; });
}

// The same calls in another order.
bool is_reordered(const std::vector<Side>& sides) {
  const auto bag = [](const Side& side) {
    std::vector<Same> all;
    for (const LogCall* call : side.calls) all.push_back(same_of(*call));
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto first = bag(sides.front());
  return first.size() > 1 && std::all_of(sides.begin(), sides.end(),
                                         [&](const Side& side) { return bag(side) == first; });
}

// Whether all sides have the same op counts, in whatever order.
bool same_op_counts(const std::vector<Side>& sides) {
  const auto sorted = [](const Side& side) {
    std::vector<std::int64_t> numbers = side.numbers;
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  const auto first = sorted(sides.front());
  return std::all_of(sides.begin(), sides.end(),
                     [&](const Side& side) { return sorted(side) == first; });
}

void fill_differing(const Row& row, const Same& most, DiagnosisFinding& finding) {
  for (const auto& [side, call] : row.calls) {
    const Same same = same_of(*call);
    const std::int64_t rank = side->member->rank;
    if (finding.evidence.size() < kMostLogEvidence)
      finding.evidence.push_back(
          evidence_line(*side->member->witness, call->line, call_text(*call)));
    const auto odd = difference(most, same);
    if (!odd) {
      if (rank >= 0) finding.held.push_back(rank);
      continue;
    }
    if (rank >= 0)
      finding.differing.push_back({rank, std::string(odd->field), field_text(same, odd->field),
                                   field_text(most, odd->field)});
  }
  finding.consequences = finding.held;
}

// Where nobody is odd, all that called it hold each other up.
void hold_all(const Row& row, DiagnosisFinding& finding) {
  finding.differing.clear();
  finding.held.clear();
  for (const auto& [side, call] : row.calls) {
    if (side->member->rank >= 0) finding.held.push_back(side->member->rank);
  }
  std::sort(finding.held.begin(), finding.held.end());
  finding.consequences = finding.held;
}

std::string advice_for_calls(DiagnosisKind kind) {
  if (kind == DiagnosisKind::concurrent_use)
    return "give each thread a communicator (process group) of its own, or let one thread make all "
           "calls";
  return "compare the program's path on these ranks: conditions on rank or data before this call; "
         "TORCH_DISTRIBUTED_DEBUG=DETAIL names the call";
}

// The value of most ranks; of communicators that only their size joins, of two at least.
const Same* most_of(const std::map<Same, std::size_t>& counts, const LogGroup& group,
                    std::size_t total) {
  for (const auto& [same, count] : counts) {
    if (count * 2 > total && (group.joined_by_id || count > 1)) return &same;
  }
  return nullptr;
}

// NCCL takes the count of one rank's part: of an all-gather what it sends, of a reduce-scatter what
// it receives. "; that is 4 times as many, ..." where one side passed the whole.
std::string whole_for_part(const Same& odd, const Same& most, std::int64_t nranks) {
  const bool parted = odd.op == most.op &&
                      (odd.op == Op::all_gather || odd.op == Op::reduce_scatter ||
                       odd.op == Op::all_to_all || odd.op == Op::gather || odd.op == Op::scatter);
  if (!parted || nranks < 2 || odd.datatype != most.datatype) return {};
  const bool more = odd.count / nranks == most.count && odd.count % nranks == 0;
  const bool less = most.count / nranks == odd.count && most.count % nranks == 0;
  if (odd.count == 0 || most.count == 0 || (!more && !less)) return {};
  return std::string("; the factor is the number of ranks, as where ") +
         (more ? "these pass" : "the others pass") +
         " the size of the whole, and NCCL takes that of one rank's part (what it " +
         (odd.op == Op::reduce_scatter || odd.op == Op::scatter ? "receives" : "sends") + ")";
}

bool is_traced(const Row& row) {
  return std::any_of(row.calls.begin(), row.calls.end(),
                     [](const auto& call) { return call.second->traced; });
}

std::string doubt_text(const Row& row) {
  return is_traced(row)
             ? "; who is wrong cannot be told, or whether anybody is: lines may be lost or written "
               "twice, and calls have no numbers. Missing: a log for each process "
               "(NCCL_DEBUG_FILE=nccl.%h.%p.log) with opCounts (NCCL_DEBUG_SUBSYS=COLL)"
             : "; who is wrong cannot be told: before it the ranks' calls have different "
               "opCounts, so that lines seem to be lost";
}

std::string row_text(const Row& row) {
  return row.by_op_count ? "opCount " + hex(row.number) : "call " + std::to_string(row.number);
}

std::optional<DiagnosisFinding> compare(const LogGroup& group, const std::vector<Side>& sides,
                                        const Row& row) {
  const auto counts = variants(row);
  const Same& any = counts.begin()->first;
  std::optional<Difference> first;
  for (const auto& [same, count] : counts) {
    if (!first) first = difference(any, same);
  }
  if (!first) return std::nullopt;
  const Same* most = row.doubtful ? nullptr : most_of(counts, group, row.calls.size());
  // Communicators of one size may be different ones: then their calls may well differ.
  if (!group.joined_by_id && most == nullptr) return std::nullopt;
  DiagnosisFinding finding;
  finding.kind = first->kind;
  if (threads_race(sides))
    finding.kind = DiagnosisKind::concurrent_use;
  else if (is_reordered(sides))
    finding.kind = DiagnosisKind::order_mismatch;
  finding.group = group.name;
  finding.seq = row.number;
  finding.op = op_name(most != nullptr ? most->op : any.op);
  finding.confidence = most == nullptr ? Confidence::undecidable
                       : group.joined_by_id && !row.by_op_count && !is_traced(row)
                           ? Confidence::certain
                           : Confidence::likely;
  fill_differing(row, most != nullptr ? *most : any, finding);
  if (most == nullptr) hold_all(row, finding);
  std::vector<std::int64_t> odd;
  for (const DifferingRank& rank : finding.differing) odd.push_back(rank.rank);
  finding.message = row_text(row) + " of " + group.name + " is not the same on all ranks (" +
                    std::string(first->field) + ")";
  if (!odd.empty()) {
    const DifferingRank& example = finding.differing.front();
    finding.message += ": " + ranks_in_words(odd) + (odd.size() == 1 ? " has " : " have ") +
                       example.value + ", the others " + example.expected;
    for (const auto& [same, count] : counts) {
      if (first->field != "count" || field_text(same, "count") != example.value) continue;
      finding.message += whole_for_part(same, *most, group.nranks);
      break;
    }
  } else if (row.doubtful) {
    finding.message += doubt_text(row);
  } else if (most == nullptr) {
    finding.message += "; which side is wrong cannot be told: no value has a majority";
  }
  finding.advice = advice_for_calls(finding.kind);
  return finding;
}

std::optional<DiagnosisFinding> first_difference(const LogGroup& group,
                                                 const std::vector<Side>& sides,
                                                 const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (auto finding = compare(group, sides, row)) return finding;
  }
  return std::nullopt;
}

// Behind a place at which op counts differ, a rank's lines may be lost.
std::optional<DiagnosisFinding> difference_behind(const LogGroup& group,
                                                  const std::vector<Side>& sides,
                                                  std::size_t place) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  if (any_pairwise(sides) || !std::all_of(sides.begin(), sides.end(), numbers_rise))
    return std::nullopt;
  if (!first_difference(group, sides, rows_by(sides, place_number, place, kAll)))
    return std::nullopt;
  std::vector<Row> rows = rows_by(sides, op_count_number, place, kAll);
  for (Row& row : rows) row.by_op_count = row.doubtful = true;
  return first_difference(group, sides, rows);
}

// Whether lines of several processes lie in the side's file, where one can be lost.
bool shares_file(const Side& side) {
  const auto& processes = side.member->witness->log->processes;
  return std::count_if(processes.begin(), processes.end(),
                       [](const LogProcess& process) { return process.pid >= 0; }) > 1;
}

bool alike(const LogCall* a, const LogCall* b) { return same_of(*a) == same_of(*b); }

// Whether the two lists are alike again behind `place`, or behind a few that are only swapped.
bool goes_on_alike(const Side& side, const Side& other, std::size_t place) {
  constexpr std::size_t kEnough = 2;
  constexpr std::size_t kMostSwapped = 3;
  if (side.calls.size() != other.calls.size()) return false;
  for (std::size_t odd = 1; odd <= kMostSwapped; ++odd) {
    if (place + odd + kEnough > side.calls.size()) return false;
    const auto from = static_cast<std::ptrdiff_t>(place);
    const auto behind = static_cast<std::ptrdiff_t>(place + odd);
    const auto own = side.calls.begin();
    const auto theirs = other.calls.begin();
    if (!std::equal(own + behind, side.calls.end(), theirs + behind, alike)) continue;
    return odd == 1 || std::is_permutation(own + from, own + behind, theirs + from, alike);
  }
  return false;
}

// Whether `ahead`, from `place` on, is what `behind` calls some calls later: a few alike, or all
// that there are.
bool is_shifted(const Side& ahead, const Side& behind, std::size_t place) {
  constexpr std::size_t kMostLost = 8;
  constexpr std::size_t kEnough = 8;
  for (std::size_t lost = 1; lost <= kMostLost; ++lost) {
    if (place >= ahead.calls.size() || place + lost >= behind.calls.size()) return false;
    const std::size_t both =
        std::min({ahead.calls.size() - place, behind.calls.size() - place - lost, kEnough});
    const auto own = ahead.calls.begin() + static_cast<std::ptrdiff_t>(place);
    const auto later = behind.calls.begin() + static_cast<std::ptrdiff_t>(place + lost);
    if (std::equal(own, own + static_cast<std::ptrdiff_t>(both), later, alike)) return true;
  }
  return false;
}

// Whether the call at `place` may be one of those before it, written twice.
bool may_be_doubled(const Side& side, std::size_t place) {
  constexpr std::size_t kNear = 8;
  for (std::size_t i = place - std::min(place, kNear); i < place; ++i) {
    if (alike(side.calls[i], side.calls[place])) return true;
  }
  return false;
}

// A line that is lost or written twice moves all behind it: then the odd one calls what the others
// call, only earlier or later, and nothing is odd about it.
bool one_is_moved(const Side& side, const Side& other, std::size_t place) {
  return is_shifted(side, other, place) ||
         (may_be_doubled(side, place) && is_shifted(other, side, place));
}

// Lines get lost, and where processes share a file they are also written twice. What is called in
// its turn then stands in another's place. So a rank is not odd if its calls are the others', moved
// by some; and in a shared file only if nobody else calls the same at any time, or if all behind it
// is alike again.
bool may_lack_a_line(const Row& row) {
  const auto place = static_cast<std::size_t>(row.number);
  const auto counts = variants(row);
  return std::any_of(row.calls.begin(), row.calls.end(), [&](const auto& one) {
    const auto& [side, call] = one;
    const Same own = same_of(*call);
    if (2 * counts.at(own) > row.calls.size()) return false;
    return std::any_of(row.calls.begin(), row.calls.end(), [&](const auto& other) {
      if (!difference(own, same_of(*other.second))) return false;
      if (one_is_moved(*side, *other.first, place)) return true;
      if (!shares_file(*side)) return false;
      const auto& calls = other.first->calls;
      const bool called = std::any_of(calls.begin(), calls.end(),
                                      [&](const auto* c) { return same_of(*c) == own; });
      return called && !goes_on_alike(*side, *other.first, place);
    });
  });
}

std::optional<DiagnosisFinding> difference_of_traced(const LogGroup& group,
                                                     const std::vector<Side>& sides) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  for (Row& row : rows_by(sides, place_number, 0, kAll)) {
    row.doubtful = may_lack_a_line(row);
    if (auto finding = compare(group, sides, row)) return finding;
  }
  return std::nullopt;
}

std::optional<DiagnosisFinding> difference_in(const LogGroup& group,
                                              const std::vector<Side>& sides) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const bool from_start =
      std::all_of(sides.begin(), sides.end(), [](const Side& s) { return s.from_start; });
  if (any_traced(sides)) return from_start ? difference_of_traced(group, sides) : std::nullopt;
  if (!from_start) {
    if (any_pairwise(sides) || !std::all_of(sides.begin(), sides.end(), counts_calls))
      return std::nullopt;
    std::vector<Row> rows = rows_by(sides, op_count_number, 0, kAll);
    for (Row& row : rows) row.by_op_count = true;
    return first_difference(group, sides, rows);
  }
  // Where all made the same calls, by their numbers too, in whatever order, no line is lost.
  const bool whole = is_reordered(sides) && same_op_counts(sides);
  const std::size_t agreed = whole ? kAll : numbers_agree_until(sides);
  if (auto finding = first_difference(group, sides, rows_by(sides, place_number, 0, agreed)))
    return finding;
  return agreed == kAll ? std::nullopt : difference_behind(group, sides, agreed);
}

std::vector<DiagnosisFinding> find_calls(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  const CallsOf calls = comm_calls(view);
  std::vector<DiagnosisFinding> findings;
  for (const LogGroup& group : view.groups) {
    const std::vector<Side> sides = sides_of(group, calls);
    if (sides.size() < 2) continue;
    if (auto finding = difference_in(group, sides)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogCalls{
    .name = "log_calls",
    .summary = "calls that should be the same on all ranks and are not",
    .find = find_calls,
};

}  // namespace commlens
