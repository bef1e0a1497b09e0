// Logs as text, read and judged as the program does it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/order.h"
#include "diagnose/verdict.h"
#include "ingest/witness_format.h"
#include "model/diagnosis.h"
#include "model/rank_list.h"
#include "model/witness.h"
#include "model/witness_log.h"

namespace commlens {

inline Witness read_log_text(std::string_view text, std::string path = "run.log") {
  Witness witness;
  witness.path = std::move(path);
  const WitnessFormat* format = find_witness_format("nccl_log");
  witness.format = format->name;
  Source source = Source::memory(witness.path, text);
  format->read(source, {}, witness);
  return witness;
}

inline std::vector<DiagnosisFinding> judge(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const Verdict* verdict : verdicts()) {
    for (DiagnosisFinding& finding : verdict->find(witnesses))
      findings.push_back(std::move(finding));
  }
  return order_findings(std::move(findings));
}

inline std::vector<DiagnosisFinding> judge_text(std::string_view text) {
  std::vector<Witness> witnesses;
  witnesses.push_back(read_log_text(text));
  return judge(witnesses);
}

// "missing_rank missing=0 odd= likely", one after the other with "; " between; "none".
inline std::string verdict_words(const std::vector<DiagnosisFinding>& findings) {
  std::string text;
  for (const DiagnosisFinding& finding : findings) {
    std::vector<std::int64_t> odd;
    for (const DifferingRank& row : finding.differing) odd.push_back(row.rank);
    text += (text.empty() ? "" : "; ") + std::string(diagnosis_name(finding.kind));
    if (!finding.missing_ranks.empty()) text += " missing=" + format_ranks(finding.missing_ranks);
    if (!odd.empty()) text += " odd=" + format_ranks(odd);
    text += " " + std::string(confidence_name(finding.confidence));
  }
  return text.empty() ? "none" : text;
}

}  // namespace commlens
