// Files that are being written, so that an interrupt leaves none of them behind.
//
// A signal's handler may neither allocate nor lock: names are kept in fixed places. Where more
// files are open than there are places, or a name is longer than any path may be, that file is not
// removed.
#pragma once

#include <string>

namespace commlens {

// Names a file that is removed when the process is ended by a signal while this lives.
class Unfinished {
 public:
  Unfinished() = default;
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() { forget(); }

  void remember(const std::string& path);
  void forget();

 private:
  int place_ = -1;
};

// From here on an interrupt (Ctrl-C), a hang-up or a request to end removes unfinished files, and
// then ends the process as it would have. One that the caller ignores (nohup) stays ignored.
void remove_unfinished_on_signals();

}  // namespace commlens
