// Sample, one line (the separators between fields are not all there, and brackets hold commas):
//
//   [rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running
//   collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[64, 2],
//   TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), ...)), but Rank 0 is
//   running collective: CollectiveFingerPrint(SequenceNumber=9OpType=BARRIER).Collectives differ
//   in the following aspects: ...
#include "ingest/witness_fingerprint.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/decimal.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number behind `key`; nothing where the text is cut inside it.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  if (end == text.end()) return std::nullopt;
  return parse_int(text.substr(0, static_cast<std::size_t>(end - text.begin())));
}

// The word behind `key` up to one of `ends`; empty where the text is cut inside it.
std::string_view word_behind(std::string_view text, std::string_view key, std::string_view ends) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t end = text.find_first_of(ends);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

// Names as in "OpType=_ALLGATHER_BASE".
std::optional<Op> op_of_type(std::string_view type) {
  std::string name(type);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return op_from_collective_name(name);
}

// "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, ...".
std::optional<WitnessCall> call_of(std::string_view text, std::int64_t line, Witness& witness) {
  WitnessCall call;
  const auto rank = number_behind(text, "Rank ");
  const auto number = number_behind(text, "SequenceNumber=");
  const std::string_view type = word_behind(text, "OpType=", ",)");
  if (!rank || !number || type.empty() || *rank >= kMostRanks) return std::nullopt;
  call.rank = *rank;
  call.number = *number;
  call.where = line;
  call.op = op_of_type(type).value_or(Op::unknown);
  call.op_text = witness.strings.intern(type.substr(0, 80));
  if (const auto shape = word_behind(text, "TensorShape=[", "]"); !shape.empty())
    call.in_shape = witness.strings.intern("[" + std::string(shape.substr(0, 4096)) + "]");
  if (const auto dtype = word_behind(text, "TensorDtypes=", ",)"); !dtype.empty())
    call.in_dtype = witness.strings.intern(dtype.substr(0, 200));
  return call;
}

// Behind "TensorDeviceTypes=" one "device=cuda" for each tensor, among the tensor's other options.
StringId devices_of(std::string_view text, Witness& witness) {
  constexpr std::string_view kDevice = "device=";
  constexpr std::size_t kLongestList = 200;
  std::string list;
  std::size_t at = text.find("TensorDeviceTypes=");
  while (at < text.size() && list.size() < kLongestList) {
    at = text.find(kDevice, at);
    if (at == std::string_view::npos) break;
    at += kDevice.size();
    const std::size_t end = std::min(text.find_first_of(",): ", at), text.size());
    list +=
        (list.empty() ? "" : ",") + std::string(text.substr(at, std::min(end - at, kLongestList)));
    at = end;
  }
  return list.empty() ? StringId() : witness.strings.intern(list);
}

bool is_same_call(const WitnessCall& a, const WitnessCall& b) {
  return a.rank == b.rank && a.number == b.number && a.op_text == b.op_text &&
         a.in_shape == b.in_shape && a.in_dtype == b.in_dtype;
}

}  // namespace

bool add_fingerprints(std::string_view line, std::int64_t number, Witness& witness) {
  const std::size_t at = line.find(kFingerprintLine);
  if (at == std::string_view::npos) return false;
  line.remove_prefix(at);
  const std::size_t first = line.find(" Rank ");
  const std::size_t second = line.find("but Rank ");
  if (first == std::string_view::npos || second == std::string_view::npos || first >= second)
    return false;
  // What stands behind the second call names the aspects in which they differ.
  const std::string_view first_text = line.substr(first, second - first);
  const std::string_view second_text =
      line.substr(second, line.find("Collectives differ in", second) - second);
  const auto a = call_of(first_text, number, witness);
  const auto b = call_of(second_text, number, witness);
  if (!a || !b || a->rank == b->rank) return false;
  const StringId device_a = devices_of(first_text, witness);
  const StringId device_b = devices_of(second_text, witness);
  const bool known = std::any_of(
      witness.contradictions.begin(), witness.contradictions.end(), [&](const CallPair& pair) {
        return (is_same_call(pair.first, *a) && is_same_call(pair.second, *b) &&
                pair.first_device == device_a && pair.second_device == device_b) ||
               (is_same_call(pair.first, *b) && is_same_call(pair.second, *a) &&
                pair.first_device == device_b && pair.second_device == device_a);
      });
  if (!known) witness.contradictions.push_back({*a, *b, device_a, device_b});
  return true;
}

}  // namespace commlens
