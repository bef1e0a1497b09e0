// Every format of `diagnose` on any bytes, whether it would claim them or not: it throws Error or
// gives a witness that holds together, and the same one however little of the text the head held;
// and verdicts on it come to an end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "base/error.h"
#include "diagnose/order.h"
#include "diagnose/verdict.h"
#include "ingest/witness_format.h"

namespace {

using commlens::Witness;
using commlens::WitnessFormat;

// Says which claim failed: abort() alone leaves that to a debugger.
void require(bool holds, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s: line %u does not hold\n", here.file_name(), here.line());
  std::abort();
}

std::optional<Witness> read(const WitnessFormat& format, std::string_view text,
                            std::size_t head_bytes) {
  auto source = commlens::Source::memory("fuzz", text);
  Witness witness;
  witness.path = "fuzz_0";
  try {
    std::string head(std::min(head_bytes, text.size()), '\0');
    head.resize(source.read({head.data(), head.size()}));
    format.sniff(head);
    format.read(source, head, witness);
  } catch (const commlens::Error& error) {
    require(error.kind() == commlens::ErrorKind::input);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return std::nullopt;
  }
  return witness;
}

void check(const Witness& witness) {
  const auto known = [&witness](commlens::StringId id) {
    return !id.valid() || id.index() < witness.strings.size();
  };
  for (const commlens::WitnessCall& call : witness.calls) {
    require(call.group < witness.groups.size());
    require(known(call.op_text) && known(call.in_shape) && known(call.out_shape));
    require(known(call.in_dtype) && known(call.out_dtype) && known(call.thread) &&
            known(call.code));
  }
  for (const commlens::WitnessProgress& row : witness.progress)
    require(row.group < witness.groups.size());
}

// As the dump of another rank.
void move_rank(Witness& witness) {
  if (witness.rank < 0) return;
  ++witness.rank;
  for (commlens::WitnessCall& call : witness.calls) call.rank = witness.rank;
  for (commlens::WitnessProgress& row : witness.progress) row.rank = witness.rank;
}

void judge(std::vector<Witness> witnesses) {
  std::vector<commlens::DiagnosisFinding> findings;
  for (const commlens::Verdict* verdict : commlens::verdicts()) {
    for (auto& finding : verdict->find(witnesses)) findings.push_back(std::move(finding));
  }
  for (const auto& finding : commlens::order_findings(std::move(findings)))
    require(!finding.message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const WitnessFormat* format : commlens::witness_formats()) {
    auto whole = read(*format, text, size);
    auto parted = read(*format, text, size / 3);
    require(whole.has_value() == parted.has_value());
    if (!whole) continue;
    check(*whole);
    require(whole->calls.size() == parted->calls.size());
    move_rank(*parted);
    std::vector<Witness> both;
    both.push_back(std::move(*whole));
    both.push_back(std::move(*parted));
    judge(std::move(both));
  }
  return 0;
}
