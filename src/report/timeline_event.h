// What a timeline consists of, before it is bytes of any format: processes, their tracks, slices on
// these, and arrows between slices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "model/interval_set.h"
#include "report/timeline_texts.h"

namespace commlens {

// "all_reduce (hidden 97 %)" is two texts with a number between them; most names are one text.
struct SliceName {
  TextId before{};
  std::optional<std::int64_t> number = {};
  TextId after{};
};

struct Argument {
  TextId key{};
  std::variant<std::int64_t, double, bool, TextId> value;
};

struct SliceEvent {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  Ns start = 0;   // from the file's origin, >= 0
  Ns length = 0;  // >= 0
  SliceName name;
  TextId category{};
  std::string_view colour;              // a reserved colour name of Chrome's viewer; empty: none
  std::span<const Argument> arguments;  // each key once
  // Numbers, from 1, of the arrows that end here and that leave from here; 0: none.
  std::int64_t arrow_in = 0;
  std::int64_t arrow_out = 0;
};

}  // namespace commlens
