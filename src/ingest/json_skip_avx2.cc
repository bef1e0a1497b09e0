// The walk with vectors of 32 bytes. Compiled for machines that have them, run only there.
#include <immintrin.h>

#include "ingest/json_skip.h"

namespace commlens {
namespace {

class Block {
 public:
  explicit Block(const char* at)
      : low_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))),
        high_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32))) {}
  std::uint64_t equal(char c) const { return gather(low_, high_, _mm256_set1_epi8(c)); }
  std::uint64_t equal_with_bit5(char c) const {
    const __m256i bit5 = _mm256_set1_epi8(0x20);
    return gather(_mm256_or_si256(low_, bit5), _mm256_or_si256(high_, bit5), _mm256_set1_epi8(c));
  }
  // A product without carries, by all ones.
  static std::uint64_t prefix_xor(std::uint64_t bits) {
    const __m128i factor = _mm_set_epi64x(0, static_cast<long long>(bits));
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_clmulepi64_si128(factor, _mm_set1_epi8(-1), 0)));
  }

 private:
  static std::uint64_t gather(__m256i low, __m256i high, __m256i wanted) {
    const auto bits = [wanted](__m256i part) {
      return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(part, wanted)));
    };
    return bits(low) | std::uint64_t{bits(high)} << 32U;
  }
  __m256i low_;
  __m256i high_;
};

}  // namespace

Scan skip_container_avx2(ContainerSkip& skip, const char*& at, const char* end) {
  return skip_container<Block>(skip, at, end);
}

}  // namespace commlens
