// Bytes behind a pipe, in packets of chosen sizes, so that each read of a source ends where the
// test wants.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace commlens {

// Open `path()` once. `step()` is the size of the next packet, at most 4096; it is called from
// another thread. The bytes must outlive the pipe.
class SlowPipe {
 public:
  SlowPipe(std::string_view bytes, std::function<std::size_t()> step) {
    int ends[2];
    if (pipe2(ends, O_DIRECT | O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    path_ = "/dev/fd/" + std::to_string(ends[0]);
    read_end_ = ends[0];
    writer_ = std::thread([bytes, step = std::move(step), out = ends[1]] {
      // What a read does not take of a packet is lost: the first four bytes, which tell the
      // compression, come one by one.
      for (std::size_t at = 0; at < bytes.size();) {
        const std::string_view packet = bytes.substr(at, at < 4 ? 1 : step());
        if (write(out, packet.data(), packet.size()) < 0) break;
        at += packet.size();
      }
      ::close(out);
    });
  }
  SlowPipe(const SlowPipe&) = delete;
  SlowPipe& operator=(const SlowPipe&) = delete;
  ~SlowPipe() {
    char rest[4096];
    while (::read(read_end_, rest, sizeof rest) > 0) {
    }
    writer_.join();
    ::close(read_end_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int read_end_ = -1;
  std::thread writer_;
};

}  // namespace commlens
