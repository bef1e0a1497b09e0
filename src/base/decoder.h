// What source.cc puts together: stored bytes, and the decoders that make text of them. For base/
// only.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/source.h"

namespace commlens {

// How much is read of a compressed file at once.
inline constexpr std::size_t kCompressedWindow = std::size_t{256} << 10U;

// The bytes as they are stored: a file descriptor or memory.
class Raw {
 public:
  explicit Raw(int file) : file_(file) {}
  explicit Raw(std::string_view bytes) : memory_(bytes) {}
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  ~Raw() {
    if (file_ > STDIN_FILENO) ::close(file_);
  }

  // 0 at the end or on failure; `error()` tells which.
  std::size_t read(std::span<char> out) {
    if (!pushed_back_.empty()) return take(pushed_back_, out);
    if (file_ < 0) return take(memory_, out);
    for (;;) {
      const ssize_t got = ::read(file_, out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) {
        error_ = errno;
        return 0;
      }
    }
  }

  // The first bytes, to tell the compression by; they are delivered again by `read`.
  std::string_view peek() {
    head_.resize(4);
    std::size_t have = 0;
    while (have < head_.size()) {
      const std::size_t got = read({head_.data() + have, head_.size() - have});
      if (got == 0) break;
      have += got;
    }
    head_.resize(have);
    pushed_back_ = head_;
    return head_;
  }

  int error() const { return error_; }

 private:
  static std::size_t take(std::string_view& from, std::span<char> out) {
    const std::size_t count = std::min(from.size(), out.size());
    std::memcpy(out.data(), from.data(), count);
    from.remove_prefix(count);
    return count;
  }

  int file_ = -1;
  std::string_view memory_;
  std::string head_;
  std::string_view pushed_back_;
  int error_ = 0;
};

struct Decoder {
  explicit Decoder(std::unique_ptr<Raw> stored) : raw(std::move(stored)) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;
  // Up to out.size() bytes; 0 when nothing more comes, and then `end` is set.
  virtual std::size_t read(std::span<char> out) = 0;

  // No more stored bytes: the end of the file, or the disk's or network's failure.
  void stop(SourceEnd reason, std::string why) {
    end = raw->error() != 0 ? SourceEnd::failed : reason;
    trouble = raw->error() != 0 ? std::string("reading failed: ") + std::strerror(raw->error())
                                : std::move(why);
  }

  std::unique_ptr<Raw> raw;
  SourceEnd end = SourceEnd::not_yet;
  std::string trouble;
};

// A decompressor that is always asked for as much at a time: how much is saved before a fault then
// never depends on how much the reader asks for.
struct Unpacker : Decoder {
  static constexpr std::size_t kStep = std::size_t{128} << 10U;
  using Decoder::Decoder;
  // Into `kStep` bytes; 0 when nothing more comes, and then `end` is set. It may be set before.
  virtual std::size_t unpack(std::span<char> out) = 0;

  std::size_t read(std::span<char> out) override {
    if (rest.empty()) {
      if (end != SourceEnd::not_yet) return 0;
      if (out.size() >= kStep) return unpack(out.first(kStep));
      if (!step) step.reset(new char[kStep]);
      rest = {step.get(), unpack({step.get(), kStep})};
    }
    const std::size_t count = std::min(rest.size(), out.size());
    std::memcpy(out.data(), rest.data(), count);
    rest.remove_prefix(count);
    return count;
  }

  std::unique_ptr<char[]> step;  // for readers that ask for less
  std::string_view rest;         // of it, still to be delivered
};

// Each takes over what it reads from. Null where this build lacks the library.
std::unique_ptr<Decoder> make_gzip_decoder(std::unique_ptr<Raw> stored);
std::unique_ptr<Decoder> make_zstd_decoder(std::unique_ptr<Raw> stored);
// Decompresses in a thread of its own, a little ahead of the reader.
std::unique_ptr<Decoder> make_ahead_decoder(std::unique_ptr<Decoder> inner);

}  // namespace commlens
