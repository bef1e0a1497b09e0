// Training steps, as programs mark them with NVTX: "step 7", "iteration_7", "ProfilerStep#7".
//
//   thread a   [step 7 ............]   [step 8 ....
//   thread b        [backward]     ^ may be ended here
//
// Problem: Nsight knows no steps, and each program names its own ranges. Method: ranges of one
// domain whose names differ in nothing but the number are one family. A family is the steps where
// its numbers rise with time and none begins before the one before has ended; of several
// ProfilerStep's, then the one that covers most. On which thread a range ends says nothing here: a
// step is all that is launched meanwhile. When it is wrong: a family that counts something else
// under such a name, in a program that does not mark its steps.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "ingest/nsys_process.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestStepName = 64;
constexpr std::int64_t kLargestStep = 1'000'000'000'000;

struct NamedStep {
  std::string family;  // "step", "trainiteration"
  std::int64_t number = 0;
};

bool is_digit_of_step(char c) { return c >= '0' && c <= '9'; }

// Letters of what stands before the number, in small ones; nothing where others than blanks and
// signs stand between them.
std::optional<std::string> family_of(std::string_view words) {
  std::string family;
  for (const char c : words) {
    if (c >= 'A' && c <= 'Z') {
      family += static_cast<char>(c + 32);
    } else if (c >= 'a' && c <= 'z') {
      family += c;
    } else if (std::string_view(" _-#:=.").find(c) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  std::string_view word = family;
  for (const std::string_view before : {"training", "train", "global", "profiler"}) {
    if (!word.starts_with(before)) continue;
    word.remove_prefix(before.size());
    break;
  }
  const bool known = word == "step" || word == "iter" || word == "iteration";
  return known ? std::optional(family) : std::nullopt;
}

// "step 7" or, of all, "step 7/100".
std::optional<NamedStep> step_of(std::string_view name) {
  if (name.size() > kLongestStepName) return std::nullopt;
  const auto* const first = std::find_if(name.begin(), name.end(), is_digit_of_step);
  std::int64_t number = -1;
  const auto end = std::from_chars(first, name.data() + name.size(), number);
  if (end.ec != std::errc{} || number < 0 || number > kLargestStep) return std::nullopt;
  std::string_view rest = name.substr(static_cast<std::size_t>(end.ptr - name.data()));
  if (rest.starts_with('/') && rest.size() > 1)
    rest = rest.substr(std::min(rest.size(), rest.find_first_not_of("0123456789", 1)));
  if (!rest.empty()) return std::nullopt;
  auto family = family_of(name.substr(0, static_cast<std::size_t>(first - name.begin())));
  if (!family) return std::nullopt;
  return NamedStep{.family = std::move(*family), .number = number};
}

struct StepFamily {
  std::vector<std::pair<Interval, std::int64_t>> steps;
  Ns covered = 0;
  bool rises = true;
};

using StepFamilies = std::map<std::pair<std::string, std::int64_t>, StepFamily>;  // and domain

// Sorts its steps.
void judge_family(StepFamily& family) {
  std::sort(family.steps.begin(), family.steps.end(), [](const auto& a, const auto& b) {
    return a.first.start != b.first.start ? a.first.start < b.first.start : a.second < b.second;
  });
  for (std::size_t i = 0; i < family.steps.size(); ++i) {
    const auto& [time, number] = family.steps[i];
    family.covered += time.length();
    if (i == 0) continue;
    const auto& [time_before, number_before] = family.steps[i - 1];
    family.rises = family.rises && number_before < number && time_before.end <= time.start;
  }
}

StepFamilies read_families(NsysDatabase& database, const NsysProcess& process) {
  std::string where =
      "eventType IN (" + std::to_string(kNsysPushPop) + ", " + std::to_string(kNsysStartEnd) + ")";
  if (process.global_pid) where += " AND " + process.of_thread();
  StepFamilies families;
  database.each(
      "NVTX_EVENTS", {"start", "end", "text", "textId", "domainId"},
      [&](const NsysRow& row) {
        if (!row.is_number(0) || !row.is_number(1)) return;  // not ended: not known what is in it
        const std::string_view name =
            row.text(2).empty() ? database.string(row.integer(3, -1)) : row.text(2);
        const auto step = step_of(name);
        const Interval time{row.integer(0), row.integer(1)};
        if (!step || !is_in_session(time.start) || !is_in_session(time.end) ||
            time.end <= time.start)
          return;
        families[{step->family, row.integer(4)}].steps.emplace_back(time, step->number);
      },
      where);
  for (auto& [name, family] : families) judge_family(family);
  return families;
}

}  // namespace

void read_nsys_steps(NsysDatabase& database, const NsysProcess& process, TraceBuilder& builder) {
  const StepFamilies families = read_families(database, process);
  const StepFamily* chosen = nullptr;
  const StepFamily* odd = nullptr;
  bool is_profilers = false;
  for (const auto& [name, family] : families) {
    if (!family.rises) {
      odd = &family;
      continue;
    }
    const bool profilers = name.first == "profilerstep";
    const bool better = chosen == nullptr || (profilers && !is_profilers) ||
                        (profilers == is_profilers && family.covered > chosen->covered);
    if (!better) continue;
    chosen = &family;
    is_profilers = profilers;
  }
  if (chosen == nullptr && odd != nullptr)
    builder.notes().add(Note::odd_steps,
                        "at " + std::to_string(odd->steps.front().first.start) + " ns");
  if (chosen == nullptr) return;
  for (const auto& [time, number] : chosen->steps) builder.add_step(number, time, false);
}

}  // namespace commlens
