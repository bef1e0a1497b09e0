#include "report/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json_out.h"

namespace commlens {
namespace {

void write_json(const Prediction& prediction, Sink& sink) {
  JsonOut json(sink);
  json.begin_object();
  json.key("schema");
  json.value("commlens.whatif/1");
  json.key("question");
  json.value(prediction.question);
  json.key("steps");
  json.value(prediction.steps);
  json.key("step_ns");
  json.value(prediction.step);
  json.key("predicted_step_ns");
  json.value(prediction.predicted);
  json.key("lower_ns");
  json.value(prediction.lower);
  json.key("upper_ns");
  json.value(prediction.upper);
  json.key("confidence");
  json.value(confidence_name(prediction.confidence));
  json.key("by_rank");
  json.begin_array();
  for (const RankPrediction& rank : prediction.by_rank) {
    json.compact_next();
    json.begin_object();
    json.key("rank");
    json.value(rank.rank);
    json.key("window_ns");
    json.value(rank.window);
    json.key("predicted_window_ns");
    json.value(rank.predicted);
    json.end_object();
  }
  json.end_array();
  json.key("remarks");
  json.begin_array();
  for (const std::string& remark : prediction.remarks) json.value(remark);
  json.end_array();
  json.end_object();
  sink.append("\n");
}

std::string milliseconds(Ns time) {
  return fmt::format("{:.3f} ms", static_cast<double>(time) / 1e6);
}

void write_text(const Prediction& prediction, Sink& sink) {
  const double step = static_cast<double>(std::max<Ns>(1, prediction.step));
  const double change = 100 * (static_cast<double>(prediction.predicted) / step - 1);
  sink.append(fmt::format("What if: {}.\n", prediction.question));
  sink.append(
      fmt::format("A step would take {} instead of {} ({:+.1f} %), between {} and {}; {}.\n",
                  milliseconds(prediction.predicted), milliseconds(prediction.step), change,
                  milliseconds(prediction.lower), milliseconds(prediction.upper),
                  confidence_name(prediction.confidence)));
  for (const std::string& remark : prediction.remarks) sink.append("  " + remark + ".\n");
  constexpr std::size_t kShown = 16;
  if (prediction.by_rank.size() < 2) return;
  sink.append("\nrank        recorded       predicted\n");
  for (std::size_t i = 0; i < std::min(kShown, prediction.by_rank.size()); ++i) {
    const RankPrediction& rank = prediction.by_rank[i];
    sink.append(fmt::format("{:<6}{:>14}{:>16}\n", rank.rank, milliseconds(rank.window),
                            milliseconds(rank.predicted)));
  }
  if (prediction.by_rank.size() > kShown)
    sink.append(
        fmt::format("... and {} more in --format json\n", prediction.by_rank.size() - kShown));
}

}  // namespace

void write_prediction(const Prediction& prediction, std::string_view format, Sink& sink) {
  if (format == "json") return write_json(prediction, sink);
  write_text(prediction, sink);
}

}  // namespace commlens
