// The recipe: paths and options in, a study out. The only place that knows the order of the stages.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/sink.h"
#include "model/job.h"
#include "model/question.h"
#include "model/report.h"

namespace commlens {

// Options as users give them; docs/ describe each under its command-line name.
struct StudyOptions {
  std::vector<std::string> paths;
  std::string input_format;  // --input-format; empty: told by content
  std::string
      rank_from;      // --rank-from: "file", "name", "order"; empty: the first of these that knows
  std::string hosts;  // --hosts: a file of "RANK HOST" lines, or a pattern; empty: from the traces
  std::string rules_file;                    // --rules
  std::string window = "gpu";                // --window: "gpu" or "steps"
  std::vector<std::int64_t> steps;           // --steps; empty: all
  std::vector<std::int64_t> ranks;           // --ranks; empty: all
  std::vector<std::vector<std::string>> by;  // --by
  std::optional<std::int64_t> explain;       // --explain
  std::vector<std::string> peaks;            // --peak: "180", "all_reduce=180,dp:all_reduce=40"
  std::vector<std::string> calibrations;     // --calibrate: FILE or OP=FILE
  std::optional<Question> question;          // whatif
  std::string context = "auto";              // --context: "auto", "always", "never"
  bool follow_path = true;                   // find the critical path and what builds on it
  bool keep_activities = false;              // timelines need every GPU activity; analyses do not
  unsigned jobs = 0;                         // --jobs; 0: all cores
  std::function<void(std::size_t done, std::size_t total)> progress;
};

struct Study {
  Job job;
  Report report;
  std::optional<Prediction> prediction;  // the answer to StudyOptions::question
  bool whole_window = true;              // figures are of all that was recorded, not of some steps
  bool any_for_diagnose = false;         // of the inputs some are logs or dumps
  bool any_input_unusable = false;       // exit code 3, although others were used
  std::vector<std::string> troubles;     // one sentence for each input that could not be used
};

// Checks the options that can be checked before reading. Throws Error(usage).
void check_options(const StudyOptions& options);

// Runs everything. Throws Error(input) when no input at all could be used.
Study run_study(const StudyOptions& options);

// Renders by a writer of `report/` ("text", "json").
void render(const Study& study, std::string_view writer, bool color, Sink& sink);
// The answer to the question that was asked; "text" or "json". Throws Error(input) where the inputs
// do not support any.
void render_prediction(const Study& study, std::string_view format, Sink& sink);
// One merged timeline of all ranks; "json" (Chrome's) or "pftrace" (Perfetto's).
void render_timeline(const Study& study, std::string_view format, Sink& sink);

}  // namespace commlens
