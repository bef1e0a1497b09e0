#include "ingest/kineto_names.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

// Backends whose ranges bear their name as a prefix.
constexpr std::array<std::string_view, 8> kBackends = {"nccl", "gloo", "mpi",  "ucc",
                                                       "xccl", "hccl", "rccl", "ccl"};

}  // namespace

std::optional<SyncKind> sync_record_kind(std::string_view name) {
  if (name == "Stream Wait Event") return SyncKind::stream_wait;
  if (name == "Stream Sync") return SyncKind::stream_sync;
  if (name == "Event Sync") return SyncKind::event_sync;
  if (name == "Context Sync") return SyncKind::device_sync;
  return std::nullopt;
}

std::string_view annotation_backend(std::string_view name) {
  const std::size_t colon = name.substr(0, 8).find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view prefix = name.substr(0, colon);
  return std::find(kBackends.begin(), kBackends.end(), prefix) == kBackends.end()
             ? std::string_view()
             : prefix;
}

}  // namespace commlens
