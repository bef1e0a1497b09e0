#include "ingest/witness_lines.h"

#include <algorithm>
#include <string>

namespace commlens {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10U;
constexpr std::size_t kBlock = std::size_t{256} << 10U;

}  // namespace

void for_each_line(Source& source, std::string_view head,
                   const std::function<void(std::string_view, std::int64_t)>& line) {
  std::string pending;
  std::int64_t number = 1;
  const auto feed = [&](std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      pending +=
          text.substr(0, std::min(end, kLongestLine - std::min(kLongestLine, pending.size())));
      if (end == text.size()) return;
      if (pending.ends_with('\r')) pending.pop_back();
      line(pending, number++);
      pending.clear();
      text.remove_prefix(end + 1);
    }
  };
  feed(head);
  std::string block(kBlock, '\0');
  while (const std::size_t got = source.read({block.data(), block.size()}))
    feed(std::string_view(block).substr(0, got));
  if (!pending.empty()) line(pending, number);
}

}  // namespace commlens
