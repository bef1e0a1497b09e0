// What an input format is to the rest of the program: a name, a way to tell it by content, a
// reader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "model/builder.h"
#include "model/call_context.h"

namespace commlens {

struct ReadOptions {
  // Keep the host's compute ranges too: wanted only for recordings without GPU events (see
  // Format::read).
  bool host_compute = false;
  // Bytes of a plain file that are worth a thread of their own (see Format::read_split). The result
  // is the same for any number; tests use small ones.
  std::int64_t smallest_piece = std::int64_t{8} << 20U;
  std::string part = {};  // which of Format::parts; empty: all
};

struct Format {
  std::string_view name;     // as in --input-format and in the JSON
  std::string_view summary;  // one line for `commlens formats`
  // Whether a text that begins with `head` (some KiB, decompressed; the whole text if shorter) is
  // of this format.
  bool (*sniff)(std::string_view head);
  // Reads everything and pushes it. Odd records become notes; throws Error(input) only where
  // nothing can be used.
  void (*read)(Source& source, std::string_view head, const ReadOptions& options,
               TraceBuilder& builder);
  // The same for a plain file, by several threads; null where the format cannot be split.
  void (*read_split)(Source& source, std::string_view head, const ReadOptions& options,
                     unsigned threads, TraceBuilder& builder) = nullptr;
  // Reads the same input once more for what host threads were in at some instants; null where the
  // format does not tell.
  std::vector<CallContext> (*read_contexts)(Source& source,
                                            std::span<const CallPlace> places) = nullptr;
  // What a file holds that is a recording of its own each (processes); none where it holds one.
  // Null where the format has but one a file.
  std::vector<std::string> (*parts)(const std::string& path) = nullptr;
};

// All formats, in the order in which they are asked.
std::span<const Format* const> formats();
// The format of a text by its head; null where none knows it.
const Format* detect_format(std::string_view head);
const Format* find_format(std::string_view name);

}  // namespace commlens
