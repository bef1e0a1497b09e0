//   "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "pg_count": 1,
//   "nccl_version": "2.21.5",
//     "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
//     "pg_size": 2,
//                    "ranks": [0, 1]}]},
//   "baseTimeNanoseconds": 1735632360000000000,
//   "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}],
//
// Any field may be missing; on-demand traces print "ranks" as text, cut after some elements.
// pg_config's list is complete where it is an array, which is why it is preferred to the one on the
// events.
#include "ingest/kineto_metadata.h"

#include <algorithm>

#include "ingest/kineto_values.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// 2^61 ns is the year 2043: with it, a base and a time add up within 64 bits.
constexpr Ns kLargestBase = Ns{1} << 61U;
constexpr std::size_t kLongestGpuName = 200;

std::string text(const Token& token) {
  return token.kind == TokenKind::string ? unescaped(token.text) : std::string();
}

void set(std::string& to, const std::string& said) {
  if (!said.empty()) to = said;
}

// What stands between a container's brackets, and no further.
Walker inside(const Token& container) {
  return Walker(container.text.data() + 1, container.text.data() + container.text.size());
}

ProcessGroup read_group(Walker& walker) {
  ProcessGroup group;
  std::string_view key;
  while (walker.next_key(key)) {
    const Token value = walker.value();
    if (key == "pg_name")
      group.name = value.kind == TokenKind::number ? std::string(value.text) : text(value);
    if (key == "pg_desc") group.description = text(value);
    if (key == "pg_size") group.size = std::max<std::int64_t>(0, number(value).value_or(0));
    if (key == "ranks") group.ranks = parse_rank_list(value.text);
  }
  return group;
}

void read_groups(const Token& array, Recording& about) {
  Walker walker = inside(array);
  while (walker.next_element()) {
    if (walker.enter_object()) about.groups.push_back(read_group(walker));
  }
}

void read_distributed_info(const Token& object, Recording& about, Notes& notes) {
  Walker walker = inside(object);
  std::string_view key;
  while (walker.next_key(key)) {
    const Token value = walker.value();
    if (key == "backend") set(about.backend, text(value));
    if (key == "nccl_version" && text(value) != "unknown") set(about.nccl_version, text(value));
    if (key == "pg_config" && value.kind == TokenKind::array) read_groups(value, about);
    if (key == "world_size") {
      const std::int64_t size = number(value).value_or(0);
      if (size > 0) about.world_size = std::min<std::int64_t>(size, kMostRanks);
    }
    if (key == "rank") {
      const auto rank = number(value);
      if (rank && *rank >= 0 && *rank < kMostRanks) about.rank = rank;
    }
  }
  if (walker.state() != Scan::ok) notes.add(Note::malformed_metadata, "distributedInfo");
}

// All devices that the process could see, whether it used them or not.
void read_devices(const Token& array, Recording& about) {
  Walker walker = inside(array);
  std::optional<std::string> name;
  while (walker.next_element()) {
    if (!walker.enter_object()) continue;
    std::string_view key;
    while (walker.next_key(key)) {
      const Token value = walker.value();
      if (key != "name") continue;
      if (name && *name != text(value)) return;  // of different kinds
      name = text(value);
    }
  }
  if (name) about.gpu_name = name->substr(0, kLongestGpuName);
}

}  // namespace

void read_kineto_metadata(std::string_view key, const Token& value, Recording& about,
                          Notes& notes) {
  if (key == "distributedInfo" && value.kind == TokenKind::object) {
    read_distributed_info(value, about, notes);
  } else if (key == "baseTimeNanoseconds") {
    const auto base = number(value);
    if (base && *base >= 0 && *base <= kLargestBase) {
      about.clock_base = *base;
      about.clock = ClockBase::epoch;
    } else {
      notes.add(Note::malformed_metadata, "baseTimeNanoseconds: " + std::string(value.text));
    }
  } else if (key == "deviceProperties" && value.kind == TokenKind::array) {
    read_devices(value, about);
  } else if (key == "host_name") {
    set(about.host, text(value));
  }
}

}  // namespace commlens
