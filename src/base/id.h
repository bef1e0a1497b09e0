// Typed indices and the unit of time, so that a stream cannot be passed where a name is wanted.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace commlens {

// A signed count of nanoseconds: an instant (since the epoch, or since a trace's own base) or a
// length.
using Ns = std::int64_t;

// A 32-bit index into one table. `none()` is the sentinel "there is no such row".
template <class Tag>
struct Id {
  std::uint32_t value = std::numeric_limits<std::uint32_t>::max();

  static constexpr Id none() { return Id{}; }
  static constexpr Id from(std::size_t index) { return Id{static_cast<std::uint32_t>(index)}; }
  constexpr bool valid() const { return value != std::numeric_limits<std::uint32_t>::max(); }
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StringId = Id<struct StringTag>;

}  // namespace commlens

template <class Tag>
struct std::hash<commlens::Id<Tag>> {
  std::size_t operator()(commlens::Id<Tag> id) const noexcept { return id.value; }
};
