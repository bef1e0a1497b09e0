#include <fcntl.h>
#include <malloc.h>

#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/unfinished.h"
#include "cli/command.h"
#include "cli/run.h"

namespace {

int exit_code(commlens::ErrorKind kind) {
  switch (kind) {
    case commlens::ErrorKind::usage: return commlens::cli::kWrongUsage;
    case commlens::ErrorKind::input: return commlens::cli::kUnusableInput;
    case commlens::ErrorKind::internal: break;
  }
  return commlens::cli::kInternal;
}

// A file that is opened must not become standard output or error: messages would stand in it. The
// places of closed ones are taken, in the direction in which using them still fails.
void occupy_standard_streams() {
  const int ways[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int stream = 0; stream < 3; ++stream) {
    if (fcntl(stream, F_GETFD) == -1) (void)open("/dev/null", ways[stream]);
  }
}

int run(int argc, char** argv) {
  const commlens::cli::Arguments arguments = commlens::cli::parse_arguments(argc, argv);
  if (!arguments.help.empty()) {
    commlens::Sink out("-");
    out.append(arguments.help);
    out.close();
    return commlens::cli::kDone;
  }
  commlens::cli::check_output(arguments);
  return commlens::cli::find_command(arguments.verb)->run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // Blocks of columns go back to the system as they are let go; by default the allocator would
  // learn to keep them.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  occupy_standard_streams();
  commlens::remove_unfinished_on_signals();
  try {
    return run(argc, argv);
  } catch (const commlens::Error& error) {
    commlens::cli::complain(error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    commlens::cli::complain(
        "out of memory; analyse fewer ranks at once (--ranks), or with fewer --jobs");
  } catch (const std::exception& error) {
    commlens::cli::complain(std::string("internal error: ") + error.what() +
                            "; please report it with the command line");
  }
  return commlens::cli::kInternal;
}
