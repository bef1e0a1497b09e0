// What ended the job, by the errors in its logs: the first cause, with what follows from it.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/log_causes.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

using Kind = LogEventKind;

// What a kind of message means: which verdict, in which words, and what to try.
struct Meaning {
  Kind kind;
  DiagnosisKind verdict;
  std::string_view what;
  std::string_view advice;
};

constexpr std::array<Meaning, 28> kMeanings = {{
    {Kind::duplicate_gpu, DiagnosisKind::duplicate_gpu, "two ranks use one GPU",
     "give each process of a host its own GPU: torch.cuda.set_device(LOCAL_RANK) before the first "
     "communication, "
     "one process per GPU from the launcher, and CUDA_VISIBLE_DEVICES not set to the same GPU for "
     "all"},
    {Kind::out_of_memory, DiagnosisKind::out_of_memory,
     "a GPU had no memory left for NCCL's buffers",
     "leave NCCL room: smaller batches, fewer communicators, a lower NCCL_BUFFSIZE or "
     "NCCL_MAX_NCHANNELS; look with "
     "nvidia-smi for other processes on that GPU"},
    {Kind::program_out_of_memory, DiagnosisKind::out_of_memory, "the program ran out of memory",
     "smaller batches or sequences, activation checkpointing, sharding; the errors of the other "
     "ranks follow from it"},
    {Kind::version_mismatch, DiagnosisKind::misconfiguration,
     "ranks run different versions of NCCL",
     "use the same image on all hosts, and see which libnccl.so LD_LIBRARY_PATH finds"},
    {Kind::no_algorithm, DiagnosisKind::misconfiguration,
     "NCCL_ALGO and NCCL_PROTO leave no way to do an operation",
     "unset NCCL_ALGO and NCCL_PROTO, or allow what the message names"},
    {Kind::bad_setting, DiagnosisKind::misconfiguration, "a setting has a value that NCCL refuses",
     "correct or unset the variable"},
    {Kind::open_files, DiagnosisKind::misconfiguration,
     "a process may not open more files or sockets",
     "raise the limit: ulimit -n 1048576, in the container and for the daemon that starts it"},
    {Kind::driver, DiagnosisKind::misconfiguration, "the driver does not fit the program",
     "compare the driver (nvidia-smi) with the CUDA version of the program; on NVSwitch systems "
     "start "
     "nvidia-fabricmanager in the driver's version"},
    {Kind::no_interface, DiagnosisKind::misconfiguration,
     "NCCL finds no network interface to start with",
     "name one that all hosts reach each other by: NCCL_SOCKET_IFNAME=eth0"},
    {Kind::shared_memory, DiagnosisKind::misconfiguration,
     "shared memory between processes cannot be made",
     "in a container: --shm-size=8g or --ipc=host; else free /dev/shm"},
    {Kind::locked_memory, DiagnosisKind::misconfiguration,
     "memory cannot be registered with the network adapter",
     "raise the limit of locked memory: ulimit -l unlimited, in the container and for the daemon "
     "that starts it"},
    {Kind::signal, DiagnosisKind::crash, "a process was ended by a signal",
     "look for its stack or core dump; signal 9 is mostly the kernel's out-of-memory killer: see "
     "dmesg"},
    {Kind::exit_code, DiagnosisKind::crash, "a process was ended by a signal",
     "look for its stack or core dump; signal 9 is mostly the kernel's out-of-memory killer: see "
     "dmesg"},
    {Kind::cuda_failure, DiagnosisKind::crash, "a CUDA call failed",
     "the fault is mostly in an earlier kernel: run with CUDA_LAUNCH_BLOCKING=1, look for Xid "
     "messages in dmesg"},
    {Kind::mismatch, DiagnosisKind::op_mismatch,
     "NCCL itself saw that ranks call different collectives",
     "record all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL, or "
     "TORCH_DISTRIBUTED_DEBUG=DETAIL, and compare the "
     "calls around the rank that is named"},
    {Kind::truncated, DiagnosisKind::size_mismatch,
     "a message has another length than its receiver expects",
     "ranks call the same collective with different sizes: record all ranks with NCCL_DEBUG=INFO "
     "NCCL_DEBUG_SUBSYS=COLL, and look for data that is divided unevenly"},
    {Kind::bootstrap_truncated, DiagnosisKind::op_mismatch,
     "a message of one step arrived where another was expected while ranks connect",
     "ranks create communicators or send and receive in a different order, or from several "
     "threads: record all ranks "
     "with NCCL_DEBUG_SUBSYS=INIT,COLL and compare the order"},
    {Kind::topology, DiagnosisKind::misconfiguration,
     "the ranks do not agree on rings: they see different machines",
     "compare GPUs, network adapters, NCCL_TOPO_FILE, plugins and NCCL's version of all hosts"},
    {Kind::p2p_failed, DiagnosisKind::transport_error, "memory of another GPU cannot be opened",
     "try NCCL_P2P_DISABLE=1; in containers share the IPC and PID namespaces; see that all "
     "processes see all GPUs"},
    {Kind::ib_setup, DiagnosisKind::transport_error,
     "a connection over InfiniBand or RoCE cannot be made",
     "RoCE: set NCCL_IB_GID_INDEX to the index of RoCE v2 (show_gids); adapters of different rails "
     "may not reach each "
     "other: NCCL_CROSS_NIC=0 and the same NCCL_IB_HCA order on all hosts; test with ib_write_bw "
     "between the pair"},
    {Kind::ib_completion, DiagnosisKind::transport_error, "a transfer over the network failed",
     "status 12 is a peer that does not answer: look at cables, switch and PFC counters, and "
     "whether the peer's process "
     "had ended; test the pair with ib_write_bw; NCCL_IB_TIMEOUT=22 only hides short "
     "interruptions"},
    {Kind::ib_event, DiagnosisKind::transport_error, "a network port reported a failure",
     "look at the port's counters and at the switch"},
    {Kind::connect_failed, DiagnosisKind::transport_error, "a rank cannot connect to another",
     "name the interface that all hosts reach each other by (NCCL_SOCKET_IFNAME), open the ports "
     "between the hosts, and "
     "see that the other side is running"},
    {Kind::system_call, DiagnosisKind::transport_error, "a call of the operating system failed",
     "the error's own words name what is missing"},
    {Kind::peer_gone, DiagnosisKind::transport_error, "the other side closed a connection",
     "it ended first: read its log for the earliest error"},
    {Kind::proxy_failed, DiagnosisKind::transport_error, "a connection was given up",
     "look for the earliest warning of the other ranks"},
    {Kind::test_failure, DiagnosisKind::crash, "the test program stopped with an error of NCCL's",
     "run again with NCCL_DEBUG=INFO for the reason"},
    {Kind::other_warning, DiagnosisKind::crash, "NCCL gave up after a warning",
     "the warning's own words name what is missing"},
}};

const Meaning* meaning_of(Kind kind) {
  const auto found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [kind](const Meaning& meaning) { return meaning.kind == kind; });
  return found == kMeanings.end() ? nullptr : &*found;
}

// What an exception that names NCCL means, by its words.
Meaning meaning_of_words(const LogEvent& event) {
  const std::string_view text = event.text;
  const auto has = [text](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  };
  Meaning meaning{event.kind, DiagnosisKind::crash, "NCCL failed",
                  "run again with NCCL_DEBUG=INFO on all ranks: the first warning says why"};
  if (has("unhandled system error") || has("remote process exited") || has("remote error") ||
      has("ncclRemoteError") || has("ncclSystemError"))
    meaning.verdict = DiagnosisKind::transport_error;
  return meaning;
}

Meaning meaning_of(const LogEvent& event) {
  const Meaning* known = meaning_of(event.kind);
  return known != nullptr ? *known : meaning_of_words(event);
}

// The ranks of many events of few processes.
class EventRanks {
 public:
  explicit EventRanks(const LogView& view) : view_(view) {}
  std::optional<std::int64_t> of(const LogEventRef& ref) {
    if (ref.event->rank >= 0) return ref.event->rank;
    const auto [found, is_new] =
        known_.try_emplace({ref.witness, ref.event->process, ref.event->device});
    if (is_new)
      found->second = rank_of_process(view_, *ref.witness, ref.event->process, ref.event->device);
    return found->second;
  }

 private:
  const LogView& view_;
  std::map<std::tuple<const Witness*, LogProcessId, std::int64_t>, std::optional<std::int64_t>>
      known_;
};

std::string proof(const LogEventRef& ref) {
  return evidence_line(*ref.witness, ref.event->line, ref.event->text);
}

// The ranks of what only followed; those of the cause are none of them.
std::vector<std::int64_t> followers_of(const LogView& view, const LogCause& cause) {
  EventRanks known(view);
  std::set<std::int64_t> own;
  std::set<std::int64_t> ranks;
  if (const auto rank = known.of(cause.root)) own.insert(*rank);
  for (const LogEventRef& ref : cause.alike) {
    if (const auto rank = known.of(ref)) own.insert(*rank);
  }
  for (const LogEventRef& ref : cause.followers) {
    if (const auto rank = known.of(ref); rank && !own.contains(*rank)) ranks.insert(*rank);
  }
  return {ranks.begin(), ranks.end()};
}

// Empty where the line does not say it.
std::string host_of(const LogEventRef& ref) {
  return ref.event->process.valid() ? ref.witness->log->processes[ref.event->process.index()].host
                                    : std::string();
}

// Every rank that shares a device with another.
void add_duplicates(const LogCause& cause, DiagnosisFinding& finding) {
  std::vector<LogEventRef> all = cause.alike;
  all.insert(all.begin(), cause.root);
  finding.message.clear();
  // GPUs of two machines have the same numbers.
  std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> gpus;
  for (const LogEventRef& ref : all)
    gpus[{host_of(ref), ref.event->detail}].insert(ref.event->ranks.begin(),
                                                   ref.event->ranks.end());
  for (const auto& [gpu, ranks] : gpus) {
    const std::string where =
        gpu.second + (gpus.size() > 1 && !gpu.first.empty() ? " of " + gpu.first : "");
    finding.message += (finding.message.empty() ? "" : "; ") +
                       ranks_in_words({ranks.begin(), ranks.end()}) + " share a GPU (" + where +
                       ")";
    for (const std::int64_t rank : ranks)
      finding.differing.push_back({rank, "device", where, "a device of its own"});
  }
  std::sort(finding.differing.begin(), finding.differing.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

void add_evidence(const LogCause& cause, DiagnosisFinding& finding) {
  finding.evidence.push_back(proof(cause.root));
  for (const auto* refs : {&cause.alike, &cause.followers}) {
    for (const LogEventRef& ref : *refs) {
      if (finding.evidence.size() < kMostLogEvidence) finding.evidence.push_back(proof(ref));
    }
  }
}

// RCCL says at the start what the machine lacks; it is the cause where memory of peers then fails.
bool is_unfit_for_rccl(const LogView& view, const LogCause& cause, DiagnosisFinding& finding) {
  if (cause.root.event->kind != Kind::p2p_failed) return false;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind == Kind::setup_warning)
        finding.evidence.push_back(evidence_line(*witness, event.line, event.text));
    }
  }
  if (finding.evidence.empty()) return false;
  finding.kind = DiagnosisKind::misconfiguration;
  finding.message =
      "the machine is not set up for access between GPUs, and opening memory of another GPU failed";
  finding.advice =
      "set HSA_FORCE_FINE_GRAIN_PCIE=1 and the kernel's iommu=pt amd_iommu=on as the warnings say, "
      "then run again";
  return true;
}

// "; around ranks 9, 11": NCCL names neighbours, not the culprit.
std::string around(const LogCause& cause) {
  std::set<std::int64_t> ranks(cause.root.event->ranks.begin(), cause.root.event->ranks.end());
  for (const LogEventRef& ref : cause.alike)
    ranks.insert(ref.event->ranks.begin(), ref.event->ranks.end());
  return ranks.empty() ? "" : "; around " + ranks_in_words({ranks.begin(), ranks.end()});
}

std::string sentence(const LogView& view, const LogCause& cause, const Meaning& meaning) {
  const LogEvent& event = *cause.root.event;
  std::string text = who_wrote(view, *cause.root.witness, event.process, event.device, event.rank) +
                     ": " + std::string(meaning.what);
  if (!event.detail.empty()) text += " (" + event.detail + ")";
  if (event.code >= 0 && event.kind == Kind::ib_completion)
    text += ", status " + std::to_string(event.code);
  if (event.code > 0 && event.kind == Kind::exit_code)
    text += " (" + std::to_string(event.code) + ")";
  if (event.kind == Kind::mismatch) text += around(cause);
  if (!cause.followers.empty() && !cause.only_followers)
    text += "; " + std::to_string(cause.followers.size()) +
            (cause.followers.size() == 1 ? " message of others follows"
                                         : " messages of others follow") +
            " from it";
  return text;
}

Confidence confidence_of(const LogCause& cause) {
  if (cause.only_followers) return Confidence::undecidable;
  switch (cause.root.event->kind) {
    case Kind::duplicate_gpu:
    case Kind::version_mismatch:
    case Kind::no_algorithm:
    case Kind::shared_memory:
    case Kind::locked_memory:
    case Kind::no_interface: return Confidence::certain;
    default: return Confidence::likely;
  }
}

std::vector<DiagnosisFinding> find_errors(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  const auto cause = find_log_cause(view);
  // Waiting in vain comes before what is only said of the other side.
  if (!cause || (cause->only_followers && has_timed_out(view))) return {};
  const Meaning meaning = meaning_of(*cause->root.event);
  DiagnosisFinding finding;
  finding.kind = meaning.verdict;
  finding.message = sentence(view, *cause, meaning);
  finding.advice = meaning.advice;
  finding.confidence = confidence_of(*cause);
  finding.consequences = followers_of(view, *cause);
  is_unfit_for_rccl(view, *cause, finding);
  if (cause->root.event->kind == Kind::duplicate_gpu) add_duplicates(*cause, finding);
  if (cause->only_followers)
    finding.message += "; the log of the process that failed first is missing";
  add_evidence(*cause, finding);
  return {std::move(finding)};
}

}  // namespace

extern constinit const Verdict kLogErrors{
    .name = "log_errors",
    .summary = "the first error in the logs, and what follows from it",
    .find = find_errors,
};

}  // namespace commlens
