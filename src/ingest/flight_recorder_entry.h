// Entries of a Flight Recorder dump, as calls.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ingest/tree.h"
#include "model/witness.h"

namespace commlens {

// Reads the entries of one dump. Parts that entries share (stacks, and whatever a hostile writer
// shares) are looked at once, so that the time is linear in the file.
class FlightRecorderEntries {
 public:
  FlightRecorderEntries(const Tree& tree, Witness& witness);

  // Nothing for an entry that does not say what it did in which group, or whose end was cut off.
  std::optional<WitnessCall> call(NodeId entry);

 private:
  struct Shapes {
    StringId text;
    std::int64_t elements = -1;
  };
  std::optional<std::uint32_t> group(NodeId entry);
  void read_name(std::string_view name, WitnessCall& call);
  Shapes shapes(NodeId tensors);
  StringId dtypes(NodeId tensors);
  StringId code(NodeId frames);

  const Tree& tree_;
  Witness& witness_;
  std::map<std::string, std::uint32_t, std::less<>> groups_;
  std::set<NodeId> seen_;
  std::map<NodeId, Shapes> shapes_;
  std::map<NodeId, StringId> dtypes_;
  std::map<NodeId, StringId> codes_;
};

}  // namespace commlens
