// The walk with vectors of 64 bytes. Compiled for machines that have them, run only there.
#include <immintrin.h>

#include "ingest/json_skip.h"

namespace commlens {
namespace {

class Block {
 public:
  explicit Block(const char* at) : bytes_(_mm512_loadu_si512(at)) {}
  std::uint64_t equal(char c) const { return _mm512_cmpeq_epi8_mask(bytes_, _mm512_set1_epi8(c)); }
  std::uint64_t equal_with_bit5(char c) const {
    return _mm512_cmpeq_epi8_mask(_mm512_or_si512(bytes_, _mm512_set1_epi8(0x20)),
                                  _mm512_set1_epi8(c));
  }
  // A product without carries, by all ones.
  static std::uint64_t prefix_xor(std::uint64_t bits) {
    const __m128i factor = _mm_set_epi64x(0, static_cast<long long>(bits));
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_clmulepi64_si128(factor, _mm_set1_epi8(-1), 0)));
  }

 private:
  __m512i bytes_;
};

}  // namespace

Scan skip_container_avx512(ContainerSkip& skip, const char*& at, const char* end) {
  return skip_container<Block>(skip, at, end);
}

}  // namespace commlens
