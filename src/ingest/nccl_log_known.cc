// Lines of NCCL's that are known and hold nothing that is wanted. They are listed so that what is
// left can be counted as not understood.
#include <algorithm>
#include <array>

#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

// Beginnings of messages.
constexpr std::array<std::string_view, 86> kBeginnings = {"Trees [",
                                                          "Tree ",
                                                          "Ring ",
                                                          "Pattern ",
                                                          "threadThresholds",
                                                          "Connected ",
                                                          "CPU/",
                                                          "+ ",
                                                          "==",
                                                          "Setting affinity",
                                                          "ncclTopoGetCpuAffinity",
                                                          "P2P Chunksize",
                                                          "NVLS ",
                                                          "NET/Plugin",
                                                          "NET/OFI",
                                                          "TUNER/Plugin",
                                                          "PROFILER/Plugin",
                                                          "ENV/Plugin",
                                                          "GIN/Plugin",
                                                          "RMA/Plugin",
                                                          "Plugin Path",
                                                          "Assigned ",
                                                          "Initialized",
                                                          "Failed to initialize",
                                                          "Using non-device net plugin",
                                                          "Using ",
                                                          "DMA-BUF is available",
                                                          "RAS ",
                                                          "cudaDriverVersion",
                                                          "NCCL git version",
                                                          "HIP version",
                                                          "ROCm version",
                                                          "Hostname",
                                                          "Librccl path",
                                                          "Launch mode",
                                                          "NET/IB",
                                                          "NET/Socket",
                                                          "Could not find",
                                                          "CUDA Dev ",
                                                          "Cuda Host Alloc",
                                                          "MemManager",
                                                          "Mem Realloc",
                                                          "MMAP allocated",
                                                          "Allocated ",
                                                          "New proxy",
                                                          "proxyProgressAsync",
                                                          "ncclPollProxyResponse",
                                                          "resp.opId",
                                                          "Connected to proxy",
                                                          "Received and initiated",
                                                          "register comm",
                                                          "Comm config",
                                                          "CC Off",
                                                          "CC On",
                                                          "CUDA_DEV",
                                                          "GPU Direct RDMA",
                                                          "Symmetric ",
                                                          "KV Convert",
                                                          "Attribute ",
                                                          "## ",
                                                          "dlvsym failed",
                                                          "Topology detection",
                                                          "Loading topology",
                                                          "Could not enable P2P",
                                                          "P2P is disabled",
                                                          "NCCL call ",
                                                          "Channel ",
                                                          "Algorithm",
                                                          "Protocol",
                                                          "Max NThreads",
                                                          "Broadcast |",
                                                          "Reduce |",
                                                          "AllGather |",
                                                          "ReduceScatter |",
                                                          "AllReduce |",
                                                          "init.cc:",
                                                          "channel.cc:",
                                                          "misc/utils.cc:",
                                                          "MSCCL",
                                                          "Enabled NCCL",
                                                          "Successfully loaded",
                                                          "Registered ",
                                                          "Dynamic ",
                                                          "[Proxy",
                                                          "[Service",
                                                          "Kernel "};

// "16 coll channels, 0 nvls channels, ..."; " 0 : NET/0 GPU/1 NET/0"
bool is_counted(std::string_view message) {
  const std::size_t end = std::min(message.find_first_not_of("0123456789"), message.size());
  return end > 0 && (message.substr(end).starts_with(" coll channels") ||
                     message.substr(end).starts_with(" : "));
}

}  // namespace

Understood read_known(const LogRecord& record, LogBuilder&) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const std::string_view message = trimmed(record.message);
  if (message.empty() || is_counted(message)) return Understood::yes;
  const bool known = std::any_of(kBeginnings.begin(), kBeginnings.end(), [message](auto beginning) {
    return message.starts_with(beginning);
  });
  return known ? Understood::yes : Understood::no;
}

}  // namespace commlens
