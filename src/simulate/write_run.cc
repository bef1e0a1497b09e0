#include "simulate/write_run.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "simulate/kineto_writer.h"
#include "simulate/truth.h"

namespace commlens::simulate {
namespace {

namespace fs = std::filesystem;

// The rank of a file that this writer could have made; -1: not one of its names.
int rank_of(std::string_view name) {
  constexpr std::string_view kPrefix = "rank-";
  constexpr std::string_view kSuffix = ".json";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return -1;
  const std::string_view digits =
      name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  int rank = -1;
  const char* last = digits.data() + digits.size();
  const auto [end, failure] = std::from_chars(digits.data(), last, rank);
  return failure == std::errc() && end == last ? rank : -1;
}

void make_folder(const std::string& folder, int world) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorKind::usage, folder + ": cannot be made a folder: " + failure.message());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (rank_of(name) < world) continue;
    throw Error(ErrorKind::usage,
                folder + ": holds " + name + " of another, larger run; name an empty folder");
  }
}

}  // namespace

void write_run(const Scenario& scenario, const std::string& folder) {
  scenario.spec.validate();
  validate(scenario.spec, scenario.faults);
  make_folder(folder, scenario.spec.world());
  const SimulatedJob job = simulate(scenario.spec, scenario.faults);
  for (int rank = 0; rank < scenario.spec.world(); ++rank) {
    const std::string path = folder + "/rank-" + std::to_string(rank) + ".json";
    if (job.ranks[static_cast<std::size_t>(rank)].missing) {
      std::error_code failure;
      fs::remove(path, failure);  // an earlier run's
      continue;
    }
    Sink sink(path);
    write_kineto(job, rank, sink, scenario.record);
    sink.close();
  }
  Sink sink(folder + "/truth.json");
  write_truth(scenario, job, sink);
  sink.close();
}

}  // namespace commlens::simulate
