// What verdicts on settings and machines have in common.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "diagnose/log_view.h"

namespace commlens {

inline DiagnosisFinding misconfiguration(Confidence confidence, std::string message,
                                         std::string advice) {
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::misconfiguration;
  finding.confidence = confidence;
  finding.message = std::move(message);
  finding.advice = std::move(advice);
  return finding;
}

// Up to as many lines as a finding shows.
inline void add_log_evidence(DiagnosisFinding& finding, const Witness& witness, std::int64_t line,
                             std::string_view text) {
  if (finding.evidence.size() < kMostLogEvidence)
    finding.evidence.push_back(evidence_line(witness, line, text));
}

inline std::string channel_words(const LogChannel& channel) {
  return "Channel " + std::to_string(channel.channel) + " : " + std::to_string(channel.from) +
         " -> " + std::to_string(channel.to) + (channel.receives ? " [receive]" : " [send]") +
         " via " + channel.via;
}

}  // namespace commlens
