// What the analysis says about recordings: the stages of a study, in memory, without files.
#pragma once

#include <vector>

#include "model/job.h"

namespace commlens::accuracy {

struct Answer {
  Job job;
  Ns time = 0;  // of the processor, in this thread
};

Answer analyse(std::vector<Recording> recordings);

}  // namespace commlens::accuracy
