// How often the analysis is right: it is asked about thousands of simulated jobs whose truth is
// known.
//
//   accuracy                        the whole grid, as tables
//   accuracy --seeds 3              about a hundred of its jobs
//   accuracy --kind slow+clock      only these jobs
//   accuracy --list                 also names every run that was wrong or missed something
//   accuracy --check all            fails when a requirement is missed; safe: one of those that
//                                   nothing wrong is said
//   accuracy --update docs/accuracy.md     writes the tables between the page's markers
//   accuracy --show slow+clock 17   one job: its truth and the answer
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "answer.h"
#include "base/error.h"
#include "grid.h"
#include "scoreboard.h"
#include "show.h"

namespace commlens::accuracy {
namespace {

struct Options {
  std::int64_t seeds = 200;
  unsigned threads = 2;
  std::string kind{};
  std::string page{};
  bool list = false;
  std::optional<Demand> check{};
  std::optional<CaseKey> show{};
};

[[noreturn]] void refuse() {
  throw Error(ErrorKind::usage,
              "accuracy [--seeds N] [--threads N] [--kind KIND[+KIND]] [--list] [--check safe|all] "
              "[--update PAGE] [--show KIND SEED]");
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  std::size_t at = 0;
  const auto next = [&]() -> const std::string& {
    if (++at >= words.size()) refuse();
    return words[at];
  };
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--seeds") {
      options.seeds = std::atoll(next().c_str());
    } else if (word == "--threads") {
      options.threads = static_cast<unsigned>(std::atoi(next().c_str()));
    } else if (word == "--kind") {
      options.kind = next();
    } else if (word == "--update") {
      options.page = next();
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--check") {
      const std::string& demand = next();
      if (demand != "safe" && demand != "all") refuse();
      options.check = demand == "all" ? Demand::all : Demand::safe;
    } else if (word == "--show") {
      const std::string kind = next();
      options.show = {.kinds = kinds_of(kind),
                      .seed = static_cast<std::uint64_t>(std::atoll(next().c_str()))};
    } else {
      refuse();
    }
  }
  return options;
}

// Results stand in the grid's order, whatever the number of threads.
std::vector<RunScore> run_grid(const std::vector<CaseKey>& grid, unsigned threads) {
  std::vector<RunScore> scores(grid.size());
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < grid.size(); i = next++) {
      const Case made = make_case(grid[i]);
      const Answer answer = analyse(record(made));
      scores[i] = score(grid[i], made, answer.job);
      scores[i].time = answer.time;
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(loop);
  loop();
  helpers.clear();  // joins
  return scores;
}

// When, of which version, by which command: without these nobody knows what the tables are of.
std::string how_made(const Options& options) {
  const std::time_t now = std::time(nullptr);
  char date[16] = "";
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::string command = "accuracy";
  if (options.seeds != Options().seeds) command += " --seeds " + std::to_string(options.seeds);
  if (!options.kind.empty()) command += " --kind " + options.kind;
  return std::string(date) + ", commlens " COMMLENS_VERSION "; `" + command + " --update " +
         options.page + "`.\n\n";
}

void update_page(const std::string& path, const std::string& tables) {
  const std::string begin = "<!-- scoreboard -->\n";
  const std::string end = "<!-- end of scoreboard -->";
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from)
    throw Error(ErrorKind::usage, path + ": has no place for the scoreboard");
  std::ofstream out(path);
  out << page.substr(0, from) << begin << "\n" << tables << "\n" << page.substr(to);
}

int run(const Options& options) {
  if (options.show) {
    std::fputs(show(*options.show).c_str(), stdout);
    return 0;
  }
  std::vector<CaseKey> grid = make_grid(options.seeds);
  if (!options.kind.empty()) {
    const std::vector<std::size_t> kinds = kinds_of(options.kind);
    std::erase_if(grid, [&kinds](const CaseKey& key) { return key.kinds != kinds; });
  }
  const std::vector<RunScore> scores = run_grid(grid, options.threads);
  const std::string tables = scoreboard(scores, true);
  if (options.list) std::fputs((faulty_runs(scores) + "\n").c_str(), stdout);
  std::fputs(tables.c_str(), stdout);
  if (!options.page.empty()) update_page(options.page, how_made(options) + tables);
  if (!options.check) return 0;
  const std::vector<std::string> missed = failures(scores, *options.check);
  for (const std::string& sentence : missed) std::fprintf(stderr, "missed: %s\n", sentence.c_str());
  return missed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace commlens::accuracy

int main(int argc, char** argv) {
  try {
    return commlens::accuracy::run(commlens::accuracy::parse({argv + 1, argv + argc}));
  } catch (const commlens::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
