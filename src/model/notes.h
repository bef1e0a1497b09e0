// Everything that can be odd in an input: a table, and the counter of what was met.
//
// An importer that meets something odd counts it under a code and goes on. Every report shows the
// notes that fired, with the first example and where it was, so that nothing is lost in silence.
// `commlens notes` prints this table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace commlens {

enum class Severity : std::uint8_t {
  info,     // worth knowing; no figure suffers
  warning,  // some figure may be incomplete
  error,    // the input was cut short or could not be used
};

// code, severity, what happened, what to do.
#define COMMLENS_NOTES(X)                                                                          \
  X(truncated, error, "the file stops in the middle; the events before that were used",            \
    "the process was probably killed or the disk was full while it wrote: record again for a "     \
    "complete window")                                                                             \
  X(corrupt_compression, error,                                                                    \
    "the compressed stream is damaged; the events before that were used",                          \
    "copy the file again from where it was written")                                               \
  X(read_failed, error,                                                                            \
    "reading stopped with an error of the operating system; the events before that were used",     \
    "check the disk or the network file system, then run again")                                   \
  X(unusable_input, error, "the file could not be used",                                           \
    "run `commlens formats` for what can be read, or name the format with --input-format")         \
  X(skipped_file, info, "files that are no trace were passed over",                                \
    "nothing to do if they are not meant to be read")                                              \
  X(left_to_diagnose, info,                                                                        \
    "logs or dumps were passed over, since they tell of no time: `commlens diagnose` reads them",  \
    "nothing to do; beside timelines of the same run they are joined with them")                   \
  X(malformed_event, warning,                                                                      \
    "events could not be read and were left out (unescaped quotes or line breaks in a name)",      \
    "newer PyTorch writes them correctly; where the lost events matter, record without Python "    \
    "stacks")                                                                                      \
  X(malformed_metadata, warning, "metadata around the events could not be read",                   \
    "rank, groups or clock base may be missing: name ranks with --rank-from")                      \
  X(oversized_event, warning, "events larger than the reading window's limit were left out",       \
    "an event of megabytes is not one that the profiler writes; see what wrote the file")          \
  X(extra_comma, info, "surplus commas were passed over", "nothing to do")                         \
  X(not_an_event, warning, "entries of traceEvents that are no objects were left out",             \
    "see what wrote the file")                                                                     \
  X(duplicate_key, info, "a key stood twice in one object; the last value counts",                 \
    "nothing to do")                                                                               \
  X(invalid_utf8, info, "names hold bytes that are not UTF-8; they are shown replaced",            \
    "nothing to do")                                                                               \
  X(deep_nesting, info, "values nested hundreds deep were passed over", "see what wrote the file") \
  X(not_a_number, info, "NaN or infinity stood where a number belongs and was taken as missing",   \
    "nothing to do")                                                                               \
  X(missing_time, warning, "GPU events without a start time were left out",                        \
    "see what wrote the file")                                                                     \
  X(missing_duration, warning, "GPU events without a duration were counted with none",             \
    "see what wrote the file")                                                                     \
  X(negative_duration, warning, "events that end before they start were counted with no duration", \
    "clock adjustment while recording: record again if there are many")                            \
  X(zero_timestamp, warning,                                                                       \
    "GPU events whose time stamps were lost (0, or long before the recording) were left out",      \
    "the profiler dropped them: record a shorter window")                                          \
  X(absurd_duration, warning, "events longer than the whole recording were cut at its end",        \
    "the profiler lost their end: look at what ran at that time with care")                        \
  X(absurd_time, warning, "times beyond 64 bits of nanoseconds were left out",                     \
    "see what wrote the file")                                                                     \
  X(no_clock_base, info,                                                                           \
    "the times are relative to an unknown base: ranks cannot be aligned by clock",                 \
    "figures of one rank are not touched; newer PyTorch writes baseTimeNanoseconds")               \
  X(no_gpu_events, warning, "the trace holds no GPU events",                                       \
    "profile with ProfilerActivity.CUDA, or see whether the profiler lost its GPU buffers")        \
  X(no_communication, info, "GPU work without communication",                                      \
    "nothing to do if this rank trains alone")                                                     \
  X(host_intervals, warning,                                                                       \
    "no GPU events: communication and compute are taken from host ranges of this backend",         \
    "host ranges include waiting in the library and the interpreter: compare them only with each " \
    "other")                                                                                       \
  X(host_communication, warning,                                                                   \
    "communication ran on the host beside the GPU and is in no GPU figure",                        \
    "a CPU backend such as Gloo moves data there: see its ranges in the trace itself")             \
  X(rank_from_file_name, info, "the rank was taken from the file's name",                          \
    "check it, or use --rank-from order")                                                          \
  X(rank_from_order, warning,                                                                      \
    "the file names no rank: ranks were given in the order of the files",                          \
    "name the files rank-0.json, rank-1.json ... or call torch.distributed's init before "         \
    "profiling")                                                                                   \
  X(repeated_rank, warning,                                                                        \
    "the same rank was recorded more than once; the recordings are kept apart as runs",            \
    "give one recording per rank to get figures of one run")                                       \
  X(merged_files, info, "files of one recording of one rank were put together", "nothing to do")   \
  X(duplicate_events, warning, "events that stand in two files of one rank were counted once",     \
    "the same file may have been given twice")                                                     \
  X(missing_ranks, warning, "ranks of the job have no trace here",                                 \
    "figures are over the ranks found; add the others")                                            \
  X(stragglers_undecidable, warning,                                                               \
    "who makes the others wait cannot be told: too much of the waiting has no sure order",         \
    "give the traces of all ranks, name the hosts with --hosts, record metadata")                  \
  X(one_rank, info, "one rank alone: what it did together with others cannot be matched",          \
    "give the traces of all ranks to learn who waited for whom")                                   \
  X(unlinked_external_ids, info,                                                                   \
    "External id repeats the correlation in this file and was not used to link kernels to host "   \
    "operations",                                                                                  \
    "nothing to do: launches and nesting were used")                                               \
  X(op_from_name_only, warning, "the operation is known only from a kernel name that can lie",     \
    "record with PyTorch 2.4 or newer, which puts the collective's metadata on the kernel")        \
  X(unknown_size, info,                                                                            \
    "communication events of unknown size are left out of bytes and bandwidth",                    \
    "record with PyTorch 2.4 or newer for message sizes")                                          \
  X(whole_graphs, warning, "CUDA graphs were traced as a whole: their kernels are not known",      \
    "record with nsys profile --cuda-graph-trace=node")                                            \
  X(sizes_not_exported, info,                                                                      \
    "communications without a size: the export holds no payloads, or not those of making their "   \
    "communicators, which tell how many ranks share",                                              \
    "export again with nsys export --type=sqlite --include-blobs=true --include-json=true; start " \
    "recording before the first communication")                                                    \
  X(odd_payload, warning,                                                                          \
    "what NCCL attached to its ranges cannot be read or contradicts itself; it was left out",      \
    "export the report again; compare what is left with NCCL's log (docs/joined.md)")              \
  X(damaged_table, error,                                                                          \
    "tables of the Nsight Systems export are damaged or lack a column: what they hold beyond "     \
    "that "                                                                                        \
    "is missing from all figures",                                                                 \
    "export the report again with nsys export --type=sqlite")                                      \
  X(unfinished_export, error,                                                                      \
    "beside the Nsight Systems export lie changes that are not in it yet; these are not read",     \
    "wait until nsys export has ended, or export the report again")                                \
  X(unnamed_kernels, error,                                                                        \
    "the Nsight Systems export does not name its kernels: communication among them counts as "     \
    "compute",                                                                                     \
    "export the report again with nsys export --type=sqlite")                                      \
  X(rows_of_no_process, warning,                                                                   \
    "the Nsight Systems export holds several processes, and GPU work of none of them, which is "   \
    "left out",                                                                                    \
    "export the report again; record with one nsys for each process")                              \
  X(possible_communication, warning,                                                               \
    "kernels counted as compute have a name that speaks of communication",                         \
    "if they move data between GPUs, name them in a rules file (--rules)")                         \
  X(step_without_gpu_work, info, "steps without launched GPU work have an empty window",           \
    "nothing to do")                                                                               \
  X(steps_from_annotations, info,                                                                  \
    "step windows were taken from the GPU copies of the step ranges (no launch records)",          \
    "nothing to do")                                                                               \
  X(steps_from_host, warning,                                                                      \
    "step windows are host ranges: GPU work of a step may lie after its window",                   \
    "profile with CUDA activities to get launch records")                                          \
  X(no_steps, info, "no ranges of training steps were found",                                      \
    "call profiler.step() each iteration, or under Nsight Systems mark each with an NVTX range "   \
    "(\"step 7\"), to get figures by step")                                                        \
  X(odd_steps, warning,                                                                            \
    "NVTX ranges that are named like steps repeat a number or overlap: they are not used as "      \
    "steps",                                                                                       \
    "mark each training step with one range, and give each its own rising number (\"step 7\")")    \
  X(clocks_contradict, warning,                                                                    \
    "clocks, or how operations were matched, contradict what must come before what",               \
    "see whether hosts are named rightly (--hosts) and whether a clock was stepped")               \
  X(clocks_unrelated, info, "nothing relates the clocks of any two ranks",                         \
    "name the hosts with --hosts, or record operations that the ranks have in common")             \
  X(odd_entry, warning, "entries of a dump lack what they need and were left out",                 \
    "see what wrote the file; ranks are judged by the other entries")                              \
  X(dump_version, info, "a dump of a version that is not known; it was read like its neighbours",  \
    "compare the verdict with what the job's log says")                                            \
  X(dump_segments, info, "a dump holds entries from before a reset; only those after it count",    \
    "nothing to do")                                                                               \
  X(rank_from_groups, info, "the rank was taken from the groups that the process belongs to",      \
    "keep the names that the dumps were written under")                                            \
  X(unknown_log_line, info,                                                                        \
    "log lines that look like NCCL's are not understood and were passed over",                     \
    "nothing to do unless they name an error: read the most frequent ones")                        \
  X(cut_log_line, info, "log lines that stop in the middle of a value were left out",              \
    "give the log as it was written, not as a terminal or a web page shows it")                    \
  X(not_joined, warning,                                                                           \
    "what logs or dumps say could not be put on the operations of the timelines",                  \
    "give logs and dumps of the same run as the timelines, of all ranks and whole")                \
  X(odd_record, warning, "records that cannot be read, or lack what they need, were left out",     \
    "see what wrote the file")                                                                     \
  X(absurd_size, warning, "sizes that no message has were taken as unknown",                       \
    "NCCL's Inspector writes them for reductions of uint8; else see what wrote the file")          \
  X(odd_peer, info, "ranks or peers outside their group were taken as unknown", "nothing to do")   \
  X(wrong_results, error,                                                                          \
    "benchmarks found wrong results: what was measured is not the operation",                      \
    "look for faulty memory or links: nvidia-smi -q, dmesg, the counters of NVLink and adapters")  \
  X(untimed_call, info, "calls without a duration are counted without a time",                     \
    "the source did not record their end, or they took less than it can tell")                     \
  X(repeated_record, warning, "records of a call that its rank had recorded before do not count",  \
    "the same file may have been given twice")                                                     \
  X(lost_records, info, "numbers of calls have gaps: records were dropped where they were made",   \
    "say nothing of missing ranks by them; write more often, or keep larger rings")                \
  X(rounded_sizes, info,                                                                           \
    "sizes are rounded: bytes and bandwidths are as exact as what is printed", "nothing to do")    \
  X(coarse_durations, info, "durations are whole microseconds: what lies below cannot be told",    \
    "nothing to do")                                                                               \
  X(summed_calls, info, "the source sums up calls: they have no percentiles and no maximum",       \
    "nothing to do")                                                                               \
  X(unknown_group_size, info, "calls in a group of unknown size have no bus bandwidth",            \
    "the source does not tell it")                                                                 \
  X(no_timeline, warning,                                                                          \
    "no input is a timeline: what was hidden by compute, the order of operations, idle time and "  \
    "the critical path are not known",                                                             \
    "record the same steps with the PyTorch Profiler or Nsight Systems")                           \
  X(no_critical_path, info, "there is no critical path, and so no advice",                         \
    "the example says what is missing")

enum class Note : std::uint8_t {
#define COMMLENS_NOTE_ENUM(code, severity, message, advice) code,
  COMMLENS_NOTES(COMMLENS_NOTE_ENUM)
#undef COMMLENS_NOTE_ENUM
};

struct NoteInfo {
  std::string_view code;
  Severity severity;
  std::string_view message;
  std::string_view advice;
};

std::span<const NoteInfo> all_notes();
const NoteInfo& note_info(Note note);
std::string_view severity_name(Severity severity);

// How often each note fired, and the first example of each ("at byte 1234: ...").
class Notes {
 public:
  void add(Note note, std::int64_t count = 1) { counts_[index(note)] += count; }
  // `example` is kept if it is the note's first; long ones are cut.
  void add(Note note, std::string_view example, std::int64_t count = 1);
  void merge(const Notes& other);

  std::int64_t count(Note note) const { return counts_[index(note)]; }
  const std::string& example(Note note) const { return examples_[index(note)]; }
  bool any() const;

  static constexpr std::size_t kCount = 0
#define COMMLENS_NOTE_COUNT(code, severity, message, advice) +1
      COMMLENS_NOTES(COMMLENS_NOTE_COUNT)
#undef COMMLENS_NOTE_COUNT
      ;

 private:
  static std::size_t index(Note note) { return static_cast<std::size_t>(note); }
  std::array<std::int64_t, kCount> counts_{};
  std::array<std::string, kCount> examples_;
};

}  // namespace commlens
