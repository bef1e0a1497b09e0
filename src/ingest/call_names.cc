#include "ingest/call_names.h"

namespace commlens {

std::optional<SyncKind> blocking_kind(std::string_view name) {
  const auto says = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (says("Synchronize")) {
    if (says("Stream")) return SyncKind::stream_sync;
    return says("Event") ? SyncKind::event_sync : SyncKind::device_sync;
  }
  if (says("StreamWaitEvent")) return SyncKind::stream_wait;
  if (says("Memcpy") && !says("Async") && !says("Peer")) return SyncKind::blocking_copy;
  return std::nullopt;
}

}  // namespace commlens
