#include "study/options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "base/error.h"
#include "ingest/nccl_tests.h"
#include "model/rank_list.h"
#include "study/catalog.h"
#include "study/hosts.h"

namespace commlens {

unsigned threads_for(const StudyOptions& options) {
  return options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
}

RankFrom rank_source(const StudyOptions& options) {
  if (options.rank_from == "file") return RankFrom::file;
  if (options.rank_from == "name") return RankFrom::name;
  return options.rank_from == "order" ? RankFrom::order : RankFrom::automatic;
}

std::vector<NameRule> read_rules(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error))
    throw Error(ErrorKind::usage, path + ": the rules file cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_name_rules(text, path);
}

RateOptions rate_options(const StudyOptions& options) {
  RateOptions rates;
  for (const std::string& text : options.peaks) {
    const std::vector<PeakRate> more = parse_peaks(text);
    rates.peaks.insert(rates.peaks.end(), more.begin(), more.end());
  }
  for (const std::string& word : options.calibrations) {
    const std::vector<CalibrationTable> more = read_nccl_tests(word);
    rates.tables.insert(rates.tables.end(), more.begin(), more.end());
  }
  return rates;
}

WindowOptions window_options(const StudyOptions& options) {
  return {.choice = options.window == "steps" ? WindowChoice::steps : WindowChoice::gpu,
          .steps = options.steps};
}

void keep_chosen_ranks(Job& job, const std::vector<std::int64_t>& chosen) {
  if (chosen.empty()) return;
  if (job.ranks.empty())
    throw Error(ErrorKind::usage, "--ranks: none of these inputs is a timeline of a rank");
  for (const std::int64_t rank : chosen) {
    const auto found = std::find_if(job.ranks.begin(), job.ranks.end(),
                                    [rank](const RankTimeline& row) { return row.rank == rank; });
    if (found == job.ranks.end())
      throw Error(ErrorKind::usage,
                  "--ranks: there is no rank " + std::to_string(rank) + " in these inputs");
  }
  std::erase_if(job.ranks, [&chosen](const RankTimeline& row) {
    return !std::binary_search(chosen.begin(), chosen.end(), row.rank);
  });
}

void check_steps(const Job& job, const StudyOptions& options) {
  if (options.steps.empty() && options.window == "gpu") return;
  std::set<std::int64_t> held;
  std::set<std::int64_t> with_window;
  for (const RankTimeline& rank : job.ranks) {
    for (const StepRange& step : rank.recording.steps) held.insert(step.number);
    for (const DeviceTimeline& device : rank.devices) {
      for (const auto& [number, window] : device.steps) with_window.insert(number);
    }
  }
  if (held.empty()) {
    throw Error(ErrorKind::usage,
                "--steps, --window steps: these inputs hold no ranges of training steps; call "
                "profiler.step() each iteration, or mark each with an NVTX range (\"step 7\")");
  }
  for (const std::int64_t step : options.steps) {
    if (held.contains(step)) continue;
    const std::vector<std::int64_t> numbers(held.begin(), held.end());
    throw Error(ErrorKind::usage, "--steps: there is no step " + std::to_string(step) +
                                      " in these inputs, which hold " + format_ranks(numbers));
  }
  const bool any = std::any_of(options.steps.begin(), options.steps.end(),
                               [&](std::int64_t step) { return with_window.contains(step); });
  if (!options.steps.empty() && !any)
    throw Error(ErrorKind::usage, "--steps: these steps launched no GPU work in these inputs");
}

namespace {

// Each list of keys becomes a table with a column for each, and names must differ.
void check_slices(const std::vector<std::vector<std::string>>& slices) {
  std::set<std::vector<std::string>> lists;
  for (const auto& slice : slices) {
    std::set<std::string> keys;
    for (const std::string& key : slice) {
      require_name("--by", key, list_slice_keys());
      if (!keys.insert(key).second)
        throw Error(ErrorKind::usage, "--by: \"" + key + "\" stands twice");
    }
    if (!lists.insert(slice).second)
      throw Error(ErrorKind::usage, "--by: the same keys are given twice");
  }
}

}  // namespace

void check_options(const StudyOptions& options) {
  if (!options.input_format.empty())
    require_name("--input-format", options.input_format, names_of(list_analyzed_formats()));
  if (!options.rank_from.empty())
    require_name("--rank-from", options.rank_from, {"file", "name", "order"});
  require_name("--window", options.window, {"gpu", "steps"});
  require_name("--context", options.context, {"auto", "always", "never"});
  if (!options.steps.empty() && options.steps.back() - options.steps.front() + 1 !=
                                    static_cast<std::int64_t>(options.steps.size())) {
    throw Error(ErrorKind::usage,
                "--steps: one window is one stretch of steps, without gaps; ask for each stretch "
                "by itself");
  }
  if (options.question && (!options.steps.empty() || options.window != "gpu"))
    throw Error(ErrorKind::usage,
                "--steps, --window: a question is answered for all that was recorded; leave them "
                "out");
  if (options.question && options.question->bucket && *options.question->bucket <= 0)
    throw Error(ErrorKind::usage, "--bucket: a size above 0 is needed");
  check_slices(options.by);
  if (!options.hosts.empty()) parse_hosts(options.hosts);
  read_rules(options.rules_file);
  rate_options(options);
}

}  // namespace commlens
