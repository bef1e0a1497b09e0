// Values of a small file as a tree: what pickle and JSON readers build, and importers take apart.
//
// Containers are known by number, so that one that stands in several places is held once however
// often it is named: what would be exponential written out stays as small as its text. For files
// that are small because they are written whole at the end of a job; traces have a reader of their
// own that builds nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commlens {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoValue = ~NodeId{0};

enum class NodeKind : std::uint8_t { null, boolean, integer, real, text, list, dict };

class Tree {
 public:
  // Deeper values are refused: whoever walks a tree may do so by recursion.
  static constexpr int kDeepest = 100;
  // Of a text that a reader takes whole: beyond any dump, and a bound for compressed bombs.
  static constexpr std::size_t kLongestText = std::size_t{1} << 30U;

  // Where in the text the values that are added next begin.
  void set_position(std::size_t byte) { position_ = static_cast<std::uint32_t>(byte); }
  std::int64_t position(NodeId node) const { return nodes_[node].position; }

  NodeId add_null() { return add(NodeKind::null, 0); }
  NodeId add_boolean(bool value) { return add(NodeKind::boolean, value ? 1 : 0); }
  NodeId add_integer(std::int64_t value) { return add(NodeKind::integer, value); }
  NodeId add_real(double value);
  NodeId add_text(std::string_view text);
  NodeId add_list() { return add_container(NodeKind::list); }
  NodeId add_dict() { return add_container(NodeKind::dict); }
  // Lists: items. Dicts: keys and values in turns.
  void append(NodeId container, NodeId item) { items_[index(container)].push_back(item); }
  // The container's end was lost: what is in it is true, and not all.
  void mark_cut(NodeId container) { nodes_[container].cut = true; }

  std::size_t size() const { return nodes_.size(); }
  NodeKind kind(NodeId node) const { return nodes_[node].kind; }
  bool cut(NodeId node) const { return nodes_[node].cut; }
  const std::vector<NodeId>& items(NodeId container) const { return items_[index(container)]; }
  std::string_view text(NodeId node) const;  // of a text node; empty for others
  // Whole numbers, written as one or as decimal text; nothing for others.
  std::optional<std::int64_t> integer(NodeId node) const;
  std::optional<double> number(NodeId node) const;  // whole or not
  std::optional<bool> boolean(NodeId node) const;
  // The value of a dict's key, the last of its name; kNoValue where there is none, or where the
  // dict is larger than any that is asked for keys.
  NodeId find(NodeId dict, std::string_view key) const;

  // A container that holds itself, or that is nested too deep; kNoValue where all is well.
  NodeId first_endless(NodeId root) const;

 private:
  struct Node {
    std::int64_t value;  // integer, boolean; of others an index or bits
    std::uint32_t position;
    NodeKind kind;
    bool cut = false;
  };
  NodeId add(NodeKind kind, std::int64_t value) {
    nodes_.push_back({value, position_, kind});
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  NodeId add_container(NodeKind kind);
  std::size_t index(NodeId node) const { return static_cast<std::size_t>(nodes_[node].value); }

  std::uint32_t position_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> items_;
  std::vector<std::size_t> text_ends_;  // in `texts_`
  std::string texts_;
};

// A tree and where it stopped to be one.
struct ReadTree {
  Tree tree;
  NodeId root = kNoValue;
  // Where the text ended early: one sentence. Containers that were open there are marked as cut.
  std::string truncation;
  std::int64_t surplus_bytes = 0;  // behind the value
};

}  // namespace commlens
