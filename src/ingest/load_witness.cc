#include "ingest/load_witness.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/parallel.h"
#include "ingest/load_secrets.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

const WitnessFormat* format_of(std::string_view head, const LoadOptions& options) {
  return options.input_format.empty() ? detect_witness_format(head)
                                      : find_witness_format(options.input_format);
}

// "d/_dump_" for "d/_dump_13" and "d/_dump_13.json": what the files of all ranks have in common.
// Empty where no number ends the name.
std::string stem_of(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;
  const std::string stem = path.substr(0, std::min(path.find('.', name), path.size()));
  const std::size_t digits = stem.find_last_not_of("0123456789") + 1;
  return digits < stem.size() && digits >= name ? stem.substr(0, digits) : std::string();
}

void load_one(const FoundInput& input, const LoadOptions& options, LoadedWitness& result) {
  std::error_code unknown;
  if (std::filesystem::is_directory(input.path, unknown))
    throw Error(ErrorKind::input, input.path + ": is a folder without any file that can be read");
  Source source = Source::open(input.path);
  const std::string head = read_head(source);
  if (head.empty()) {
    result.skipped = !input.named;
    throw Error(ErrorKind::input,
                source.name() + ": is empty" +
                    (source.trouble().empty() ? "" : " (" + source.trouble() + ")") +
                    "; the process was probably killed before it wrote anything");
  }
  // Said of files in a folder, too: it may be the one that tells what is wrong.
  if (is_utf16(head)) throw Error(ErrorKind::input, source.name() + std::string(kUtf16Trouble));
  const WitnessFormat* format = format_of(head, options);
  if (format == nullptr) {
    result.skipped = !input.named;
    throw Error(ErrorKind::input,
                source.name() +
                    ": is of no format that diagnose can read; `commlens formats` lists them, "
                    "--input-format names one");
  }
  result.witness.format = format->name;
  result.witness.stored_bytes = source.stored_bytes();
  format->read(source, head, result.witness);
  hide_secrets(result.witness);
  result.usable = true;
}

// A file of a folder that tells nothing is passed over, unless it is named like those that do: it
// is a rank whose dump failed, and is missed. What is wrong with it, their reader says.
void miss_namesakes(std::vector<LoadedWitness>& results) {
  std::map<std::string, std::string_view> stems;
  for (const LoadedWitness& result : results) {
    if (result.usable) stems.emplace(stem_of(result.witness.path), result.witness.format);
  }
  stems.erase("");
  for (LoadedWitness& result : results) {
    const auto like = stems.find(stem_of(result.witness.path));
    if (!result.skipped || like == stems.end()) continue;
    result.skipped = false;
    try {
      load_one({result.witness.path, true},
               {.input_format = std::string(like->second), .jobs = 1, .progress = {}}, result);
    } catch (const Error& error) {
      result.trouble = error.what();
    }
  }
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
  miss_namesakes(results);
  return results;
}

}  // namespace commlens
