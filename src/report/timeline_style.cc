#include "report/timeline_style.h"

#include <algorithm>
#include <array>
#include <vector>

namespace commlens {
namespace {

// A share of at most one tenth does not change what a communication is called.
constexpr Ns kSmallShare = 10;

struct Hues {
  int from = 0;
  int to = 0;  // beyond 360: around the circle
};

// In HSLuv, red is at 12, yellow at 86, green at 128, cyan at 192.
constexpr Hues kGreens{95, 190};
constexpr Hues kYellows{45, 90};
constexpr Hues kReds{340, 390};

struct StateStyle {
  std::string_view words;
  bool percent;  // a percentage follows the words
  std::string_view category;
  std::string_view colour;
  Hues hues;
};

constexpr std::array<StateStyle, kCommStateCount> kStyles{{
    {"hidden", true, "communication,hidden", "good", kGreens},
    {"partly exposed", true, "communication,partly exposed", "bad", kYellows},
    {"exposed", true, "communication,exposed", "terrible", kReds},
    {"no time", false, "communication", "grey", {0, 360}},
    {"outside the window", false, "communication,outside", "grey", {0, 360}},
}};

const StateStyle& style(CommState state) { return kStyles[static_cast<std::size_t>(state)]; }

// A name in two halves, a number between them where the style wants one.
struct NameParts {
  std::string before;
  std::string after;
};

bool fits(Hues hues, const std::string& name) {
  const int hue = perfetto_hue(name);
  return (hue >= hues.from && hue < hues.to) || hue + 360 < hues.to;
}

// Blanks to try behind a name: none, then more and more of the plain and the no-break one.
std::vector<std::string> blanks() {
  std::vector<std::string> all{""};
  for (std::size_t i = 0; all.size() < 127; ++i) {
    const std::string shorter = all[i];
    all.push_back(shorter + " ");
    all.push_back(shorter + "\u00A0");
  }
  return all;
}

std::vector<NameParts> all_names() {
  const std::vector<std::string> paddings = blanks();
  std::vector<NameParts> names;
  for (int op = 0; op < kOpCount; ++op) {
    const std::string name = static_cast<Op>(op) == Op::unknown
                                 ? "unknown communication"
                                 : std::string(op_name(static_cast<Op>(op)));
    for (const StateStyle& state : kStyles) {
      const std::string before =
          name + " (" + std::string(state.words) + (state.percent ? " " : "");
      std::string after = state.percent ? " %)" : ")";
      for (const std::string& padding : paddings) {
        if (!fits(state.hues, before + (state.percent ? "0" : "") + after + padding)) continue;
        after += padding;
        break;
      }
      names.push_back({before, after});
    }
  }
  return names;
}

// Rounded down, so that 100 is all of it. Through a double: a hundred times a time may not fit.
std::int64_t percent(Ns part, Ns whole) {
  if (part == whole) return 100;
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return std::min<std::int64_t>(99, static_cast<std::int64_t>(share));
}

}  // namespace

CommState comm_state(const Exposure& figures) {
  if (!figures.in_window) return CommState::outside;
  if (figures.busy == 0) return CommState::no_time;
  if (figures.exposed <= figures.busy / kSmallShare) return CommState::hidden;
  return figures.hidden <= figures.busy / kSmallShare ? CommState::exposed
                                                      : CommState::partly_exposed;
}

std::string_view comm_colour(CommState state) { return style(state).colour; }

CommWords::CommWords(TimelineTexts& texts) {
  static const std::vector<NameParts> names = all_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [before, after] = names[i];
    if (kStyles[i % kCommStateCount].percent) {
      names_.push_back({texts.id(before), 0, texts.id(after)});
    } else {
      names_.push_back({.before = texts.id(before + after)});
    }
  }
  for (const StateStyle& state : kStyles) categories_.push_back(texts.id(state.category));
  for (int i = 0; i < kOpCount; ++i) ops_.push_back(texts.id(op_name(static_cast<Op>(i))));
  for (std::size_t i = 0; i < kEvidenceCount; ++i)
    evidence_.push_back(texts.id(evidence_name(static_cast<Evidence>(i))));
}

SliceName CommWords::name(Op op, CommState state, const Exposure& figures) const {
  SliceName name =
      names_[static_cast<std::size_t>(op) * kCommStateCount + static_cast<std::size_t>(state)];
  if (name.number) {
    name.number =
        percent(state == CommState::hidden ? figures.hidden : figures.exposed, figures.busy);
  }
  return name;
}

// FNV-1a as JavaScript computes it there: the product is rounded to a double before it is cut to 32
// signed bits. Written for texts of U+0000 to U+00FF, whose UTF-16 units are their code points.
int perfetto_hue(std::string_view name) {
  std::string units;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte >= '0' && byte <= '9') {
      const bool first = i == 0 || name[i - 1] < '0' || name[i - 1] > '9';
      if (first && !units.empty() && units.back() == ' ') units.pop_back();
    } else if (byte == 0xC2 || byte == 0xC3) {
      const auto next = static_cast<unsigned char>(i + 1 < name.size() ? name[++i] : '\x80');
      units += static_cast<char>(byte == 0xC2 ? next : next + 0x40U);
    } else {
      units += name[i];
    }
  }
  std::int32_t hash = 0x11c9dc5;
  for (const char unit : units) {
    hash ^= static_cast<unsigned char>(unit);
    const double product = static_cast<double>(hash) * 16777619.0;
    hash =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(product)));
  }
  const std::int64_t value = hash;
  return static_cast<int>((value < 0 ? -value : value) % 360);
}

}  // namespace commlens
