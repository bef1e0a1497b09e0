// Versions and settings.
//
//   NCCL version 2.21.5+cuda12.4             also bare, without a prefix;
//   "+cudaCUDA_MAJOR.CUDA_MINOR" in some builds RCCL version 2.18.3+hip5.5 develop:6ecf771+ RCCL
//   version : 2.22.3-develop:abc cudaDriverVersion 12080                  NCCL git version master
//   3619159 NCCL_SHM_DISABLE set by environment to 1.          the dot is no part of the value
//
// Only names of NCCL's, RCCL's and PyTorch's own are read: an environment holds secrets.
#include <algorithm>
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

constexpr std::array<std::string_view, 5> kPrefixes = {"NCCL_", "RCCL_", "TORCH_NCCL_", "OFI_NCCL_",
                                                       "HSA_"};

bool is_named_key(std::string_view name) {
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](auto prefix) { return name.starts_with(prefix); });
}

// "12.4" of "12.4\n"; nothing of "CUDA_MAJOR.CUDA_MINOR".
std::string usable_number(std::string_view text) {
  const bool fits = !text.empty() && is_digit(text.front());
  return fits ? std::string(text.substr(0, text.find_first_not_of("0123456789."))) : std::string();
}

void add_unsigned(const std::string& version, LogFacts& facts) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string>& known = facts.unsigned_versions;
  if (known.size() < kMost && std::find(known.begin(), known.end(), version) == known.end())
    known.push_back(version);
}

Understood read_version(const LogRecord& record, LogBuilder& builder, std::string_view rest,
                        bool rccl) {
  const LogText text(rest, record.ended);
  const auto version = LogText(trimmed(rest), record.ended).value("", ",");
  if (!version) return Understood::cut;
  // "2.2" may be what a terminal left of "2.21.5+cuda12.4".
  const std::string number = usable_number(*version);
  const bool whole = number.size() < version->size();
  // A bare line says nothing about who printed it.
  if (record.kind != LogRecord::Kind::nccl) {
    if (whole) add_unsigned((rccl ? "RCCL " : "NCCL ") + number, builder.facts());
    return Understood::yes;
  }
  LogProcess& process = builder.process(builder.process_of(record));
  process.rccl = rccl;
  if (whole) process.version = number;
  const std::size_t cuda = version->find("+cuda");
  if (cuda != std::string_view::npos) process.cuda = usable_number(version->substr(cuda + 5));
  return Understood::yes;
}

// "NCCL_ALGO set by environment to Ring"
Understood read_setting(const LogRecord& record, LogBuilder& builder) {
  constexpr std::string_view kWords = " set by environment to ";
  const std::size_t at = record.message.find(kWords);
  if (at == std::string_view::npos) return Understood::no;
  const std::string_view name = trimmed(record.message.substr(0, at));
  if (name.find(' ') != std::string_view::npos || !is_named_key(name)) return Understood::yes;
  if (!record.ended) return Understood::cut;
  std::string_view value = trimmed(record.message.substr(at + kWords.size()));
  if (value.size() > 1 && value.ends_with('.') && is_digit(value[value.size() - 2]))
    value.remove_suffix(1);
  LogSetting setting;
  setting.process = builder.process_of(record);
  setting.name = name;
  // The name tells whether the value is a secret.
  const std::string named = std::string(name) + "=";
  const std::string shown = evidence_text(named + std::string(value));
  setting.value = shown.starts_with(named) ? shown.substr(named.size()) : evidence_text(value);
  setting.line = record.line;
  builder.add(std::move(setting));
  return Understood::yes;
}

}  // namespace

Understood read_settings(const LogRecord& record, LogBuilder& builder) {
  if (record.kind == LogRecord::Kind::torch) return Understood::no;
  const std::string_view message = trimmed(record.message);
  if (message.starts_with("NCCL version ") && message.find("mismatch") == std::string_view::npos)
    return read_version(record, builder, message.substr(13), false);
  if (message.starts_with("RCCL version : "))
    return read_version(record, builder, message.substr(15), true);
  if (message.starts_with("RCCL version "))
    return read_version(record, builder, message.substr(13), true);
  return record.kind == LogRecord::Kind::nccl ? read_setting(record, builder) : Understood::no;
}

}  // namespace commlens
