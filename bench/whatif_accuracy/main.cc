// How near the critical path and the answers to "what if" are to the truth of simulated jobs.
//
//   whatif_accuracy                        20 jobs of each layout, with and without sync records,
//                                          and 225 questions, as tables
//   whatif_accuracy --jobs 100 --questions 1000
//   whatif_accuracy --list                 also names every case that is far off
//   whatif_accuracy --question 17          only that one
//   whatif_accuracy --write 3d 18 FOLDER   the recordings of a job whose path is far off, to look
//   at;
//                                          `question 17`: of a question's job
//   whatif_accuracy --check                fails where a requirement (tables.h) is missed
//   whatif_accuracy --update docs/what-if.md    writes the tables between the page's markers
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "simulate/write_run.h"
#include "tables.h"

namespace commlens::whatif_accuracy {
namespace {

struct Options {
  std::uint64_t jobs = 20;  // of each layout
  std::uint64_t questions = 225;
  std::optional<std::uint64_t> question{};
  std::vector<std::string> write{};  // layout, number, folder
  unsigned threads = 2;
  bool list = false;
  bool check = false;
  std::string page{};
};

[[noreturn]] void refuse() {
  throw Error(ErrorKind::usage,
              "whatif_accuracy [--jobs N] [--questions N] [--question N] [--threads N] [--list] "
              "[--check] [--update PAGE] [--write LAYOUT NUMBER FOLDER]");
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  std::size_t at = 0;
  const auto number = [&]() -> std::uint64_t {
    if (++at >= words.size()) refuse();
    return static_cast<std::uint64_t>(std::atoll(words[at].c_str()));
  };
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--jobs") {
      options.jobs = number();
    } else if (word == "--questions") {
      options.questions = number();
    } else if (word == "--question") {
      options.question = number();
    } else if (word == "--threads") {
      options.threads = static_cast<unsigned>(number());
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--check") {
      options.check = true;
    } else if (word == "--update" && at + 1 < words.size()) {
      options.page = words[++at];
    } else if (word == "--write" && at + 3 < words.size()) {
      options.write.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                           words.begin() + static_cast<std::ptrdiff_t>(at) + 4);
      at += 3;
    } else {
      refuse();
    }
  }
  return options;
}

// Results stand in order, whatever the number of threads.
template <class Result, class Make>
std::vector<Result> each(std::size_t count, unsigned threads, Make make) {
  std::vector<Result> results(count);
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) results[i] = make(i);
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(loop);
  loop();
  helpers.clear();  // joins
  return results;
}

void update_page(const std::string& path, const std::string& tables) {
  const std::string begin = "<!-- whatif_accuracy -->\n";
  const std::string end = "<!-- end of whatif_accuracy -->";
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from)
    throw Error(ErrorKind::usage, path + ": has no place for the tables");
  std::ofstream out(path);
  out << page.substr(0, from) << begin << "\n" << tables << "\n" << page.substr(to);
}

int write_job(const Options& options) {
  const auto layout = std::ranges::find(kLayouts, options.write[0]);
  const auto number = static_cast<std::uint64_t>(std::atoll(options.write[1].c_str()));
  if (layout == std::end(kLayouts) && options.write[0] != "question") refuse();
  simulate::write_run(
      layout == std::end(kLayouts)
          ? make_question(number).scenario
          : make_job(static_cast<std::size_t>(layout - std::begin(kLayouts)), number),
      options.write[2]);
  return 0;
}

int run(const Options& options) {
  if (!options.write.empty()) return write_job(options);
  if (!has_tool()) {
    std::fputs("whatif_accuracy: this build cannot follow a critical path yet\n", stderr);
    return options.check ? 1 : 0;
  }
  if (options.question) {
    WhatIfScore score = score_question(*options.question);
    std::fputs(what_if_table({score}).c_str(), stdout);
    std::printf("%s: %.3f ms became %.3f, predicted %.3f\n", score.words.c_str(),
                static_cast<double>(score.before) / 1e6, static_cast<double>(score.truth) / 1e6,
                static_cast<double>(score.predicted) / 1e6);
    return 0;
  }
  const std::size_t jobs = options.jobs * kLayoutCount * 2;
  const auto paths = each<PathScore>(jobs, options.threads, [](std::size_t i) {
    return score_path(i / 2 % kLayoutCount, i / 2 / kLayoutCount, i % 2 == 0);
  });
  const auto answers = each<WhatIfScore>(options.questions, options.threads, score_question);
  if (options.list) std::fputs((far_off(paths) + far_off(answers)).c_str(), stdout);
  const std::string tables = path_table(paths) + "\n" + what_if_table(answers);
  std::fputs(tables.c_str(), stdout);
  if (!options.page.empty()) update_page(options.page, tables);
  if (!options.check) return 0;
  const std::vector<std::string> sentences = missed(paths, answers);
  for (const std::string& sentence : sentences)
    std::fprintf(stderr, "missed: %s\n", sentence.c_str());
  return sentences.empty() ? 0 : 1;
}

}  // namespace
}  // namespace commlens::whatif_accuracy

int main(int argc, char** argv) {
  try {
    return commlens::whatif_accuracy::run(
        commlens::whatif_accuracy::parse({argv + 1, argv + argc}));
  } catch (const commlens::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
