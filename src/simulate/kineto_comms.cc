#include "simulate/kineto_parts.h"

namespace commlens::simulate {
namespace {

void write_group(KinetoText& text, const CommsRecord& record) {
  const Group& group = record.group();
  text.arg("Process Group Name", group.name);
  text.arg("Process Group Description", group.description);
  text.arg("Process Group Ranks", record.ranks_text());
}

void write_data(KinetoText& text, const CommsRecord& record) {
  const Member& member = record.member;
  text.arg("Collective name", op_words(member.op).collective);
  text.arg("In msg nelems", member.in_elements);
  text.arg("Out msg nelems", member.out_elements);
  text.arg("Group size", static_cast<std::int64_t>(record.group().ranks.size()));
  text.arg("dtype", kDtype);
  text.arg("In split size", record.in_splits());
  text.arg("Out split size", record.out_splits());
  if (!record.collective.point_to_point) return;
  text.arg("Src Rank", record.source());
  text.arg("Dst Rank", record.destination());
}

void write_host_identity(KinetoText& text, const CommsRecord& record, std::int64_t rank) {
  text.arg("Rank", rank);
  text.arg("Global rank start", record.group().ranks[0]);
  text.arg("Global rank stride", record.group_stride());
  text.arg("Is asynchronized op", 1);
  if (record.with_seq) text.arg("Seq", record.seq);
}

}  // namespace

void write_kernel_comms(KinetoText& text, const CommsRecord& record, bool with_seq) {
  write_data(text, record);
  write_group(text, record);
  if (!with_seq || !record.with_seq) return;
  text.arg("Seq", record.seq);
  text.raw_arg("Comms Id", std::to_string(record.comms_id()));
}

void write_host_comms(KinetoText& text, const CommsRecord& record) {
  write_data(text, record);
  write_group(text, record);
  write_host_identity(text, record, record.rank_in_group());
}

void write_wait_comms(KinetoText& text, const CommsRecord& record) {
  text.arg("Collective name", "wait");
  text.arg("In msg nelems", 0);
  text.arg("Out msg nelems", 0);
  text.arg("Group size", static_cast<std::int64_t>(record.group().ranks.size()));
  text.arg("dtype", "Byte");
  text.arg("In split size", "[]");
  text.arg("Out split size", "[]");
  write_group(text, record);
  write_host_identity(text, record, index_in_group(record.group(), record.member.rank));
}

}  // namespace commlens::simulate
