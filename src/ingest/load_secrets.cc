#include "ingest/load_secrets.h"

#include <array>
#include <unordered_map>

#include "ingest/witness_secrets.h"
#include "model/witness_log.h"

namespace commlens {
namespace {

// A name by which calls of different files are joined: two of them stay two without their secrets.
void hide_in_name(std::string& name) {
  std::string safe = without_secrets(name);
  if (safe == name) return;
  std::uint32_t hash = 2166136261U;  // FNV-1a; four digits of it tell nothing of the secret
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr std::string_view kDigits = "0123456789abcdef";
  safe += " #";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) safe += kDigits[hash >> shift & 15U];
  name = std::move(safe);
}

void hide_in_text(std::string& text) {
  // Most are too short for a token, and have nothing in them that could announce one.
  constexpr std::size_t kShortestToken = 12;
  if (text.size() < kShortestToken && text.find_first_of("=:@ ") == std::string::npos) return;
  text = without_secrets(text);
}

// The texts of a pool, each once.
class SafeTexts {
 public:
  explicit SafeTexts(StringPool& pool, bool names = false) : pool_(pool), names_(names) {}
  void hide(StringId& id) {
    if (!id.valid()) return;
    const auto [found, is_new] = safe_.try_emplace(id.value, id);
    if (is_new) {
      const std::string text(pool_.get(id));
      std::string safe = text;
      names_ ? hide_in_name(safe) : hide_in_text(safe);
      if (safe != text) found->second = pool_.intern(safe);
    }
    id = found->second;
  }

 private:
  StringPool& pool_;
  bool names_;
  std::unordered_map<std::uint32_t, StringId> safe_;
};

void hide_in_log(LogFacts& log) {
  for (LogInterfaces& list : log.interfaces) {
    for (std::string& name : list.names) hide_in_text(name);
    for (std::string& address : list.addresses) hide_in_text(address);
  }
  for (LogChannel& channel : log.channels) {
    // "NET/IB/0/GDRDMA" and its likes.
    constexpr std::size_t kUsual = 20;
    if (channel.via.size() <= kUsual) continue;
    hide_in_text(channel.via);
    hide_in_text(channel.network);
  }
  for (LogWatchdog& line : log.watchdog) {
    hide_in_text(line.group);
    hide_in_text(line.op);
  }
}

}  // namespace

void hide_secrets(Measured& measured) {
  for (MeasuredGroup& group : measured.groups) {
    hide_in_name(group.id);
    hide_in_name(group.name);
  }
  hide_in_text(measured.host);
  for (MeasuredTimer& timer : measured.timers) hide_in_text(timer.name);
  SafeTexts texts(measured.strings);
  SafeTexts names(measured.strings, true);
  for (MeasuredCall& call : measured.calls) {
    names.hide(call.node);
    names.hide(call.gpu);
    for (StringId* id : {&call.op_text, &call.caller, &call.dtype, &call.algorithm, &call.protocol})
      texts.hide(*id);
  }
}

void hide_secrets(Witness& witness) {
  for (WitnessGroup& group : witness.groups) {
    hide_in_name(group.name);
    hide_in_text(group.description);
  }
  hide_in_text(witness.version);
  hide_in_text(witness.library);
  SafeTexts texts(witness.strings);
  const auto hide = [&texts](WitnessCall& call) {
    for (StringId* id : {&call.op_text, &call.in_shape, &call.out_shape, &call.in_dtype,
                         &call.out_dtype, &call.thread, &call.code})
      texts.hide(*id);
  };
  for (WitnessCall& call : witness.calls) hide(call);
  for (CallPair& pair : witness.contradictions) {
    hide(pair.first);
    hide(pair.second);
    texts.hide(pair.first_device);
    texts.hide(pair.second_device);
  }
  if (witness.log) hide_in_log(*witness.log);
}

// Names of kernels are the compiler's, and are left as they are.
void hide_secrets(Recording& recording) {
  for (ProcessGroup& group : recording.groups) {
    hide_in_name(group.name);
    hide_in_text(group.description);
  }
  hide_in_text(recording.host);
  hide_in_text(recording.gpu_name);
  hide_in_text(recording.backend);
  hide_in_text(recording.nccl_version);
  SafeTexts names(recording.strings, true);
  SafeTexts texts(recording.strings);
  for (CollectiveMeta& meta : recording.metas) {
    names.hide(meta.group_name);
    texts.hide(meta.group_description);
    texts.hide(meta.collective);
    texts.hide(meta.dtype);
  }
}

}  // namespace commlens
