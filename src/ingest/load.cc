#include "ingest/load.h"

#include <glob.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/perf.h"
#include "ingest/load_secrets.h"
#include "ingest/measured_format.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

namespace fs = std::filesystem;

// Enough to see a format by; events of real files begin earlier.
constexpr std::size_t kHeadBytes = std::size_t{64} << 10U;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Files that a folder holds besides traces are passed over; one that bears a trace's name and
// cannot be read is missed.
bool looks_like_trace(const std::string& path) {
  return fs::path(path).filename().string().find(".json") != std::string::npos;
}

bool is_nsys_report(const std::string& path) {
  return path.ends_with(".nsys-rep") || path.ends_with(".qdrep");
}

// A report without its export beside it is a recording that is not read.
bool is_lone_report(const std::string& path) {
  std::error_code none;
  return is_nsys_report(path) && !fs::exists(fs::path(path).replace_extension(".sqlite"), none);
}

// What `commlens simulate` writes beside its traces is known, and no file that was passed over.
bool is_truth_of_simulation(std::string_view head) {
  return head.substr(0, 64).find("\"schema\":\"commlens.truth/") != std::string_view::npos ||
         head.substr(0, 64).find("\"schema\": \"commlens.truth/") != std::string_view::npos;
}

// What one of our own outputs is written as until it is complete (base/sink.cc):
// "run.json.tmp.4711".
bool is_unfinished_output(const std::string& name) {
  constexpr std::string_view kMark = ".tmp.";
  const std::size_t at = name.rfind(kMark);
  return at != std::string::npos && at + kMark.size() < name.size() &&
         name.find_first_not_of("0123456789", at + kMark.size()) == std::string::npos;
}

// Every regular file below a folder, sorted by name. What bears a trace's name and is none (a link
// to nothing, a pipe), and folders that cannot be entered, stand in the list as well: reading them
// says what is wrong.
std::vector<FoundInput> files_below(const std::string& folder) {
  std::vector<FoundInput> found;
  std::vector<std::string> folders{folder};
  while (!folders.empty()) {
    const std::string here = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    fs::directory_iterator entries(here, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const std::string path = entries->path().string();
      std::error_code unknown;
      const fs::file_status link = entries->symlink_status(unknown);
      const std::string name = entries->path().filename().string();
      if (name.starts_with('.') || is_unfinished_output(name)) continue;
      if (fs::is_directory(link)) {
        folders.push_back(path);
      } else if (entries->is_regular_file(unknown) || looks_like_trace(path)) {
        found.push_back({path, false});
      }
    }
    if (error) found.push_back({here, true});
  }
  std::sort(found.begin(), found.end(),
            [](const FoundInput& a, const FoundInput& b) { return a.path < b.path; });
  return found;
}

// The names that a pattern stands for; none where the text is no pattern or matches nothing.
std::vector<std::string> glob_matches(const std::string& pattern) {
  std::vector<std::string> matches;
  if (pattern.find_first_of("*?[") == std::string::npos) return matches;
  glob_t result{};
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0) {
    for (std::size_t i = 0; i < result.gl_pathc; ++i) matches.emplace_back(result.gl_pathv[i]);
  }
  globfree(&result);
  return matches;
}

std::string read_block(Source& source) {
  std::string head(kHeadBytes, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    const std::size_t got = source.read({head.data() + have, head.size() - have});
    if (got == 0) break;
    have += got;
  }
  head.resize(have);
  return head;
}

const Format* format_of(std::string_view head, const LoadOptions& options) {
  return options.input_format.empty() ? detect_format(head) : find_format(options.input_format);
}

// The last bytes of a plain file that is longer than what a format is told by.
std::string read_tail(const std::string& path, const Source& source) {
  const std::int64_t size = source.stored_bytes();
  const auto wanted = static_cast<std::int64_t>(kHeadBytes);
  if (!source.is_plain_file() || size <= wanted) return {};
  Source end = Source::plain_from(path, size - wanted);
  return read_block(end);
}

// A log may speak of communication only at its end.
const MeasuredFormat* measured_format_of(const FoundInput& input, const Source& source,
                                         std::string_view head, const LoadOptions& options) {
  if (!options.input_format.empty()) return find_measured_format(options.input_format);
  const MeasuredFormat* format = detect_measured_format(head);
  if (format != nullptr || detect_format(head) != nullptr) return format;
  if (head.find('\0') != std::string_view::npos) return nullptr;
  return detect_measured_format_by_end(read_tail(input.path, source));
}

void read_measured(const FoundInput& input, const MeasuredFormat& format, Source& source,
                   std::string_view head, LoadedInput& result) {
  const PerfScope perf(Stage::read);
  result.format = format.name;
  result.is_measured = true;
  result.measured.path = input.path;
  result.measured.format = format.name;
  result.measured.stored_bytes = source.stored_bytes();
  format.read(source, head, result.measured);
  hide_secrets(result.measured);
  count_perf_bytes(Stage::read, source.position());
  result.usable = true;
}

Recording read_recording(const std::string& path, const Format& format, Source& source,
                         std::string_view head, const ReadOptions& options, unsigned threads) {
  const PerfScope perf(Stage::read);
  TraceBuilder builder(path, format.name);
  builder.about().stored_bytes = source.stored_bytes();
  if (threads > 1 && source.is_plain_file() && format.read_split != nullptr) {
    format.read_split(source, head, options, threads, builder);
  } else {
    if (threads > 1 && !source.is_plain_file()) source.read_ahead();
    format.read(source, head, options, builder);
  }
  count_perf_bytes(Stage::read, threads > 1 && source.is_plain_file() ? source.stored_bytes()
                                                                      : source.position());
  Recording recording = builder.finish();
  hide_secrets(recording);
  return recording;
}

// A recording without GPU events is read a second time for its compute ranges on the host, where
// the backend moves data there: rare, and the usual reading need not keep them.
bool wants_host_compute(const Recording& recording) {
  if (recording.gpu.size() > 0) return false;
  return std::any_of(recording.host_ranges.begin(), recording.host_ranges.end(),
                     [&](const HostRange& range) {
                       const std::string_view backend = recording.strings.get(range.backend);
                       return backend == "gloo" || backend == "mpi" || backend == "ucc";
                     });
}

// What a file that is no trace may have been taken for one by: said, so that the right one is
// looked for.
std::string_view known_mistake(const std::string& path, std::string_view head) {
  if (is_nsys_report(path))
    return " (it is a report of Nsight Systems: run nsys export --type=sqlite --include-blobs=true "
           "on it, and give the file that this writes)";
  if (head.starts_with("\x80\x04") || head.starts_with("\x80\x02") ||
      head.starts_with("\x80\x05")) {
    return " (it is a Python pickle, such as a memory snapshot)";
  }
  const std::string_view begin = head.substr(0, 4096);
  if (begin.find("device_traces") != std::string_view::npos ||
      begin.find("\"segments\"") != std::string_view::npos) {
    return " (it looks like a memory snapshot)";
  }
  if (begin.find("<html") != std::string_view::npos ||
      begin.find("<!DOCTYPE") != std::string_view::npos)
    return " (it is a web page)";
  if (begin.starts_with("[[")) return " (it looks like a memory timeline)";
  if (begin.starts_with("{\"header\""))
    return " (it begins like a record of NCCL Inspector, without its number of ranks or its call)";
  if (begin.starts_with("{")) return " (it is JSON without \"traceEvents\")";
  return {};
}

// Logs and dumps tell of no time that an analysis could take; beside timelines they are joined.
std::string read_by_diagnose(const std::string& name, const WitnessFormat& format) {
  return name + ": is of format " + std::string(format.name) +
         ", which `commlens diagnose` reads; analyses use it only beside timelines, as what was "
         "called and how";
}

// Recordings of one file are told apart by what they are of.
std::string shown_path(const FoundInput& input) {
  return input.part.empty() ? input.path : input.path + " (process " + input.part + ")";
}

void load_one(const FoundInput& input, const LoadOptions& options, unsigned threads,
              LoadedInput& result) {
  if (is_folder(input.path)) {
    std::error_code error;
    const fs::directory_iterator entries(input.path, error);
    result.trouble = input.path + (error ? ": cannot be entered: " + error.message()
                                         : ": is a folder without any file in it");
    return;
  }
  std::error_code unknown;
  if (!input.named && fs::exists(input.path, unknown) &&
      !fs::is_regular_file(input.path, unknown)) {
    result.trouble = input.path + ": is no regular file; name it by itself if it is to be read";
    return;
  }
  Source source = Source::open(input.path);
  result.stored_bytes = source.stored_bytes();
  const std::string head = read_head(source);
  if (head.empty()) {
    result.skipped = !input.named && !looks_like_trace(input.path);
    result.trouble = source.name() + ": is empty" +
                     (source.trouble().empty() ? "" : " (" + source.trouble() + ")") +
                     "; the process that wrote it may have been killed: record again";
    return;
  }
  if (is_utf16(head)) {
    result.skipped = !input.named && !looks_like_trace(input.path);
    result.trouble = source.name() + std::string(kUtf16Trouble);
    return;
  }
  if (const MeasuredFormat* format = measured_format_of(input, source, head, options))
    return read_measured(input, *format, source, head, result);
  const Format* format = format_of(head, options);
  const WitnessFormat* witness =
      format == nullptr && options.input_format.empty() ? detect_witness_format(head) : nullptr;
  if (witness != nullptr) {
    result.skipped = !input.named;
    result.for_diagnose = true;
    result.trouble = read_by_diagnose(source.name(), *witness);
    return;
  }
  if (format == nullptr) {
    // A folder may hold other JSON; what bears a trace's name and is no JSON at all is a trace that
    // was lost.
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && (head[first] == '{' || head[first] == '[');
    result.skipped = !input.named && source.trouble().empty() &&
                     (json || !looks_like_trace(input.path)) && !is_lone_report(input.path);
    result.expected = result.skipped && is_truth_of_simulation(head);
    result.trouble = source.name() + ": is of no format that can be read" +
                     std::string(known_mistake(input.path, head)) +
                     (source.trouble().empty() ? "" : " (" + source.trouble() + ")") +
                     "; `commlens formats` lists them, --input-format names one";
    return;
  }
  result.format = format->name;
  // Standard input cannot be read a second time: its host ranges are kept from the start.
  const bool once = input.path == "-";
  result.recording = read_recording(shown_path(input), *format, source, head,
                                    {.host_compute = once, .part = input.part}, threads);
  if (wants_host_compute(result.recording) && !once) {
    Source again = Source::open(input.path);
    const std::string again_head = read_head(again);
    result.recording =
        read_recording(input.path, *format, again, again_head, {.host_compute = true}, 1);
  }
  result.usable = true;
}

// What a file holds, where that is several recordings. Trouble is left to reading it.
std::vector<std::string> parts_of(const std::string& path) {
  constexpr std::size_t kEnough = 64;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::string head(kEnough, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  for (const Format* format : formats()) {
    if (format->parts == nullptr || !format->sniff(head)) continue;
    try {
      return format->parts(path);
    } catch (const Error&) {
      return {};
    }
  }
  return {};
}

}  // namespace

std::vector<FoundInput> find_inputs(const std::vector<std::string>& paths) {
  std::vector<FoundInput> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const bool exists = path == "-" || fs::exists(path, error);
    const std::vector<std::string> matches =
        exists ? std::vector<std::string>{path} : glob_matches(path);
    if (matches.empty()) found.push_back({path, true});
    for (const std::string& match : matches) {
      if (!is_folder(match)) {
        found.push_back({match, true});
        continue;
      }
      const auto below = files_below(match);
      if (below.empty()) found.push_back({match, true});
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  // The same file by two ways (a folder and a name in it) is one input.
  std::set<std::string> seen;
  std::erase_if(found, [&seen](const FoundInput& input) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(input.path, error);
    return !seen.insert(error ? input.path : canonical.string()).second;
  });
  return found;
}

std::string read_head(Source& source) {
  std::string head = read_block(source);
  while (!head.empty() && head.find_first_not_of(" \t\r\n") == std::string::npos)
    head = read_block(source);
  // Some editors and shells put a mark of UTF-8 before a text.
  if (head.starts_with("\xEF\xBB\xBF")) head.erase(0, 3);
  return head;
}

bool is_utf16(std::string_view head) {
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return true;
  // Without a mark: of ASCII every other byte is 0.
  constexpr std::size_t kLooked = 64;
  const std::string_view start = head.substr(0, kLooked);
  if (start.size() < kLooked) return false;
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < start.size(); ++i) zeros[i % 2] += start[i] == 0 ? 1 : 0;
  return zeros[0] + zeros[1] == kLooked / 2 && (zeros[0] == 0 || zeros[1] == 0);
}

std::vector<FoundInput> split_into_recordings(const std::vector<FoundInput>& found) {
  std::vector<FoundInput> recordings;
  for (const FoundInput& input : found) {
    const std::vector<std::string> parts = parts_of(input.path);
    if (parts.empty()) recordings.push_back(input);
    for (const std::string& part : parts) recordings.push_back({input.path, input.named, part});
  }
  return recordings;
}

void load(const std::vector<FoundInput>& inputs, const LoadOptions& options,
          const std::function<void(std::size_t, LoadedInput&&)>& consume) {
  // Threads beyond the number of files help with single ones.
  const auto threads_each = static_cast<unsigned>(
      std::max<std::size_t>(1, options.jobs / std::max<std::size_t>(1, inputs.size())));
  std::atomic<std::size_t> next{0};
  std::mutex report;
  std::size_t done = 0;
  std::exception_ptr failure;
  const auto read_one = [&](std::size_t i) {
    LoadedInput input;
    input.path = shown_path(inputs[i]);
    try {
      load_one(inputs[i], options, threads_each, input);
    } catch (const Error& error) {
      input.trouble = error.what();
      input.skipped = !inputs[i].named && !looks_like_trace(inputs[i].path);
    }
    consume(i, std::move(input));
    if (!options.progress) return;
    const std::lock_guard lock(report);
    options.progress(++done, inputs.size());
  };
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < inputs.size(); i = next++) read_one(i);
    } catch (...) {
      const std::lock_guard lock(report);
      failure =
          std::current_exception();  // our own fault, or no memory: said by the thread that waits
      next = inputs.size();
    }
  };
  const std::size_t threads =
      std::clamp<std::size_t>(options.jobs, 1, std::max<std::size_t>(1, inputs.size()));
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

std::vector<LoadedInput> load(const std::vector<FoundInput>& inputs, const LoadOptions& options) {
  std::vector<LoadedInput> results(inputs.size());
  load(inputs, options,
       [&results](std::size_t i, LoadedInput&& input) { results[i] = std::move(input); });
  return results;
}

}  // namespace commlens
