// A window that moves over a source: the bytes not yet used, and as many behind them as fit.
//
// One buffer is used again and again, because first touch of fresh memory costs more than reading.
// It grows only when one value does not fit, and only up to a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/source.h"

namespace commlens {

class Window {
 public:
  // `head`: the bytes that were last taken from the source (to tell the format by).
  Window(Source& source, std::string_view head);

  const char* begin() const { return buffer_.get() + begin_; }
  const char* end() const { return buffer_.get() + end_; }
  std::size_t size() const { return end_ - begin_; }
  // The bytes up to `at` are used.
  void use(const char* at) { begin_ = static_cast<std::size_t>(at - buffer_.get()); }
  // Brings more bytes behind the unused ones. False at the end of the source, or when the unused
  // bytes fill the largest window (`full()`).
  bool refill();
  bool full() const { return full_; }
  // Offset of `at` in the decompressed text.
  std::int64_t offset(const char* at) const { return consumed_ + (at - buffer_.get()); }

 private:
  void grow();

  Source& source_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t consumed_ = 0;  // bytes of the text that lie before the buffer
  bool full_ = false;
};

}  // namespace commlens
