#include "diagnose/order.h"

#include <algorithm>

namespace commlens {
namespace {

// What is known to have begun earlier is nearer to the cause; then the better-known kind.
bool stands_before(const DiagnosisFinding& a, const DiagnosisFinding& b) {
  const bool a_open = a.confidence == Confidence::undecidable;
  const bool b_open = b.confidence == Confidence::undecidable;
  if (a_open != b_open) return b_open;
  if (a.since_ns != b.since_ns && a.since_ns > 0 && b.since_ns > 0) return a.since_ns < b.since_ns;
  return a.kind < b.kind;
}

}  // namespace

std::vector<DiagnosisFinding> order_findings(std::vector<DiagnosisFinding> findings) {
  std::stable_sort(findings.begin(), findings.end(), stands_before);
  return findings;
}

}  // namespace commlens
