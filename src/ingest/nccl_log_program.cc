// Lines of the program, its launcher and of nccl-tests that say how the job went.
//
//   #  Rank  0 Group  0 Pid 25 on node-a device  0 [0x10] NVIDIA A100     who is who
//       1048576  262144  float  sum  -1  74.78  14.02 ...                  a result: communication
//       worked
//   Test NCCL failure common.cu:908 'internal error / ...'
//   torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
//   torch.distributed.DistBackendError: NCCL error in: ...NCCLUtils.hpp:275, unhandled cuda error,
//   NCCL version 2.20.5 Fatal Python error: Segmentation fault          traincode: exitcode: -9
//   (SIGKILL) [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 5000 ms
//   torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients
//   joined.
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

using Kind = LogEventKind;

struct Pattern {
  std::string_view words;
  Kind kind;
};
constexpr std::array<Pattern, 31> kPatterns = {{
    {"CUDA out of memory. Tried to allocate", Kind::program_out_of_memory},
    {"HIP out of memory. Tried to allocate", Kind::program_out_of_memory},
    {"CUDA error: out of memory", Kind::program_out_of_memory},
    {"RuntimeError: CUDA error: ", Kind::cuda_failure},
    {"AcceleratorError: CUDA error: ", Kind::cuda_failure},
    {"NCCL error in: ", Kind::program_nccl_error},
    {"RuntimeError: NCCL error", Kind::program_nccl_error},
    {"RuntimeError: NCCL Error", Kind::program_nccl_error},
    {"ncclSystemError:", Kind::program_nccl_error},
    {"ncclInternalError:", Kind::program_nccl_error},
    {"ncclUnhandledCudaError:", Kind::program_nccl_error},
    {"ncclInvalidUsage:", Kind::program_nccl_error},
    {"ncclRemoteError:", Kind::program_nccl_error},
    {"ncclCommInitRank failed:", Kind::program_nccl_error},
    {"Test NCCL failure", Kind::test_failure},
    {"Fatal Python error: Segmentation fault", Kind::signal},
    {"Signal: Segmentation fault", Kind::signal},
    {"*** Process received signal ***", Kind::signal},
    {"Segmentation fault (core dumped)", Kind::signal},
    {"Caught signal 11 (Segmentation fault", Kind::signal},
    {"failed to pass monitoredBarrier", Kind::barrier_timeout},
    {"failed to reach monitoredBarrier", Kind::barrier_timeout},
    {"waiting for clients.", Kind::store_timeout},
    {"retrieving ncclUniqueId from [", Kind::id_timeout},
    {"store->get('", Kind::store_timeout},
    {"[missing ranks: ", Kind::stalled},
    {"Bus error (core dumped)", Kind::signal},
    {"Signal: Bus error", Kind::signal},
    {"wait timeout after ", Kind::store_timeout},
    {"oom-kill", Kind::program_out_of_memory},
    {"exited on signal", Kind::signal},
}};

// "#   Rank  0 Pid  15833 on node-000 device  0 [0x02] GeForce GTX 1080 Ti"
bool read_test_rank(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  if (!text.has(" Pid ") || !text.has(" device ")) return false;
  const auto words = words_of_line(text.text());
  const auto behind = [&words](std::string_view key) -> std::string_view {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == key) return words[i + 1];
    }
    return {};
  };
  const auto rank = decimal_number(behind("Rank"));
  const auto pid = decimal_number(behind("Pid"));
  const auto device = decimal_number(behind("device"));
  if (!rank || !pid || !device || behind("on").empty()) return false;
  LogFacts::TestRank row;
  row.rank = *rank;
  row.pid = *pid;
  row.device = *device;
  row.host = behind("on");
  row.line = record.line;
  const std::size_t close = text.text().rfind("] ");
  if (close != std::string_view::npos)
    row.gpu = trimmed(text.text().substr(close + 2)).substr(0, 80);
  if (builder.facts().test_ranks.size() < 100'000)
    builder.facts().test_ranks.push_back(std::move(row));
  return true;
}

// A row of nccl-tests: size, count, type and then only numbers.
bool is_result_row(std::string_view message) {
  const auto words = words_of_line(message);
  if (words.size() < 8 || words.size() > 16) return false;
  const auto size = decimal_number(words[0]);
  const auto count = decimal_number(words[1]);
  constexpr std::array<std::string_view, 14> kTypes = {
      "float", "half",   "double",   "int8", "uint8",    "int32",    "uint32",
      "int64", "uint64", "bfloat16", "char", "fp8_e4m3", "fp8_e5m2", "bool"};
  if (!size || !count) return false;
  for (const std::string_view type : kTypes) {
    if (words[2] == type) return true;
  }
  return false;
}

// "exitcode: -9" of torchrun's: a signal is negative. 0 and 1 say nothing that the program did not.
std::int64_t exit_signal(const LogText& text) {
  for (const std::string_view key : {"exitcode: ", "exitcode  : ", "exit code: "}) {
    const auto code = text.number(key, ")(,.");
    if (code && *code < 0 && *code > -65) return -*code;
  }
  return 0;
}

// "  rank      : 3 (local_rank: 3)" of torchrun's list of failures, which the exit code follows.
void read_listed_rank(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  const std::string_view line = trimmed(text.text());
  if (!line.starts_with("rank ")) return;
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || line.find_first_not_of(' ', 4) != colon) return;
  if (const auto rank = LogText(line.substr(colon + 2), record.ended).number(""))
    builder.set_listed_rank(*rank, record.line);
}

// "1: [allreduce.x, ...]" behind Horovod's "Missing ranks:" or "Stalled ranks:".
bool read_stalled_rank(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  const std::string_view line = trimmed(text.text());
  const bool heading = line.ends_with("Missing ranks:") || line.ends_with("Stalled ranks:");
  if (heading) {
    builder.open_list(record.line);
    return true;
  }
  if (!builder.in_list(record.line)) return false;
  const std::size_t colon = line.find(": [");
  const auto rank = decimal_number(line.substr(0, std::min(colon, line.size())));
  if (colon == std::string_view::npos || !rank) return false;
  builder.open_list(record.line);
  LogEvent event;
  event.kind = Kind::stalled;
  event.ranks = {*rank};
  builder.add(std::move(event), record);
  return true;
}

bool read_exit(const LogRecord& record, const LogText& text, LogBuilder& builder) {
  const std::int64_t signal = exit_signal(text);
  // 15 is torchrun ending the others.
  if (signal == 0 || signal == 15) return false;
  LogEvent event;
  event.kind = Kind::exit_code;
  event.code = signal;
  event.rank = builder.listed_rank(record.line, 2);
  builder.add(std::move(event), record);
  return true;
}

void read_details(const LogText& text, LogEvent& event) {
  switch (event.kind) {
    case Kind::barrier_timeout: {
      // "[Rank 0]: Ranks 1, 2 failed to pass ..." or "Rank 3 failed to pass ..."
      const std::size_t end = text.text().find(" failed to ");
      const std::string_view before = text.text().substr(0, end);
      const std::size_t at = before.rfind("ank");
      if (at == std::string_view::npos) break;
      const std::size_t from = before.find(' ', at);
      if (from != std::string_view::npos) event.ranks = number_list(before.substr(from));
      break;
    }
    case Kind::test_failure:
    case Kind::cuda_failure: {
      const std::size_t open = text.text().find_first_of("'");
      event.detail =
          safe_start(trimmed(event.kind == Kind::cuda_failure
                                 ? text.behind("CUDA error: ").text()
                                 : text.text().substr(std::min(open, text.text().size()))),
                     160);
      break;
    }
    case Kind::stalled: event.ranks = number_list(text.behind("[missing ranks: ").text()); break;
    case Kind::id_timeout:
      if (const auto rank = text.number("ncclUniqueId from [", "]")) event.ranks = {*rank};
      break;
    default: event.detail = safe_start(trimmed(text.text()), 160); break;
  }
}

// Work that by custom one rank does alone while the others wait for it.
Kind lonely_work(const LogText& text) {
  if (!contains_word(text.text(), "checkpoint") && !contains_word(text.text(), "state dict") &&
      !contains_word(text.text(), "sav"))
    return Kind::other_warning;
  for (const std::string_view words :
       {"checkpoint saved", "saved checkpoint", "successfully saved", "checkpoint of size",
        "finished saving", "saving checkpoint took"}) {
    if (contains_word(text.text(), words)) return Kind::checkpoint_ends;
  }
  for (const std::string_view words :
       {"saving checkpoint", "saving model checkpoint", "saving the checkpoint",
        "saving model weights", "getting full model state dict", "retrieving full model state dict",
        "writing checkpoint"}) {
    if (contains_word(text.text(), words)) return Kind::checkpoint_begins;
  }
  return Kind::other_warning;
}

}  // namespace

Understood read_program(const LogRecord& record, LogBuilder& builder) {
  if (record.kind == LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  if (text.text().size() < 8) return Understood::no;
  LogEvent event;
  if (read_test_rank(record, text, builder)) return Understood::yes;
  if (is_result_row(record.message)) {
    event.kind = Kind::result_row;
    builder.add(std::move(event), record);
    return Understood::yes;
  }
  for (const Pattern& pattern : kPatterns) {
    if (!text.has(pattern.words)) continue;
    event.kind = pattern.kind;
    read_details(text, event);
    builder.add(std::move(event), record);
    return Understood::yes;
  }
  if (read_stalled_rank(record, text, builder)) return Understood::yes;
  read_listed_rank(record, text, builder);
  if (read_exit(record, text, builder)) return Understood::yes;
  event.kind = lonely_work(text);
  if (event.kind == Kind::other_warning) return Understood::no;
  builder.add(std::move(event), record);
  return Understood::yes;
}

}  // namespace commlens
