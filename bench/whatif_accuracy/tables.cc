#include "tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace commlens::whatif_accuracy {
namespace {

std::string percent(double value) { return fmt::format("{:.2f} %", 100 * value); }

double limit(const PathScore& score) {
  return score.sync_records ? kPathWithin : kPathWithinInferred;
}

// Doubt is allowed only where the trace does not say who waited for whom, or by how much clocks
// differ: pairs alone do not tell that.
bool is_far(const PathScore& score) {
  const bool complete = score.sync_records && score.one_clock;
  return score.known && score.worst() > limit(score) && (score.sure || complete);
}

struct PathSums {
  std::int64_t count = 0;
  std::int64_t known = 0;
  std::int64_t within = 0;
  std::int64_t doubted = 0;  // said to be of low confidence
  std::int64_t far = 0;
  double total = 0;
  double worst = 0;
  double by_rank = 0;
  void add(const PathScore& score) {
    ++count;
    if (!score.known) return;
    ++known;
    within += score.worst() <= limit(score) ? 1 : 0;
    doubted += score.sure ? 0 : 1;
    far += is_far(score) ? 1 : 0;
    total += score.worst();
    worst = std::max(worst, score.worst());
    by_rank = std::max(by_rank, score.most_by_rank);
  }
};

std::string path_row(std::string_view layout, bool sync_records, const PathSums& sums) {
  const double mean = sums.known == 0 ? 0 : sums.total / static_cast<double>(sums.known);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", layout,
                     sync_records ? "yes" : "no", sums.count, sums.known, percent(mean),
                     percent(sums.worst), sums.within, sums.doubted, sums.far,
                     percent(sums.by_rank));
}

struct AnswerSums {
  std::int64_t count = 0;
  std::int64_t known = 0;
  std::int64_t inside = 0;
  double change = 0;
  double error = 0;
  double worst = 0;
  double width = 0;
  void add(const WhatIfScore& score) {
    ++count;
    change += score.change();
    if (!score.known) return;
    ++known;
    inside += score.inside() ? 1 : 0;
    error += score.error();
    worst = std::max(worst, score.error());
    width += static_cast<double>(score.upper - score.lower) / static_cast<double>(score.truth);
  }
  double mean(double sum) const { return known == 0 ? 0 : sum / static_cast<double>(known); }
  double share_inside() const { return mean(static_cast<double>(inside)); }
};

std::string answer_row(std::string_view kind, const AnswerSums& sums) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", kind, sums.count, sums.known,
                     percent(sums.count == 0 ? 0 : sums.change / static_cast<double>(sums.count)),
                     percent(sums.mean(sums.error)), percent(sums.worst),
                     percent(sums.share_inside()), percent(sums.mean(sums.width)));
}

AnswerSums sums_of(const std::vector<WhatIfScore>& scores) {
  AnswerSums sums;
  for (const WhatIfScore& score : scores) sums.add(score);
  return sums;
}

}  // namespace

std::string path_table(const std::vector<PathScore>& scores) {
  std::string text =
      "| layout | sync records | jobs | answered | mean error | worst | within | doubted | far off "
      "| worst of a rank |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const bool sync_records : {true, false}) {
    PathSums all;
    for (std::size_t layout = 0; layout < kLayoutCount; ++layout) {
      PathSums sums;
      for (const PathScore& score : scores) {
        if (score.layout != layout || score.sync_records != sync_records) continue;
        sums.add(score);
        all.add(score);
      }
      text += path_row(kLayouts[layout], sync_records, sums);
    }
    text += path_row("all", sync_records, all);
  }
  return text;
}

std::string what_if_table(const std::vector<WhatIfScore>& scores) {
  std::vector<std::string> kinds;
  for (const WhatIfScore& score : scores) {
    if (std::ranges::find(kinds, score.kind) == kinds.end()) kinds.push_back(score.kind);
  }
  std::string text =
      "| change | jobs | answered | changes the step by | mean error | worst | inside the interval "
      "| its width |\n|---|---|---|---|---|---|---|---|\n";
  for (const std::string& kind : kinds) {
    AnswerSums sums;
    for (const WhatIfScore& score : scores) {
      if (score.kind == kind) sums.add(score);
    }
    text += answer_row(kind, sums);
  }
  return text + answer_row("all", sums_of(scores));
}

std::string far_off(const std::vector<PathScore>& scores) {
  std::string text;
  for (const PathScore& score : scores) {
    if (score.known && score.worst() <= limit(score)) continue;
    text += fmt::format("path {} {} {}{}{}: ", kLayouts[score.layout], score.number,
                        score.sync_records ? "sync" : "no sync",
                        score.one_clock ? "" : ", several clocks", score.sure ? "" : ", doubted");
    text += score.known
                ? fmt::format("compute {} transfer {} host {} memory {} unexplained {}\n",
                              percent(score.off[0]), percent(score.off[1]), percent(score.off[2]),
                              percent(score.off[3]), percent(score.off[4]))
                : "no answer\n";
  }
  return text;
}

std::string far_off(const std::vector<WhatIfScore>& scores) {
  std::string text;
  for (const WhatIfScore& score : scores) {
    if (score.known && score.error() <= kMeanError) continue;
    text += fmt::format("what if {}: {}: {}: ", score.number, score.kind, score.words);
    text += score.known
                ? fmt::format("{:.3f} ms became {:.3f}, predicted {:.3f} ({:.3f}..{:.3f})\n",
                              static_cast<double>(score.before) / 1e6,
                              static_cast<double>(score.truth) / 1e6,
                              static_cast<double>(score.predicted) / 1e6,
                              static_cast<double>(score.lower) / 1e6,
                              static_cast<double>(score.upper) / 1e6)
                : "no answer " + score.trouble + "\n";
  }
  return text;
}

std::vector<std::string> missed(const std::vector<PathScore>& paths,
                                const std::vector<WhatIfScore>& answers) {
  std::vector<std::string> sentences;
  const auto require = [&sentences](bool holds, std::string sentence) {
    if (!holds) sentences.push_back(std::move(sentence));
  };
  const auto silent = std::ranges::count_if(paths, [](const auto& score) { return !score.known; });
  const auto far = std::ranges::count_if(paths, is_far);
  require(silent == 0, fmt::format("{} jobs without a critical path", silent));
  require(far == 0, fmt::format("{} critical paths are far off", far));
  const AnswerSums sums = sums_of(answers);
  require(sums.known == sums.count,
          fmt::format("{} questions without an answer", sums.count - sums.known));
  if (sums.known == 0) return sentences;
  require(sums.mean(sums.error) <= kMeanError,
          "the mean error is " + percent(sums.mean(sums.error)));
  require(sums.worst <= kWorstError, "the worst error is " + percent(sums.worst));
  require(sums.share_inside() >= kInside,
          "only " + percent(sums.share_inside()) + " of the truths are inside the interval");
  return sentences;
}

}  // namespace commlens::whatif_accuracy
