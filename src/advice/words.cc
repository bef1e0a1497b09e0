#include "advice/words.h"

#include <cstdio>

namespace commlens {
namespace {

std::string print(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string time_words(Ns time) {
  const auto value = static_cast<double>(time);
  if (time < 1'000'000) return print("%.1f us", value / 1e3);
  if (time < 10'000'000'000) return print("%.2f ms", value / 1e6);
  return print("%.2f s", value / 1e9);
}

std::string size_words(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1'000'000) return print("%.1f kB", value / 1e3);
  return bytes < 1'000'000'000 ? print("%.1f MB", value / 1e6) : print("%.1f GB", value / 1e9);
}

std::string share_words(double share) { return print("%.1f %%", 100 * share); }

std::string number_words(double value) { return print("%.3g", value); }

std::string count_words(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace commlens
