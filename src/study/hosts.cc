#include "study/hosts.h"

#include <regex.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

using HostOf = std::function<std::string(std::int64_t, const std::string&)>;

HostOf hosts_from_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::usage, path + ": the hosts file cannot be opened");
  std::map<std::int64_t, std::string> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string ranks;
    std::string host;
    std::string surplus;
    if (!(words >> ranks)) continue;
    const std::string where = path + ":" + std::to_string(number);
    if (!(words >> host) || words >> surplus)
      throw Error(ErrorKind::usage, where + ": expected \"RANKS HOST\", such as \"0-7 node1\"");
    for (const std::int64_t rank : parse_ranges(ranks, where)) hosts[rank] = host;
  }
  return [hosts](std::int64_t rank, const std::string&) {
    const auto found = hosts.find(rank);
    return found == hosts.end() ? std::string() : found->second;
  };
}

// POSIX's own expressions: <regex> costs five seconds to compile and recurses on long input.
HostOf hosts_from_pattern(const std::string& pattern) {
  auto compiled = std::shared_ptr<regex_t>(new regex_t{}, [](regex_t* expression) {
    regfree(expression);
    delete expression;
  });
  if (regcomp(compiled.get(), pattern.c_str(), REG_EXTENDED) != 0 || compiled->re_nsub < 1) {
    throw Error(ErrorKind::usage,
                "--hosts: \"" + pattern +
                    "\" is neither a file nor a regular expression with a (group) for the host");
  }
  return [compiled](std::int64_t, const std::string& path) {
    regmatch_t matches[2];
    if (regexec(compiled.get(), path.c_str(), 2, matches, 0) != 0 || matches[1].rm_so < 0)
      return std::string();
    return path.substr(static_cast<std::size_t>(matches[1].rm_so),
                       static_cast<std::size_t>(matches[1].rm_eo - matches[1].rm_so));
  };
}

}  // namespace

HostOf parse_hosts(const std::string& text) {
  std::error_code error;
  return std::filesystem::is_regular_file(text, error) ? hosts_from_file(text)
                                                       : hosts_from_pattern(text);
}

}  // namespace commlens
