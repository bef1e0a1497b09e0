#include <algorithm>
#include <iterator>

#include "report/writer.h"

namespace commlens {

// One line an output.
extern const Writer kText;
extern const Writer kJson;

namespace {

constexpr const Writer* kWriters[] = {&kText, &kJson};

}  // namespace

std::span<const Writer* const> writers() { return kWriters; }

const Writer* find_writer(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kWriters), std::end(kWriters),
                   [name](const Writer* writer) { return writer->name == name; });
  return found == std::end(kWriters) ? nullptr : *found;
}

std::string_view program_version() { return COMMLENS_VERSION; }

}  // namespace commlens
