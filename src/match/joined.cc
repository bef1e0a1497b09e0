// Problem: a timeline knows which kernel ran when, a log which algorithm the tuner chose and which
// way the data goes, a dump which line of the program called. Nothing but the order of calls, or a
// number, says what of one is what of the other.
//
// Method: each rank's collectives of each group are laid beside the calls that a witness has of
// that rank (sequence_choice); where the timeline names no group, those of each stream. What a
// rank's choice contradicts in another's, or in another group's, is taken back. Then equal
// operations of a group are one row: what all of them are told by their calls and communicators,
// and how surely.
#include "match/joined.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "match/call_sequences.h"
#include "match/pair_choice.h"
#include "match/sequence_choice.h"

namespace commlens {
namespace {

// More different values than this are counted, not listed.
constexpr std::size_t kMostListed = 4;

constexpr const char* kNoGroup = "the timeline does not name its group";

struct Place {
  std::uint32_t device = 0;
  std::uint32_t op = 0;
};

bool is_joinable(const CommOp& op) {
  return op.peers == 0 && op.op != Op::send && op.op != Op::recv && op.op != Op::send_recv &&
         op.op != Op::put_get && op.op != Op::copy;
}

// One rank's collectives of one group, or of one stream where the group is not known, and what was
// chosen for them.
struct RankGroup {
  std::size_t row = 0;
  std::int32_t group = -1;     // -1: not known
  std::int32_t inferred = -1;  // row of Matching::groups, whose streams end together; -1: none
  std::string label;           // empty: not known
  std::vector<Place> places;
  std::map<std::string_view, SequenceChoice> choices;  // by the witnesses' format
};

// One rank's sends, receives and exchanges of one group.
struct PairGroup {
  std::size_t row = 0;
  std::int32_t group = -1;
  std::string label;
  std::vector<Place> places;
  std::vector<PairOp> ops;  // by place
  std::map<std::string_view, PairChoice> choices;
};

bool is_pair_op(const CommOp& op) {
  return op.peers > 0 || op.op == Op::send || op.op == Op::recv || op.op == Op::send_recv;
}

// Several values as words.
std::string listed(const std::set<std::string>& values) {
  if (values.size() > kMostListed) return std::to_string(values.size()) + " different";
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::string hex_of(std::uint64_t communicator) {
  std::array<char, 16> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), communicator, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

// What is gathered for one row.
struct Gathered {
  std::int64_t count = 0;
  std::int64_t witnessed = 0;
  std::map<std::string, std::int64_t> kernels;
  std::set<std::string> host_calls;
  std::set<std::string> algorithms;
  std::set<std::string> protocols;
  std::set<std::int64_t> channels;
  std::set<std::string> ways;
  std::set<std::string> adapters;
  std::set<std::string> formats;
  std::set<std::string> reasons;
  std::optional<JoinedBy> by;  // the weakest
  std::optional<Confidence> confidence;
  bool refused = false;
};

class Joining {
 public:
  Joining(const Job& job, const std::vector<Witness>& witnesses,
          const std::vector<Measured>& measured)
      : job_(job),
        witnesses_(witnesses),
        measured_(measured),
        calls_(collect_calls(job, witnesses, measured)) {
    find_first_ranks();
  }

  Joined run() {
    find_inferred();
    for (std::size_t row = 0; row < job_.ranks.size(); ++row) add_rank(row);
    for (RankGroup& part : parts_) choose(part);
    refuse_shared();
    refuse_contradicting();
    for (RankGroup& part : parts_) {
      if (part.group < 0) name(part);
    }
    for (PairGroup& part : pairs_) choose_pairs_of(part);
    refuse_pairs();
    for (const RankGroup& part : parts_) gather(part);
    for (const PairGroup& part : pairs_) gather_pairs(part);
    add_rest();
    return finish();
  }

 private:
  void add_rank(std::size_t row) {
    const RankTimeline& rank = job_.ranks[row];
    std::map<std::int32_t, std::vector<Place>> places;
    std::map<std::pair<std::uint32_t, StreamId>, std::vector<Place>> lanes;
    std::map<std::int32_t, std::vector<Place>> pairs;
    for (std::uint32_t d = 0; d < rank.devices.size(); ++d) {
      for (std::uint32_t i = 0; i < rank.devices[d].comm.size(); ++i) {
        const CommOp& op = rank.devices[d].comm[i];
        if (op.group >= 0 && (is_pair_op(op) || op.op == Op::all_to_all))
          pairs[op.group].push_back({d, i});
        if (!is_joinable(op)) continue;
        (op.group >= 0 ? places[op.group] : lanes[{d, op.stream}]).push_back({d, i});
      }
    }
    for (auto& [group, own] : places) {
      std::stable_sort(own.begin(), own.end(), [&rank](const Place& a, const Place& b) {
        return op_at(rank, a).time.start < op_at(rank, b).time.start;
      });
      parts_.push_back({row,
                        group,
                        -1,
                        group_label(rank.groups[static_cast<std::size_t>(group)], rank.rank),
                        std::move(own),
                        {}});
    }
    for (auto& [group, own] : pairs) add_pairs(row, group, std::move(own));
    for (auto& [stream, own] : lanes) {
      std::int32_t inferred = -1;
      for (const Place& place : own) {
        const auto known =
            inferred_.find({static_cast<std::uint32_t>(row), place.device, place.op});
        if (known == inferred_.end()) continue;
        inferred = known->second;
        break;
      }
      parts_.push_back({row, -1, inferred, {}, std::move(own), {}});
    }
  }

  void add_pairs(std::size_t row, std::int32_t group, std::vector<Place> places) {
    const RankTimeline& rank = job_.ranks[row];
    const GroupIdentity& identity = rank.groups[static_cast<std::size_t>(group)];
    std::stable_sort(places.begin(), places.end(), [&rank](const Place& a, const Place& b) {
      return op_at(rank, a).time.start < op_at(rank, b).time.start;
    });
    PairGroup part{.row = row,
                   .group = group,
                   .label = group_label(identity, rank.rank),
                   .places = std::move(places),
                   .ops = {},
                   .choices = {}};
    for (const Place& place : part.places) {
      const CommEvent event = reader_.event(row, place.device, place.op);
      const CommOp& op = op_at(rank, place);
      PairOp pair{.op = op.op, .start = event.start, .calls = calls_of(rank, identity, op)};
      if (op.peers == 1) pair.seq = op.seq;
      part.ops.push_back(std::move(pair));
    }
    pair_rows_[{row, group}] = pairs_.size();
    pairs_.push_back(std::move(part));
  }

  // What was called for an operation between pairs; nothing where that is not known. Peers of a
  // call are ranks in the communicator.
  static std::vector<PairCall> calls_of(const RankTimeline& rank, const GroupIdentity& group,
                                        const CommOp& op) {
    std::vector<PairCall> calls;
    if (op.op == Op::all_to_all && op.peers == 0) {
      if (!op.zero_split && !op.name_may_lie)
        calls.push_back({.op = op.op, .peer = kUnknown, .bytes = op.bytes.value_or(kUnknown)});
      return calls;
    }
    for (std::uint32_t i = 0; i < op.peers; ++i) {
      const Peer& peer = rank.peers[op.first_peer + i];
      const auto place = std::lower_bound(group.ranks.begin(), group.ranks.end(), peer.rank);
      if (place == group.ranks.end() || *place != peer.rank) return {};
      calls.push_back({.op = peer.sends ? Op::send : Op::recv,
                       .peer = place - group.ranks.begin(),
                       .bytes = peer.bytes.value_or(kUnknown)});
    }
    return calls;
  }

  // Which streams' operations end together.
  void find_inferred() {
    for (const MatchedOp& op : job_.matching.ops) {
      if (op.group < 0 || !job_.matching.groups[static_cast<std::size_t>(op.group)].inferred)
        continue;
      for (std::uint32_t i = 0; i < op.count; ++i)
        inferred_.emplace(job_.matching.parts[op.first + i], op.group);
    }
  }

  static const CommOp& op_at(const RankTimeline& rank, const Place& place) {
    return rank.devices[place.device].comm[place.op];
  }

  void choose(RankGroup& part) {
    const RankTimeline& rank = job_.ranks[part.row];
    std::map<std::string_view, std::vector<const CallSequence*>> candidates;
    for (const CallSequence& sequence : calls_.of_rank[part.row])
      candidates[format_of(sequence.witness)].push_back(&sequence);
    if (candidates.empty()) return;
    std::vector<CommEvent> ops;
    for (const Place& place : part.places) {
      ops.push_back(as_called(reader_.event(part.row, place.device, place.op)));
      ops.back().row = static_cast<std::uint32_t>(ops.size());
    }
    const GroupIdentity nothing;
    const GroupIdentity& group =
        part.group < 0 ? nothing : rank.groups[static_cast<std::size_t>(part.group)];
    const bool clock_known = rank.recording.clock == ClockBase::epoch;
    const auto choose_of = [&](const GroupIdentity& of,
                               const std::vector<const CallSequence*>& sequences) {
      return of.name.empty() && part.group < 0
                 ? choose_by_order_alone(ops, clock_known, sequences)
                 : choose_sequence(of, rank.rank, ops, clock_known, sequences);
    };
    // A log that knows which communicator the group is tells it to those who know it by identifier.
    const auto log = candidates.find("nccl_log");
    const SequenceChoice* told = nullptr;
    if (log != candidates.end()) {
      told = &(part.choices[log->first] = choose_of(group, log->second));
    }
    for (const auto& [format, sequences] : candidates) {
      if (log != candidates.end() && format == log->first) continue;
      GroupIdentity known = group;
      const bool by_log = told != nullptr && told->sequence != nullptr &&
                          told->sequence->communicator != 0 && sequences.front()->communicator != 0;
      if (by_log) known.name = hex_of(told->sequence->communicator);
      SequenceChoice& choice = part.choices[format] = choose_of(known, sequences);
      if (by_log) choice.confidence = std::max(choice.confidence, told->confidence);
    }
  }

  // Formats that speak of the rank, and what each says of sends and receives.
  std::map<std::string_view, std::vector<const PairSequence*>> pair_candidates(
      std::size_t row) const {
    std::map<std::string_view, std::vector<const PairSequence*>> candidates;
    for (const CallSequence& sequence : calls_.of_rank[row])
      candidates.try_emplace(format_of(sequence.witness));
    for (const PairSequence& sequence : calls_.pairs_of_rank[row])
      candidates[format_of(sequence.witness)].push_back(&sequence);
    return candidates;
  }

  // Whether exchanges are calls of their own there (NCCL 2.28).
  bool calls_exchanges(std::size_t row, std::string_view format) const {
    return std::any_of(
        calls_.of_rank[row].begin(), calls_.of_rank[row].end(), [&](const CallSequence& sequence) {
          return format_of(sequence.witness) == format &&
                 std::any_of(sequence.calls.begin(), sequence.calls.end(),
                             [](const CommEvent& call) { return call.op == Op::all_to_all; });
        });
  }

  void choose_pairs_of(PairGroup& part) {
    const RankTimeline& rank = job_.ranks[part.row];
    const GroupIdentity& group = rank.groups[static_cast<std::size_t>(part.group)];
    const bool clock_known = rank.recording.clock == ClockBase::epoch;
    std::uint64_t by_log = 0;
    const auto choose_one = [&](std::string_view format, const auto& sequences) {
      const bool exchanges = !calls_exchanges(part.row, format);
      std::vector<PairOp> ops;
      std::vector<std::size_t> rows;
      for (std::size_t i = 0; i < part.ops.size(); ++i) {
        if (part.ops[i].op == Op::all_to_all && !exchanges) continue;
        ops.push_back(part.ops[i]);
        rows.push_back(i);
      }
      if (ops.empty()) return;
      PairChoice choice = choose_pairs(group, rank.rank, ops, clock_known,
                                       known_of(part, format, by_log), sequences);
      std::vector<std::pair<std::size_t, std::size_t>> calls_of(part.ops.size(), {0, 0});
      for (std::size_t i = 0; i < choice.calls_of.size(); ++i)
        calls_of[rows[i]] = choice.calls_of[i];
      choice.calls_of = std::move(calls_of);
      if (format == "nccl_log" && choice.sequence != nullptr)
        by_log = choice.sequence->communicator;
      part.choices[format] = std::move(choice);
    };
    const auto candidates = pair_candidates(part.row);
    if (const auto log = candidates.find("nccl_log"); log != candidates.end())
      choose_one(log->first, log->second);
    for (const auto& [format, sequences] : candidates) {
      if (format != "nccl_log") choose_one(format, sequences);
    }
  }

  // What the group's identifier, or its collectives, say of its communicator.
  KnownCommunicator known_of(const PairGroup& part, std::string_view format,
                             std::uint64_t by_log) const {
    const RankTimeline& rank = job_.ranks[part.row];
    const std::string& name = rank.groups[static_cast<std::size_t>(part.group)].name;
    if (const std::uint64_t id = communicator_number(name); id != 0)
      return {.id = id, .facts = nullptr, .by = JoinedBy::communicator};
    for (const RankGroup& other : parts_) {
      if (other.row != part.row || other.group != part.group) continue;
      const auto found = other.choices.find(format);
      if (found == other.choices.end() || found->second.sequence == nullptr) continue;
      return {.id = found->second.sequence->communicator,
              .facts = found->second.sequence->facts,
              .by = found->second.by};
    }
    return {.id = by_log, .facts = nullptr, .by = JoinedBy::order};
  }

  static void refuse(PairChoice& choice, std::string reason) {
    choice = {};
    choice.reason = std::move(reason);
  }

  // As for collectives: two groups of a rank are not one communicator, and the ranks of a group
  // are in one.
  void refuse_pairs() {
    std::map<std::pair<std::size_t, const PairSequence*>, std::vector<PairChoice*>> takers;
    std::map<std::string, std::set<std::uint64_t>> ids;
    for (const RankGroup& part : parts_) {
      for (const auto& [format, choice] : part.choices) {
        if (part.group >= 0 && choice.sequence != nullptr && choice.sequence->communicator != 0)
          ids[part.label].insert(choice.sequence->communicator);
      }
    }
    for (PairGroup& part : pairs_) {
      for (auto& [format, choice] : part.choices) {
        if (choice.sequence == nullptr) continue;
        takers[{part.row, choice.sequence}].push_back(&choice);
        if (choice.sequence->communicator != 0)
          ids[part.label].insert(choice.sequence->communicator);
      }
    }
    for (auto& [taken, choices] : takers) {
      for (PairChoice* choice : choices) {
        if (choices.size() > 1 && choice->by != JoinedBy::communicator &&
            taken.second->name.empty())
          refuse(*choice, std::to_string(choices.size()) +
                              " groups of the rank fit the same communicator equally well");
      }
    }
    for (PairGroup& part : pairs_) {
      if (ids[part.label].size() < 2) continue;
      for (auto& [format, choice] : part.choices) {
        if (choice.sequence != nullptr && choice.sequence->communicator != 0)
          refuse(choice, "its ranks fit different communicators");
      }
    }
  }

  static void refuse(SequenceChoice& choice, std::string reason) {
    choice.sequence = nullptr;
    choice.order = {};
    choice.confidence = Confidence::undecidable;
    choice.reason = std::move(reason);
  }

  // Two groups of a rank cannot be one communicator; where an identifier or a name decided, it
  // stays, and a group stays where streams without one take what is its.
  void refuse_shared() {
    struct Takers {
      std::vector<SequenceChoice*> groups;
      std::vector<SequenceChoice*> streams;
    };
    std::map<std::pair<std::size_t, const CallSequence*>, Takers> takers;
    for (RankGroup& part : parts_) {
      for (auto& [format, choice] : part.choices) {
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
      const std::vector<SequenceChoice*>& choices = by.groups;
      if (choices.size() < 2) continue;
      for (SequenceChoice* choice : choices) {
        if (choice->by == JoinedBy::communicator || !taken.second->name.empty()) continue;
        refuse(*choice, std::to_string(choices.size()) +
                            " groups of the rank fit the same communicator equally well");
      }
    }
  }

  // The ranks of one group are in one communicator, and so are those whose streams end together,
  // which are no more than it has. A stream that two witnesses put in two is in neither.
  void refuse_contradicting() {
    std::map<std::string, std::set<std::uint64_t>> ids;
    for (const RankGroup& part : parts_) {
      for (const auto& [format, choice] : part.choices) {
        if (choice.sequence != nullptr && choice.sequence->communicator != 0)
          ids[together(part)].insert(choice.sequence->communicator);
      }
    }
    for (RankGroup& part : parts_) {
      for (auto& [format, choice] : part.choices) {
        if (choice.sequence == nullptr) continue;
        if (ids[together(part)].size() > 1 && choice.sequence->communicator != 0) {
          refuse(choice, "its ranks fit different communicators");
        } else if (part.inferred >= 0 && choice.sequence->size > 0 &&
                   static_cast<std::int64_t>(
                       job_.matching.groups[static_cast<std::size_t>(part.inferred)].ranks.size()) >
                       choice.sequence->size) {
          refuse(choice, "more ranks leave its operations together than the communicator has");
        }
      }
    }
  }

  // What has one communicator.
  static std::string together(const RankGroup& part) {
    if (part.group >= 0) return "group " + part.label;
    if (part.inferred >= 0) return "inferred " + std::to_string(part.inferred);
    const Place& first = part.places.front();
    return "stream " + std::to_string(part.row) + " " + std::to_string(first.device) + " " +
           std::to_string(first.op);
  }

  // A stream without a group, as the witness calls what it is in.
  static void name(RankGroup& part) {
    for (const auto& [format, choice] : part.choices) {
      if (choice.sequence == nullptr || !part.label.empty()) continue;
      if (choice.sequence->communicator != 0) {
        part.label = "communicator " + hex_of(choice.sequence->communicator);
      } else if (!choice.sequence->name.empty()) {
        part.label = "group " + choice.sequence->name;
      }
    }
  }

  std::string_view format_of(std::size_t witness) const {
    return witness < witnesses_.size() ? witnesses_[witness].format
                                       : measured_[witness - witnesses_.size()].format;
  }

  using Key = std::tuple<std::string, Op, std::int64_t>;  // -1: of unknown size

  Gathered& row_of(const std::string& label, const CommOp& op) {
    return rows_[{label, op.op, op.bytes.value_or(-1)}];
  }

  void count(const RankTimeline& rank, const CommOp& op, Gathered& row) const {
    ++row.count;
    const std::string_view name = rank.recording.strings.get(op.name);
    ++row.kernels[std::string(name.substr(0, name.find('(')))];
  }

  static bool is_counted(const RankTimeline& rank, const Place& place) {
    return rank.devices[place.device].exposures[place.op].starts_inside;
  }

  void gather(const RankGroup& part) {
    const RankTimeline& rank = job_.ranks[part.row];
    std::vector<char> witnessed(part.places.size(), 0);
    const std::set<std::string_view> told = told_by_pairs(part);
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      const CommOp& op = op_at(rank, part.places[i]);
      if (!is_counted(rank, part.places[i])) continue;
      Gathered& row = row_of(part.label, op);
      count(rank, op, row);
      if (part.group < 0 && part.choices.empty()) row.reasons.insert(kNoGroup);
      for (const auto& [format, choice] : part.choices) {
        if (op.op == Op::all_to_all && told.contains(format)) continue;
        if (choice.sequence == nullptr) {
          row.refused = true;
          row.reasons.insert(std::string(format) + ": " + choice.reason);
          continue;
        }
        take_choice(choice, op, i, row);
        if (choice.order.call_of[i] >= 0) witnessed[i] = 1;
      }
      row.witnessed += witnessed[i];
      if (witnessed[i] != 0) witnessed_.insert(place_of(part.row, part.places[i]));
    }
    for (const auto& [format, choice] : part.choices) {
      if (choice.sequence == nullptr) continue;
      const CallSequence& sequence = *choice.sequence;
      // Recordings of one rank, and groups of one name, share calls: each counts once.
      const void* const calls =
          sequence.facts != nullptr ? static_cast<const void*>(sequence.facts) : &sequence;
      for (const std::int32_t call : choice.order.call_of) {
        if (call >= 0) joined_calls_[sequence.witness].insert({calls, call});
      }
    }
  }

  static Part place_of(std::size_t row, const Place& place) {
    return {static_cast<std::uint32_t>(row), place.device, place.op};
  }

  // Witnesses whose sends and receives are the group's exchanges.
  std::set<std::string_view> told_by_pairs(const RankGroup& of) const {
    std::set<std::string_view> formats;
    const auto part = pair_rows_.find({of.row, of.group});
    if (part == pair_rows_.end()) return formats;
    for (const auto& [format, choice] : pairs_[part->second].choices) {
      if (choice.sequence != nullptr) formats.insert(format);
    }
    return formats;
  }

  // Exchanges are counted among the collectives.
  void gather_pairs(const PairGroup& part) {
    const RankTimeline& rank = job_.ranks[part.row];
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      const CommOp& op = op_at(rank, part.places[i]);
      if (!is_counted(rank, part.places[i])) continue;
      Gathered& row = row_of(part.label, op);
      const bool is_collective = is_joinable(op);
      if (!is_collective) count(rank, op, row);
      bool witnessed = false;
      for (const auto& [format, choice] : part.choices) {
        if (choice.sequence != nullptr) {
          witnessed = take_pairs(choice, i, row) || witnessed;
          continue;
        }
        if (!is_collective) row.refused = true;
        row.reasons.insert(std::string(format) + ": " + choice.reason);
      }
      if (witnessed && witnessed_.insert(place_of(part.row, part.places[i])).second)
        ++row.witnessed;
    }
    for (const auto& [format, choice] : part.choices) {
      if (choice.sequence == nullptr) continue;
      const PairSequence& sequence = *choice.sequence;
      const void* const calls =
          sequence.facts != nullptr ? static_cast<const void*>(&sequence.facts->pairs) : &sequence;
      for (const auto& [first, count] : choice.calls_of) {
        for (std::size_t call = first; call < first + count; ++call)
          joined_calls_[sequence.witness].insert({calls, static_cast<std::int32_t>(call)});
      }
    }
  }

  bool take_pairs(const PairChoice& choice, std::size_t i, Gathered& row) {
    const PairSequence& sequence = *choice.sequence;
    const auto& [first, count] = choice.calls_of[i];
    if (count == 0) return false;
    for (std::size_t call = first; call < first + count; ++call) {
      row.host_calls.insert(calls_.texts[sequence.texts[call]]);
      if (!sequence.ways.empty()) take_way(calls_.ways[sequence.ways[call]], row);
      if (sequence.facts != nullptr)
        take_connection(*sequence.facts, sequence.calls[call].peer, row);
    }
    row.formats.insert(std::string(format_of(sequence.witness)));
    row.by = row.by ? std::max(*row.by, choice.by) : choice.by;
    row.confidence =
        row.confidence ? std::max(*row.confidence, choice.confidence) : choice.confidence;
    return true;
  }

  // Sends and receives have connections of their own, one to each peer.
  static void take_connection(const CommWitness& comm, std::int64_t peer, Gathered& row) {
    if (const auto ways = comm.pair_ways.find(peer); ways != comm.pair_ways.end())
      row.ways.insert(ways->second.begin(), ways->second.end());
    if (const auto found = comm.pair_adapters.find(peer); found != comm.pair_adapters.end())
      row.adapters.insert(found->second.begin(), found->second.end());
  }

  void take_choice(const SequenceChoice& choice, const CommOp& op, std::size_t i, Gathered& row) {
    const CallSequence& sequence = *choice.sequence;
    const std::int32_t call = choice.order.call_of[i];
    if (call >= 0)
      row.host_calls.insert(calls_.texts[sequence.texts[static_cast<std::size_t>(call)]]);
    // What has no call there is only known to be in that communicator.
    if (call < 0 && sequence.facts == nullptr) return;
    row.formats.insert(std::string(format_of(sequence.witness)));
    row.by = row.by ? std::max(*row.by, choice.by) : choice.by;
    row.confidence =
        row.confidence ? std::max(*row.confidence, choice.confidence) : choice.confidence;
    if (call >= 0 && !sequence.ways.empty())
      take_way(calls_.ways[sequence.ways[static_cast<std::size_t>(call)]], row);
    if (sequence.facts != nullptr) take_comm(sequence, op, row);
  }

  void take_comm(const CallSequence& sequence, const CommOp& op, Gathered& row) {
    const CommWitness& comm = *sequence.facts;
    if (op.op == Op::all_to_all || op.op == Op::gather || op.op == Op::scatter) {
      for (const auto& [peer, ways] : comm.pair_ways) take_connection(comm, peer, row);
    } else {
      row.ways.insert(comm.ways.begin(), comm.ways.end());
      row.adapters.insert(comm.adapters.begin(), comm.adapters.end());
    }
    const TunerChoices* choices = choices_of(sequence);
    if (choices == nullptr || !op.bytes) return;
    const auto found = choices->find({op.op, *op.bytes});
    if (found == choices->end()) return;
    for (const TunerChoice& choice : found->second) take_way(choice, row);
  }

  static void take_way(const TunerChoice& choice, Gathered& row) {
    if (!choice.algorithm.empty()) row.algorithms.insert(choice.algorithm);
    if (!choice.protocol.empty()) row.protocols.insert(choice.protocol);
    if (choice.channels > 0) row.channels.insert(choice.channels);
  }

  // What the communicator's first rank wrote of the tuner, in whichever file that stands.
  const TunerChoices* choices_of(const CallSequence& sequence) const {
    const std::size_t own = sequence.witness;
    const auto here = calls_.choices[own].find(sequence.facts->row);
    if (here != calls_.choices[own].end()) return &here->second;
    if (sequence.communicator == 0) return nullptr;
    const auto known = first_ranks_.find(sequence.communicator);
    return known == first_ranks_.end() ? nullptr : known->second;
  }

  // Communications that no witness can tell: no collectives.
  void add_rest() {
    for (const RankTimeline& rank : job_.ranks) {
      for (const DeviceTimeline& device : rank.devices) {
        for (std::size_t i = 0; i < device.comm.size(); ++i) {
          const CommOp& op = device.comm[i];
          if (!device.exposures[i].starts_inside || is_joinable(op)) continue;
          if (op.group >= 0 && is_pair_op(op)) continue;
          const std::string label =
              op.group < 0
                  ? std::string()
                  : group_label(rank.groups[static_cast<std::size_t>(op.group)], rank.rank);
          Gathered& row = row_of(label, op);
          count(rank, op, row);
          row.reasons.insert(op.group < 0 ? kNoGroup : "no witness has calls of its kind");
        }
      }
    }
  }

  Joined finish() {
    Joined joined;
    joined.asked = true;
    for (auto& [key, row] : rows_) joined.rows.push_back(finished(key, row));
    for (const JoinedRow& row : joined.rows) {
      joined.operations += row.count;
      joined.without_witness += row.count - row.witnessed;
    }
    for (std::size_t w = 0; w < calls_.refused.size(); ++w) add_input(w, joined);
    return joined;
  }

  static JoinedRow finished(const Key& key, Gathered& row) {
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
    row.host_calls.erase("");
    out.host_call = listed(row.host_calls);
    out.algorithm = listed(row.algorithms);
    out.protocol = listed(row.protocols);
    if (row.channels.size() == 1) out.channels = *row.channels.begin();
    out.transport = listed(row.ways);
    out.nic = listed(row.adapters);
    out.witnesses.assign(row.formats.begin(), row.formats.end());
    out.by = row.by;
    out.confidence = row.confidence;
    if (!out.confidence && row.refused) out.confidence = Confidence::undecidable;
    // Some of its operations are told by nobody, or one witness contradicts another.
    if (row.refused && out.confidence == Confidence::certain) out.confidence = Confidence::likely;
    std::string reason;
    for (const std::string& one : row.reasons) reason += (reason.empty() ? "" : "; ") + one;
    out.reason = std::move(reason);
    return out;
  }

  void add_input(std::size_t w, Joined& joined) {
    JoinedInput input{
        .path = w < witnesses_.size() ? witnesses_[w].path : measured_[w - witnesses_.size()].path,
        .format = std::string(format_of(w)),
        .calls = calls_.calls[w],
        .joined = static_cast<std::int64_t>(joined_calls_[w].size()),
        .reason = calls_.refused[w]};
    joined.calls += input.calls;
    joined.calls_without_operation += input.calls - input.joined;
    joined.inputs.push_back(std::move(input));
  }

  // Where each communicator's choices of the tuner stand.
  void find_first_ranks() {
    for (std::size_t w = 0; w < witnesses_.size(); ++w) {
      for (const auto& [row, choices] : calls_.choices[w]) {
        const std::uint64_t id = witnesses_[w].log->comms[row].id;
        if (id != 0) first_ranks_.emplace(id, &choices);
      }
    }
  }

  const Job& job_;
  const std::vector<Witness>& witnesses_;
  const std::vector<Measured>& measured_;
  CallSequences calls_;
  EventReader reader_{job_};
  std::map<std::uint64_t, const TunerChoices*> first_ranks_;  // by commId
  std::map<Part, std::int32_t> inferred_;                     // row of Matching::groups
  std::vector<RankGroup> parts_;
  std::vector<PairGroup> pairs_;
  std::map<std::pair<std::size_t, std::int32_t>, std::size_t> pair_rows_;  // by row and group
  std::set<Part> witnessed_;                                               // with a call
  std::map<Key, Gathered> rows_;
  std::map<std::size_t, std::set<std::pair<const void*, std::int32_t>>>
      joined_calls_;  // by witness
};

}  // namespace

Joined join_witnesses(const Job& job, const std::vector<Witness>& witnesses,
                      const std::vector<Measured>& measured) {
  return Joining(job, witnesses, measured).run();
}

}  // namespace commlens
