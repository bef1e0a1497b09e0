#include "diagnose/ras_open.h"

#include <algorithm>

#include "diagnose/ras_view.h"

namespace commlens {
namespace {

constexpr std::size_t kMostOpen = 8;

// Whether some communicator of the row has the block, with what it is for.
bool has_details(const RasSnapshot& snapshot, const RasRow& row, bool mismatch) {
  return std::any_of(snapshot.blocks.begin(), snapshot.blocks.end(), [&](const RasBlock& block) {
    if (!is_of_row(block, row)) return false;
    if (!mismatch) return block.kind == RasBlock::Kind::incomplete && !block.sets.empty();
    return (block.kind == RasBlock::Kind::counts || block.kind == RasBlock::Kind::status) &&
           block.sets.size() > 1;
  });
}

void add_bare(const RasOutput& output, std::vector<std::string>& open) {
  const RasSnapshot& snapshot = *output.snapshot;
  const bool processes = snapshot.dead.count + snapshot.silent.count > 0;
  for (const RasRow& row : snapshot.rows) {
    if (open.size() >= kMostOpen) return;
    const std::string where = ras_line(
        *output.witness, row.line,
        std::to_string(row.comms) + (row.comms == 1 ? " communicator of " : " communicators of ") +
            std::to_string(row.size) + " ranks is marked ");
    if (row.errors.find("MISMATCH") != std::string::npos && !has_details(snapshot, row, true))
      open.push_back(where +
                     "MISMATCH (its ranks have launched different numbers of operations, or have "
                     "different status); the lines that say which ranks these are are missing, or "
                     "cannot be read: run ncclras -v again, and keep all that it prints");
    if (row.errors.find("INCOMPLETE") != std::string::npos && !processes &&
        !has_details(snapshot, row, false))
      open.push_back(where +
                     "INCOMPLETE (some process gave no data); the lines that say which are "
                     "missing: run ncclras -v again, and keep all that it prints");
  }
}

void add_moved(const std::vector<Witness>& witnesses, std::vector<std::string>& open) {
  for (const RasSpread& spread : ras_spreads(witnesses)) {
    if (open.size() >= kMostOpen) return;
    if (!spread.moved) continue;
    open.push_back(ras_line(*spread.output.witness, spread.block->line,
                            "ranks of communicator #" + spread.block->label +
                                " are apart in their " + spread.block->op +
                                " counts, but between the outputs those who had launched the "
                                "least went on: nobody is named"));
  }
}

}  // namespace

std::vector<std::string> open_of_ras(const std::vector<Witness>& witnesses, bool anything_found) {
  std::vector<std::string> open;
  for (const RasOutput& output : ras_outputs(witnesses)) {
    add_bare(output, open);
    if (anything_found || open.size() >= kMostOpen) continue;
    if (output.snapshot->no_data)
      open.push_back(ras_line(*output.witness, output.snapshot->line,
                              "RAS got no data of any communicator: no process answered, or none "
                              "has set one up; print the status again"));
    if (!output.snapshot->whole)
      open.push_back(ras_line(*output.witness, output.snapshot->line,
                              "this output ends before its warnings: what is wrong may have stood "
                              "in the lost part; run ncclras -v again, and keep all of it"));
  }
  add_moved(witnesses, open);
  return open;
}

}  // namespace commlens
