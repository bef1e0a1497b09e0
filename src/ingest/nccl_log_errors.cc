// Warnings and errors of NCCL's, told apart by what they mean for the job.
//
// A warning that says only "the other side is gone" follows from something that another process
// wrote: it gets a kind of its own, so that no verdict takes it for the cause.
#include <algorithm>
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

struct Pattern {
  std::string_view words;  // in the message
  LogEventKind kind;
};

using Kind = LogEventKind;

// Messages that need no warning level. The first that fits counts.
constexpr std::array<Pattern, 62> kPatterns = {{
    {"Duplicate GPU detected", Kind::duplicate_gpu},
    {"Failed to CUDA calloc", Kind::out_of_memory},
    {"Failed to CUDA malloc", Kind::out_of_memory},
    {"Mismatched collective detected", Kind::mismatch},
    {"caused by a collective mismatch around rank", Kind::mismatch},
    {"Mismatched NCCL version detected", Kind::version_mismatch},
    {"NCCL version mismatch with remote peer", Kind::version_mismatch},
    {"does not loop back to start", Kind::topology},
    {"does not contain rank", Kind::topology},
    {"could not find rank", Kind::topology},
    {"No algorithm/protocol available", Kind::no_algorithm},
    {"No algorithm available", Kind::no_algorithm},
    {"Error while creating shared memory segment", Kind::shared_memory},
    {"Error while attaching to shared memory segment", Kind::shared_memory},
    {"Call to posix_fallocate failed", Kind::shared_memory},
    {"Call to shm_open failed", Kind::shared_memory},
    {"/dev/shm/nccl-", Kind::shared_memory},
    {"Too many open files", Kind::open_files},
    {"P2P is disabled between NVLINK connected", Kind::driver},
    {"Call to ftruncate failed", Kind::shared_memory},
    {"Call to ibv_reg_mr failed with error Cannot allocate memory", Kind::locked_memory},
    {"Call to ibv_create_cq failed with error Cannot allocate memory", Kind::locked_memory},
    {"Call to ibv_create_qp failed with error Cannot allocate memory", Kind::locked_memory},
    {"no socket interface found", Kind::no_interface},
    {"No socket interface found", Kind::no_interface},
    {"No interface found in the same subnet", Kind::no_interface},
    {"Got completion from peer", Kind::ib_completion},
    {"Got completion with error", Kind::ib_completion},
    {"Got CQE with error", Kind::ib_completion},
    {"completed with error", Kind::ib_completion},
    {"marked as failed", Kind::ib_completion},
    {"Got async event", Kind::ib_event},
    {"Got async fatal event", Kind::ib_event},
    {"Got non-fatal async event", Kind::ib_event},
    {"Call to ibv_", Kind::ib_setup},
    {"ibv_modify_qp failed", Kind::ib_setup},
    {"hipIpcGetMemHandle failed", Kind::p2p_failed},
    {"hipIpcOpenMemHandle failed", Kind::p2p_failed},
    {"cudaIpcOpenMemHandle failed", Kind::p2p_failed},
    {"Failed to open CUDA IPC handle", Kind::p2p_failed},
    {"failed to open CUDA IPC handle", Kind::p2p_failed},
    {"peer mapping resources exhausted", Kind::p2p_failed},
    {"failed to peer with device", Kind::p2p_failed},
    {"Missing \"", Kind::setup_warning},
    {"Connection closed by remote peer", Kind::peer_gone},
    {"Connection reset by peer", Kind::peer_gone},
    {"connection closed by remote peer", Kind::peer_gone},
    {"Broken pipe", Kind::peer_gone},
    {"Failed to execute operation", Kind::proxy_failed},
    {"Socket recv failed while polling", Kind::proxy_failed},
    {"Proxy Call to rank", Kind::proxy_failed},
    {"[Proxy Progress]", Kind::proxy_failed},
    {"communicator encountered a fatal error", Kind::proxy_failed},
    {"socketPollConnect", Kind::connect_failed},
    {"socketStartConnect", Kind::connect_failed},
    {"exceeded retries", Kind::connect_failed},
    {"exceeded error retry count", Kind::connect_failed},
    {"Connect to ", Kind::connect_failed},
    {"Could not find any local path from gpu", Kind::topology},
    {"No NVLINK route found", Kind::topology},
    {"fabric manager", Kind::driver},
    {"No CUDA devices found", Kind::driver},
}};

// Harmless, or said about something that may yet be done otherwise.
constexpr std::array<std::string_view, 8> kHarmless = {
    "Failed to open libibverbs.so", "Plugin load",           "Failed to initialize any NET plugin",
    "Failed to open libnvidia-ml",  "set by environment to", "NUMA auto balancing enabled",
    "Unable to open libcudart",     "Kernel version:"};

// What a CUDA call's own words mean.
LogEventKind kind_of_cuda_error(std::string_view words) {
  if (contains_word(words, "out of memory")) return Kind::out_of_memory;
  constexpr std::array<std::string_view, 9> kDriver = {
      "operation not supported", "driver version is insufficient", "system not yet initialized",
      "system driver mismatch",  "not supported in the installed", "no kernel image",
      "forward compatibility",   "unsupported ptx version",        "invalid device ordinal"};
  for (const std::string_view text : kDriver) {
    if (contains_word(words, text)) return Kind::driver;
  }
  if (contains_word(words, "peer access") || contains_word(words, "peer mapping"))
    return Kind::p2p_failed;
  return Kind::cuda_failure;
}

// "Cuda failure 2 'out of memory'", "Cuda failure common.cu:891 'unhandled'", "HIP failure 'x'"
bool read_cuda_failure(const LogText& text, LogEvent& event) {
  const std::size_t at =
      std::min(text.text().find("Cuda failure"), text.text().find("HIP failure"));
  if (at == std::string_view::npos) return false;
  const std::string_view rest = text.text().substr(at);
  const std::size_t open = rest.find('\'');
  if (open == std::string_view::npos) return false;
  const std::size_t close = rest.find('\'', open + 1);
  if (close == std::string_view::npos) return false;
  event.detail = rest.substr(open + 1, close - open - 1);
  event.kind = kind_of_cuda_error(event.detail);
  return true;
}

// "Message truncated : received 256 bytes instead of 4"
bool read_truncated(const LogRecord& record, const LogText& text, LogEvent& event) {
  if (!text.has("essage truncated : rece")) return false;
  const bool bootstrap = record.place.find("bootstrap") != std::string_view::npos;
  event.kind = bootstrap ? Kind::bootstrap_truncated : Kind::truncated;
  const std::size_t at = text.text().find("rece");
  event.detail = trimmed(text.text().substr(at));
  return true;
}

// "Call to connect failed : Connection timed out", "Call to recv from 10.0.0.1<4> failed : Broken
// pipe"
bool read_system_call(const LogText& text, LogEvent& event) {
  if (!text.has("Call to ") || !text.has(" failed")) return false;
  const std::string_view words = text.text();
  if (contains_word(words, "connection closed") || contains_word(words, "broken pipe") ||
      contains_word(words, "reset by peer")) {
    event.kind = Kind::peer_gone;
  } else if (words.find("connect") < words.find(" failed") || contains_word(words, "timed out") ||
             contains_word(words, "no route to host") || contains_word(words, "refused")) {
    event.kind = Kind::connect_failed;
  } else {
    event.kind = Kind::system_call;
  }
  return true;
}

// "10.0.0.1<41109>" behind one of the words that name a peer.
std::string peer_of(const LogText& text) {
  for (const std::string_view key : {"remote peer ", "from peer ", "to peer ", "recv from ",
                                     "Connect to ", "connect to ", "send to "}) {
    if (const auto peer = text.value(key, "<")) return safe_start(*peer, 80);
  }
  return {};
}

// "rank 2 and rank 0 both on CUDA device 1000"
void read_pair(const LogText& text, LogEvent& event) {
  const auto first = text.number("rank ");
  const auto second = text.behind("and ").number("rank ");
  if (first && second) event.ranks = {*first, *second};
  event.detail = text.value("CUDA device ", ",.").value_or("");
}

// "status=12", "with error 12,", "status=IBV_WC_RETRY_EXC_ERR(12)" (2.30)
std::int64_t status_of(const LogText& text) {
  const auto status = text.value("status=", ",");
  if (!status) return text.number("with error ", ",").value_or(-1);
  if (const auto number = decimal_number(*status)) return *number;
  return LogText(*status, true).number("(", ")").value_or(-1);
}

void read_details(const LogText& text, LogEvent& event) {
  switch (event.kind) {
    case Kind::duplicate_gpu: read_pair(text, event); break;
    case Kind::mismatch:
      if (const auto rank = text.number("around rank ", ".")) event.ranks = {*rank};
      break;
    case Kind::ib_completion:
      event.code = status_of(text);
      event.detail = peer_of(text);
      break;
    case Kind::peer_gone:
    case Kind::proxy_failed: event.detail = peer_of(text); break;
    case Kind::connect_failed:
      event.detail = peer_of(text);
      if (const std::size_t words = text.text().rfind(" : "); words != std::string_view::npos)
        event.detail += (event.detail.empty() ? "" : ": ") +
                        safe_start(trimmed(text.text().substr(words + 3)), 80);
      break;
    case Kind::other_warning:
    case Kind::system_call:
    case Kind::ib_event:
    case Kind::ib_setup:
    case Kind::topology: event.detail = safe_start(trimmed(text.text()), 160); break;
    default: break;
  }
}

// "init.cc:903 -> 5 [Async thread]"; "init.cc:2353 Cuda Host Alloc Size 4" and "bootstrap.cc:77 x"
// are none.
bool read_back_trace(const LogText& text, LogEvent& event) {
  const std::size_t arrow = text.text().find(" -> ");
  if (arrow == std::string_view::npos || arrow > 160) return false;
  const std::string_view place = text.text().substr(0, arrow);
  const std::size_t colon = place.rfind(':');
  if (place.find(' ') != std::string_view::npos || colon == std::string_view::npos ||
      !decimal_number(place.substr(colon + 1)))
    return false;
  const auto code = text.number(" -> ");
  if (!code) return false;
  event.kind = Kind::back_trace;
  event.code = *code;
  return true;
}

bool is_retry(const LogText& text) { return text.has("retrying"); }

// What a message means; false: nothing that went wrong.
bool read_event(const LogRecord& record, const LogText& text, LogEvent& event) {
  if (read_cuda_failure(text, event) || read_truncated(record, text, event)) return true;
  for (const Pattern& pattern : kPatterns) {
    if (!text.has(pattern.words)) continue;
    event.kind = pattern.kind;
    return true;
  }
  if (read_system_call(text, event)) return true;
  if (!record.warning) return false;
  event.kind = record.place.starts_with("graph/") ? Kind::topology : Kind::other_warning;
  return true;
}

// A link that failed says so itself; other events pass by.
bool is_passing_event(const LogEvent& event, const LogText& text) {
  return event.kind == Kind::ib_event && !contains_word(text.text(), "port error") &&
         !contains_word(text.text(), "fatal") && !contains_word(text.text(), "port down");
}

}  // namespace

Understood read_errors(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  LogEvent event;
  if (!record.warning && read_back_trace(text, event)) {
    builder.add(std::move(event), record);
    return Understood::yes;
  }
  for (const std::string_view harmless : kHarmless) {
    if (text.has(harmless)) return Understood::yes;
  }
  if (is_retry(text)) return Understood::yes;
  if (!read_event(record, text, event)) return Understood::no;
  // An error that NCCL prints as INFO it could do without; a link event is one it survived.
  const bool counts = record.warning || event.kind == Kind::ib_completion;
  if (!counts || is_passing_event(event, text)) return Understood::yes;
  read_details(text, event);
  if (trimmed(record.message).empty()) return Understood::cut;
  builder.add(std::move(event), record);
  return Understood::yes;
}

// PyTorch's exceptions end with NCCL's last warning: "Last error:" and the message, with or without
// a line break between.
Understood read_last_error(const LogRecord& record, LogBuilder& builder) {
  if (record.kind == LogRecord::Kind::nccl) return Understood::no;
  std::string_view words = trimmed(record.message);
  constexpr std::string_view kLast = "Last error:";
  if (const std::size_t at = words.find(kLast); at != std::string_view::npos)
    words = trimmed(words.substr(at + kLast.size()));
  constexpr std::array<std::string_view, 12> kBeginnings = {"Duplicate GPU detected",
                                                            "Cuda failure",
                                                            "Failed to CUDA calloc",
                                                            "Error while creating shared memory",
                                                            "Error: failed to extend",
                                                            "Call to ",
                                                            "socketStartConnect",
                                                            "socketPollConnect",
                                                            "socketProgress",
                                                            "NET/IB",
                                                            "Bootstrap : no socket interface",
                                                            "Message truncated"};
  const bool known = std::any_of(kBeginnings.begin(), kBeginnings.end(),
                                 [words](auto beginning) { return words.starts_with(beginning); });
  if (!known || is_retry(LogText(words, true))) return Understood::no;
  LogRecord warning = record;
  warning.warning = true;
  LogEvent event;
  const LogText text(words, record.ended);
  if (!read_event(warning, text, event) || event.kind == Kind::other_warning) return Understood::no;
  read_details(text, event);
  builder.add(std::move(event), record);
  return Understood::yes;
}

}  // namespace commlens
