#include <algorithm>
#include <array>

#include "ingest/measured_format.h"

namespace commlens {

// One line an importer.
extern const MeasuredFormat kDeepspeedSummary;
extern const MeasuredFormat kExecutionTrace;
extern const MeasuredFormat kFrameworkLog;
extern const MeasuredFormat kInspectorJson;
extern const MeasuredFormat kInspectorPrometheus;
extern const MeasuredFormat kNcclTests;
extern const MeasuredFormat kPluginTrace;

namespace {

// Asked from the first to the last; the first that knows a text reads it. A log can hold lines of
// several others.
constexpr std::array kFormats = {&kInspectorJson, &kInspectorPrometheus, &kPluginTrace,
                                 &kNcclTests,     &kDeepspeedSummary,    &kExecutionTrace,
                                 &kFrameworkLog};

template <class Test>
const MeasuredFormat* first_format(Test test) {
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(), test);
  return found == kFormats.end() ? nullptr : *found;
}

}  // namespace

std::span<const MeasuredFormat* const> measured_formats() { return kFormats; }

const MeasuredFormat* detect_measured_format(std::string_view head) {
  // No text holds a zero byte; a database can hold any text.
  if (head.find('\0') != std::string_view::npos) return nullptr;
  return first_format([head](const MeasuredFormat* format) { return format->sniff(head); });
}

const MeasuredFormat* detect_measured_format_by_end(std::string_view tail) {
  if (tail.find('\0') != std::string_view::npos) return nullptr;
  return first_format(
      [tail](const MeasuredFormat* format) { return format->at_the_end && format->sniff(tail); });
}

const MeasuredFormat* find_measured_format(std::string_view name) {
  return first_format([name](const MeasuredFormat* format) { return format->name == name; });
}

}  // namespace commlens
