// Bytes with a name: a file (plain, gzip or zstd, told apart by content), standard input, or
// memory.
//
// Everything is read forward, once, into the caller's own window: nothing here grows with the size
// of the input. Fresh memory is dear, so a mapped file or a buffer for the whole text would cost
// more than the reading itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace commlens {

// Why the bytes ended.
enum class SourceEnd {
  not_yet,
  complete,
  truncated,  // the compressed stream stops in the middle
  corrupt,    // a checksum or the structure of the compressed stream is wrong
  failed,     // the operating system could not read on
};

struct Decoder;  // decoder.h

class Source {
 public:
  // Opens a file; "-" is standard input. Throws Error(input) where there is nothing to read:
  // absent, a folder, no permission, a compression that this build cannot read.
  static Source open(const std::string& path);
  // A plain file from an offset on, whatever its first bytes are.
  static Source plain_from(const std::string& path, std::int64_t offset);
  // Bytes that lie in memory already; they must outlive the source.
  static Source memory(std::string name, std::string_view bytes);

  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;
  ~Source();

  // From now on the text is decompressed by a thread of its own, a little ahead of `read`. To be
  // called before any read or after some; not twice.
  void read_ahead();

  // Reads up to `out.size()` bytes of decompressed text; 0 means the end, and `end()` then says
  // which. What was readable before a fault is always delivered first.
  std::size_t read(std::span<char> out);

  // How much text was read so far, in bytes.
  std::int64_t position() const { return position_; }
  // Whether it is a file, known by its name, whose bytes are the text: pieces of it can be read on
  // their own.
  bool is_plain_file() const { return plain_file_; }
  SourceEnd end() const { return end_; }
  // One sentence on what went wrong at the end; empty after a complete read.
  const std::string& trouble() const { return trouble_; }
  const std::string& name() const { return name_; }
  // Size as it lies on disk, in bytes; -1 where it is not known (a pipe).
  std::int64_t stored_bytes() const { return stored_bytes_; }

 private:
  explicit Source(std::string name);
  bool choose_decoder();  // whether the bytes are compressed

  std::string name_;
  std::int64_t stored_bytes_ = -1;
  std::int64_t position_ = 0;
  bool plain_file_ = false;
  SourceEnd end_ = SourceEnd::not_yet;
  std::string trouble_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace commlens
