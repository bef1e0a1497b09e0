// The order in which a writer writes an object's keys, learned from one object and expected of the
// next.
//
// Problem: a kernel event has two dozen keys, and finding, delimiting and telling each is most of
// what reading it costs. Method: a writer prints the same text between two values every time (`,
// "stream": `). What stood there in the last object is compared as a whole; where it differs, the
// key is read as usual and learned. When it is wrong: never; a difference only costs the usual way.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ingest/json_scan.h"

namespace commlens {

class KeyHabit {
 public:
  static constexpr int kEnd = -1;

  // Before the first member of an object.
  void restart() { field_ = 0; }

  // The meaning of the next member, whose value stands before the walker; kEnd at the end of the
  // object and on failure. `meaning_of` gives a key's meaning, 0 to 127.
  template <class MeaningOf>
  int next(Walker& walker, MeaningOf meaning_of) {
    const std::size_t at = field_++;
    if (at < kFields && fields_[at].lead.length() > 0 && walker.skip_exactly(fields_[at].lead))
      return fields_[at].meaning;
    const char* before = walker.at();
    const int surplus = walker.surplus_commas();
    std::string_view key;
    if (!walker.next_key(key)) return kEnd;
    const int meaning = meaning_of(key);
    const auto length = static_cast<std::size_t>(walker.at() - before);
    const std::string_view lead(before, length);
    const bool plain =
        walker.surplus_commas() == surplus && lead.find('\\') == std::string_view::npos;
    if (at < kFields && plain && length <= Lead::kLongest)
      fields_[at] = {Lead(lead), static_cast<std::int8_t>(meaning)};
    return meaning;
  }

 private:
  static constexpr std::size_t kFields = 40;
  struct Field {
    Lead lead;  // empty: nothing learned
    std::int8_t meaning = 0;
  };

  std::array<Field, kFields> fields_{};
  std::size_t field_ = 0;
};

}  // namespace commlens
