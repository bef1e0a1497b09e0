#include "ingest/tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/decimal.h"

namespace commlens {

NodeId Tree::add_real(double value) {
  return add(NodeKind::real, std::bit_cast<std::int64_t>(value));
}

NodeId Tree::add_text(std::string_view text) {
  texts_ += text;
  text_ends_.push_back(texts_.size());
  return add(NodeKind::text, static_cast<std::int64_t>(text_ends_.size() - 1));
}

NodeId Tree::add_container(NodeKind kind) {
  items_.emplace_back();
  return add(kind, static_cast<std::int64_t>(items_.size() - 1));
}

std::string_view Tree::text(NodeId node) const {
  if (node == kNoValue || kind(node) != NodeKind::text) return {};
  const std::size_t i = index(node);
  const std::size_t from = i == 0 ? 0 : text_ends_[i - 1];
  return std::string_view(texts_).substr(from, text_ends_[i] - from);
}

std::optional<std::int64_t> Tree::integer(NodeId node) const {
  if (node == kNoValue) return std::nullopt;
  if (kind(node) == NodeKind::integer) return nodes_[node].value;
  if (kind(node) == NodeKind::text) return parse_int(text(node));
  return std::nullopt;
}

std::optional<double> Tree::number(NodeId node) const {
  if (node == kNoValue) return std::nullopt;
  if (kind(node) == NodeKind::integer) return static_cast<double>(nodes_[node].value);
  if (kind(node) == NodeKind::real) return std::bit_cast<double>(nodes_[node].value);
  return std::nullopt;
}

std::optional<bool> Tree::boolean(NodeId node) const {
  if (node == kNoValue || (kind(node) != NodeKind::boolean && kind(node) != NodeKind::integer))
    return std::nullopt;
  return nodes_[node].value != 0;
}

NodeId Tree::find(NodeId dict, std::string_view key) const {
  if (dict == kNoValue || kind(dict) != NodeKind::dict) return kNoValue;
  constexpr std::size_t kMostKeys = 512;
  const std::vector<NodeId>& pairs = items(dict);
  if (pairs.size() > 2 * kMostKeys) return kNoValue;
  for (std::size_t i = pairs.size() / 2; i-- > 0;) {
    if (kind(pairs[2 * i]) == NodeKind::text && text(pairs[2 * i]) == key) return pairs[2 * i + 1];
  }
  return kNoValue;
}

// Depth first without recursion: a container that is met while it is open holds itself. A container
// that was left and is met again need not be walked again, unless it lies deeper now; its height is
// kept for that.
NodeId Tree::first_endless(NodeId root) const {
  enum class Walk : std::uint8_t { fresh, open, done };
  struct Step {
    NodeId node;
    std::size_t next;
    int height;
  };
  if (root == kNoValue) return kNoValue;
  std::vector<Walk> walk(nodes_.size(), Walk::fresh);
  std::vector<std::uint8_t> height(nodes_.size(), 0);
  std::vector<Step> open{{root, 0, 0}};
  const auto is_container = [this](NodeId node) {
    return kind(node) == NodeKind::list || kind(node) == NodeKind::dict;
  };
  if (!is_container(root)) return kNoValue;
  walk[root] = Walk::open;
  while (!open.empty()) {
    Step& step = open.back();
    const std::vector<NodeId>& children = items(step.node);
    if (step.next == children.size()) {
      const int own = step.height + 1;
      if (own > kDeepest) return step.node;
      height[step.node] = static_cast<std::uint8_t>(own);
      walk[step.node] = Walk::done;
      open.pop_back();
      if (!open.empty()) open.back().height = std::max(open.back().height, own);
      continue;
    }
    const NodeId child = children[step.next++];
    if (!is_container(child)) continue;
    if (walk[child] == Walk::open) return child;
    if (walk[child] == Walk::done) {
      step.height = std::max<int>(step.height, height[child]);
      continue;
    }
    if (open.size() > kDeepest) return child;
    walk[child] = Walk::open;
    open.push_back({child, 0, 0});
  }
  return kNoValue;
}

}  // namespace commlens
