#include <string>

#include "simulate/kineto_parts.h"

namespace commlens::simulate {
namespace {

constexpr std::size_t kMaxListed = 30;  // elements of a list that Kineto prints

template <class Number>
std::string list_text(const std::vector<Number>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size() && i < kMaxListed; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kMaxListed ? ", ...]" : "]");
}

const Group& group_of(const CommsRecord& record) {
  return record.job.layout.groups[static_cast<std::size_t>(record.collective.group)];
}

int other_rank(const CommsRecord& record) {
  return record.collective.members[record.member.op == Op::send ? 1 : 0].rank;
}

void write_group(KinetoText& text, const CommsRecord& record) {
  const Group& group = group_of(record);
  text.arg("Process Group Name", group.name);
  text.arg("Process Group Description", group.description);
  text.arg("Process Group Ranks", list_text(group.ranks));
}

void write_data(KinetoText& text, const CommsRecord& record) {
  const Member& member = record.member;
  text.arg("Collective name", op_words(member.op).collective);
  text.arg("In msg nelems", member.in_elements);
  text.arg("Out msg nelems", member.out_elements);
  text.arg("Group size", static_cast<std::int64_t>(group_of(record).ranks.size()));
  text.arg("dtype", "BFloat16");
  text.arg("In split size", list_text(rows_sent(record.collective, record.index)));
  text.arg("Out split size", list_text(rows_received(record.collective, record.index)));
  if (!record.collective.point_to_point) return;
  const bool sends = member.op == Op::send;
  text.arg("Src Rank", sends ? member.rank : other_rank(record));
  text.arg("Dst Rank", sends ? other_rank(record) : member.rank);
}

// As torch does it: a hash that is equal for all participants, and uses all 64 bits. For a pair
// only the counts of the two sides go in, which need not agree.
std::uint64_t comms_id(const CommsRecord& record) {
  const Group& group = group_of(record);
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x100000001B3ULL ^ (hash >> 29U);
  };
  mix(static_cast<std::uint64_t>(record.collective.group));
  mix(static_cast<std::uint64_t>(record.member.seq));
  mix(record.collective.point_to_point ? 1 : 0);
  mix(static_cast<std::uint64_t>(group.ranks.front()));
  mix(group.ranks.size());
  return hash * 0x9E3779B97F4A7C15ULL;
}

void write_host_identity(KinetoText& text, const CommsRecord& record, std::int64_t rank) {
  const Group& group = group_of(record);
  text.arg("Rank", rank);
  text.arg("Global rank start", group.ranks[0]);
  text.arg("Global rank stride", group.ranks.size() > 1 ? group.ranks[1] - group.ranks[0] : 1);
  text.arg("Is asynchronized op", 1);
  text.arg("Seq", record.member.seq);
}

}  // namespace

void write_kernel_comms(KinetoText& text, const CommsRecord& record, bool with_seq) {
  write_data(text, record);
  write_group(text, record);
  if (!with_seq) return;
  text.arg("Seq", record.member.seq);
  text.raw_arg("Comms Id", std::to_string(comms_id(record)));
}

void write_host_comms(KinetoText& text, const CommsRecord& record) {
  const int rank = record.collective.point_to_point ? other_rank(record) : record.member.rank;
  write_data(text, record);
  write_group(text, record);
  write_host_identity(text, record, index_in_group(group_of(record), rank));
}

void write_wait_comms(KinetoText& text, const CommsRecord& record) {
  text.arg("Collective name", "wait");
  text.arg("In msg nelems", 0);
  text.arg("Out msg nelems", 0);
  text.arg("Group size", static_cast<std::int64_t>(group_of(record).ranks.size()));
  text.arg("dtype", "Byte");
  text.arg("In split size", "[]");
  text.arg("Out split size", "[]");
  write_group(text, record);
  write_host_identity(text, record, index_in_group(group_of(record), record.member.rank));
}

}  // namespace commlens::simulate
