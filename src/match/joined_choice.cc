// Problem: each kind of witness has several communicators of a rank, and each part of its timeline
// is one of them. One kind knows more than another: a log's calls often tell which group is which,
// a plugin of the same process only repeats the communicators' identifiers.
//
// Method: each kind chooses by itself (sequence_choice, pair_choice), the log first. Where its
// choice has an identifier, that is the name by which the others find the communicator, no more
// surely than the log. Sends and receives are in the communicator of the group's collectives, or
// of its identifier, where these are known.
#include "match/joined_choice.h"

#include <algorithm>

namespace commlens {
namespace {

constexpr std::string_view kLogFormat = "nccl_log";

bool has_epoch(const RankTimeline& rank) { return rank.recording.clock == ClockBase::epoch; }

class CollectivesChooser {
 public:
  CollectivesChooser(const Job& job, const CallSequences& calls) : job_(job), calls_(calls) {}

  SequenceChoices run(const CollectivePart& part) {
    SequenceChoices choices;
    const Candidates candidates = candidates_of(part.row);
    if (candidates.empty()) return choices;
    const std::vector<CommEvent> ops = called_ops(part);
    const GroupIdentity nothing;
    const GroupIdentity& group =
        part.group < 0 ? nothing
                       : job_.ranks[part.row].groups[static_cast<std::size_t>(part.group)];
    const SequenceChoice* told = nullptr;
    if (const auto log = candidates.find(kLogFormat); log != candidates.end())
      told = &(choices[log->first] = choose(part, group, ops, log->second));
    if (told != nullptr && told->sequence == nullptr && !part.shared.empty())
      choices[kLogFormat].reason = part.shared;
    for (const auto& [format, sequences] : candidates) {
      if (format == kLogFormat) continue;
      // The log tells which communicator it is to those who know it by identifier.
      const bool by_log = told != nullptr && told->sequence != nullptr &&
                          told->sequence->communicator != 0 && sequences.front()->communicator != 0;
      GroupIdentity known = group;
      if (by_log) known.name = communicator_name(told->sequence->communicator);
      SequenceChoice& choice = choices[format] = choose(part, known, ops, sequences);
      if (by_log) choice.confidence = std::max(choice.confidence, told->confidence);
    }
    return choices;
  }

 private:
  using Candidates = std::map<std::string_view, std::vector<const CallSequence*>>;  // by format

  Candidates candidates_of(std::size_t row) const {
    Candidates candidates;
    for (const CallSequence& sequence : calls_.of_rank[row])
      candidates[calls_.formats[sequence.witness]].push_back(&sequence);
    return candidates;
  }

  std::vector<CommEvent> called_ops(const CollectivePart& part) {
    std::vector<CommEvent> ops;
    for (const Part& place : part.places) {
      ops.push_back(as_called(reader_.event(part.row, place.device, place.op)));
      ops.back().row = static_cast<std::uint32_t>(ops.size());
    }
    return ops;
  }

  SequenceChoice choose(const CollectivePart& part, const GroupIdentity& group,
                        const std::vector<CommEvent>& ops,
                        const std::vector<const CallSequence*>& sequences) const {
    const RankTimeline& rank = job_.ranks[part.row];
    return group.name.empty() && part.group < 0
               ? choose_by_order_alone(ops, has_epoch(rank), sequences)
               : choose_sequence(group, rank.rank, ops, has_epoch(rank), sequences);
  }

  const Job& job_;
  const CallSequences& calls_;
  EventReader reader_{job_};
};

class PairsChooser {
 public:
  PairsChooser(const Job& job, const JoinedParts& parts,
               const std::vector<SequenceChoices>& collectives, const CallSequences& calls)
      : job_(job), parts_(parts), collectives_(collectives), calls_(calls) {}

  PairChoices run(const PairPart& part) const {
    PairChoices choices;
    const Candidates candidates = candidates_of(part.row);
    std::uint64_t by_log = 0;
    if (const auto log = candidates.find(kLogFormat); log != candidates.end()) {
      if (auto choice = choose(part, log->first, log->second, 0)) {
        if (choice->sequence != nullptr) by_log = choice->sequence->communicator;
        choices[log->first] = std::move(*choice);
      }
    }
    for (const auto& [format, sequences] : candidates) {
      if (format == kLogFormat) continue;
      if (auto choice = choose(part, format, sequences, by_log))
        choices[format] = std::move(*choice);
    }
    return choices;
  }

 private:
  using Candidates = std::map<std::string_view, std::vector<const PairSequence*>>;  // by format

  // Formats that speak of the rank, and what each says of sends and receives.
  Candidates candidates_of(std::size_t row) const {
    Candidates candidates;
    for (const CallSequence& sequence : calls_.of_rank[row])
      candidates.try_emplace(calls_.formats[sequence.witness]);
    for (const PairSequence& sequence : calls_.pairs_of_rank[row])
      candidates[calls_.formats[sequence.witness]].push_back(&sequence);
    return candidates;
  }

  // Nothing where the format has no such calls to tell.
  std::optional<PairChoice> choose(const PairPart& part, std::string_view format,
                                   const std::vector<const PairSequence*>& sequences,
                                   std::uint64_t by_log) const {
    const bool exchanges = !calls_exchanges(part.row, format);
    std::vector<PairOp> ops;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < part.ops.size(); ++i) {
      if (part.ops[i].op == Op::all_to_all && !exchanges) continue;
      ops.push_back(part.ops[i]);
      rows.push_back(i);
    }
    if (ops.empty()) return std::nullopt;
    const RankTimeline& rank = job_.ranks[part.row];
    PairChoice choice =
        choose_pairs(rank.groups[static_cast<std::size_t>(part.group)], rank.rank, ops,
                     has_epoch(rank), known_of(part, format, by_log), sequences);
    // Back to all operations: those that were left out have no call.
    std::vector<std::pair<std::size_t, std::size_t>> calls_of(part.ops.size(), {0, 0});
    for (std::size_t i = 0; i < choice.calls_of.size(); ++i) calls_of[rows[i]] = choice.calls_of[i];
    choice.calls_of = std::move(calls_of);
    return choice;
  }

  // Whether exchanges are calls of their own there (NCCL 2.28).
  bool calls_exchanges(std::size_t row, std::string_view format) const {
    return std::any_of(
        calls_.of_rank[row].begin(), calls_.of_rank[row].end(), [&](const CallSequence& sequence) {
          return calls_.formats[sequence.witness] == format &&
                 std::any_of(sequence.calls.begin(), sequence.calls.end(),
                             [](const CommEvent& call) { return call.op == Op::all_to_all; });
        });
  }

  // What the group's identifier, its collectives or, at last, the log say of its communicator.
  KnownCommunicator known_of(const PairPart& part, std::string_view format,
                             std::uint64_t by_log) const {
    const RankTimeline& rank = job_.ranks[part.row];
    const std::string& name = rank.groups[static_cast<std::size_t>(part.group)].name;
    if (const std::uint64_t id = communicator_number(name); id != 0)
      return {.id = id, .facts = nullptr, .by = JoinedBy::communicator};
    if (const auto other = parts_.collectives_of.find({part.row, part.group});
        other != parts_.collectives_of.end()) {
      const SequenceChoices& choices = collectives_[other->second];
      const auto found = choices.find(format);
      if (found != choices.end() && found->second.sequence != nullptr)
        return {.id = found->second.sequence->communicator,
                .facts = found->second.sequence->facts,
                .by = found->second.by};
    }
    return {.id = by_log, .facts = nullptr, .by = JoinedBy::order};
  }

  const Job& job_;
  const JoinedParts& parts_;
  const std::vector<SequenceChoices>& collectives_;
  const CallSequences& calls_;
};

}  // namespace

std::vector<SequenceChoices> choose_of_collectives(const Job& job, const JoinedParts& parts,
                                                   const CallSequences& calls) {
  CollectivesChooser chooser(job, calls);
  std::vector<SequenceChoices> choices;
  for (const CollectivePart& part : parts.collectives) choices.push_back(chooser.run(part));
  return choices;
}

std::vector<PairChoices> choose_of_pairs(const Job& job, const JoinedParts& parts,
                                         const std::vector<SequenceChoices>& collectives,
                                         const CallSequences& calls) {
  const PairsChooser chooser(job, parts, collectives, calls);
  std::vector<PairChoices> choices;
  for (const PairPart& part : parts.pairs) choices.push_back(chooser.run(part));
  return choices;
}

}  // namespace commlens
