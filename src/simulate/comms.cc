#include "simulate/comms.h"

#include <algorithm>
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

bool may_hold_zero(const std::vector<std::int64_t>& rows) {
  const auto zeros = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), 0));
  return rows.size() > kMaxListed || (zeros > 0 && zeros < rows.size());
}

}  // namespace

int CommsRecord::rank_in_group() const {
  return index_in_group(group(), collective.point_to_point ? other_rank() : member.rank);
}

int CommsRecord::group_stride() const {
  return group().ranks.size() > 1 ? group().ranks[1] - group().ranks[0] : 1;
}

bool CommsRecord::may_have_zero_split() const {
  return may_hold_zero(rows_sent(collective, index)) ||
         may_hold_zero(rows_received(collective, index));
}

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
