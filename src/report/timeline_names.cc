#include "report/timeline_names.h"

#include "model/rank_list.h"

namespace commlens {
namespace {

// Longer names (templates run to kilobytes) and lists are cut.
constexpr std::size_t kLongestName = 400;
constexpr std::size_t kLongestRankList = 200;

std::vector<Argument> group_arguments(const GroupIdentity& group, TimelineTexts& texts) {
  const bool described = !group.description.empty() && group.description != "undefined";
  std::vector<Argument> arguments;
  if (described || !group.name.empty()) {
    arguments.push_back(
        {texts.id("group"),
         texts.id(cut_text(described ? group.description : group.name, kLongestName))});
  }
  if (!group.ranks.empty()) {
    arguments.push_back(
        {texts.id("group_ranks"), texts.id(cut_text(format_ranks(group.ranks), kLongestRankList))});
  }
  if (group.size > 0) arguments.push_back({texts.id("group_size"), group.size});
  return arguments;
}

}  // namespace

RankNames::RankNames(const RankTimeline& rank, TimelineTexts& texts)
    : strings_(rank.recording.strings), texts_(texts), names_(rank.recording.strings.size()) {
  for (const GroupIdentity& group : rank.groups) groups_.push_back(group_arguments(group, texts));
}

TextId RankNames::name(StringId id) {
  if (!id.valid()) return {};
  std::optional<TextId>& name = names_[id.index()];
  if (!name) name = texts_.id(cut_text(strings_.get(id), kLongestName));
  return *name;
}

}  // namespace commlens
