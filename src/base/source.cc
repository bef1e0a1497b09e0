#include "base/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/decoder.h"
#include "base/error.h"
#include "base/perf.h"

namespace commlens {
namespace {

struct PlainDecoder : Decoder {
  using Decoder::Decoder;
  std::size_t read(std::span<char> out) override {
    const std::size_t got = raw->read(out);
    if (got == 0) stop(SourceEnd::complete, {});
    return got;
  }
};

// Such as /dev/zero, of which no end is ever read. A terminal ends when its user says so.
bool is_endless(const struct stat& info, int file) {
  if (S_ISBLK(info.st_mode)) return true;
  if (!S_ISCHR(info.st_mode) || isatty(file) == 1) return false;
  struct stat null{};
  return stat("/dev/null", &null) != 0 || info.st_rdev != null.st_rdev;
}

}  // namespace

void Source::read_ahead() { decoder_ = make_ahead_decoder(std::move(decoder_)); }

Source::Source(std::string name) : name_(std::move(name)) {}
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;
Source::~Source() = default;

Source Source::open(const std::string& path) {
  const int file = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(ErrorKind::input, path + ": cannot be opened: " + std::strerror(errno));
  auto raw = std::make_unique<Raw>(file);
  const std::string name = path == "-" ? "standard input" : path;
  struct stat info{};
  if (fstat(file, &info) == 0) {
    if (S_ISDIR(info.st_mode)) throw Error(ErrorKind::input, name + ": is a folder, not a file");
    if (is_endless(info, file))
      throw Error(ErrorKind::input, name + ": is a device, not a file; name a recording");
  }
  Source source(name);
  if (S_ISREG(info.st_mode)) source.stored_bytes_ = info.st_size;
  source.decoder_ = std::make_unique<PlainDecoder>(std::move(raw));
  const bool named_file = S_ISREG(info.st_mode) && path != "-";
  source.plain_file_ = !source.choose_decoder() && named_file;
  return source;
}

Source Source::plain_from(const std::string& path, std::int64_t offset) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto raw = std::make_unique<Raw>(file);  // closes it
  if (file < 0 || lseek(file, offset, SEEK_SET) < 0) {
    throw Error(ErrorKind::input, path + ": cannot be opened again: " + std::strerror(errno));
  }
  Source source(path);
  source.position_ = offset;
  source.decoder_ = std::make_unique<PlainDecoder>(std::move(raw));
  return source;
}

Source Source::memory(std::string name, std::string_view bytes) {
  Source source(std::move(name));
  source.stored_bytes_ = static_cast<std::int64_t>(bytes.size());
  source.decoder_ = std::make_unique<PlainDecoder>(std::make_unique<Raw>(bytes));
  source.choose_decoder();
  return source;
}

bool Source::choose_decoder() {
  const std::string_view head = decoder_->raw->peek();
  const bool gzip = head.size() >= 2 && head.substr(0, 2) == "\x1F\x8B";
  // Parallel writers of zstd begin with a frame that is to be skipped: its first byte is 0x50 to
  // 0x5F.
  const bool skippable =
      head.size() == 4 && (head[0] & 0xF0) == 0x50 && head.substr(1) == "\x2A\x4D\x18";
  const bool zstd = skippable || head == std::string_view("\x28\xB5\x2F\xFD", 4);
  if (!gzip && !zstd) return false;
  decoder_ = gzip ? make_gzip_decoder(std::move(decoder_->raw))
                  : make_zstd_decoder(std::move(decoder_->raw));
  if (decoder_ != nullptr) return true;
  throw Error(ErrorKind::input, name_ + ": is " + (gzip ? "gzip" : "zstd") +
                                    ", which this build cannot read; unpack it first");
}

std::size_t Source::read(std::span<char> out) {
  if (end_ != SourceEnd::not_yet || out.empty()) return 0;
  std::size_t got = 0;
  {
    const PerfScope perf(Stage::fetch);
    got = decoder_->read(out);
  }
  count_perf_bytes(Stage::fetch, static_cast<std::int64_t>(got));
  position_ += static_cast<std::int64_t>(got);
  if (got == 0) {
    end_ = decoder_->end;
    trouble_ = decoder_->trouble;
  }
  return got;
}

}  // namespace commlens
