// Gradients sent in other portions than were recorded.
#pragma once

#include <vector>

#include "replay/replay.h"
#include "replay/transfer.h"

namespace commlens {

// Where a bucket ends. Gradients come in portions that nothing tells: one would be sent somewhere
// between the message with which it does not exceed its size and the one with which it reaches it.
enum class BucketEnd : std::uint8_t { reached, not_exceeded };

// What beginning a message costs, within what its fit leaves open.
enum class BucketAlpha : std::uint8_t { fitted, least, most };

// Messages of data-parallel groups merged until they hold so many bytes: the last of each bucket
// moves the bytes of all, and saves what each of the others costs to begin; the others are gone,
// and so are the calls that launched them.
class Buckets {
 public:
  Buckets(const Graph& graph, std::int64_t bytes, BucketEnd end = BucketEnd::reached,
          BucketAlpha alpha = BucketAlpha::fitted)
      : graph_(graph), transfers_(graph), bytes_(bytes), end_(end), alpha_(alpha) {}

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
  void spare_calls(std::uint32_t rank, std::vector<SparedCall>& spared) const;
  Ns alpha_of(Op op, const GroupIdentity& group);

  const Graph& graph_;
  const Transfers transfers_;
  const std::int64_t bytes_;
  const BucketEnd end_;
  const BucketAlpha alpha_;
  // Of the rank that is looked at: nodes of messages, and those of them that are gone; ascending.
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> gone_;
  std::int64_t messages_ = 0;
  std::int64_t merged_ = 0;
  std::int64_t larger_ = 0;
  bool alpha_known_ = true;
};

}  // namespace commlens
