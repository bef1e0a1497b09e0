// Nsight Systems exports on any bytes: a database is read by its own library from a file, opened
// read-only and immutable, so the bytes are written to one. Reading throws Error or gives
// recordings that hold together, and leaves the file as it was.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <source_location>
#include <string>
#include <string_view>

#include "ingest/load.h"

namespace {

using commlens::Recording;

// Says which claim failed: abort() alone leaves that to a debugger.
void require(bool holds, std::source_location here = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s: line %u does not hold\n", here.file_name(), here.line());
  std::abort();
}

// In memory where there is such a folder: thousands are written in a second.
std::string path_of_process() {
  const std::filesystem::path shared("/dev/shm");
  std::error_code unknown;
  const auto folder = std::filesystem::is_directory(shared, unknown)
                          ? shared
                          : std::filesystem::temp_directory_path();
  return (folder / ("commlens_fuzz_" + std::to_string(::getpid()) + ".sqlite")).string();
}

// Goes with the process.
struct OwnFile {
  std::string path = path_of_process();
  ~OwnFile() { std::remove(path.c_str()); }
};

void check(const Recording& recording) {
  const std::size_t rows = recording.gpu.size();
  for (std::size_t i = 0; i < rows; ++i) {
    require(recording.gpu.start[i] <= recording.gpu.end[i]);
    require(recording.gpu.name[i].index() < recording.strings.size());
    require(recording.gpu.stream[i].index() < recording.streams.size());
    const commlens::MetaId meta = recording.gpu.meta[i];
    require(!meta.valid() || meta.index() < recording.metas.size());
  }
  for (std::size_t i = 0; i < recording.host_ranges.size(); ++i) {
    const commlens::HostRange& range = recording.host_ranges[i];
    require(range.start <= range.end);
    require(range.thread.index() < recording.threads.size());
    require(!range.meta.valid() || range.meta.index() < recording.metas.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const OwnFile file;
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  // Nothing else is taken for a database; the other formats have targets of their own.
  std::string text(kMagic);
  if (size > kMagic.size())
    text.append(reinterpret_cast<const char*>(data) + kMagic.size(), size - kMagic.size());
  std::ofstream(file.path, std::ios::binary | std::ios::trunc) << text;
  const auto inputs =
      commlens::load(commlens::split_into_recordings(commlens::find_inputs({file.path})), {});
  for (const commlens::LoadedInput& input : inputs) {
    require(input.usable || !input.trouble.empty());
    if (input.usable) check(input.recording);
  }
  std::ifstream after(file.path, std::ios::binary);
  require(std::string(std::istreambuf_iterator<char>(after), {}) == text);
  return 0;
}
