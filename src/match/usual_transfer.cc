#include "match/usual_transfer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

namespace commlens {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr double kMoreBytes = 1.1;

Ns median(std::vector<Ns>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

UsualTransfer::UsualTransfer(const Job& job, const Waits& waits)
    : job_(job), waits_(waits), numbers_(job), op_of_(numbers_.size(), kNone) {
  std::map<Kind, std::vector<Ns>> transfers;
  for (std::uint32_t row = 0; row < job.matching.ops.size(); ++row) {
    const MatchedOp& op = job.matching.ops[row];
    Ns least = std::numeric_limits<Ns>::max();
    for (std::uint32_t i = 0; i < op.count; ++i) {
      const Part& part = job.matching.parts[op.first + i];
      op_of_[numbers_.of(part)] = row;
      if (op.pair && i == 0) continue;  // a sender may leave early
      const Wait& wait = waits.of[part.rank][part.device][part.op];
      least = std::min(least, comm_of(job, part).time.length() - wait.wait);
    }
    if (op.whole && op.agreed) transfers[kind_of(op)].push_back(least);
  }
  for (auto& [kind, times] : transfers) usual_[kind] = median(times);
}

UsualTransfer::Kind UsualTransfer::kind_of(const MatchedOp& op) const {
  std::int64_t bytes = 0;
  std::set<std::string_view> hosts;
  for (std::uint32_t i = 0; i < op.count; ++i) {
    const Part& part = job_.matching.parts[op.first + i];
    bytes = std::max(bytes, comm_of(job_, part).bytes.value_or(-1));
    hosts.insert(job_.ranks[part.rank].host);
  }
  // All-to-all of varying sizes: of about the same size.
  if (op.op == Op::all_to_all) {
    std::int64_t rounded = 1;
    while (rounded < bytes) rounded *= 2;
    bytes = rounded;
  }
  return {op.op, bytes, op.count, hosts.size()};
}

Ns UsualTransfer::beyond(const Part& part, Ns transfer) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  if (row == kNone) return 0;
  const auto usual = usual_.find(kind_of(job_.matching.ops[row]));
  if (usual == usual_.end()) return 0;
  const Ns whole =
      comm_of(job_, part).time.length() - waits_.of[part.rank][part.device][part.op].wait;
  if (whole <= usual->second) return 0;
  const double more = static_cast<double>(whole - usual->second) / static_cast<double>(whole);
  return static_cast<Ns>(more * static_cast<double>(transfer));
}

bool UsualTransfer::more_bytes(const Part& part) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  if (row == kNone) return false;
  const MatchedOp& op = job_.matching.ops[row];
  std::vector<Ns> sizes;
  for (std::uint32_t i = 0; i < op.count; ++i)
    sizes.push_back(comm_of(job_, job_.matching.parts[op.first + i]).bytes.value_or(0));
  const auto mine = static_cast<double>(comm_of(job_, part).bytes.value_or(0));
  return mine > kMoreBytes * static_cast<double>(median(sizes));
}

std::int32_t UsualTransfer::group_of(const Part& part) const {
  const std::uint32_t row = op_of_[numbers_.of(part)];
  return row == kNone ? -1 : job_.matching.ops[row].group;
}

}  // namespace commlens
