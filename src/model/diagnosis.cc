#include "model/diagnosis.h"

namespace commlens {
namespace {

constexpr std::string_view kNames[] = {
#define COMMLENS_DIAGNOSIS_NAME(name) #name,
    COMMLENS_DIAGNOSES(COMMLENS_DIAGNOSIS_NAME)
#undef COMMLENS_DIAGNOSIS_NAME
};

}  // namespace

std::string_view diagnosis_name(DiagnosisKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view verdict_of(const Diagnosis& diagnosis) {
  return diagnosis.findings.empty() ? "none" : diagnosis_name(diagnosis.findings.front().kind);
}

}  // namespace commlens
