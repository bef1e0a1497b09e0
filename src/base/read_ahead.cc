#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/decoder.h"

namespace commlens {
namespace {

// Another decoder's text, decompressed by a thread of its own into a few buffers that go round.
struct AheadDecoder : Decoder {
  static constexpr std::size_t kBuffers = 4;
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  struct Buffer {
    std::unique_ptr<char[]> bytes{new char[kBytes]};
    std::size_t size = 0;  // 0: the text is at its end
  };

  explicit AheadDecoder(std::unique_ptr<Decoder> decoder)
      : Decoder(nullptr), inner(std::move(decoder)), worker([this] { fill(); }) {}
  ~AheadDecoder() override {
    {
      const std::lock_guard lock(guard);
      abandoned = true;
    }
    changed.notify_all();
    worker.join();
  }

  void fill() {
    for (std::size_t next = 0;; ++next) {
      {
        std::unique_lock lock(guard);
        changed.wait(lock, [&] { return abandoned || next - taken < kBuffers; });
        if (abandoned) return;
      }
      Buffer& buffer = buffers[next % kBuffers];
      buffer.size = fill_one(buffer);
      {
        const std::lock_guard lock(guard);
        filled = next + 1;
      }
      changed.notify_all();
      if (buffer.size == 0) return;
    }
  }

  // A full buffer where there is enough text: each one handed over costs a switch of threads.
  std::size_t fill_one(Buffer& buffer) {
    std::size_t have = 0;
    while (have < kBytes && !at_end) {
      const std::size_t got = inner->read({buffer.bytes.get() + have, kBytes - have});
      have += got;
      at_end = got == 0;
    }
    return have;
  }

  std::size_t read(std::span<char> out) override {
    if (used == available) {
      if (holding) release();
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return filled > taken; });
      holding = true;
      used = 0;
      available = buffers[taken % kBuffers].size;
    }
    if (available == 0) {
      // The worker is done: its decoder can be asked.
      end = inner->end;
      trouble = inner->trouble;
      return 0;
    }
    const std::size_t count = std::min(out.size(), available - used);
    std::memcpy(out.data(), buffers[taken % kBuffers].bytes.get() + used, count);
    used += count;
    return count;
  }

  void release() {
    {
      const std::lock_guard lock(guard);
      ++taken;
    }
    holding = false;
    changed.notify_all();
  }

  std::unique_ptr<Decoder> inner;
  bool at_end = false;  // nothing more comes from it
  std::array<Buffer, kBuffers> buffers;
  std::mutex guard;
  std::condition_variable changed;
  std::size_t filled = 0;  // buffers filled so far
  std::size_t taken = 0;   // buffers used up so far
  bool abandoned = false;
  bool holding = false;  // the reader is in buffer `taken`
  std::size_t used = 0;
  std::size_t available = 0;
  std::thread worker;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Decoder> make_ahead_decoder(std::unique_ptr<Decoder> inner) {
  return std::make_unique<AheadDecoder>(std::move(inner));
}

}  // namespace commlens
