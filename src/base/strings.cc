#include "base/strings.h"

#include <xxhash.h>

namespace commlens {

StringId StringPool::intern(std::string_view text) {
  if ((texts_.size() + 1) * 2 > slots_.size()) grow();
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      texts_.emplace_back(text);
      hashes_.push_back(hash);
      bytes_ += text.size();
      slots_[slot] = static_cast<std::uint32_t>(texts_.size());
      return StringId::from(texts_.size() - 1);
    }
    const std::size_t id = slots_[slot] - 1;
    if (hashes_[id] == hash && texts_[id] == text) return StringId::from(id);
  }
}

void StringPool::grow() {
  std::vector<std::uint32_t> larger(slots_.empty() ? 256 : slots_.size() * 2, 0);
  const std::size_t mask = larger.size() - 1;
  for (std::size_t id = 0; id < hashes_.size(); ++id) {
    std::size_t slot = hashes_[id] & mask;
    while (larger[slot] != 0) slot = (slot + 1) & mask;
    larger[slot] = static_cast<std::uint32_t>(id + 1);
  }
  slots_ = std::move(larger);
}

}  // namespace commlens
