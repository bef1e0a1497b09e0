#include "base/decoder.h"

#ifdef COMMLENS_WITH_ZSTD
#include <zstd.h>
#endif

namespace commlens {

#ifdef COMMLENS_WITH_ZSTD
namespace {

struct ZstdDecoder : Unpacker {
  explicit ZstdDecoder(std::unique_ptr<Raw> stored)
      : Unpacker(std::move(stored)), window(ZSTD_DStreamInSize()), stream(ZSTD_createDStream()) {
    // A hostile header may ask for gigabytes of history; 128 MiB is what zstd itself allows without
    // being asked.
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 27);
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream); }

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

}  // namespace
#endif

std::unique_ptr<Decoder> make_zstd_decoder(std::unique_ptr<Raw> stored) {
#ifdef COMMLENS_WITH_ZSTD
  return std::make_unique<ZstdDecoder>(std::move(stored));
#else
  stored.reset();
  return nullptr;
#endif
}

}  // namespace commlens
