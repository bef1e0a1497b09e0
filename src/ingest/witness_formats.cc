#include <algorithm>
#include <array>

#include "ingest/witness_format.h"

namespace commlens {

// One line an importer.
extern const WitnessFormat kFlightRecorder;
extern const WitnessFormat kNcclLog;
extern const WitnessFormat kNcclRas;
extern const WitnessFormat kTorchFingerprint;

namespace {

// Asked from the first to the last; the first that knows a text reads it. A log can hold lines of
// several others.
constexpr std::array kFormats = {&kFlightRecorder, &kNcclRas, &kNcclLog, &kTorchFingerprint};

template <class Test>
const WitnessFormat* first_format(Test test) {
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(), test);
  return found == kFormats.end() ? nullptr : *found;
}

}  // namespace

std::span<const WitnessFormat* const> witness_formats() { return kFormats; }

const WitnessFormat* detect_witness_format(std::string_view head) {
  return first_format([head](const WitnessFormat* format) { return format->sniff(head); });
}

const WitnessFormat* find_witness_format(std::string_view name) {
  return first_format([name](const WitnessFormat* format) { return format->name == name; });
}

}  // namespace commlens
