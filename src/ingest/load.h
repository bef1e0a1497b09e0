// Paths as the user gives them -> recordings. The only place that knows about folders, globs and
// threads of reading.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ingest/format.h"
#include "model/measured.h"
#include "model/trace.h"

namespace commlens {

struct LoadOptions {
  std::string input_format;  // a format's name; empty: told by content
  unsigned jobs = 1;         // files read at the same time
  // Called after each file, from the reading threads, one call at a time.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// What became of one file.
struct LoadedInput {
  std::string path;
  std::string format;              // empty: none was found
  std::int64_t stored_bytes = -1;  // as on disk; -1 where that is not known
  bool usable = false;             // `recording` holds what it gave
  bool skipped = false;            // no trace, found in a folder: passed over
  bool expected = false;           // and nothing to mention: it belongs beside traces
  bool for_diagnose = false;       // a log or dump: no input of an analysis by itself
  std::string trouble;             // one sentence where it is not usable
  bool is_measured = false;        // it is no timeline: `measured` holds it, not `recording`
  Recording recording;
  Measured measured;
};

// The files behind the paths, sorted within each folder or glob, each once. A path that names
// nothing stays in the list: opening it then says what is wrong.
struct FoundInput {
  std::string path;
  bool named = true;      // by the user, not found in a folder
  std::string part = {};  // of a file that holds several recordings (Format::parts); else empty
};
std::vector<FoundInput> find_inputs(const std::vector<std::string>& paths);
// The same, with as many inputs for a file as it holds recordings.
std::vector<FoundInput> split_into_recordings(const std::vector<FoundInput>& found);

// The first bytes of a text that say something, enough to see a format by: blanks before them are
// passed over, however many. Empty where there are none.
std::string read_head(Source& source);

// Text in UTF-16, as PowerShell's redirection writes it: no format is. What is said of it, behind
// the name of the file.
bool is_utf16(std::string_view head);
inline constexpr std::string_view kUtf16Trouble =
    ": is UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)";

// Reads every file and hands each to `consume` with its position in `inputs`, from the reading
// threads, several at a time: what is made of a recording there is made in parallel, and a
// recording need not outlive the call. What is measured without a timeline is read, too.
void load(const std::vector<FoundInput>& inputs, const LoadOptions& options,
          const std::function<void(std::size_t position, LoadedInput&& input)>& consume);

// Reads every file; results are in the order of `inputs`, whatever the number of threads.
std::vector<LoadedInput> load(const std::vector<FoundInput>& inputs, const LoadOptions& options);

}  // namespace commlens
