#include "match/usual_transfer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

namespace commlens {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr double kLargerTransfer = 1.1;

std::int64_t median(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

UsualTransfer::UsualTransfer(const Job& job, const CommNumbers& numbers, const Waits& waits)
    : job_(job), waits_(waits), numbers_(numbers), op_of_(numbers_.size(), kNone) {
  std::map<std::string_view, std::uint32_t> hosts;
  for (const RankTimeline& rank : job.ranks)
    host_of_.push_back(
        hosts.try_emplace(rank.host, static_cast<std::uint32_t>(hosts.size())).first->second);
  for (std::uint32_t row = 0; row < job.matching.ops.size(); ++row) {
    const MatchedOp& op = job.matching.ops[row];
    for (std::uint32_t i = 0; i < op.count; ++i)
      op_of_[numbers_.of(job.matching.parts[op.first + i])] = row;
  }
  find_kinds();
}

// The shortest transfer of its parts: a part that leaves late says nothing about the data. A sender
// may leave early.
Ns UsualTransfer::shortest(const MatchedOp& op) const {
  Ns least = std::numeric_limits<Ns>::max();
  for (std::uint32_t i = op.pair ? 1 : 0; i < op.count; ++i) {
    const Part& part = job_.matching.parts[op.first + i];
    const Wait& wait = waits_.of[part.rank][part.device][part.op];
    least = std::min(least, comm_of(job_, part).time.length() - wait.wait);
  }
  return least;
}

UsualTransfer::Kind UsualTransfer::kind_of(const MatchedOp& op, std::vector<std::int64_t>& bytes,
                                           std::vector<std::uint32_t>& hosts) const {
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Part& part = job_.matching.parts[op.first + i];
    bytes.push_back(comm_of(job_, part).bytes.value_or(-1));
    if (hosts.empty() || hosts.back() != host_of_[part.rank]) hosts.push_back(host_of_[part.rank]);
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  std::int64_t size = *std::max_element(bytes.begin(), bytes.end());
  // All-to-all of varying sizes: of about the same size.
  if (op.op == Op::all_to_all) {
    std::int64_t rounded = 1;
    while (rounded < size && rounded < std::numeric_limits<std::int64_t>::max() / 2) rounded *= 2;
    size = rounded;
  }
  return {op.op, size, op.count, hosts.size()};
}

void UsualTransfer::find_kinds() {
  std::map<Kind, std::pair<std::vector<std::uint32_t>, std::vector<Ns>>> kinds;  // rows, transfers
  std::vector<std::int64_t> bytes;
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t row = 0; row < job_.matching.ops.size(); ++row) {
    const MatchedOp& op = job_.matching.ops[row];
    bytes.clear();
    hosts.clear();
    auto& [rows, transfers] = kinds[kind_of(op, bytes, hosts)];
    rows.push_back(row);
    if (op.whole && op.agreed) transfers.push_back(shortest(op));
    median_bytes_.push_back(median(bytes));
  }
  usual_.assign(job_.matching.ops.size(), -1);
  for (auto& [kind, found] : kinds) {
    if (found.second.empty()) continue;
    const Ns usual = median(found.second);
    for (const std::uint32_t row : found.first) usual_[row] = usual;
  }
}

Ns UsualTransfer::beyond(const Part& part, Ns transfer) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  if (row == kNone || usual_[row] < 0) return 0;
  const Ns whole =
      comm_of(job_, part).time.length() - waits_.of[part.rank][part.device][part.op].wait;
  if (whole <= usual_[row]) return 0;
  const double more = static_cast<double>(whole - usual_[row]) / static_cast<double>(whole);
  return static_cast<Ns>(more * static_cast<double>(transfer));
}

bool UsualTransfer::more_bytes(const Part& part) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  if (row == kNone) return false;
  const auto mine = static_cast<double>(comm_of(job_, part).bytes.value_or(0));
  const auto usual = static_cast<double>(std::max<std::int64_t>(0, median_bytes_[row]));
  return mine > kLargerTransfer * usual;
}

std::int32_t UsualTransfer::group_of(const Part& part) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  return row == kNone ? -1 : job_.matching.ops[row].group;
}

}  // namespace commlens
