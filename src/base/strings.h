// Each distinct text once, known by a small index.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace commlens {

// Owns its texts; ids are given in order of first sight. A linear-probing table of 32-bit ids
// beside the hashes, since a trace asks for the same few hundred kernel names a million times.
class StringPool {
 public:
  StringPool() = default;
  StringPool(const StringPool&) = default;
  StringPool& operator=(const StringPool&) = default;
  // The library's deque may allocate as it is moved and so does not promise this; without it, lists
  // of recordings would copy them as they grow.
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;
  ~StringPool() = default;

  StringId intern(std::string_view text);
  std::string_view get(StringId id) const {
    return id.valid() ? std::string_view(texts_[id.index()]) : std::string_view();
  }
  std::size_t size() const { return texts_.size(); }
  // Bytes of all texts together, to bound what a hostile input can make us keep.
  std::size_t bytes() const { return bytes_; }

 private:
  void grow();

  std::deque<std::string> texts_;
  std::vector<std::uint64_t> hashes_;  // by id
  std::vector<std::uint32_t> slots_;   // id + 1; 0 is free; a power of two of them
  std::size_t bytes_ = 0;
};

}  // namespace commlens
