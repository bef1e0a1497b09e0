// Where writers append their bytes: a string, a file or standard output.
//
// A timeline can be gigabytes, so writers never return strings. A file is written beside its final
// name and renamed by `close()`, so that a full disk or a crash leaves no half-written result under
// the name the user asked for.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/unfinished.h"

namespace commlens {

class Sink {
 public:
  // Collects into memory; read it with `text()`.
  Sink() = default;
  // Opens `path` for writing; "-" is standard output, and a device or pipe is written in place.
  // Throws Error(usage) when it cannot be opened: outputs are opened before the work starts.
  explicit Sink(const std::string& path);
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink();

  void append(std::string_view bytes) {
    buffer_.append(bytes);
    if (file_ != nullptr && buffer_.size() >= kFlushBytes) flush();
  }
  void append(char byte) { buffer_.push_back(byte); }

  // Writes everything and puts the file under its final name. Throws Error(internal) when the disk
  // is full.
  void close();
  const std::string& text() const { return buffer_; }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 16;
  void flush();

  std::string buffer_;
  std::FILE* file_ = nullptr;
  std::string path_;       // what the user named; empty for memory
  std::string temporary_;  // what is written until close(); empty when written in place
  Unfinished unfinished_;  // the same
};

}  // namespace commlens
