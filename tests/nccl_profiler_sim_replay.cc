// Standard input: cases as nccl_profiler_sim_replay.h describes them. Standard output: every field.
#include "nccl_profiler_sim_replay.h"

#include <iostream>

int main() {
  std::ios::sync_with_stdio(false);
  commlens::replay::run(std::cin, std::cout);
  return std::cout.good() ? 0 : 1;
}
