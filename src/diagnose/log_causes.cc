// An error in one process ends others: their sockets close, their proxies fail, their watchdogs
// give up, and these messages are more and often earlier in the file. So every kind of message has
// a place in the order of causes, from what nothing else explains to what something always
// explains. What all ranks of its communicators survived, going on with their calls until they
// ended them in good order, is no cause. Time stamps decide where all candidates have them and they
// differ; the order of lines in a file that several processes write to does not.
#include "diagnose/log_causes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace commlens {
namespace {

using Kind = LogEventKind;

// 0: no error. Then the lower, the nearer to a cause; from kFollower on only an echo.
constexpr int kFollower = 50;
int place_of(const LogEvent& event) {
  switch (event.kind) {
    case Kind::duplicate_gpu: return 1;
    case Kind::out_of_memory:
    case Kind::program_out_of_memory: return 2;
    case Kind::version_mismatch: return 3;
    case Kind::no_algorithm:
    case Kind::bad_setting:
    case Kind::open_files:
    case Kind::driver:
    case Kind::no_interface:
    case Kind::shared_memory:
    case Kind::locked_memory: return 4;
    case Kind::signal: return 5;
    // 6: abort() after something else was said.
    case Kind::exit_code: return event.code == 6 ? kFollower + 2 : 5;
    case Kind::cuda_failure: return 6;
    case Kind::mismatch:
    case Kind::truncated:
    case Kind::bootstrap_truncated: return 7;
    case Kind::topology: return 8;
    case Kind::p2p_failed: return 9;
    case Kind::ib_setup: return 10;
    // Flushed: the queue pair was in error before.
    case Kind::ib_completion: return event.code == 5 ? kFollower + 1 : 11;
    case Kind::ib_event: return 12;
    case Kind::connect_failed: return 13;
    case Kind::system_call: return 14;
    case Kind::peer_gone: return kFollower;
    case Kind::async_error:
    case Kind::program_nccl_error:
    case Kind::test_failure: return kFollower + 2;
    case Kind::proxy_failed: return kFollower + 3;
    case Kind::other_warning: return kFollower + 4;
    default: return 0;
  }
}

std::vector<LogEventRef> errors_of(const LogView& view) {
  std::vector<LogEventRef> errors;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (place_of(event) > 0) errors.push_back({witness, &event});
    }
  }
  return errors;
}

// The last back-trace of each process, if no communicator came up behind it.
using BackTraces = std::map<std::pair<const Witness*, LogProcessId>, std::int64_t>;

BackTraces last_back_traces(const LogView& view) {
  BackTraces last;
  for (const Witness* witness : view.logs) {
    for (const LogEvent& event : witness->log->events) {
      if (event.kind == Kind::back_trace) last[{witness, event.process}] = event.line;
    }
    for (const LogComm& comm : witness->log->comms) {
      const auto found = last.find({witness, comm.process});
      if (found != last.end() && comm.complete_line > found->second) last.erase(found);
    }
  }
  return last;
}

// A warning that nothing came of is no error.
void drop_idle_warnings(const LogView& view, std::vector<LogEventRef>& errors) {
  const BackTraces last = last_back_traces(view);
  std::erase_if(errors, [&last](const LogEventRef& error) {
    const Kind kind = error.event->kind;
    if (kind != Kind::other_warning && kind != Kind::system_call) return false;
    const auto found = last.find({error.witness, error.event->process});
    return found == last.end() || found->second < error.event->line;
  });
}

// Whether a communicator worked to its end: all of its ranks are there and destroyed it, and as far
// as calls are in the log all of them went on calling.
struct CleanEnd {
  std::map<const Witness*, std::int64_t> called_until;  // the line up to which all members called
  std::int64_t calls = 0;
  bool clean = false;
};

// Of each log, by communicator: the last call's line, and how many there are.
struct LastCall {
  std::int64_t line = 0;
  std::int64_t calls = 0;
};
using LastCalls = std::map<const Witness*, std::vector<LastCall>>;

LastCalls last_calls(const LogView& view) {
  LastCalls last;
  for (const Witness* witness : view.logs) {
    std::vector<LastCall>& rows = last[witness];
    rows.resize(witness->log->comms.size());
    for (const LogCall& call : witness->log->calls) {
      rows[call.comm.index()].line = call.line;
      ++rows[call.comm.index()].calls;
    }
  }
  return last;
}

CleanEnd clean_end_of(const LogGroup& group, const LastCalls& calls) {
  CleanEnd end;
  if (!group.joined_by_id || static_cast<std::int64_t>(group.members.size()) != group.nranks)
    return end;
  std::size_t silent = 0;
  for (const LogMember& member : group.members) {
    const LogComm& comm = member.facts();
    if (comm.end_line == 0 || comm.abort_line > 0) return end;
    const LastCall& last = calls.at(member.witness)[member.comm.index()];
    if (last.calls == 0) {
      ++silent;
      continue;
    }
    const auto [until, is_new] = end.called_until.try_emplace(member.witness, last.line);
    if (!is_new) until->second = std::min(until->second, last.line);
    end.calls += last.calls;
  }
  end.clean = silent == 0 || end.calls == 0;
  return end;
}

// What each process worked in, to find what it survived.
class Survivals {
 public:
  explicit Survivals(const LogView& view) {
    const LastCalls calls = last_calls(view);
    for (const LogGroup& group : view.groups) {
      ends_.push_back(clean_end_of(group, calls));
      for (const LogMember& member : group.members)
        of_[{member.witness, member.facts().process}].push_back(
            {ends_.size() - 1, member.facts().end_line});
    }
  }
  // Whether all that the process was in then, or later, worked to its end, and was used meanwhile.
  bool survived(const LogEventRef& error) const {
    const auto found = of_.find({error.witness, error.event->process});
    if (found == of_.end()) return false;
    bool used = false;
    for (const auto& [end, end_line] : found->second) {
      const std::int64_t at = error.event->line;
      if (end_line > 0 && end_line < at) continue;
      if (!ends_[end].clean) return false;
      if (ends_[end].calls == 0) continue;
      const auto until = ends_[end].called_until.find(error.witness);
      if (until == ends_[end].called_until.end() || until->second < at) return false;
      used = true;
    }
    return used;
  }

 private:
  std::vector<CleanEnd> ends_;
  // Group, and where it ends for the process.
  std::map<std::pair<const Witness*, LogProcessId>,
           std::vector<std::pair<std::size_t, std::int64_t>>>
      of_;
};

// What NCCL or RCCL itself warned of, not how the program or a process ended.
bool is_warning(const LogEvent& event) {
  switch (event.kind) {
    case Kind::program_out_of_memory:
    case Kind::program_nccl_error:
    case Kind::signal:
    case Kind::exit_code:
    case Kind::test_failure:
    case Kind::async_error: return false;
    default: return true;
  }
}

void drop_survived(const LogView& view, std::vector<LogEventRef>& errors) {
  if (errors.empty()) return;
  const Survivals survivals(view);
  std::erase_if(errors, [&survivals](const LogEventRef& error) {
    return is_warning(*error.event) && survivals.survived(error);
  });
}

// The first operation that a watchdog gave up on, in each log.
const LogWatchdog* first_timeout(const LogFacts& log) {
  for (const LogWatchdog& line : log.watchdog) {
    const bool times_out = line.kind == LogWatchdog::Kind::timed_out ||
                           line.kind == LogWatchdog::Kind::position ||
                           line.kind == LogWatchdog::Kind::dump_signal;
    if (times_out) return &line;
  }
  return nullptr;
}

// When a watchdog gives up, processes end, and all that is written then follows from that.
void drop_what_follows_timeouts(const LogView& view, std::vector<LogEventRef>& errors) {
  std::map<const Witness*, const LogWatchdog*> first;
  for (const LogEventRef& error : errors) {
    const auto [found, is_new] = first.try_emplace(error.witness);
    if (is_new) found->second = first_timeout(*error.witness->log);
  }
  std::erase_if(errors, [&first, &view](const LogEventRef& error) {
    const LogWatchdog* timeout = first.at(error.witness);
    if (timeout == nullptr) return false;
    const bool timed = timeout->when >= 0 && error.event->when >= 0;
    return timed ? view.times.of(*timeout) < view.times.of(*error.event)
                 : timeout->line < error.event->line;
  });
}

bool before_by_place(const LogEventRef& a, const LogEventRef& b) {
  return place_of(*a.event) < place_of(*b.event);
}

}  // namespace

std::optional<LogCause> find_log_cause(const LogView& view) {
  std::vector<LogEventRef> errors = errors_of(view);
  drop_idle_warnings(view, errors);
  drop_survived(view, errors);
  drop_what_follows_timeouts(view, errors);
  if (errors.empty()) return std::nullopt;
  LogCause cause;
  const auto by_place = std::min_element(errors.begin(), errors.end(), before_by_place);
  cause.root = *by_place;
  cause.only_followers = place_of(*by_place->event) >= kFollower;
  // By time among what can be a cause, if each of these says it.
  std::vector<LogEventRef> causes;
  for (const LogEventRef& error : errors) {
    if (place_of(*error.event) < kFollower) causes.push_back(error);
  }
  const bool timed =
      causes.size() > 1 && std::all_of(causes.begin(), causes.end(),
                                       [](const auto& error) { return error.event->when >= 0; });
  if (timed) {
    const LogTimes& times = view.times;
    const auto first = std::min_element(
        causes.begin(), causes.end(),
        [&times](const auto& a, const auto& b) { return times.of(*a.event) < times.of(*b.event); });
    // Within a second, clocks of hosts and buffers of outputs say nothing.
    constexpr Ns kSame = 1'000'000'000;
    if (times.of(*cause.root.event) - times.of(*first->event) > kSame) cause.root = *first;
    cause.by_time = true;
  }
  for (const LogEventRef& error : errors) {
    if (error.event == cause.root.event) continue;
    (error.event->kind == cause.root.event->kind ? cause.alike : cause.followers).push_back(error);
  }
  return cause;
}

std::vector<LogEventRef> survived_warnings(const LogView& view) {
  std::vector<LogEventRef> warnings = errors_of(view);
  if (warnings.empty()) return warnings;
  const Survivals survivals(view);
  std::erase_if(warnings, [&survivals](const LogEventRef& error) {
    return !is_warning(*error.event) || !survivals.survived(error);
  });
  return warnings;
}

bool has_timed_out(const LogView& view) {
  return std::any_of(view.logs.begin(), view.logs.end(), [](const Witness* witness) {
    return first_timeout(*witness->log) != nullptr;
  });
}

bool has_failed(const LogView& view) {
  if (find_log_cause(view)) return true;
  return std::any_of(view.logs.begin(), view.logs.end(), [](const Witness* witness) {
    const auto& events = witness->log->events;
    return !witness->log->watchdog.empty() || !witness->log->desync.empty() ||
           std::any_of(events.begin(), events.end(), [](const LogEvent& event) {
             return event.kind == Kind::store_timeout || event.kind == Kind::barrier_timeout ||
                    event.kind == Kind::stalled || event.kind == Kind::id_timeout;
           });
  });
}

}  // namespace commlens
