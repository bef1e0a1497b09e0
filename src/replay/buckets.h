// Gradients sent in other portions than were recorded.
#pragma once

#include <vector>

#include "replay/replay.h"
#include "replay/transfer.h"

namespace commlens {

// Messages of data-parallel groups merged until they hold so many bytes: the last of each bucket
// moves the bytes of all, and saves what each of the others costs to begin; the others are gone.
class Buckets {
 public:
  Buckets(const Graph& graph, std::int64_t bytes)
      : graph_(graph), transfers_(graph), bytes_(bytes) {}

  // Merges what Assumption::transfer has, which is one factor for each communication.
  void apply(Assumption& assumption);

  // All-reduces of known size in a data-parallel group; of these, those that get fewer.
  std::int64_t messages() const { return messages_; }
  std::int64_t merged() const { return merged_; }
  // Smaller messages than were recorded would begin earlier, which nothing recorded tells.
  bool would_split() const { return 2 * larger_ > messages_; }
  bool alpha_known() const { return alpha_known_; }

 private:
  struct Open {
    std::int64_t bytes = 0;
    std::int64_t step = kUnknown;
    std::vector<std::size_t> messages;  // rows of Work::comm
    Ns alpha = 0;
  };

  void apply(std::uint32_t rank, std::vector<double>& factors);
  void close(std::uint32_t rank, Open& bucket, std::vector<double>& factors);
  Ns alpha_of(Op op, const GroupIdentity& group);

  const Graph& graph_;
  const Transfers transfers_;
  const std::int64_t bytes_;
  std::int64_t messages_ = 0;
  std::int64_t merged_ = 0;
  std::int64_t larger_ = 0;
  bool alpha_known_ = true;
};

}  // namespace commlens
