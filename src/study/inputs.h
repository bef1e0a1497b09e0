// The inputs of a study: which there are, what they hold, what is said of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ingest/load.h"
#include "model/job.h"
#include "model/witness.h"
#include "study/prepare.h"
#include "study/study.h"

namespace commlens {

// One input and what became of it.
struct ReadInput {
  LoadedInput input;               // without its recording
  RankTimeline rank;               // of a usable one
  std::optional<Witness> witness;  // of what is no timeline, and tells of the same job
};

// What the inputs hold.
struct UsableInputs {
  std::vector<RankTimeline> ranks;
  MeasuredJob measured;
  bool empty() const { return ranks.empty() && measured.empty(); }
};

std::vector<ReadInput> read_inputs(const StudyOptions& options, const Settings& settings);
// Logs and dumps beside timelines. Alone they are no input of an analysis.
void read_witnesses(std::vector<ReadInput>& inputs, const StudyOptions& options, unsigned threads);
// One recording once more, whole. Throws Error(input) where it cannot be used now.
Recording read_again(const std::string& path, const StudyOptions& options);
// Names every input in the report; hands over what could be used.
UsableInputs report_inputs(std::vector<ReadInput>& inputs, Study& study);
// What to say when nothing at all could be used.
Error nothing_usable(const Study& study, const StudyOptions& options);
// What logs and dumps say of the operations, and why not where they do not.
void join_inputs(std::vector<ReadInput>& inputs, Job& job);

}  // namespace commlens
