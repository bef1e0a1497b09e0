#include "base/packed.h"

#include <utility>

namespace commlens {

PackedWords& PackedWords::operator=(const PackedWords& other) {
  if (this == &other) return *this;
  clear();
  for (std::size_t i = 0; i < other.size(); ++i) push_back(other[i]);
  return *this;
}

void PackedWords::swap(PackedWords& other) noexcept {
  runs_.swap(other.runs_);
  chunks_.swap(other.chunks_);
  last_.swap(other.last_);
  std::swap(used_, other.used_);
  std::swap(size_, other.size_);
}

void PackedWords::begin_run() {
  if (last_) {
    runs_.back() = pack(*last_);
  } else {
    last_ = std::make_unique<Run>();
  }
  runs_.push_back({.data = reinterpret_cast<std::uint8_t*>(last_->data()), .width = kWidest});
}

std::uint8_t* PackedWords::room_for(std::size_t bytes) {
  if (used_ + bytes > kChunk) {
    chunks_.emplace_back(new std::uint8_t[kChunk + kBehind]);  // not zeroed
    used_ = 0;
  }
  std::uint8_t* const room = chunks_.back().get() + used_;
  used_ += bytes;
  return room;
}

PackedWords::Packing PackedWords::pack(const Run& words) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
#pragma GCC unroll 4
  for (const std::uint64_t word : words) {
    least = std::min(least, word - 1);  // 0 wraps round to the largest
    most = std::max(most, word);
  }
  static std::array<std::uint8_t, kWidest> nothing{};
  if (most == 0) return {.data = nothing.data()};
  const auto width = static_cast<std::size_t>(std::bit_width(most - least) + 7) / 8;
  std::uint8_t* const data = room_for(kRun * width);
  // Each write of 8 bytes is cut by the next; nothing lies behind the last yet.
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRun; ++i) {
    const std::uint64_t distance = words[i] == 0 ? 0 : words[i] - least;
    std::memcpy(data + i * width, &distance, sizeof distance);
  }
  return {.data = data, .base = least, .width = width};
}

void PackedWords::set(std::size_t i, std::uint64_t word) {
  Packing& run = runs_[i / kRun];
  const std::uint64_t distance = word == 0 ? 0 : word - run.base;
  if (word == 0 || (word > run.base && distance <= kMasks[run.width])) {
    if (run.width > 0) std::memcpy(run.data + i % kRun * run.width, &distance, run.width);
    return;
  }
  Run words;
  for (std::size_t k = 0; k < kRun; ++k) words[k] = (*this)[i - i % kRun + k];
  words[i % kRun] = word;
  run = pack(words);
}

}  // namespace commlens
