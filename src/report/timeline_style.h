// How a timeline shows a communication: its name, category and colour, by how much of it is hidden.
//
// Problem: a timeline should show at a glance which communication is exposed. Chrome's viewer takes
// a colour by name (`cname`); Perfetto ignores that and colours a slice by a hash of its name, with
// all digits (and the blank before them) left out. So:
//
//   name       "all_reduce (exposed 93 %)": the same words for the same state; only digits vary,
//              so one operation in one state has one colour everywhere
//   category   "communication,exposed": for searching; it does not depend on the wording
//   cname      green, orange, red
//
// and, so that Perfetto's colours mean the same for every operation, up to a few blanks stand at
// the end of a name, chosen so that its hash lands among the greens (hidden), the yellows (partly
// exposed) or the reds (exposed). When it is wrong: should Perfetto change its hash, colours are
// arbitrary again, but still one for each operation and state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/operation.h"
#include "report/timeline_event.h"

namespace commlens {

enum class CommState : std::uint8_t {
  hidden,  // at most a tenth of it is exposed
  partly_exposed,
  exposed,  // at most a tenth of it is hidden
  no_time,  // it has no length
  outside,  // of the window that the figures are for: they do not say
};
inline constexpr std::size_t kCommStateCount = 5;

CommState comm_state(const Exposure& figures);

std::string_view comm_colour(CommState state);

// The words of one timeline for communications.
class CommWords {
 public:
  explicit CommWords(TimelineTexts& texts);
  SliceName name(Op op, CommState state, const Exposure& figures) const;
  TextId category(CommState state) const { return categories_[static_cast<std::size_t>(state)]; }
  TextId op(Op op) const { return ops_[static_cast<std::size_t>(op)]; }
  TextId evidence(Evidence evidence) const { return evidence_[static_cast<std::size_t>(evidence)]; }

 private:
  std::vector<SliceName> names_;  // by op and state; `number` where a percentage is to stand
  std::vector<TextId> categories_;
  std::vector<TextId> ops_;
  std::vector<TextId> evidence_;
};

// The hue (0..359, HSLuv) that Perfetto gives to a slice of this name.
int perfetto_hue(std::string_view name);

}  // namespace commlens
