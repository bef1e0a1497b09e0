// What orders the host behind the GPU, or one stream behind another.
#pragma once

#include <cstdint>

namespace commlens {

enum class SyncKind : std::uint8_t {
  stream_sync,    // the host waits for all earlier work of a stream
  device_sync,    // ... of all streams
  event_sync,     // ... for an event: for earlier work of the stream that it was recorded on
  blocking_copy,  // ... for the copy that the same call starts
  stream_wait,    // a stream waits for an event; the host goes on
};
inline constexpr int kSyncKindCount = static_cast<int>(SyncKind::stream_wait) + 1;

}  // namespace commlens
