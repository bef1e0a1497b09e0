// Random numbers that are the same on every machine: integers only, no distribution of the standard
// library (their output differs between libraries) and no libm.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace commlens::simulate {

inline constexpr std::int64_t kMillion = 1'000'000;

// splitmix64: a counter behind a mixing function, so that nearby seeds give unrelated streams.
class Prng {
 public:
  explicit Prng(std::uint64_t seed) : state_(seed) {}
  // The stream of one purpose: adding a rank or a purpose leaves the numbers of all others as they
  // are.
  Prng(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index)
      : state_(mix(seed + mix(purpose + mix(index)))) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15ULL); }
  // 0 .. bound - 1, for bounds far below 2^64 (the bias is then beneath notice).
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }

  // About normal (the sum of 12 uniforms), standard deviation 65536, within +-6 of them.
  std::int64_t normal_q16() {
    std::int64_t sum = 0;
    for (int word = 0; word < 3; ++word) {
      std::uint64_t bits = next();
      for (int part = 0; part < 4; ++part, bits >>= 16U) {
        sum += static_cast<std::int64_t>(bits & 0xFFFFU);
      }
    }
    return sum - 6 * 65536;
  }

  // `mean` with a relative standard deviation of `ppm` millionths; never below a tenth of it.
  Ns jitter(Ns mean, std::int64_t ppm) {
    const Ns deviation = mean / 1000 * ppm / 1000 + mean % 1000 * ppm / kMillion;
    const Ns value = mean + deviation * normal_q16() / 65536;
    return value < mean / 10 ? mean / 10 : value;
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31U);
  }
  std::uint64_t state_;
};

}  // namespace commlens::simulate
