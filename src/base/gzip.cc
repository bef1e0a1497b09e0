#include "base/decoder.h"

#ifdef COMMLENS_WITH_ISAL
#include <isa-l/igzip_lib.h>
#elif defined(COMMLENS_WITH_ZLIB)
#include <zlib.h>

#include "base/error.h"
#endif

namespace commlens {

#ifdef COMMLENS_WITH_ISAL
namespace {

// gzip by ISA-L. A file may hold several members one after the other; each has its own header and
// checksum.
struct GzipDecoder : Unpacker {
  explicit GzipDecoder(std::unique_ptr<Raw> stored)
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

}  // namespace
#elif defined(COMMLENS_WITH_ZLIB)
namespace {

// gzip by zlib, where ISA-L is missing. A file may hold several members one after the other.
struct GzipDecoder : Unpacker {
  explicit GzipDecoder(std::unique_ptr<Raw> stored)
      : Unpacker(std::move(stored)), window(kCompressedWindow) {
    if (inflateInit2(&state, 15 + 16) != Z_OK)
      throw Error(ErrorKind::internal, "zlib could not be started");
  }
  ~GzipDecoder() override { inflateEnd(&state); }

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

}  // namespace
#endif

std::unique_ptr<Decoder> make_gzip_decoder(std::unique_ptr<Raw> stored) {
#if defined(COMMLENS_WITH_ISAL) || defined(COMMLENS_WITH_ZLIB)
  return std::make_unique<GzipDecoder>(std::move(stored));
#else
  stored.reset();
  return nullptr;
#endif
}

}  // namespace commlens
