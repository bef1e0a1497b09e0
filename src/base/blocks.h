// A growing list of plain values in blocks: nothing is copied or left over when it grows.
//
// A std::vector holds its old and its new memory while it doubles, and half of the new stays
// unused: three times the bytes of a list of millions at the worst moment. Blocks cost one more
// step a look-up.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <vector>

namespace commlens {

template <class T>
class Blocks {
  static_assert(std::is_trivially_copyable_v<T>);
  // 128 KiB a block: large enough for the allocator to give it back to the system when it is let
  // go.
  static constexpr std::size_t kBits = 17 - static_cast<std::size_t>(std::bit_width(sizeof(T)) - 1);
  static constexpr std::size_t kBlock = std::size_t{1} << kBits;

 public:
  using value_type = T;

  template <class Owner, class Reference>
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = std::remove_reference_t<Reference>*;
    using reference = Reference;

    Iterator() = default;
    Iterator(Owner* owner, std::size_t at) : owner_(owner), at_(at) {}
    reference operator*() const { return (*owner_)[at_]; }
    reference operator[](difference_type n) const { return *(*this + n); }
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
    Owner* owner_ = nullptr;
    std::size_t at_ = 0;
  };
  using iterator = Iterator<Blocks, T&>;
  using const_iterator = Iterator<const Blocks, const T&>;

  Blocks() = default;
  Blocks(const Blocks& other) {
    for (const T& value : other) push_back(value);
  }
  Blocks(Blocks&& other) noexcept : blocks_(std::move(other.blocks_)), size_(other.size_) {
    other.size_ = 0;
  }
  Blocks& operator=(Blocks other) noexcept {
    blocks_ = std::move(other.blocks_);
    size_ = other.size_;
    other.size_ = 0;
    return *this;
  }
  ~Blocks() = default;

  void push_back(T value) {
    if (size_ == blocks_.size() * kBlock) blocks_.emplace_back(new T[kBlock]);  // not zeroed
    blocks_[size_ >> kBits][size_ & (kBlock - 1)] = value;
    ++size_;
  }
  void append(const Blocks& other) {
    for (const T& value : other) push_back(value);
  }
  // Only to fewer.
  void shrink(std::size_t size) {
    size_ = size;
    blocks_.resize((size + kBlock - 1) >> kBits);
  }
  void clear() { shrink(0); }

  T& operator[](std::size_t i) { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  const T& operator[](std::size_t i) const { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  const T& front() const { return (*this)[0]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size_}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }

  friend bool operator==(const Blocks& a, const Blocks& b) { return equal(a, b); }
  friend bool operator==(const Blocks& a, const std::vector<T>& b) { return equal(a, b); }

 private:
  template <class A, class B>
  static bool equal(const A& a, const B& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace commlens
