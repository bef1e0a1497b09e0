// The qualified name inside a mangled C++ symbol (Itanium ABI), without template arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace commlens {

// "_ZN4vllm26cross_device_reduce_1stageIfLi8EEEvPfi" -> "vllm::cross_device_reduce_1stage".
// Linear in the symbol. Nothing for what is no mangled function name, or one of a kind that kernels
// never have.
std::optional<std::string> name_in_mangled(std::string_view symbol);

}  // namespace commlens
