#include "simulate/comms.h"

#include <vector>

namespace commlens::simulate {
namespace {

constexpr std::size_t kMaxListed = 30;  // elements of a list that Kineto prints

template <class Number>
std::string list_text(const std::vector<Number>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size() && i < kMaxListed; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kMaxListed ? ", ...]" : "]");
}

}  // namespace

std::string CommsRecord::ranks_text() const { return list_text(group().ranks); }

std::string CommsRecord::in_splits() const { return list_text(rows_sent(collective, index)); }

std::string CommsRecord::out_splits() const { return list_text(rows_received(collective, index)); }

std::uint64_t CommsRecord::comms_id() const {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x100000001B3ULL ^ (hash >> 29U);
  };
  mix(static_cast<std::uint64_t>(collective.group));
  mix(static_cast<std::uint64_t>(seq));
  mix(collective.point_to_point ? 1 : 0);
  mix(static_cast<std::uint64_t>(group().ranks.front()));
  mix(group().ranks.size());
  return hash * 0x9E3779B97F4A7C15ULL;
}

}  // namespace commlens::simulate
