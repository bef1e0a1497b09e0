// What RAS output says of communicators, in words and side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"
#include "model/witness_ras.h"

namespace commlens {

// One output with the file that holds it.
struct RasOutput {
  const Witness* witness = nullptr;
  const RasSnapshot* snapshot = nullptr;
};
std::vector<RasOutput> ras_outputs(const std::vector<Witness>& witnesses);

// "ras.txt, line 27: ", and what stands there.
std::string ras_line(const Witness& witness, std::int64_t line, const std::string& text);
// "process 3009, GPU 1 on node 10.0.0.2"; empty: not said.
std::string ras_process_words(const RasProcess& process);
// "rank 1 of communicator #0-1 (process 3009, GPU 1 on node 10.0.0.2) and rank 2 (process ...)".
std::string ras_rank_words(const RasBlock& block, const std::vector<RasRank>& ranks);

// The same of a set whose ranks RAS does not list: "3 ranks of communicator #0-1".
std::string ras_set_words(const RasBlock& block, const RasSet& set);

bool is_of_row(const RasBlock& block, const RasRow& row);
const RasRow* ras_row(const RasSnapshot& snapshot, const RasBlock& block);
// A finding about ranks of the block's communicator; with its members where these are the job's.
DiagnosisFinding ras_finding(DiagnosisKind kind, const RasSnapshot& snapshot,
                             const RasBlock& block);
// Adds the lines of ranks that RAS lists, a handful.
void add_ras_ranks(DiagnosisFinding& finding, const Witness& witness,
                   const std::vector<RasRank>& ranks, const std::string& what);

// Ranks of one communicator that launched more or less operations of a kind than the others.
struct RasSpread {
  RasOutput output;
  const RasBlock* block = nullptr;
  bool ahead = false;  // the odd ones launched more than most
  bool tie = false;    // nobody has a majority: nobody is odd
  bool named = false;  // RAS lists all who are odd
  bool stood = false;  // another output says the same of those who launched the least
  bool moved = false;  // by all other outputs of the communicator, these went on
  std::int64_t least = 0;
  std::int64_t usual = 0;  // of the largest set but the one that launched the least
  std::int64_t usual_count = 0;
  std::int64_t most = 0;
  std::int64_t odd_count = 0;
  std::int64_t rest_count = 0;
  std::vector<RasRank> odd;  // as far as listed, ascending
};
std::vector<RasSpread> ras_spreads(const std::vector<Witness>& witnesses);

}  // namespace commlens
