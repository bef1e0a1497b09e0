// The "args" of an event: those that are read, by name.
#pragma once

#include <array>
#include <cstdint>

#include "ingest/json_scan.h"
#include "ingest/key_habit.h"

namespace commlens {

enum class Arg : std::uint8_t {
  device,
  in_device,
  context,
  in_context,
  stream,
  correlation,
  external_id,
  collective,
  dtype,
  in_elements,
  out_elements,
  group_size,
  group_name,
  group_description,
  group_ranks,
  group_start,
  group_stride,
  in_split,
  out_split,
  seq,
  comms_id,
  rank,
  source,
  destination,
  wait_on_stream,
  record_correlation,
  none,  // not one that is read
};

class KinetoArguments {
 public:
  // Kinds of events whose arguments come in an order of their own.
  static constexpr std::size_t kKinds = 16;

  // The value as it stands in the text; kind none where it is missing.
  const Token& operator[](Arg arg) const {
    return has(arg) ? tokens_[static_cast<std::size_t>(arg)] : kMissing;
  }
  bool has(Arg arg) const { return (said_ & bit(arg)) != 0; }
  void clear() {
    duplicates_ = 0;
    said_ = 0;
  }
  // How many of the last object's keys stood there twice.
  int duplicates() const { return duplicates_; }
  // Reads the members of an object; the last of equal keys counts. `kind` < kKinds.
  void read(Walker& walker, std::size_t kind);

 private:
  static Arg arg_of(std::string_view key);
  static constexpr std::uint32_t bit(Arg arg) { return 1U << static_cast<unsigned>(arg); }
  static constexpr Token kMissing{};

  std::uint32_t said_ = 0;  // a bit for each that the last object has
  std::array<Token, static_cast<std::size_t>(Arg::none) + 1> tokens_{};
  std::array<KeyHabit, kKinds> habits_;
  int duplicates_ = 0;
};

}  // namespace commlens
