#include "report/chrome_names.h"

#include "model/rank_list.h"
#include "report/chrome_events.h"

namespace commlens {
namespace {

// Longer names (templates run to kilobytes) and lists are cut.
constexpr std::size_t kLongestName = 400;
constexpr std::size_t kLongestRankList = 200;

std::string group_members(const GroupIdentity& group) {
  const bool described = !group.description.empty() && group.description != "undefined";
  std::string text;
  if (described || !group.name.empty()) {
    text += ",\"group\":" +
            json_string(cut_text(described ? group.description : group.name, kLongestName));
  }
  if (!group.ranks.empty()) {
    const std::string ranks = format_ranks(group.ranks);
    text += ",\"group_ranks\":" + json_string(cut_text(ranks, kLongestRankList));
  }
  if (group.size > 0) text += ",\"group_size\":" + std::to_string(group.size);
  return text;
}

}  // namespace

RankNames::RankNames(const RankTimeline& rank)
    : strings_(rank.recording.strings), names_(rank.recording.strings.size()) {
  for (const GroupIdentity& group : rank.groups) groups_.push_back(group_members(group));
}

const std::string& RankNames::name(StringId id) {
  static const std::string nothing = "\"\"";
  if (!id.valid()) return nothing;
  std::string& text = names_[id.index()];
  if (text.empty()) text = json_string(cut_text(strings_.get(id), kLongestName));
  return text;
}

}  // namespace commlens
