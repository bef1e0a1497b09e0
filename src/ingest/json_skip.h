// The walk over what is left of a container, 64 bytes at a time, for vectors of any width.
//
//   text       {"name": "a{b", "dims": [1, 2]}, {
//   quotes      |    |  |   |  |    |
//   in string   11111   1111   11111
//   opening                            1
//   closing                                 11   the second brings the depth to 0: the end
//
// A `Block` is 64 bytes that can be asked which of them are of one kind: bit i answers for byte i.
// Each width of vectors brings its own (json_scan.cc, json_skip_avx2.cc, ...); what is made of
// the answers is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace commlens {

enum class Scan : std::uint8_t {
  ok,
  need_more,  // the text ends before the value does
  bad,        // this is not JSON
};

// How far the walk has come.
struct ContainerSkip {
  std::int64_t depth = 1;       // brackets that are open
  std::int64_t deepest = 0;     // of all ends of blocks
  std::uint64_t in_string = 0;  // all ones inside a string
  bool escape = false;          // the piece before ended in a backslash that escapes
};

// Goes on at `at`; leaves it behind the bracket that closes the last open one (ok), at `end`
// (need_more) or at the line break inside a string (bad). kScanPadding bytes behind `end` are read.
using SkipContainer = Scan (*)(ContainerSkip& skip, const char*& at, const char* end);

// All that this machine can run, the widest first.
std::vector<SkipContainer> usable_skip_containers();

// By vectors of 32 and 64 bytes; only for machines that have them.
Scan skip_container_avx2(ContainerSkip& skip, const char*& at, const char* end);
Scan skip_container_avx512(ContainerSkip& skip, const char*& at, const char* end);

// The bytes that a backslash before them escapes. `carry` says whether the block's first byte is
// escaped, and on return whether the byte behind the `length` bytes is.
std::uint64_t escaped_bytes(std::uint64_t backslashes, bool& carry, unsigned length);

// No inline functions of others here: a file that is compiled for wide vectors must not leave
// copies of them that other files run. Each `Block` is local to its file, and so is what is made of
// this.
template <class Block>
Scan skip_container(ContainerSkip& state, const char*& at, const char* end) {
  const auto bits_below = [](unsigned count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  };
  ContainerSkip skip = state;  // in registers
  const auto stop = [&](Scan scan, unsigned behind) {
    state = skip;
    at += behind;
    return scan;
  };
  while (at < end) {
    const Block block(at);
    const unsigned length = end - at >= 64 ? 64 : static_cast<unsigned>(end - at);
    const std::uint64_t valid = bits_below(length);
    std::uint64_t quotes = block.equal('"') & valid;
    const std::uint64_t backslashes = block.equal('\\') & valid;
    if ((backslashes | static_cast<std::uint64_t>(skip.escape)) != 0)
      quotes &= ~escaped_bytes(backslashes, skip.escape, length);
    // Bit i is the parity of the quotes up to there.
    const std::uint64_t in_string = Block::prefix_xor(quotes) ^ skip.in_string;
    const std::uint64_t broken = block.equal('\n') & in_string & valid;
    // Nothing behind a line break inside a string can be trusted.
    const std::uint64_t trusted = ~in_string & (broken == 0 ? valid : (broken & (0 - broken)) - 1);
    // Brackets and braces differ in one bit: 0x5B '[' and 0x7B '{', 0x5D ']' and 0x7D '}'.
    const std::uint64_t opening = block.equal_with_bit5('{') & trusted;
    const std::uint64_t closing = block.equal_with_bit5('}') & trusted;
    const std::int64_t closings = __builtin_popcountll(closing);
    if (closings >= skip.depth) {
      std::int64_t depth = skip.depth;
      for (std::uint64_t rest = closing; rest != 0; rest &= rest - 1) {
        const auto i = static_cast<unsigned>(__builtin_ctzll(rest));
        --depth;
        if (depth + __builtin_popcountll(opening & bits_below(i)) == 0)
          return stop(Scan::ok, i + 1);
      }
    }
    if (broken != 0) return stop(Scan::bad, static_cast<unsigned>(__builtin_ctzll(broken)));
    skip.depth += __builtin_popcountll(opening) - closings;
    if (skip.depth > skip.deepest) skip.deepest = skip.depth;
    skip.in_string = (in_string >> (length - 1) & 1) != 0 ? ~std::uint64_t{0} : 0;
    at += length;
  }
  return stop(Scan::need_more, 0);
}

}  // namespace commlens
