#include "diagnose/words.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "base/utf8.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

std::string place(const Witness& witness, std::int64_t where) {
  if (where < 0) return witness.path;
  return witness.path + (witness.counts_lines ? ", line " : ", byte ") + std::to_string(where);
}

}  // namespace

std::string rank_words(const std::vector<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

std::string_view is_or_are(const std::vector<std::int64_t>& ranks) {
  return ranks.size() == 1 ? "is" : "are";
}

std::string since_words(std::int64_t ns) {
  if (ns <= 0) return {};
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return {};
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &utc);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03d", static_cast<int>(ns / 1'000'000 % 1000));
  return std::string(", since ") + text.data() + fraction.data() + " UTC";
}

std::string operation_words(const JointGroup& group, std::int64_t number) {
  const std::string op = group.op(number);
  return (op.empty() ? "operation" : op) + " " + std::to_string(number) + " of group " +
         group.label();
}

std::string evidence_line(const SeenCall& seen) {
  const WitnessCall& call = *seen.call;
  std::string line = place(*seen.witness, call.where) + ": rank " + std::to_string(call.rank) +
                     " called " + std::string(seen.text(call.op_text)) + " " +
                     std::to_string(call.number);
  if (call.in_shape.valid()) line += ", sizes " + std::string(seen.text(call.in_shape));
  if (call.out_shape.valid()) line += " -> " + std::string(seen.text(call.out_shape));
  if (call.in_dtype.valid()) line += ", " + std::string(seen.text(call.in_dtype));
  if (call.state != CallState::unknown) line += ", " + std::string(state_name(call.state));
  if (call.gave_up) line += " and given up";
  if (call.code.valid()) line += ", from " + std::string(seen.text(call.code));
  return printable(line + since_words(call.created_ns));
}

std::string evidence_line(const RankInGroup& rank, std::int64_t number) {
  if (rank.witness == nullptr) return {};
  if (const auto found = rank.calls.find(number); found != rank.calls.end())
    return evidence_line(found->second.front());
  if (rank.counter != nullptr) {
    return printable(place(*rank.witness, rank.counter->where) + ": rank " +
                     std::to_string(rank.counter->rank) + " last enqueued " +
                     std::to_string(rank.counter->enqueued) +
                     (rank.counter->completed == WitnessProgress::kNotSaid
                          ? std::string()
                          : ", last completed " + std::to_string(rank.counter->completed)));
  }
  const std::string last = rank.calls.empty()
                               ? "has no call of this group"
                               : "ends with call " + std::to_string(rank.calls.rbegin()->first);
  return printable(rank.witness->path + ": " + last);
}

std::vector<std::string> evidence_lines(const JointGroup& group,
                                        const std::vector<std::int64_t>& ranks,
                                        std::int64_t number) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> lines;
  for (const std::int64_t rank : ranks) {
    if (lines.size() == kMost) {
      lines.push_back("... and " + std::to_string(ranks.size() - kMost) + " more ranks");
      break;
    }
    const auto found = group.ranks.find(rank);
    if (found == group.ranks.end() || found->second.witness == nullptr) continue;
    lines.push_back(evidence_line(found->second, number));
  }
  return lines;
}

}  // namespace commlens
