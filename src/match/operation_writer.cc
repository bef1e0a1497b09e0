#include "match/operation_writer.h"

#include <algorithm>
#include <map>

#include "model/rank_list.h"

namespace commlens {
namespace {

constexpr std::size_t kMostNamed = 8;  // ranks in a sentence

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  const std::string word = ranks.size() == 1 ? "rank " : "ranks ";
  if (ranks.size() <= kMostNamed) return word + format_ranks(ranks);
  return std::to_string(ranks.size()) + " ranks";
}

// The most frequent value, where more than half have it.
template <class Value>
struct Majority {
  std::map<Value, std::size_t> counts;
  std::size_t all = 0;
  void add(const Value& value) {
    ++counts[value];
    ++all;
  }
  bool one() const { return counts.size() <= 1; }
  std::pair<Value, bool> most() const {
    const auto found =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return {found->first, 2 * found->second > all};
  }
};

}  // namespace

OperationWriter::OperationWriter(const Job& job, Matching& matching)
    : job_(job), matching_(matching) {
  for (const RankTimeline& rank : job.ranks) traced_.insert(rank.rank);
}

void OperationWriter::leave(const std::string& group, std::int64_t rank, std::int64_t seq,
                            std::int64_t count, std::string reason, std::string_view kind) {
  matching_.unmatched += count;
  list_.add({.kind = kind,
             .group = group,
             .seq = seq,
             .ranks = {rank},
             .count = count,
             .reason = std::move(reason)},
            false);
}

void OperationWriter::write_group(std::int32_t group, const std::vector<Member>& members,
                                  const Slots& slots, bool all_members) {
  // Events by slot: counting sort, so that members stay in their order.
  std::vector<std::uint32_t> ends(slots.slots.size() + 1, 0);
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (const std::int32_t slot : slots.of[m]) {
      if (slot != kNoSlot) ++ends[static_cast<std::size_t>(slot) + 1];
    }
  }
  for (std::size_t s = 1; s < ends.size(); ++s) ends[s] += ends[s - 1];
  Placement placement(ends.back());
  std::vector<std::uint32_t> next(ends.begin(), ends.end() - 1);
  std::vector<char> sure(slots.slots.size());
  for (std::size_t s = 0; s < sure.size(); ++s) sure[s] = slots.slots[s].sure ? 1 : 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t e = 0; e < slots.of[m].size(); ++e) {
      if (slots.of[m][e] == kNoSlot) continue;
      const auto slot = static_cast<std::size_t>(slots.of[m][e]);
      placement[next[slot]++] = {static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(e)};
      if (slots.doubtful[m][e] != 0) sure[slot] = 0;
    }
  }
  std::vector<std::uint32_t> order(slots.slots.size());
  for (std::uint32_t s = 0; s < order.size(); ++s) order[s] = s;
  std::stable_sort(order.begin(), order.end(), [&slots](std::uint32_t a, std::uint32_t b) {
    return slots.slots[a].order < slots.slots[b].order;
  });
  for (const std::uint32_t s : order) {
    if (ends[s + 1] == ends[s]) continue;
    write_operation(group, members, slots.slots[s], placement.data() + ends[s],
                    ends[s + 1] - ends[s], all_members, sure[s] != 0);
  }
}

void OperationWriter::write_operation(std::int32_t group, const std::vector<Member>& members,
                                      const Slot& slot, const Placed* first, std::size_t count,
                                      bool all_members, bool sure) {
  const MatchGroup& known = matching_.groups[static_cast<std::size_t>(group)];
  const auto event_of = [&](std::size_t i) -> const CommEvent& {
    return members[first[i].member].events[first[i].event];
  };
  std::int64_t seq = event_of(0).seq;
  for (std::size_t i = 1; i < count; ++i) {
    if (event_of(i).seq != seq) seq = kUnknown;
  }
  const bool whole = all_members && count == known.ranks.size();
  if (count == 1 && !whole) {
    name_missing(known, members, first, count, seq, true);
    return;
  }
  MatchedOp op{.op = Op::unknown,
               .group = group,
               .seq = seq,
               .first = static_cast<std::uint32_t>(matching_.parts.size()),
               .count = static_cast<std::uint32_t>(count),
               .by = slot.by,
               .whole = whole,
               .sure = sure};
  Majority<Op> ops;
  for (std::size_t i = 0; i < count; ++i) {
    const Member& member = members[first[i].member];
    matching_.parts.push_back({static_cast<std::uint32_t>(member.row),
                               static_cast<std::uint32_t>(member.device), event_of(i).row});
    if (!event_of(i).any_op) ops.add(event_of(i).op);
  }
  if (ops.all > 0) op.op = ops.most().first;
  op.agreed = agree(known, members, first, count, seq);
  for (std::size_t i = 0; i < count; ++i) {
    const Part& part = matching_.parts[op.first + i];
    const std::int32_t root = job_.ranks[part.rank].devices[part.device].comm[part.op].root;
    for (std::size_t r = 0; root >= 0 && r < count && op.root < 0; ++r) {
      if (members[first[r].member].rank == root) op.root = static_cast<std::int32_t>(r);
    }
    if (root >= 0) break;
  }
  if (!op.agreed) {
    ++matching_.mismatched;
  } else if (whole) {
    ++matching_.matched;
  } else {
    ++matching_.partial;
  }
  if (!whole) name_missing(known, members, first, count, seq, false);
  matching_.ops.push_back(op);
}

// Which members are not in an operation; those without a trace are another matter than those whose
// trace does not hold it.
void OperationWriter::name_missing(const MatchGroup& group, const std::vector<Member>& members,
                                   const Placed* first, std::size_t count, std::int64_t seq,
                                   bool alone) {
  std::vector<std::int64_t> absent;
  std::vector<std::int64_t> untraced;
  std::size_t i = 0;
  for (const std::int64_t rank : group.ranks) {
    while (i < count && members[first[i].member].rank < rank) ++i;
    if (i < count && members[first[i].member].rank == rank) continue;
    (traced_.contains(rank) ? absent : untraced).push_back(rank);
  }
  if (alone) ++matching_.unmatched;
  const std::string end = alone ? ", and no other rank's trace holds it" : "";
  if (!absent.empty()) {
    std::string reason = "the trace of " + ranks_text(absent) + " does not hold it" + end;
    list_.add({"missing_member", group.label, seq, absent, 1, std::move(reason)}, true);
  } else if (!untraced.empty()) {
    std::string reason = ranks_text(untraced) +
                         (untraced.size() == 1 ? " of the group has" : " of the group have") +
                         " no trace here" + end;
    list_.add({"missing_rank", group.label, seq, untraced, 1, std::move(reason)}, true);
  } else {
    list_.add({"missing_member",
               group.label,
               seq,
               {},
               1,
               "whether these are all members is not known" + end},
              true);
  }
}

void OperationWriter::write_pair(std::int32_t group, const Part& source, const Part& destination,
                                 const CommEvent& send, const CommEvent& receive, MatchedBy by,
                                 bool sure) {
  const bool agreed = fits(send, receive);
  matching_.ops.push_back({.op = Op::send_recv,
                           .group = group,
                           .seq = send.seq == receive.seq ? send.seq : kUnknown,
                           .first = static_cast<std::uint32_t>(matching_.parts.size()),
                           .count = 2,
                           .by = by,
                           .pair = true,
                           .agreed = agreed,
                           .sure = sure});
  matching_.parts.push_back(source);
  matching_.parts.push_back(destination);
  ++(agreed ? matching_.matched : matching_.mismatched);
  if (agreed) return;
  const MatchGroup& pair = matching_.groups[static_cast<std::size_t>(group)];
  list_.add({"bytes", pair.label, send.seq, pair.ranks, 1,
             "the source sends " + std::to_string(send.bytes) + " bytes, the destination expects " +
                 std::to_string(receive.bytes)},
            true);
}

bool OperationWriter::agree(const MatchGroup& group, const std::vector<Member>& members,
                            const Placed* first, std::size_t count, std::int64_t seq) {
  const auto event_of = [&](std::size_t i) -> const CommEvent& {
    return members[first[i].member].events[first[i].event];
  };
  const CommEvent& lead = event_of(0);
  bool equal = true;
  for (std::size_t i = 1; equal && i < count; ++i) {
    const CommEvent& other = event_of(i);
    equal = other.op == lead.op && other.dtype == lead.dtype && other.bytes == lead.bytes;
  }
  if (equal) return true;

  // One property after the other: what differs first says it all.
  const auto differing = [&](std::string_view kind, auto known, auto value, auto text) {
    Majority<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i) {
      if (known(event_of(i))) values.add(value(event_of(i)));
    }
    if (values.one()) return false;
    const auto [usual, majority] = values.most();
    Mismatch row{
        .kind = kind, .group = group.label, .seq = seq, .ranks = {}, .count = 1, .reason = {}};
    std::int64_t other = usual;
    for (std::size_t i = 0; i < count; ++i) {
      if (!known(event_of(i))) continue;
      if (value(event_of(i)) != usual && other == usual) other = value(event_of(i));
      if (!majority || value(event_of(i)) != usual)
        row.ranks.push_back(members[first[i].member].rank);
    }
    row.reason = ranks_text(row.ranks) +
                 (majority ? " differ from the others in " : " differ in ") + std::string(kind) +
                 ": " + text(other) + (majority ? " instead of " : " and ") + text(usual);
    list_.add(std::move(row), true);
    return true;
  };
  const auto sure_op = [](const CommEvent& event) { return !event.any_op; };
  if (differing(
          "op", sure_op, [](const CommEvent& event) { return static_cast<std::int64_t>(event.op); },
          [](std::int64_t op) { return std::string(op_name(static_cast<Op>(op))); }))
    return false;
  if (differing(
          "dtype", [&](const CommEvent& event) { return sure_op(event) && event.dtype != 0; },
          [](const CommEvent& event) { return static_cast<std::int64_t>(event.dtype); },
          [&](std::int64_t dtype) {
            for (std::size_t i = 0; i < count; ++i) {
              if (event_of(i).dtype != dtype) continue;
              const Member& member = members[first[i].member];
              const RankTimeline& rank = job_.ranks[member.row];
              return std::string(rank.recording.strings.get(
                  rank.devices[member.device].comm[event_of(i).row].dtype));
            }
            return std::string();
          }))
    return false;
  return !differing(
      "bytes", [&](const CommEvent& event) { return sure_op(event) && event.bytes != kUnknown; },
      [](const CommEvent& event) { return event.bytes; },
      [](std::int64_t bytes) { return std::to_string(bytes) + " bytes"; });
}

}  // namespace commlens
