// Problem: a job has millions of operations of a few hundred kinds, on ranks of which some are told
// and some not.
//
// Method: equal operations of a group are one row. It has what any of its operations is told, the
// reasons why others are not, and is as sure as the least sure of them: never certain where some
// rank is refused. Operations that nothing can tell have rows, too, so that all of them are
// counted. Exchanges are counted once, among the collectives, whoever tells them.
#include "match/joined_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "match/comm_numbers.h"
#include "match/joined_facts.h"

namespace commlens {
namespace {

// More different values than this are counted, not listed.
constexpr std::size_t kMostListed = 4;

constexpr const char* kNoGroup = "the timeline does not name its group";

// Group's label, operation, bytes; -1: of unknown size.
using JoinedKey = std::tuple<std::string, Op, std::int64_t>;

struct GatheredRow {
  std::int64_t count = 0;
  std::int64_t witnessed = 0;
  std::map<std::string, std::int64_t> kernels;
  JoinedFacts facts;
  std::set<std::string> reasons;
  bool refused = false;
};

// Several values as words.
std::string listed(const std::set<std::string>& values, const char* between = ", ") {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : between) + value;
  return text;
}

std::string listed_or_counted(const std::set<std::string>& values) {
  return values.size() > kMostListed ? std::to_string(values.size()) + " different"
                                     : listed(values);
}

// A stream without a group is called as the witness calls what it is in.
std::string label_of_part(const CollectivePart& part, const SequenceChoices& choices) {
  if (part.group >= 0) return part.label;
  for (const auto& [format, choice] : choices) {
    if (choice.sequence == nullptr) continue;
    if (choice.sequence->communicator != 0)
      return "communicator " + communicator_name(choice.sequence->communicator);
    if (!choice.sequence->name.empty()) return "group " + choice.sequence->name;
  }
  return {};
}

JoinedRow finished_row(const JoinedKey& key, GatheredRow& row) {
  JoinedRow out;
  out.group = std::get<0>(key);
  out.op = std::get<1>(key);
  if (std::get<2>(key) >= 0) out.bytes = std::get<2>(key);
  out.count = row.count;
  out.witnessed = row.witnessed;
  const auto kernel =
      std::max_element(row.kernels.begin(), row.kernels.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (kernel != row.kernels.end()) out.kernel = kernel->first;
  JoinedFacts& facts = row.facts;
  facts.host_calls.erase("");
  out.host_call = listed_or_counted(facts.host_calls);
  out.algorithm = listed_or_counted(facts.algorithms);
  out.protocol = listed_or_counted(facts.protocols);
  if (facts.channels.size() == 1) out.channels = *facts.channels.begin();
  out.transport = listed_or_counted(facts.ways);
  out.nic = listed_or_counted(facts.adapters);
  out.witnesses.assign(facts.formats.begin(), facts.formats.end());
  out.by = facts.by;
  out.confidence = facts.confidence;
  if (!out.confidence && row.refused) out.confidence = Confidence::undecidable;
  // Some of its operations are told by nobody, or one witness contradicts another.
  if (row.refused && out.confidence == Confidence::certain) out.confidence = Confidence::likely;
  out.reason = listed(row.reasons, "; ");
  return out;
}

class RowGatherer {
 public:
  RowGatherer(const Job& job, const JoinedParts& parts, const std::vector<PairChoices>& pairs,
              JoinedFactReader reader)
      : job_(job), parts_(parts), pairs_(pairs), reader_(std::move(reader)) {}

  void add(const CollectivePart& part, const SequenceChoices& choices) {
    const std::string label = label_of_part(part, choices);
    const std::set<std::string_view> told = told_by_pairs(part);
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      const Part& place = part.places[i];
      const CommOp& op = comm_of(job_, place);
      if (!is_counted(place)) continue;
      GatheredRow& row = row_of(label, op);
      count(place, row);
      if (part.group < 0 && choices.empty()) row.reasons.insert(kNoGroup);
      bool witnessed = false;
      for (const auto& [format, choice] : choices) {
        if (op.op == Op::all_to_all && told.contains(format)) continue;
        if (choice.sequence == nullptr) {
          row.refused = true;
          row.reasons.insert(std::string(format) + ": " + choice.reason);
          continue;
        }
        reader_.add(choice, i, op, row.facts);
        witnessed = witnessed || choice.order.call_of[i] >= 0;
      }
      if (witnessed) add_witnessed(place, row);
    }
  }

  void add(const PairPart& part, const PairChoices& choices) {
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      const Part& place = part.places[i];
      const CommOp& op = comm_of(job_, place);
      if (!is_counted(place)) continue;
      GatheredRow& row = row_of(part.label, op);
      const bool is_collective = is_joined_collective(op);
      if (!is_collective) count(place, row);
      bool witnessed = false;
      for (const auto& [format, choice] : choices) {
        if (choice.sequence != nullptr) {
          witnessed = reader_.add(choice, i, row.facts) || witnessed;
          continue;
        }
        if (!is_collective) row.refused = true;
        row.reasons.insert(std::string(format) + ": " + choice.reason);
      }
      if (witnessed) add_witnessed(place, row);
    }
  }

  // Communications that are in no part: no witness can tell them.
  void add_rest() {
    for (std::uint32_t row = 0; row < job_.ranks.size(); ++row) {
      for (std::uint32_t d = 0; d < job_.ranks[row].devices.size(); ++d) {
        const auto comms = static_cast<std::uint32_t>(job_.ranks[row].devices[d].comm.size());
        for (std::uint32_t i = 0; i < comms; ++i) add_if_in_none({row, d, i});
      }
    }
  }

  std::vector<JoinedRow> finish() {
    std::vector<JoinedRow> rows;
    for (auto& [key, row] : rows_) rows.push_back(finished_row(key, row));
    return rows;
  }

 private:
  GatheredRow& row_of(const std::string& label, const CommOp& op) {
    return rows_[{label, op.op, op.bytes.value_or(-1)}];
  }

  bool is_counted(const Part& place) const {
    return device_of(job_, place).exposures[place.op].starts_inside;
  }

  void count(const Part& place, GatheredRow& row) const {
    ++row.count;
    const std::string_view name =
        job_.ranks[place.rank].recording.strings.get(comm_of(job_, place).name);
    ++row.kernels[std::string(name.substr(0, name.find('(')))];
  }

  // Once, where a collective's call and its sends and receives tell it.
  void add_witnessed(const Part& place, GatheredRow& row) {
    if (witnessed_.insert(place).second) ++row.witnessed;
  }

  // Witnesses whose sends and receives are the group's exchanges.
  std::set<std::string_view> told_by_pairs(const CollectivePart& of) const {
    std::set<std::string_view> formats;
    const auto part = parts_.pairs_of.find({of.row, of.group});
    if (part == parts_.pairs_of.end()) return formats;
    for (const auto& [format, choice] : pairs_[part->second]) {
      if (choice.sequence != nullptr) formats.insert(format);
    }
    return formats;
  }

  void add_if_in_none(const Part& place) {
    const RankTimeline& rank = job_.ranks[place.rank];
    const CommOp& op = comm_of(job_, place);
    if (!is_counted(place) || is_joined_collective(op)) return;
    if (op.group >= 0 && is_joined_pair(op)) return;
    const std::string label =
        op.group < 0 ? std::string()
                     : group_label(rank.groups[static_cast<std::size_t>(op.group)], rank.rank);
    GatheredRow& row = row_of(label, op);
    count(place, row);
    row.reasons.insert(op.group < 0 ? kNoGroup : "no witness has calls of its kind");
  }

  const Job& job_;
  const JoinedParts& parts_;
  const std::vector<PairChoices>& pairs_;
  JoinedFactReader reader_;
  std::set<Part> witnessed_;
  std::map<JoinedKey, GatheredRow> rows_;
};

}  // namespace

std::vector<JoinedRow> gather_joined_rows(const Job& job, const std::vector<Witness>& witnesses,
                                          const CallSequences& calls, const JoinedParts& parts,
                                          const std::vector<SequenceChoices>& collectives,
                                          const std::vector<PairChoices>& pairs) {
  RowGatherer gatherer(job, parts, pairs, JoinedFactReader(witnesses, calls));
  for (std::size_t i = 0; i < collectives.size(); ++i)
    gatherer.add(parts.collectives[i], collectives[i]);
  for (std::size_t i = 0; i < pairs.size(); ++i) gatherer.add(parts.pairs[i], pairs[i]);
  gatherer.add_rest();
  return gatherer.finish();
}

}  // namespace commlens
