#include "base/sink.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace commlens {
namespace {

// A device, a pipe or a socket has no name to be renamed over.
bool is_special(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

}  // namespace

Sink::Sink(const std::string& path) : path_(path) {
  if (path == "-") {
    file_ = stdout;
    return;
  }
  const bool in_place = is_special(path);
  if (!in_place) {
    temporary_ = path + ".tmp." + std::to_string(getpid());
    unfinished_.remember(temporary_);
  }
  file_ = std::fopen(in_place ? path.c_str() : temporary_.c_str(), "wb");
  if (file_ == nullptr) {
    throw Error(ErrorKind::usage, path + ": cannot be written: " + std::strerror(errno) +
                                      "; name another place with -o");
  }
}

Sink::~Sink() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);  // close() was not reached: leave nothing behind
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void Sink::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) {
    const int reason = errno;
    if (file_ == stdout && reason == EPIPE)
      throw Error(ErrorKind::internal, "standard output was closed by its reader");
    throw Error(ErrorKind::internal, path_ + ": writing failed: " + std::strerror(reason) +
                                         "; free some space or name another place with -o");
  }
  buffer_.clear();
}

void Sink::close() {
  if (file_ == nullptr) return;
  flush();
  if (file_ == stdout) {
    if (std::fflush(stdout) != 0)
      throw Error(ErrorKind::internal,
                  std::string("standard output: writing failed: ") + std::strerror(errno));
    return;
  }
  std::FILE* file = file_;
  file_ = nullptr;
  const bool closed = std::fclose(file) == 0;
  if (closed && (temporary_.empty() || std::rename(temporary_.c_str(), path_.c_str()) == 0)) return;
  const int reason = errno;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  throw Error(ErrorKind::internal, path_ + ": writing failed: " + std::strerror(reason) +
                                       "; free some space or name another place with -o");
}

}  // namespace commlens
