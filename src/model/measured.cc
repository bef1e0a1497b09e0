#include "model/measured.h"

#include <algorithm>

namespace commlens {

std::string_view timed_by_name(TimedBy by) {
  switch (by) {
    case TimedBy::nothing: return "";
    case TimedBy::kernel_gpu: return "kernel_gpu";
    case TimedBy::kernel_cpu: return "kernel_cpu";
    case TimedBy::collective_cpu: return "collective_cpu";
    case TimedBy::unsaid: return "unsaid";
    case TimedBy::blocking_call: return "blocking_call";
    case TimedBy::test_loop: return "test_loop";
    case TimedBy::enqueue_loop: return "enqueue_loop";
  }
  return "";
}

std::uint32_t Measured::add_group(const MeasuredGroup& group) {
  // The last one is asked for again and again; there are few.
  const auto found = std::find(groups.rbegin(), groups.rend(), group);
  if (found != groups.rend()) return static_cast<std::uint32_t>(groups.rend() - found - 1);
  groups.push_back(group);
  return static_cast<std::uint32_t>(groups.size() - 1);
}

std::int64_t tests_bytes(Op op, std::int64_t message, std::int64_t size) {
  if (message < 0) return -1;
  switch (op) {
    case Op::all_reduce:
    case Op::broadcast:
    case Op::reduce:
    case Op::send:
    case Op::recv:
    case Op::send_recv: return message;
    case Op::all_gather:
    case Op::reduce_scatter: {
      std::int64_t total = 0;
      if (size <= 0 || __builtin_mul_overflow(message, size, &total)) return -1;
      return total;
    }
    default: return -1;
  }
}

}  // namespace commlens
