// The stages of study/study.cc up to the dependency graph, in memory.
#include <limits>

#include "answer.h"
#include "base/error.h"
#include "match/dependencies.h"
#include "match/group_roles.h"
#include "match/transfer_fits.h"
#include "replay/common_time.h"
#include "replay/critical_path.h"
#include "replay/graph.h"
#include "replay/what_if.h"
#include "tool.h"

namespace commlens::whatif_accuracy {
namespace {

using simulate::Change;
using simulate::ChangeKind;

Job prepare(std::vector<Recording> recordings) {
  Job job = accuracy::analyse(std::move(recordings)).job;
  for (RankTimeline& rank : job.ranks) find_dependencies(rank);
  assign_group_roles(job);
  job.transfer_fits = find_transfer_fits(job);
  place_on_common_time(job);
  return job;
}

// A change of some communications, as the tool's questions name them.
void ask(Question& question, const Change& change) {
  const double speed = change.kind == ChangeKind::remove
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(change.speed_ppm) / simulate::kMillion;
  if (change.between_hosts) {
    question.links.push_back({"ib", speed});
  } else if (!change.group.empty()) {
    question.groups.push_back({change.group, speed});
  } else if (change.op != Op::unknown) {
    question.ops.push_back({std::string(op_name(change.op)), speed});
  } else {
    question.comm_speed *= speed;
  }
}

Question question_of(const std::vector<Change>& changes) {
  Question question;
  for (const Change& change : changes) {
    switch (change.kind) {
      case ChangeKind::comm_speed:
      case ChangeKind::remove: ask(question, change); break;
      case ChangeKind::like_peers: question.fix_ranks.push_back(change.rank); break;
      case ChangeKind::hosts_on_time:
      case ChangeKind::no_host: question.no_host_delay = true; break;
      case ChangeKind::bucket: question.bucket = change.bytes; break;
    }
  }
  return question;
}

}  // namespace

// The graph points into the job.
struct Tool::State {
  explicit State(std::vector<Recording> recordings)
      : job(prepare(std::move(recordings))), graph(job) {}
  Job job;
  Graph graph;
};

bool has_tool() { return true; }
Tool::Tool(std::vector<Recording> recordings)
    : state_(std::make_unique<State>(std::move(recordings))) {}
Tool::Tool(Tool&&) noexcept = default;
Tool& Tool::operator=(Tool&&) noexcept = default;
Tool::~Tool() = default;

PathComposition Tool::composition() const {
  const CriticalPath path = find_critical_path(state_->graph);
  const auto of = [&path](PathClass kind) { return path.sums[static_cast<std::size_t>(kind)]; };
  return {.known = path.known,
          .sure = path.sure,
          .window = path.window.length(),
          .sums = {of(PathClass::compute), of(PathClass::transfer), of(PathClass::host),
                   of(PathClass::memory)},
          .unexplained = of(PathClass::unexplained),
          .by_rank = path.by_rank};
}

Answer Tool::predict(const std::vector<Change>& changes) const {
  try {
    const Prediction prediction = commlens::predict(state_->graph, question_of(changes));
    return {.known = prediction.confidence != Confidence::undecidable,
            .step = prediction.step,
            .predicted = prediction.predicted,
            .lower = prediction.lower,
            .upper = prediction.upper};
  } catch (const Error& error) {
    return {.trouble = error.what()};
  }
}

}  // namespace commlens::whatif_accuracy
