// Ranks of one communicator that run different versions, or under settings that must be the same.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "diagnose/log_view.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

// Which NCCL reads to choose algorithms, channels and ways: where ranks differ in these, they can
// choose differently and wait for each other. Others (interfaces, files, debugging) may differ.
constexpr std::array<std::string_view, 16> kMustAgree = {
    "NCCL_ALGO",           "NCCL_PROTO",        "NCCL_NET",           "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",    "NCCL_SHM_DISABLE",  "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
    "NCCL_BUFFSIZE",       "NCCL_NTHREADS",     "NCCL_CROSS_NIC",     "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_LL_THRESHOLD",  "NCCL_MNNVL_ENABLE"};

// Of these, whose names of algorithms, protocols and networks NCCL compares in any case: "simple"
// is "Simple". Names of interfaces, adapters and files are not among them.
constexpr std::array<std::string_view, 3> kAnyCase = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_NET"};

// A value as NCCL understands it.
std::string as_meant(std::string_view name, std::string value) {
  if (std::find(kAnyCase.begin(), kAnyCase.end(), name) == kAnyCase.end()) return value;
  for (char& c : value) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return value;
}

// What each rank says of one thing.
struct Said {
  std::int64_t rank = -1;
  std::string value;  // as it is written
  std::string meant;  // what is compared
  std::string line;   // of evidence
};

// Somebody who says what most say.
const Said* most_said(const std::vector<Said>& all) {
  std::map<std::string_view, std::size_t> counts;
  for (const Said& said : all) ++counts[said.meant];
  const auto found = std::find_if(all.begin(), all.end(), [&](const Said& said) {
    return counts[said.meant] * 2 > all.size();
  });
  return found == all.end() ? nullptr : &*found;
}

bool differs(const std::vector<Said>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Said& said) { return said.meant != all.front().meant; });
}

DiagnosisFinding finding_of(const LogGroup& group, std::string_view field,
                            const std::vector<Said>& all) {
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::misconfiguration;
  finding.group = group.name;
  const Said* most = most_said(all);
  struct Value {
    std::string_view written;  // by the first
    std::vector<std::int64_t> ranks;
  };
  std::map<std::string_view, Value> values;
  for (const Said& said : all) {
    Value& value = values[said.meant];
    if (value.ranks.empty()) value.written = said.value;
    value.ranks.push_back(said.rank);
    if (most != nullptr && said.meant != most->meant)
      finding.differing.push_back({said.rank, std::string(field), said.value, most->value});
    if (finding.evidence.size() < kMostLogEvidence) finding.evidence.push_back(said.line);
  }
  std::string text;
  for (const auto& [meant, value] : values)
    text += (text.empty() ? "" : "; ") + std::string(value.written) + " on " +
            ranks_in_words(value.ranks);
  finding.message = std::string(field) + " is not the same on all ranks: " + text;
  finding.confidence = Confidence::certain;
  return finding;
}

std::optional<DiagnosisFinding> find_versions(const LogGroup& group) {
  std::vector<Said> all;
  for (const LogMember& member : group.members) {
    const LogProcess& process = member.witness->log->processes[member.facts().process.index()];
    if (process.version.empty() || member.rank < 0) continue;
    all.push_back(
        {member.rank, process.version, process.version,
         evidence_line(*member.witness, process.first_line, "NCCL version " + process.version)});
  }
  if (all.size() < 2 || !differs(all)) return std::nullopt;
  auto finding = finding_of(group, "version", all);
  finding.advice =
      "use the same image on all hosts, and see which libnccl.so LD_LIBRARY_PATH finds";
  return finding;
}

// The first value of each setting that a process names.
using SettingsOf =
    std::map<std::tuple<const Witness*, LogProcessId, std::string_view>, const LogSetting*>;

SettingsOf settings_of(const LogView& view) {
  SettingsOf settings;
  for (const Witness* witness : view.logs) {
    for (const LogSetting& setting : witness->log->settings)
      settings.try_emplace({witness, setting.process, setting.name}, &setting);
  }
  return settings;
}

// "Ri" is what a terminal has left of "Ring", if it cut other lines of the log, too.
void drop_cut_values(const LogGroup& group, std::vector<Said>& all) {
  const Said* most = most_said(all);
  const bool cut = std::any_of(group.members.begin(), group.members.end(),
                               [](const LogMember& m) { return m.witness->log->cut > 0; });
  if (most == nullptr || !cut) return;
  const std::string whole = most->meant;
  std::erase_if(all, [&whole](const Said& said) {
    return said.meant.size() < whole.size() && whole.starts_with(said.meant);
  });
}

std::optional<DiagnosisFinding> find_setting(const LogGroup& group, const SettingsOf& settings,
                                             std::string_view name) {
  std::vector<Said> all;
  for (const LogMember& member : group.members) {
    if (member.rank < 0) continue;
    const auto found = settings.find({member.witness, member.facts().process, name});
    if (found == settings.end()) continue;
    const LogSetting& setting = *found->second;
    all.push_back({member.rank, setting.value, as_meant(name, setting.value),
                   evidence_line(*member.witness, setting.line,
                                 setting.name + " set by environment to " + setting.value)});
  }
  drop_cut_values(group, all);
  if (all.size() < 2 || !differs(all)) return std::nullopt;
  auto finding = finding_of(group, name, all);
  finding.advice =
      "set " + std::string(name) + " to one value for all ranks, or unset it everywhere";
  return finding;
}

std::vector<DiagnosisFinding> find_settings(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  const SettingsOf settings = settings_of(view);
  std::vector<DiagnosisFinding> findings;
  for (const LogGroup& group : view.groups) {
    // Ranks that no line says may be of another communicator.
    const bool said = std::all_of(group.members.begin(), group.members.end(),
                                  [](const LogMember& m) { return m.rank_said; });
    if (group.members.size() < 2 || !said) continue;
    if (auto finding = find_versions(group)) findings.push_back(std::move(*finding));
    for (const std::string_view name : kMustAgree) {
      if (auto finding = find_setting(group, settings, name))
        findings.push_back(std::move(*finding));
    }
    if (!findings.empty()) break;  // the other communicators are of the same processes
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogSettings{
    .name = "log_settings",
    .summary = "versions and settings that must be the same on all ranks and are not",
    .find = find_settings,
};

}  // namespace commlens
