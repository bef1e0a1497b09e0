// Any bytes as a plain Kineto file, damaged or not: the same recording, field for field and note
// for note, whether one thread reads it or several in small pieces, and however much of it the head
// held.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ingest/format.h"
#include "model/builder.h"
#include "same_recording.h"

namespace {

using commlens::Recording;

// A file in memory that can be opened by name.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(memfd_create("fuzz", 0)) {
    if (file_ < 0 || write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(file_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

struct Outcome {
  std::optional<Recording> recording;
  std::string refusal;
};

Outcome read(const std::string& path, std::size_t head_bytes, unsigned threads,
             const commlens::ReadOptions& options) {
  const commlens::Format& kineto = *commlens::find_format("kineto");
  Outcome outcome;
  try {
    auto source = commlens::Source::open(path);
    std::string head(head_bytes, '\0');
    std::size_t have = 0;
    while (have < head_bytes) {
      const std::size_t got = source.read({head.data() + have, head_bytes - have});
      if (got == 0) break;
      have += got;
    }
    head.resize(have);
    commlens::TraceBuilder builder(path, kineto.name);
    if (threads == 0) {
      kineto.read(source, head, options, builder);
    } else if (source.is_plain_file()) {
      kineto.read_split(source, head, options, threads, builder);
    } else {
      source.read_ahead();
      kineto.read(source, head, options, builder);
    }
    outcome.recording = builder.finish();
  } catch (const commlens::Error& error) {
    outcome.refusal = error.what();
  }
  return outcome;
}

void require_same(const Outcome& a, const Outcome& b, const char* how) {
  std::string odd =
      a.refusal != b.refusal ? "refusal: '" + a.refusal + "', '" + b.refusal + "'" : std::string();
  if (odd.empty() && a.recording) odd = difference(*a.recording, *b.recording);
  if (odd.empty()) return;
  std::fprintf(stderr, "%s: %s\n", how, odd.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  const std::string path = file.path();
  const Outcome one = read(path, size, 0, {.host_compute = true});
  require_same(one, read(path, size / 3, 0, {.host_compute = true}), "another head");
  const auto threads = static_cast<unsigned>(2 + size % 6);
  const auto piece = static_cast<std::int64_t>(8 + size % 61);
  require_same(one, read(path, size, threads, {.host_compute = true, .smallest_piece = piece}),
               "pieces");
  require_same(one, read(path, size / 7, 7, {.host_compute = true, .smallest_piece = 1}),
               "small pieces");
  return 0;
}
