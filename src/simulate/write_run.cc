#include "simulate/write_run.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "simulate/truth.h"

namespace commlens::simulate {

void write_run(const JobSpec& spec, const std::string& folder, const KinetoOptions& options) {
  spec.validate();
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorKind::usage, folder + ": cannot be made a folder: " + failure.message());
  }
  const SimulatedJob job = simulate(spec);
  for (int rank = 0; rank < spec.world(); ++rank) {
    Sink sink(folder + "/rank-" + std::to_string(rank) + ".json");
    write_kineto(job, rank, sink, options);
    sink.close();
  }
  Sink sink(folder + "/truth.json");
  write_truth(job, sink);
  sink.close();
}

}  // namespace commlens::simulate
