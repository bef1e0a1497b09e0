#include <algorithm>
#include <iterator>

#include "ingest/format.h"

namespace commlens {

// One line an importer.
extern const Format kKineto;
extern const Format kNsysSqlite;

namespace {

// Asked from the first to the last; the first that knows a text reads it.
constexpr const Format* kFormats[] = {&kKineto, &kNsysSqlite};

template <class Test>
const Format* first_format(Test test) {
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats), test);
  return found == std::end(kFormats) ? nullptr : *found;
}

}  // namespace

std::span<const Format* const> formats() { return kFormats; }

const Format* detect_format(std::string_view head) {
  return first_format([head](const Format* format) { return format->sniff(head); });
}

const Format* find_format(std::string_view name) {
  return first_format([name](const Format* format) { return format->name == name; });
}

}  // namespace commlens
