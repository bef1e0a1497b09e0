#include "model/name_words.h"

#include <cctype>
#include <cstddef>

namespace commlens {
namespace {

struct Spelling {
  std::string_view from;
  std::string_view to;
};

// One spelling for words that are written together or apart.
constexpr Spelling kSpellings[] = {
    {"allreduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"allgatherv", "all_gather_v"},
    {"reducescatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},
    {"alltoallv", "all_to_all_v"},
    {"allto", "all_to"},  // AlltoAll
    {"all2all", "all_to_all"},
    {"allv", "all_v"},  // all_to_allv
    {"a2a", "all_to_all"},
    {"sendrecv", "send_recv"},
    {"oneshot", "one_shot"},
    {"1shot", "one_shot"},
    {"twoshot", "two_shot"},
    {"2shot", "two_shot"},
};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether a word begins at `at`: behind what is no letter, in "fooBar" at B, in "LLKernel" at K.
bool word_begins(std::string_view name, std::size_t at) {
  if (at == 0 || !is_word(name[at - 1])) return true;
  if (!is_upper(name[at])) return false;
  return is_lower_letter(name[at - 1]) || (at + 1 < name.size() && is_lower_letter(name[at + 1]));
}

// A number behind a word is one of its variants: "allreduce7".
void append_word(std::string& words, std::string_view word) {
  const std::size_t letters = word.find_last_not_of("0123456789") + 1;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.from != word.substr(0, letters)) continue;
    words += spelling.to;
    words += '_';
    word.remove_prefix(letters);
    break;
  }
  if (word.empty()) return;
  words += word;
  words += '_';
}

}  // namespace

std::string words_of(std::string_view name) {
  std::string words = "_";
  std::string word;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_word(name[at])) continue;
    if (word_begins(name, at) && !word.empty()) {
      append_word(words, word);
      word.clear();
    }
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[at])));
  }
  if (!word.empty()) append_word(words, word);
  return words;
}

// Of each piece between stars, the leftmost place is as good as any.
bool matches_words(std::string_view pattern, std::string_view words) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == words;
  if (!words.starts_with(pattern.substr(0, star))) return false;
  words.remove_prefix(star);
  while (true) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    if (star == std::string_view::npos) return words.ends_with(pattern);
    const std::size_t found = words.find(pattern.substr(0, star));
    if (found == std::string_view::npos) return false;
    words.remove_prefix(found + star);
  }
}

}  // namespace commlens
