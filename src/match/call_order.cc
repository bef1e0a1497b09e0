// Problem: a log writes a line for each call, from the start of the job; a profiler records some
// steps in its middle. Lines are lost where processes write over each other, and operations at the
// edges of the recording.
//
//   calls   A B B C  A B B C  A B . C  A B B C        the dot: a lost line
//   ops              B B C  A B B C  A
//
// Method: where a few operations in a row agree with calls is a place to start from. From there
// both are walked, forward and backward; where they part, the nearest place counts at which the
// next few agree again. The place with most pairs is taken. The alignment of match/alignment does
// not serve here: it compares the ends of operations, and a call line has no time. When it is
// wrong: two communicators with the same calls. So the caller asks for all of them.
#include "match/call_order.h"

#include <algorithm>

namespace commlens {
namespace {

constexpr std::size_t kInARow = 4;       // that must agree to start, or to go on behind a gap
constexpr std::size_t kMostLost = 8;     // operations or calls in one gap
constexpr std::size_t kMostPlaces = 64;  // to start from
constexpr std::int64_t kMostSteps = 20'000'000;  // of all walks together

class Walker {
 public:
  Walker(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls)
      : ops_(ops), calls_(calls) {}

  CallOrder run() {
    // In the middle and at the edges: one lost line must not hide all of them.
    const std::size_t last = ops_.size() - std::min(ops_.size(), kInARow);
    for (const std::size_t op : {std::size_t{0}, last / 3, 2 * last / 3, last}) {
      std::size_t places = 0;
      for (std::size_t call = 0; call < calls_.size() && places < kMostPlaces; ++call) {
        if (!agree(op, call, 1)) continue;
        ++places;
        try_from(op, call);
        if (best_.paired == ops_.size() || steps_ > kMostSteps) return std::move(best_);
      }
    }
    return std::move(best_);
  }

 private:
  // Whether the next few agree, in a direction (1 or -1); at an end of either fewer are enough.
  bool agree(std::size_t op, std::size_t call, std::ptrdiff_t way) {
    for (std::size_t i = 0; i < kInARow; ++i) {
      const auto step = way * static_cast<std::ptrdiff_t>(i);
      const std::size_t o = op + static_cast<std::size_t>(step);
      const std::size_t c = call + static_cast<std::size_t>(step);
      ++steps_;
      if (o >= ops_.size() || c >= calls_.size()) return i > 0;
      if (!fits(ops_[o], calls_[c])) return false;
    }
    return true;
  }

  void try_from(std::size_t op, std::size_t call) {
    CallOrder order{.call_of = std::vector<std::int32_t>(ops_.size(), -1), .paired = 0};
    walk(op, call, 1, order);
    if (op > 0 && call > 0) walk(op - 1, call - 1, -1, order);
    if (best_.call_of.empty() || order.paired > best_.paired) best_ = std::move(order);
  }

  // Positions below 0 wrap around to beyond the ends.
  void walk(std::size_t op, std::size_t call, std::ptrdiff_t way, CallOrder& order) {
    while (op < ops_.size() && call < calls_.size()) {
      if (!fits(ops_[op], calls_[call])) {
        const auto [lost_ops, lost_calls] = gap_at(op, call, way);
        op += static_cast<std::size_t>(way * static_cast<std::ptrdiff_t>(lost_ops));
        call += static_cast<std::size_t>(way * static_cast<std::ptrdiff_t>(lost_calls));
        continue;
      }
      ++steps_;
      order.call_of[op] = static_cast<std::int32_t>(call);
      ++order.paired;
      op += static_cast<std::size_t>(way);
      call += static_cast<std::size_t>(way);
    }
  }

  // How many of each to pass over: the fewest, behind which the two agree again; one of each where
  // there is no such place.
  std::pair<std::size_t, std::size_t> gap_at(std::size_t op, std::size_t call, std::ptrdiff_t way) {
    for (std::size_t lost = 1; lost <= kMostLost; ++lost) {
      for (std::size_t of_ops = 0; of_ops <= lost; ++of_ops) {
        const auto o = way * static_cast<std::ptrdiff_t>(of_ops);
        const auto c = way * static_cast<std::ptrdiff_t>(lost - of_ops);
        if (agree(op + static_cast<std::size_t>(o), call + static_cast<std::size_t>(c), way))
          return {of_ops, lost - of_ops};
      }
    }
    return {1, 1};
  }

  const std::vector<CommEvent>& ops_;
  const std::vector<CommEvent>& calls_;
  CallOrder best_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::size_t CallOrder::calls_between() const {
  std::int32_t first = -1;
  std::int32_t last = -1;
  for (const std::int32_t call : call_of) {
    if (call < 0) continue;
    first = first < 0 ? call : std::min(first, call);
    last = std::max(last, call);
  }
  return first < 0 ? 0 : static_cast<std::size_t>(last - first) + 1;
}

bool is_rival(const CallOrder& order, std::size_t best) {
  if (order.paired == 0) return false;
  if (4 * order.paired >= 3 * best) return true;
  return 2 * order.paired >= best && 10 * order.paired >= 9 * order.calls_between();
}

bool may_have_lost(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls,
                   const std::vector<std::int64_t>& lost_before) {
  std::vector<const CommEvent*> slots;  // null: a line that was lost
  for (std::size_t i = 0; i < calls.size() && i < lost_before.size(); ++i) {
    slots.insert(slots.end(), static_cast<std::size_t>(lost_before[i]), nullptr);
    slots.push_back(&calls[i]);
  }
  // Nothing shows how many were lost behind the last one.
  slots.insert(slots.end(), ops.size() / 2, nullptr);
  const std::size_t most_other = ops.size() / 10;
  std::int64_t steps = 0;
  for (std::size_t from = 0; from + ops.size() <= slots.size(); ++from) {
    std::size_t other = 0;
    std::size_t same = 0;
    for (std::size_t i = 0; i < ops.size() && other <= most_other; ++i) {
      if (slots[from + i] == nullptr) continue;
      ++(fits(ops[i], *slots[from + i]) ? same : other);
    }
    if (same > 0 && 10 * other <= same + other) return true;
    if ((steps += static_cast<std::int64_t>(same + other)) > kMostSteps) return true;
  }
  return false;
}

std::size_t longest_remains(const std::vector<CommEvent>& ops,
                            const std::vector<CommEvent>& calls) {
  std::size_t longest = 0;
  std::int64_t steps = 0;
  for (std::size_t from = 0; from + longest < calls.size() && steps < kMostSteps; ++from) {
    std::size_t call = from;
    for (const CommEvent& op : ops) {
      if (call == calls.size()) break;
      ++steps;
      if (fits(op, calls[call])) ++call;
    }
    longest = std::max(longest, call - from);
  }
  return longest;
}

CallOrder lay_beside(const std::vector<CommEvent>& ops, const std::vector<CommEvent>& calls) {
  CallOrder order;
  if (!ops.empty() && !calls.empty()) order = Walker(ops, calls).run();
  order.call_of.resize(ops.size(), -1);
  return order;
}

}  // namespace commlens
