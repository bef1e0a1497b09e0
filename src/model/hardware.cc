// time = latency + bytes / rate, for each of NCCL's protocols, of which the fastest counts. The
// numbers are those of NCCL's tuning model (graph/tuning) for one host; the sum of a GPU's NVLinks
// is brought down to what NCCL's search over channels reaches.
#include "model/hardware.h"

#include <algorithm>
#include <array>

#include "model/bandwidth.h"

namespace commlens {
namespace {

// GB/s of 1e9 bytes, one direction.
struct GpuLinks {
  std::string_view name;   // part of what drivers call it
  double ring = 0;         // all channels of a ring together
  double low_latency = 0;  // the most that protocol LL reaches
};
constexpr std::array<GpuLinks, 5> kGpus{{{"V100", 120, 39},
                                         {"A100", 240, 87.7},
                                         {"H100", 360, 141},
                                         {"H200", 360, 141},
                                         {"B200", 720, 282}}};

struct Protocol {
  double base_us = 0;
  double hop_us = 0;  // over NVLink
};
constexpr Protocol kLowLatency{6.6, 0.6};
constexpr Protocol kLowLatency128{14.0, 1.9};
constexpr Protocol kSimple{8.4, 3.4};
constexpr double kLowLatency128Part = 0.92;

// Cards of these names come without NVLink, or with a bridge between two of them.
bool without_links(std::string_view name) {
  return name.find("PCI") != std::string_view::npos || name.find("NVL") != std::string_view::npos;
}

const GpuLinks* find_gpu(std::string_view name) {
  if (without_links(name)) return nullptr;
  const auto* const found = std::find_if(kGpus.begin(), kGpus.end(), [name](const GpuLinks& gpu) {
    return name.find(gpu.name) != std::string_view::npos;
  });
  return found == kGpus.end() ? nullptr : found;
}

// Steps of a ring, each of which is a hop.
std::optional<double> steps_of(Op op, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (op) {
    case Op::all_reduce: return 2 * (n - 1);
    case Op::all_gather:
    case Op::reduce_scatter: return n - 1;
    case Op::broadcast:
    case Op::reduce:
    case Op::all_to_all:
    case Op::send_recv: return 1;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<ModelledTransfer> modelled_transfer(std::string_view gpu_name, Op op,
                                                  std::int64_t ranks, std::int64_t bytes) {
  const GpuLinks* gpu = find_gpu(gpu_name);
  const auto steps = steps_of(op, ranks);
  const auto factor = bus_factor(op, static_cast<int>(ranks));
  if (gpu == nullptr || ranks < 2 || !steps || !factor || *factor <= 0) return std::nullopt;
  const auto time = [&](const Protocol& protocol, double bus) {
    return 1000 * (protocol.base_us + *steps * protocol.hop_us) +
           static_cast<double>(bytes) * *factor / bus;
  };
  const double best =
      std::min({time(kLowLatency, std::min(gpu->low_latency, gpu->ring / 2)),
                time(kLowLatency128, kLowLatency128Part * gpu->ring), time(kSimple, gpu->ring)});
  return ModelledTransfer{.ns = best, .algbw_gbs = gpu->ring / *factor};
}

}  // namespace commlens
