// Two jobs that were taken for one: each process a job of its own, or two jobs on the same GPUs
// whose lines lie mixed in one file.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/log_view.h"
#include "diagnose/verdict.h"

namespace commlens {
namespace {

DiagnosisFinding separate(std::string message, std::string advice) {
  DiagnosisFinding finding;
  finding.kind = DiagnosisKind::separate_jobs;
  finding.confidence = Confidence::likely;
  finding.message = std::move(message);
  finding.advice = std::move(advice);
  return finding;
}

std::string comm_text(const LogComm& comm) {
  return "rank " + std::to_string(comm.rank) + " nranks " + std::to_string(comm.nranks);
}

// The launcher counted several ranks, and every one of them believes to be alone.
std::optional<DiagnosisFinding> find_alone(const LogView& view) {
  auto finding = separate(
      {},
      "build the program with MPI (nccl-tests: MPI=1), or see that every process gets RANK, "
      "WORLD_SIZE and MASTER_ADDR from its launcher");
  std::set<std::int64_t> hints;
  for (const Witness* witness : view.logs) {
    for (const LogComm& comm : witness->log->comms) {
      if (comm.nranks != 1) return std::nullopt;
      const LogProcess& process = witness->log->processes[comm.process.index()];
      if (process.hint < 0 || process.hint_varies) return std::nullopt;
      if (hints.insert(process.hint).second && finding.evidence.size() < kMostLogEvidence)
        finding.evidence.push_back(evidence_line(*witness, comm.first_line, comm_text(comm)));
    }
  }
  if (hints.size() < 2) return std::nullopt;
  finding.message = std::to_string(hints.size()) +
                    " processes of one launcher each made a communicator of one rank: they run "
                    "beside each other, not together";
  return finding;
}

// What one job shows: its processes, and where in the file they wrote.
struct Job {
  const LogGroup* group = nullptr;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::set<std::pair<std::string, std::int64_t>> processes;
  std::set<std::pair<std::string, std::int64_t>> gpus;  // host, bus
};

std::vector<Job> jobs_of(const LogView& view, const Witness& witness) {
  std::vector<Job> jobs;
  for (const LogGroup& group : view.groups) {
    if (!group.joined_by_id || group.nranks < 2) continue;
    Job job;
    job.group = &group;
    for (const LogMember& member : group.members) {
      const LogComm& comm = member.facts();
      if (member.witness != &witness || comm.parent != 0) continue;
      const LogProcess& process = witness.log->processes[comm.process.index()];
      job.processes.insert({process.host, process.pid});
      if (comm.bus >= 0) job.gpus.insert({process.host, comm.bus});
      job.first = job.first == 0 ? process.first_line : std::min(job.first, process.first_line);
      job.last = std::max(job.last, process.last_line);
    }
    // All of its ranks, so that it is no part of a larger job.
    if (static_cast<std::int64_t>(job.gpus.size()) == group.nranks) jobs.push_back(std::move(job));
  }
  return jobs;
}

template <class Set>
bool overlap(const Set& a, const Set& b) {
  return std::any_of(a.begin(), a.end(), [&b](const auto& value) { return b.contains(value); });
}

// Different processes, the same GPUs, at the same time.
std::optional<DiagnosisFinding> find_mixed(const LogView& view) {
  for (const Witness* witness : view.logs) {
    const std::vector<Job> jobs = jobs_of(view, *witness);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (std::size_t k = i + 1; k < jobs.size(); ++k) {
        const Job& a = jobs[i];
        const Job& b = jobs[k];
        const bool mixed = a.first < b.last && b.first < a.last;
        if (!mixed || overlap(a.processes, b.processes) || !overlap(a.gpus, b.gpus)) continue;
        auto finding = separate(
            "the log holds two jobs at once, of " + std::to_string(a.group->nranks) + " and " +
                std::to_string(b.group->nranks) + " ranks, on the same GPUs (" + a.group->name +
                ", " + b.group->name + ")",
            "end the older job, and give each its own log file (NCCL_DEBUG_FILE=nccl.%h.%p.log)");
        for (const Job* job : {&a, &b}) {
          const LogMember& member = job->group->members.front();
          finding.evidence.push_back(
              evidence_line(*member.witness, member.facts().first_line, comm_text(member.facts())));
        }
        return finding;
      }
    }
  }
  return std::nullopt;
}

std::vector<DiagnosisFinding> find_jobs(const std::vector<Witness>& witnesses) {
  const LogView view = make_log_view(witnesses);
  std::vector<DiagnosisFinding> findings;
  for (const auto find : {find_alone, find_mixed}) {
    if (auto finding = find(view)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace

extern constinit const Verdict kLogJobs{
    .name = "log_jobs",
    .summary = "two jobs that were taken for one",
    .find = find_jobs,
};

}  // namespace commlens
