#include "model/witness_log.h"

#include <array>

namespace commlens {

std::string_view log_datatype_name(std::int64_t datatype) {
  constexpr std::array<std::string_view, 12> kNames = {
      "int8",    "uint8",   "int32",   "uint32",   "int64",       "uint64",
      "float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  const auto index = static_cast<std::size_t>(datatype);
  return datatype >= 0 && index < kNames.size() ? kNames[index] : std::string_view();
}

std::int64_t log_datatype_bytes(std::int64_t datatype) {
  constexpr std::array<int, 12> kBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const auto index = static_cast<std::size_t>(datatype);
  return datatype >= 0 && index < kBytes.size() ? kBytes[index] : 0;
}

}  // namespace commlens
