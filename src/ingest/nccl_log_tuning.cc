// What the tuner chose (NCCL_DEBUG_SUBSYS=TUNING), by rank 0 of a communicator only.
//
//   262144 Bytes -> Algo 0 proto 1 time 54.707825                                        2.20
//   - 2.22 AllReduce: 262144 Bytes -> Algo 1 proto 2
//   time 54.7                                  2.23 AllReduce: 33554432 Bytes -> Algo RING proto
//   SIMPLE channel{Lo..Hi}={0..31}          2.24 AllReduce [Symmetric]: 1024 Bytes -> Kernel
//   AllReduce_AGxLL_R nchannels 4 nthreads 512 AllGather [Copy Engine]: 1024 Bytes -> cudaMemcpy
//
// Up to 2.23 the bytes are the whole buffer's, later those of one rank.
#include <array>

#include "ingest/nccl_log_builder.h"

namespace commlens {
namespace {

std::string algorithm_name(std::string_view text) {
  constexpr std::array<std::string_view, 7> kNames = {
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  const auto number = decimal_number(text);
  if (!number) return std::string(text.substr(0, 40));
  const auto index = static_cast<std::size_t>(*number);
  return *number >= 0 && index < kNames.size() ? std::string(kNames[index]) : std::string();
}

std::string protocol_name(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames = {"LL", "LL128", "SIMPLE"};
  const auto number = decimal_number(text);
  if (!number) return std::string(text.substr(0, 40));
  const auto index = static_cast<std::size_t>(*number);
  return *number >= 0 && index < kNames.size() ? std::string(kNames[index]) : std::string();
}

// "AllReduce [Symmetric]" before the colon.
Op op_before(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(": "), text.size());
  return op_of_nccl_name(text.substr(0, end));
}

}  // namespace

Understood read_tuning(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  constexpr std::string_view kBytes = " Bytes -> ";
  const std::size_t bytes_end = text.text().find(kBytes);
  if (bytes_end == std::string_view::npos) return Understood::no;
  const std::string_view before = text.text().substr(0, bytes_end);
  const std::size_t blank = before.rfind(' ');
  const auto bytes = decimal_number(before.substr(blank == std::string_view::npos ? 0 : blank + 1));
  if (!bytes || *bytes < 0) return Understood::no;
  const LogText choice(text.text().substr(bytes_end + kBytes.size()), record.ended);
  LogTuning tuning;
  tuning.op = op_before(before);
  tuning.bytes = *bytes;
  if (choice.begins("Algo ")) {
    const auto algorithm = choice.value("Algo ");
    const auto protocol = choice.value("proto ");
    if (!algorithm || !protocol) return Understood::cut;
    tuning.algorithm = algorithm_name(*algorithm);
    tuning.protocol = protocol_name(*protocol);
    tuning.microseconds = choice.real("time ").value_or(0);
    if (const auto first = choice.number("channel{Lo..Hi}={", "..")) {
      tuning.of_one_rank = true;
      const auto last = choice.behind("channel{Lo..Hi}={").number("..", "}");
      if (!last) return Understood::cut;
      constexpr std::int64_t kMostChannels = 1 << 16;
      if (*last >= *first && *first >= 0 && *last < kMostChannels)
        tuning.channels = *last - *first + 1;
    }
  } else if (const auto kernel = choice.value("Kernel ")) {
    tuning.algorithm = kernel->substr(0, 80);
    tuning.channels = choice.number("nchannels ").value_or(-1);
    tuning.of_one_rank = true;
  } else {
    return Understood::yes;  // copy engines choose no algorithm
  }
  tuning.process = builder.process_of(record);
  tuning.line = record.line;
  builder.add(std::move(tuning));
  return Understood::yes;
}

}  // namespace commlens
