// What a command costs: runs it and prints "wall cpu peak_kb status", seconds and KiB. A program of
// its own because a child's peak memory counts from before exec: a large parent would show in it.
//
//   cost COMMAND...     the child's standard output goes to /dev/null
//   cost --read FILE    not a measurement: reads FILE into one reused 1 MiB window and adds it up
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

int read_and_sum(const char* path) {
  static char window[1 << 20];
  const int file = open(path, O_RDONLY);
  if (file < 0) return 1;
  std::uint64_t sum = 0;
  for (ssize_t got = 0; (got = read(file, window, sizeof window)) > 0;) {
    std::memset(window + got, 0, static_cast<std::size_t>(-got) & 7U);
    for (ssize_t i = 0; i < got; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, window + i, sizeof word);
      sum += word;
    }
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

int run(char** command) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) < 0) return 1;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  std::printf("%.6f %.6f %ld %d\n", wall.count(), seconds(used.ru_utime) + seconds(used.ru_stime),
              used.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::string_view(words[1]) == "--read") return read_and_sum(words[2]);
  if (count < 2) {
    std::fprintf(stderr, "usage: cost COMMAND... | cost --read FILE\n");
    return 2;
  }
  return run(words + 1);
}
