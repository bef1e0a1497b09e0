// Files -> witnesses: the counterpart of load.h for `commlens diagnose`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ingest/load.h"
#include "model/witness.h"

namespace commlens {

// What became of one file.
struct LoadedWitness {
  bool usable = false;   // `witness` holds what it gave
  bool skipped = false;  // tells nothing, found in a folder: passed over
  std::string trouble;   // one sentence where it is not usable
  std::string measured;  // the format, where it is one of measurements that an analysis reads
  Witness witness;       // with its path in any case
};

// Reads every file; results are in the order of `inputs`, whatever the number of threads.
std::vector<LoadedWitness> load_witnesses(const std::vector<FoundInput>& inputs,
                                          const LoadOptions& options);

}  // namespace commlens
