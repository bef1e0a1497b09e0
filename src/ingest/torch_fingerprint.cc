// Output of a program that stopped because two ranks called different things, where it holds
// nothing else that is read. The lines are those of witness_fingerprint.h.
#include "base/error.h"
#include "ingest/witness_fingerprint.h"
#include "ingest/witness_format.h"
#include "ingest/witness_lines.h"

namespace commlens {
namespace {

bool sniff(std::string_view head) {
  return head.find(kFingerprintLine) != std::string_view::npos &&
         head.find("NCCL INFO") == std::string_view::npos;
}

void read(Source& source, std::string_view head, Witness& witness) {
  witness.counts_lines = true;
  for_each_line(source, head, [&witness](std::string_view line, std::int64_t number) {
    if (add_fingerprints(line, number, witness)) {
      ++witness.records;
    } else if (line.find(kFingerprintLine) != std::string_view::npos) {
      witness.notes.add(Note::odd_entry, "line " + std::to_string(number));
    }
  });
  if (witness.contradictions.empty())
    throw Error(ErrorKind::input, source.name() +
                                      ": holds no whole line about collectives that differ; give "
                                      "the log as the program wrote it");
}

}  // namespace

extern const WitnessFormat kTorchFingerprint;
constinit const WitnessFormat kTorchFingerprint{
    .name = "torch_fingerprint",
    .summary = "PyTorch's error that two ranks call different collectives, as text",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
