// PyTorch's desync report (TORCH_NCCL_DESYNC_DEBUG), lines of one message behind each other:
//
//   \t - [0] Timeout at collective: ALLREDUCE, #39
//   \t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
//   \t   - [0,1] joined but didn't finish collective #39 (count from 1)
//   \t   - [2] finished collective #38, but didn't join collective #39 (count from 1)
//   \t - To our best knowledge, ranks [3] are the lagging ranks that caused this timeout. They
//   never joined any collectives
//   \t - Snapshot of ranks' latest states:
//   \t   #39 started ranks:
//   \t     [0,1] started ALLREDUCE
//   \t   #38 finished ranks:
//   \t     [2] finished BROADCAST
#include <optional>

#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

using Line = LogDesync;

// "[0, 1]" at the end of `text` or anywhere in it: the ranks of the last list.
std::vector<std::int64_t> ranks_before(std::string_view text) {
  const std::size_t open = text.rfind('[');
  if (open == std::string_view::npos || text.find(']', open) == std::string_view::npos) return {};
  return number_list(text.substr(open));
}

// "#39 (count from 1)": the number behind `key`.
std::optional<std::int64_t> count_behind(const LogText& text, std::string_view key) {
  return text.number(std::string(key) + "#", ",.");
}

bool read_line(const LogText& text, Line& line) {
  const std::string_view all = text.text();
  if (const std::size_t at = all.find("Timeout at collective: "); at != std::string_view::npos) {
    line.kind = Line::Kind::timed_out;
    line.op = text.value("Timeout at collective: ", ",").value_or("");
    line.seq = count_behind(text, ", ").value_or(-1);
    line.ranks = ranks_before(all.substr(0, at));
    return line.seq >= 0;
  }
  if (const std::size_t at = all.find(" are the lagging ranks"); at != std::string_view::npos) {
    line.kind = Line::Kind::never_joined;
    line.ranks = ranks_before(all.substr(0, at));
    return true;
  }
  if (const std::size_t at = all.find(" joined but didn't finish"); at != std::string_view::npos) {
    line.kind = Line::Kind::not_finished;
    line.seq = count_behind(text, "collective ").value_or(-1);
    line.ranks = ranks_before(all.substr(0, at));
    return line.seq >= 0;
  }
  if (const std::size_t at = all.find(" finished collective #"); at != std::string_view::npos) {
    const auto finished = count_behind(text, "finished collective ");
    if (!text.has("didn't join") || !finished) return false;
    line.kind = Line::Kind::not_joined;
    line.seq = *finished + 1;
    line.ranks = ranks_before(all.substr(0, at));
    return true;
  }
  return false;
}

}  // namespace

Understood read_desync(const LogRecord& record, LogBuilder& builder) {
  if (record.kind == LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  const bool begins = text.has("Timeout at collective: ") || text.has("the lagging ranks") ||
                      text.has("joined but didn't finish") || text.has("finished collective #");
  if (!begins) return Understood::no;
  Line line;
  if (!read_line(text, line)) return Understood::cut;
  if (line.ranks.empty()) return Understood::yes;
  line.line = record.line;
  line.text = record_text(record);
  builder.add(std::move(line));
  return Understood::yes;
}

}  // namespace commlens
