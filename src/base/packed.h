// A growing list of whole numbers in few bytes: neighbours differ by little.
//
// Problem: a recording of gigabytes holds millions of activities, each with two times, ids of 64
// bits and rows of small tables, most of whose bytes say what the row before said already.
// Method: runs of 128 values are kept as distances from the least of the run, each in as few bytes
// as the largest needs; "none" is distance 0, so that it costs nothing where it stands among
// others, and a run of nothing else takes no bytes at all. The last run, which still grows, is
// kept plain.
//
//   start 8,000,000 none 8,000,300 ...   base 7,999,999, a distance of 2 bytes: 1, 0, 301, ...
//
// Cost: a run is packed once, about a nanosecond a value; reading one is a mask and an addition
// more than reading from Blocks. Changing one is cheap where it fits its run, and else packs the
// run again in new bytes: to change most of them, make a new list.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/id.h"

namespace commlens {

static_assert(std::endian::native == std::endian::little, "packed runs are read as 64-bit words");

// A value as a word in the same order, in which 0 is the one that stands for "none": the least
// time, the largest 32-bit number or invalid id, the number 0 of an id of 64 bits or an enum.
template <class T>
struct PackedWord {
  static constexpr std::uint64_t from(T value) { return static_cast<std::uint64_t>(value); }
  static constexpr T to(std::uint64_t word) { return static_cast<T>(word); }
};
template <>
struct PackedWord<Ns> {
  static constexpr std::uint64_t kSign = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t from(Ns value) {
    return static_cast<std::uint64_t>(value) ^ kSign;
  }
  static constexpr Ns to(std::uint64_t word) { return static_cast<Ns>(word ^ kSign); }
};
template <>
struct PackedWord<std::uint32_t> {
  static constexpr std::uint64_t from(std::uint32_t value) { return value + 1; }
  static constexpr std::uint32_t to(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) - 1;
  }
};
template <class Tag>
struct PackedWord<Id<Tag>> {
  static constexpr std::uint64_t from(Id<Tag> id) {
    return PackedWord<std::uint32_t>::from(id.value);
  }
  static constexpr Id<Tag> to(std::uint64_t word) { return {PackedWord<std::uint32_t>::to(word)}; }
};

// Words, packed; Packed gives them their type.
class PackedWords {
 public:
  PackedWords() = default;
  PackedWords(const PackedWords& other) { *this = other; }
  PackedWords(PackedWords&& other) noexcept { swap(other); }
  PackedWords& operator=(const PackedWords& other);
  PackedWords& operator=(PackedWords&& other) noexcept {
    PackedWords gone;
    swap(gone);
    swap(other);
    return *this;
  }
  ~PackedWords() = default;

  std::size_t size() const { return size_; }
  void push_back(std::uint64_t word) {
    const std::size_t place = size_ % kRun;
    if (place == 0) begin_run();
    (*last_)[place] = word;
    ++size_;
  }
  std::uint64_t operator[](std::size_t i) const {
    const Packing& run = runs_[i / kRun];
    std::uint64_t word = 0;
    std::memcpy(&word, run.data + i % kRun * run.width, sizeof word);
    word &= kMasks[run.width];
    return word == 0 ? 0 : run.base + word;
  }
  void set(std::size_t i, std::uint64_t word);
  void clear() { *this = PackedWords(); }

 private:
  static constexpr std::size_t kRun = 128;
  // Bytes that are asked for at once: large enough for the allocator to give them back to the
  // system when they are let go. The last word of a run is read as 8 bytes.
  static constexpr std::size_t kChunk = std::size_t{1} << 17U;
  static constexpr std::size_t kBehind = sizeof(std::uint64_t);
  static constexpr std::size_t kWidest = sizeof(std::uint64_t);
  static constexpr std::array<std::uint64_t, 9> kMasks = [] {
    std::array<std::uint64_t, 9> masks{};
    for (std::size_t i = 1; i < masks.size(); ++i) masks[i] = masks[i - 1] << 8U | 0xFFU;
    return masks;
  }();
  using Run = std::array<std::uint64_t, kRun>;

  struct Packing {
    std::uint8_t* data = nullptr;
    std::uint64_t base = 0;   // added to all but 0
    std::uint64_t width = 0;  // bytes of a value
  };

  void begin_run();
  Packing pack(const Run& words);
  std::uint8_t* room_for(std::size_t bytes);
  void swap(PackedWords& other) noexcept;

  std::vector<Packing> runs_;
  std::vector<std::unique_ptr<std::uint8_t[]>> chunks_;
  std::size_t used_ = kChunk;  // bytes of the last chunk
  // The last run, as it grows: 8 bytes a value, above 0.
  std::unique_ptr<Run> last_;
  std::size_t size_ = 0;
};

template <class T>
class Packed {
 public:
  using value_type = T;

  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = T;

    Iterator() = default;
    Iterator(const Packed* owner, std::size_t at) : owner_(owner), at_(at) {}
    T operator*() const { return (*owner_)[at_]; }
    T operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      const Iterator before = *this;
      --*this;
      return before;
    }
    Iterator& operator+=(difference_type n) {
      at_ += static_cast<std::size_t>(n);
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    friend Iterator operator+(Iterator i, difference_type n) { return i += n; }
    friend Iterator operator+(difference_type n, Iterator i) { return i += n; }
    friend Iterator operator-(Iterator i, difference_type n) { return i += -n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

   private:
    const Packed* owner_ = nullptr;
    std::size_t at_ = 0;
  };

  void push_back(T value) { words_.push_back(PackedWord<T>::from(value)); }
  void assign(std::size_t size, T value) {
    clear();
    for (std::size_t i = 0; i < size; ++i) push_back(value);
  }
  void set(std::size_t i, T value) { words_.set(i, PackedWord<T>::from(value)); }
  void clear() { words_.clear(); }

  T operator[](std::size_t i) const { return PackedWord<T>::to(words_[i]); }
  T front() const { return (*this)[0]; }
  std::size_t size() const { return words_.size(); }
  bool empty() const { return size() == 0; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  friend bool operator==(const Packed& a, const Packed& b) { return std::ranges::equal(a, b); }
  friend bool operator==(const Packed& a, const std::vector<T>& b) {
    return std::ranges::equal(a, b);
  }

 private:
  PackedWords words_;
};

}  // namespace commlens
