#include "ingest/load_witness.h"

#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

const WitnessFormat* format_of(std::string_view head, const LoadOptions& options) {
  return options.input_format.empty() ? detect_witness_format(head)
                                      : find_witness_format(options.input_format);
}

// "_dump_13", "nccl_trace_rank_13": one per rank, without an extension. Such a file that is empty
// is a rank whose dump failed, and is missed; other files beside them are not.
bool looks_like_dump(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return digits > 0 && digits < name.size() && name.find('.') == std::string::npos;
}

void load_one(const FoundInput& input, const LoadOptions& options, LoadedWitness& result) {
  std::error_code unknown;
  if (std::filesystem::is_directory(input.path, unknown))
    throw Error(ErrorKind::input, input.path + ": is a folder without any file that can be read");
  Source source = Source::open(input.path);
  const std::string head = read_head(source);
  if (head.empty()) {
    result.skipped = !input.named && !looks_like_dump(input.path);
    throw Error(ErrorKind::input,
                source.name() + ": is empty" +
                    (source.trouble().empty() ? "" : " (" + source.trouble() + ")") +
                    "; the process was probably killed before it wrote anything");
  }
  const WitnessFormat* format = format_of(head, options);
  if (format == nullptr) {
    result.skipped = !input.named && !looks_like_dump(input.path);
    throw Error(ErrorKind::input,
                source.name() +
                    ": is of no format that diagnose can read; `commlens formats` lists them, "
                    "--input-format names one");
  }
  result.witness.format = format->name;
  result.witness.stored_bytes = source.stored_bytes();
  format->read(source, head, result.witness);
  result.usable = true;
}

}  // namespace

std::vector<LoadedWitness> load_witnesses(const std::vector<FoundInput>& inputs,
                                          const LoadOptions& options) {
  std::vector<LoadedWitness> results(inputs.size());
  std::mutex report;
  std::size_t done = 0;
  for_each_parallel(inputs.size(), options.jobs, [&](std::size_t i) {
    results[i].witness.path = inputs[i].path;
    try {
      load_one(inputs[i], options, results[i]);
    } catch (const Error& error) {
      results[i].trouble = error.what();
    }
    if (!options.progress) return;
    const std::lock_guard lock(report);
    options.progress(++done, inputs.size());
  });
  return results;
}

}  // namespace commlens
