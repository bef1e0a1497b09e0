// The main job on a simulated run: what a first-time user sees.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/run.h"
#include "simulate/write_run.h"

namespace commlens::cli {
namespace {

namespace fs = std::filesystem;

// A folder of our own that goes when the demo ends.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "commlens-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error(ErrorKind::internal, pattern + ": no scratch folder can be made there");
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

constexpr std::string_view kIntroduction =
    "A simulated training run: 8 ranks (data parallel 4 x tensor parallel 2), 8 layers, 4 "
    "steps.\n\n";
constexpr std::string_view kExplanation =
    "\n"
    "How to read it: \"hidden\" is communication under which compute runs, and costs nothing; "
    "\"exposed\" is time in\n"
    "which the GPU only communicates. Tensor-parallel all-reduces stand between layers and cannot "
    "hide; the gradients'\n"
    "all-reduces run beside the backward pass and mostly do. Try it on your own: commlens analyze "
    "FOLDER\n";

int run_demo(const Arguments& arguments) {
  Sink sink(arguments.output.path);
  const ScratchFolder scratch;
  simulate::Scenario job;
  job.spec.dp = 4;
  job.spec.tp = 2;
  const std::string folder = (scratch.path() / "run").string();
  simulate::write_run(job, folder);
  Arguments analysis = arguments;
  analysis.study.paths = {folder + "/rank-*.json"};
  const Study study = study_inputs(analysis);
  const bool text = arguments.output.format == "text";
  if (text) sink.append(kIntroduction);
  render(study, arguments.output.format, wants_color(arguments.output), sink);
  if (text) sink.append(kExplanation);
  sink.close();
  return kDone;
}

}  // namespace

extern const Command kDemo;
constinit const Command kDemo{
    .name = "demo",
    .summary = "Simulate, analyse and explain a small training run; needs no input",
    .example = "commlens demo",
    .run = run_demo,
};

}  // namespace commlens::cli
