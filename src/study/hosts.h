// Which rank is on which host, as the user says it.
#pragma once

#include <functional>
#include <string>

namespace commlens {

// `text` is the name of a file with lines "RANKS HOST" ("0-7 node1", `#` starts a comment), or a
// regular expression (POSIX extended) whose first group, matched against an input's path, is the
// host. The result gives a rank's host, or an empty text. Throws Error(usage) for lines and
// patterns that are not understood.
std::function<std::string(std::int64_t rank, const std::string& path)> parse_hosts(
    const std::string& text);

}  // namespace commlens
