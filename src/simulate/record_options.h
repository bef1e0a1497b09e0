// What the recorder of a simulated job was told to record, and how new it is.
#pragma once

#include <cstdint>

namespace commlens::simulate {

// How a recorder numbers operations ("Seq").
enum class SeqKind : std::uint8_t {
  group,    // one counter for each group: equal on all members
  process,  // one counter for all of a process's operations, begun anywhere: some backends did that
  none,     // not at all, nor any identifier made from it
};

struct RecordOptions {
  bool sync_records = true;  // cuda_sync events (enable_cuda_sync_events); off in most real traces
  bool flows = true;         // ac2g arrows from launches to GPU activities
  bool launches = true;      // calls of the CUDA runtime
  bool kernel_seq = false;   // "Seq" and "Comms Id" on kernels too, as from torch 2.12 on
  bool hosts = true;         // all that tells who shares a host: its name, GPUs counted on it
  bool metadata = true;      // what each collective was: group, size, dtype; old PyTorch has none
  SeqKind seq = SeqKind::group;
};

}  // namespace commlens::simulate
