// Problem: each part chooses by itself, and what fits it best can be another part's. A wrong choice
// looks like a right one until two of them are compared.
//
// Method: two parts of a rank are not one communicator: where several take one, none has it, but
// whom an identifier or a name decided for. And the ranks of one group are in one communicator, as
// are those whose streams end together, which are no more than it has: where identifiers differ,
// none has any.
#include "match/joined_conflicts.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace commlens {
namespace {

constexpr const char* kDifferent = "its ranks fit different communicators";

std::string equally_well(std::size_t groups) {
  return std::to_string(groups) + " groups of the rank fit the same communicator equally well";
}

void refuse(SequenceChoice& choice, std::string reason) {
  choice.sequence = nullptr;
  choice.order = {};
  choice.confidence = Confidence::undecidable;
  choice.reason = std::move(reason);
}

void refuse(PairChoice& choice, std::string reason) {
  choice = {};
  choice.reason = std::move(reason);
}

// Whether it has a communicator, with an identifier.
template <typename Choice>
bool is_identified(const Choice& choice) {
  return choice.sequence != nullptr && choice.sequence->communicator != 0;
}

// A group stays where streams without one take what is its.
void refuse_shared(const JoinedParts& parts, std::vector<SequenceChoices>& collectives) {
  struct Takers {
    std::vector<SequenceChoice*> groups;
    std::vector<SequenceChoice*> streams;
  };
  std::map<std::pair<std::size_t, const CallSequence*>, Takers> takers;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const CollectivePart& part = parts.collectives[i];
    for (auto& [format, choice] : collectives[i]) {
      if (choice.sequence == nullptr) continue;
      Takers& here = takers[{part.row, choice.sequence}];
      (part.group < 0 ? here.streams : here.groups).push_back(&choice);
    }
  }
  for (auto& [taken, by] : takers) {
    for (SequenceChoice* choice : by.streams) {
      if (by.groups.size() + by.streams.size() > 1)
        refuse(*choice, "several groups or streams of the rank fit the same communicator");
    }
    if (by.groups.size() < 2) continue;
    for (SequenceChoice* choice : by.groups) {
      if (choice->by == JoinedBy::communicator || !taken.second->name.empty()) continue;
      refuse(*choice, equally_well(by.groups.size()));
    }
  }
}

void refuse_shared(const JoinedParts& parts, std::vector<PairChoices>& pairs) {
  std::map<std::pair<std::size_t, const PairSequence*>, std::vector<PairChoice*>> takers;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (auto& [format, choice] : pairs[i]) {
      if (choice.sequence != nullptr)
        takers[{parts.pairs[i].row, choice.sequence}].push_back(&choice);
    }
  }
  for (auto& [taken, choices] : takers) {
    if (choices.size() < 2 || !taken.second->name.empty()) continue;
    for (PairChoice* choice : choices) {
      if (choice->by != JoinedBy::communicator) refuse(*choice, equally_well(choices.size()));
    }
  }
}

// What has one communicator. A stream that two witnesses put in two is in neither.
std::string together_with(const CollectivePart& part) {
  if (part.group >= 0) return "group " + part.label;
  if (part.inferred >= 0) return "inferred " + std::to_string(part.inferred) + " " + part.kind;
  const Part& first = part.places.front();
  return "stream " + std::to_string(first.rank) + " " + std::to_string(first.device) + " " +
         std::to_string(first.op);
}

// Whether more ranks leave its operations together than the communicator has.
bool is_too_large(const Job& job, const CollectivePart& part, const CallSequence& sequence) {
  if (part.inferred < 0 || sequence.size <= 0) return false;
  const MatchGroup& group = job.matching.groups[static_cast<std::size_t>(part.inferred)];
  return static_cast<std::int64_t>(group.ranks.size()) > sequence.size;
}

void refuse_contradicting(const Job& job, const JoinedParts& parts,
                          std::vector<SequenceChoices>& collectives) {
  std::map<std::string, std::set<std::uint64_t>> ids;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    for (const auto& [format, choice] : collectives[i]) {
      if (is_identified(choice))
        ids[together_with(parts.collectives[i])].insert(choice.sequence->communicator);
    }
  }
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const CollectivePart& part = parts.collectives[i];
    const bool differ = ids[together_with(part)].size() > 1;
    for (auto& [format, choice] : collectives[i]) {
      if (choice.sequence == nullptr) continue;
      if (differ && is_identified(choice)) {
        refuse(choice, kDifferent);
      } else if (is_too_large(job, part, *choice.sequence)) {
        refuse(choice, "more ranks leave its operations together than the communicator has");
      }
    }
  }
}

// By label of the group.
using IdsOfGroups = std::map<std::string, std::set<std::uint64_t>>;

IdsOfGroups ids_of_groups(const JoinedParts& parts, const std::vector<SequenceChoices>& collectives,
                          const std::vector<PairChoices>& pairs) {
  IdsOfGroups ids;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const CollectivePart& part = parts.collectives[i];
    for (const auto& [format, choice] : collectives[i]) {
      if (part.group >= 0 && is_identified(choice))
        ids[part.label].insert(choice.sequence->communicator);
    }
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const auto& [format, choice] : pairs[i]) {
      if (is_identified(choice)) ids[parts.pairs[i].label].insert(choice.sequence->communicator);
    }
  }
  return ids;
}

}  // namespace

std::vector<SequenceChoices> without_conflicts(const Job& job, const JoinedParts& parts,
                                               std::vector<SequenceChoices> collectives) {
  refuse_shared(parts, collectives);
  refuse_contradicting(job, parts, collectives);
  return collectives;
}

std::vector<PairChoices> without_conflicts(const JoinedParts& parts,
                                           const std::vector<SequenceChoices>& collectives,
                                           std::vector<PairChoices> pairs) {
  // What is refused as shared contradicts, too.
  IdsOfGroups ids = ids_of_groups(parts, collectives, pairs);
  refuse_shared(parts, pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (ids[parts.pairs[i].label].size() < 2) continue;
    for (auto& [format, choice] : pairs[i]) {
      if (is_identified(choice)) refuse(choice, kDifferent);
    }
  }
  return pairs;
}

}  // namespace commlens
