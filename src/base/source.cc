#include "base/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef COMMLENS_WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#ifdef COMMLENS_WITH_ZLIB
#include <zlib.h>
#endif
#ifdef COMMLENS_WITH_ZSTD
#include <zstd.h>
#endif

#include "base/error.h"
#include "base/perf.h"

namespace commlens {
namespace {

constexpr std::size_t kCompressedWindow = std::size_t{256} << 10U;

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

}  // namespace

struct Source::Decoder {
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

struct Source::Plain : Source::Decoder {
  using Decoder::Decoder;
  std::size_t read(std::span<char> out) override {
    const std::size_t got = raw->read(out);
    if (got == 0) stop(SourceEnd::complete, {});
    return got;
  }
};

// A decompressor that is always asked for as much at a time: how much is saved before a fault then
// never depends on how much the reader asks for.
struct Source::Unpacker : Source::Decoder {
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

#ifdef COMMLENS_WITH_ISAL
// gzip by ISA-L. A file may hold several members one after the other; each has its own header and
// checksum.
struct Source::Gzip : Source::Unpacker {
  explicit Gzip(std::unique_ptr<Raw> stored)
      : Unpacker(std::move(stored)), window(kCompressedWindow) {
    start_member();
  }

  void start_member() {
    isal_inflate_init(&state);
    state.crc_flag = ISAL_GZIP;
    in_member = false;
  }

  bool refill() {
    const std::size_t got = raw->read(window);
    input = reinterpret_cast<std::uint8_t*>(window.data());
    available = static_cast<std::uint32_t>(got);
    return got > 0;
  }

  std::size_t unpack(std::span<char> out) override {
    for (;;) {
      if (available == 0 && !output_waits && !refill()) {
        // Some writers pad a file with zero bytes; between members the end is a clean one.
        stop(in_member || !any_member ? SourceEnd::truncated : SourceEnd::complete,
             in_member || !any_member ? "the gzip stream stops in the middle" : "");
        return 0;
      }
      if (!in_member && !begin_member()) return 0;
      if (!in_member) continue;  // only padding was left in the window
      const std::size_t produced = inflate(out);
      if (produced > 0 || end != SourceEnd::not_yet) return produced;
    }
  }

  // At a member's first byte. False when what follows is no gzip member.
  bool begin_member() {
    while (any_member && available > 0 && *input == 0) {
      ++input;
      --available;
    }
    if (available == 0) return true;
    if (any_member && *input != 0x1F) {
      stop(SourceEnd::corrupt, "bytes that are not gzip follow the gzip stream");
      return false;
    }
    in_member = true;
    return true;
  }

  std::size_t inflate(std::span<char> out) {
    state.next_in = input;
    state.avail_in = available;
    state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    state.avail_out = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), 1U << 30U));
    const std::uint32_t room = state.avail_out;
    const int result = isal_inflate(&state);
    input = state.next_in;
    available = state.avail_in;
    const std::size_t produced = room - state.avail_out;
    output_waits = state.avail_out == 0;
    if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT) {
      stop(SourceEnd::corrupt, "the gzip stream is damaged");
    } else if (state.block_state == ISAL_BLOCK_FINISH) {
      any_member = true;
      output_waits = false;
      start_member();  // forgets how much room was left
    }
    return produced;
  }

  std::vector<char> window;
  inflate_state state{};
  std::uint8_t* input = nullptr;
  std::uint32_t available = 0;
  bool in_member = false;
  bool any_member = false;    // one member was read whole
  bool output_waits = false;  // the output was filled: more may come without new input
};
#elif defined(COMMLENS_WITH_ZLIB)
// gzip by zlib, where ISA-L is missing. A file may hold several members one after the other.
struct Source::Gzip : Source::Unpacker {
  explicit Gzip(std::unique_ptr<Raw> stored)
      : Unpacker(std::move(stored)), window(kCompressedWindow) {
    if (inflateInit2(&state, 15 + 16) != Z_OK)
      throw Error(ErrorKind::internal, "zlib could not be started");
  }
  ~Gzip() override { inflateEnd(&state); }

  bool refill() {
    const std::size_t got = raw->read(window);
    state.next_in = reinterpret_cast<Bytef*>(window.data());
    state.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::size_t unpack(std::span<char> out) override {
    for (;;) {
      if (state.avail_in == 0 && !output_waits && !refill()) {
        stop(in_member || !any_member ? SourceEnd::truncated : SourceEnd::complete,
             in_member || !any_member ? "the gzip stream stops in the middle" : "");
        return 0;
      }
      if (!in_member && !begin_member()) return 0;
      if (!in_member) continue;
      const std::size_t produced = step(out);
      if (produced > 0 || end != SourceEnd::not_yet) return produced;
    }
  }

  bool begin_member() {
    while (any_member && state.avail_in > 0 && *state.next_in == 0) {
      ++state.next_in;
      --state.avail_in;
    }
    if (state.avail_in == 0) return true;
    if (any_member && *state.next_in != 0x1F) {
      stop(SourceEnd::corrupt, "bytes that are not gzip follow the gzip stream");
      return false;
    }
    in_member = true;
    return true;
  }

  std::size_t step(std::span<char> out) {
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30U));
    const uInt room = state.avail_out;
    const int result = inflate(&state, Z_NO_FLUSH);
    output_waits = state.avail_out == 0 && result != Z_STREAM_END;
    if (result == Z_STREAM_END) {
      any_member = true;
      in_member = false;
      inflateReset(&state);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      stop(SourceEnd::corrupt, "the gzip stream is damaged");
    }
    return room - state.avail_out;
  }

  std::vector<char> window;
  z_stream state{};
  bool in_member = false;
  bool any_member = false;
  bool output_waits = false;  // the output was filled: more may come without new input
};
#endif

#ifdef COMMLENS_WITH_ZSTD
struct Source::Zstd : Source::Unpacker {
  explicit Zstd(std::unique_ptr<Raw> stored)
      : Unpacker(std::move(stored)), window(ZSTD_DStreamInSize()), stream(ZSTD_createDStream()) {
    // A hostile header may ask for gigabytes of history; 128 MiB is what zstd itself allows without
    // being asked.
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 27);
  }
  ~Zstd() override { ZSTD_freeDStream(stream); }

  std::size_t unpack(std::span<char> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      if (input.pos == input.size && !flush_pending) {
        input = {window.data(), raw->read(window), 0};
        if (input.size == 0) {
          stop(in_frame || !any_frame ? SourceEnd::truncated : SourceEnd::complete,
               in_frame || !any_frame ? "the zstd stream stops in the middle" : "");
          return 0;
        }
      }
      const std::size_t result = ZSTD_decompressStream(stream, &to, &input);
      if (ZSTD_isError(result) != 0) {
        stop(SourceEnd::corrupt,
             std::string("the zstd stream is damaged (") + ZSTD_getErrorName(result) + ")");
        return to.pos;
      }
      in_frame = result != 0;
      any_frame = any_frame || result == 0;
      flush_pending = to.pos == to.size && in_frame;
    }
    return to.pos;
  }

  std::vector<char> window;
  ZSTD_DStream* stream;
  ZSTD_inBuffer input{nullptr, 0, 0};
  bool in_frame = false;
  bool any_frame = false;
  bool flush_pending = false;  // the output was too small: call again without new input
};
#endif

// Another decoder's text, decompressed by a thread of its own into a few buffers that go round.
struct Source::Ahead : Source::Decoder {
  static constexpr std::size_t kBuffers = 4;
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  struct Buffer {
    std::unique_ptr<char[]> bytes{new char[kBytes]};
    std::size_t size = 0;  // 0: the text is at its end
  };

  explicit Ahead(std::unique_ptr<Decoder> decoder)
      : Decoder(nullptr), inner(std::move(decoder)), worker([this] { fill(); }) {}
  ~Ahead() override {
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

void Source::read_ahead() { decoder_ = std::make_unique<Ahead>(std::move(decoder_)); }

Source::Source(std::string name) : name_(std::move(name)) {}
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;
Source::~Source() = default;

Source Source::open(const std::string& path) {
  const int file = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(ErrorKind::input, path + ": cannot be opened: " + std::strerror(errno));
  auto raw = std::make_unique<Raw>(file);
  struct stat info{};
  if (fstat(file, &info) == 0) {
    if (S_ISDIR(info.st_mode)) throw Error(ErrorKind::input, path + ": is a folder, not a file");
  }
  Source source(path == "-" ? "standard input" : path);
  if (S_ISREG(info.st_mode)) source.stored_bytes_ = info.st_size;
  source.decoder_ = std::make_unique<Plain>(std::move(raw));
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
  source.decoder_ = std::make_unique<Plain>(std::move(raw));
  return source;
}

Source Source::memory(std::string name, std::string_view bytes) {
  Source source(std::move(name));
  source.stored_bytes_ = static_cast<std::int64_t>(bytes.size());
  source.decoder_ = std::make_unique<Plain>(std::make_unique<Raw>(bytes));
  source.choose_decoder();
  return source;
}

bool Source::choose_decoder() {
  const std::string_view head = decoder_->raw->peek();
  if (head.size() >= 2 && head.substr(0, 2) == "\x1F\x8B") {
#if defined(COMMLENS_WITH_ISAL) || defined(COMMLENS_WITH_ZLIB)
    decoder_ = std::make_unique<Gzip>(std::move(decoder_->raw));
    return true;
#else
    throw Error(ErrorKind::input,
                name_ + ": is gzip, which this build cannot read; unpack it first");
#endif
  }
  // Parallel writers begin with a frame that is to be skipped: its first byte is 0x50 to 0x5F.
  const bool skippable =
      head.size() == 4 && (head[0] & 0xF0) == 0x50 && head.substr(1) == "\x2A\x4D\x18";
  if (skippable || head == std::string_view("\x28\xB5\x2F\xFD", 4)) {
#ifdef COMMLENS_WITH_ZSTD
    decoder_ = std::make_unique<Zstd>(std::move(decoder_->raw));
    return true;
#else
    throw Error(ErrorKind::input,
                name_ + ": is zstd, which this build cannot read; unpack it first");
#endif
  }
  return false;
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
