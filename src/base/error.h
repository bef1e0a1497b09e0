// The one exception of the project: something that cannot go on, said in one sentence.
//
// `what()` is complete for a user: what failed, where (file and byte), what to try. Thrown by
// library code, caught only at the edges (cli/main, fuzz targets). An odd record inside a usable
// input is never thrown: see model/notes.h.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace commlens {

// What kind of failure it is; the command line turns it into its exit code.
enum class ErrorKind {
  usage,     // the user's words are off: exit code 2
  input,     // an input could not be used: exit code 3
  internal,  // our own fault, or the machine's (disk full): exit code 4
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace commlens
