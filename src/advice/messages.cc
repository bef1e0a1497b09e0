// Messages of data-parallel groups that are too small to reach the links' rate, or so large that
// they begin too late.
//
//   too small:  [a][a][a][a]     each pays alpha     one of four times the size: [a===]
//   too large:  compute [=========]                  in parts: [=======][==]
//               sent               [========]                  [==][==][==]  done sooner
#include <algorithm>
#include <map>
#include <optional>

#include "advice/candidate.h"
#include "advice/words.h"
#include "base/saturated.h"
#include "replay/buckets.h"
#include "replay/transfer.h"

namespace commlens {
namespace {

// At this many times the size at which half of the rate is reached, four fifths of it are.
constexpr std::int64_t kGoodSize = 4;
// A fit whose samples lie further apart says nothing of single messages.
constexpr double kLargestSpread = 0.25;

struct Messages {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  std::int64_t half = 0;  // bytes at which half of the rate is reached
  Ns alpha = 0;
  Candidate candidate;
};
// By what is sent, in which kind of group.
using ByKind = std::map<std::pair<Op, std::string>, Messages>;

struct Fitted {
  const TransferFit* fit = nullptr;
  std::int64_t half = 0;
};

std::optional<Fitted> fitted(const Scene& scene, const CommOp& op, const MatchedOp* matched) {
  if (matched == nullptr || !op.bytes || *op.bytes <= 0) return std::nullopt;
  const TransferFit* fit = scene.fit_of(*matched);
  if (fit == nullptr || fit->spread > kLargestSpread) return std::nullopt;
  const auto half = fit->half_bandwidth_bytes();
  if (!half || *half <= 0) return std::nullopt;
  return Fitted{fit, *half};
}

bool is_data_parallel(const Scene& scene, std::uint32_t row, const CommOp& op) {
  const GroupIdentity* group = scene.group_of(row, op);
  return group != nullptr && group->role == GroupRole::data;
}

std::string messages_words(const Messages& messages) {
  return count_words(messages.count, "message") + " of " +
         size_words(messages.bytes / messages.count) +
         " on average; half of the links' rate takes " + size_words(messages.half) +
         ", beginning one costs " + time_words(messages.alpha) + " (fitted)";
}

void count(const CommOp& op, const Fitted& fit, Messages& messages) {
  ++messages.count;
  messages.bytes = saturated_sum(messages.bytes, *op.bytes);
  messages.half = fit.half;
  messages.alpha = fit.fit->alpha_ns;
}

// --- All-reduces of gradients, which the framework collects in buckets ---

std::vector<Candidate> find_small_buckets(const Scene& scene) {
  Messages small;
  scene.each_communication(
      [&](std::uint32_t row, std::size_t, const CommOp& op, const MatchedOp* matched) {
        if (op.op != Op::all_reduce || !is_data_parallel(scene, row, op)) return;
        const auto fit = fitted(scene, op, matched);
        if (fit && *op.bytes < fit->half) count(op, *fit, small);
      });
  if (small.count == 0) return {};
  const std::int64_t wanted = kGoodSize * small.half;
  small.candidate.change = unchanged(scene.graph());
  Buckets buckets(scene.graph(), wanted);
  buckets.apply(small.candidate.change);
  if (buckets.merged() == 0 || !buckets.alpha_known()) return {};
  Finding& finding = small.candidate.finding;
  finding.confidence = Confidence::likely;
  finding.title = "Gradients are sent in messages too small for the links";
  finding.evidence = messages_words(small);
  finding.advice =
      "Larger buckets: bucket_cap_mb=" +
      std::to_string(std::max<std::int64_t>(1, wanted / 1'000'000)) +
      " of DistributedDataParallel (or the framework's bucket size) reaches four fifths "
      "of the rate.";
  return {std::move(small.candidate)};
}

// --- Parameters and gradients that are sharded: one message for each wrapped module ---

std::vector<Candidate> find_small_messages(const Scene& scene) {
  ByKind kinds;
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp* matched) {
        if ((op.op != Op::all_gather && op.op != Op::reduce_scatter) ||
            !is_data_parallel(scene, row, op))
          return;
        const auto fit = fitted(scene, op, matched);
        if (!fit || *op.bytes >= fit->half) return;
        Messages& small = kinds[{op.op, scene.groups_words(row, op)}];
        if (small.count == 0) small.candidate.change = unchanged(scene.graph());
        count(op, *fit, small);
        const std::int64_t merged = (kGoodSize * fit->half + *op.bytes - 1) / *op.bytes;
        const auto time = static_cast<double>(std::max<Ns>(1, fit->fit->at(*op.bytes)));
        const auto saved =
            static_cast<double>(fit->fit->alpha_ns) * (1 - 1 / static_cast<double>(merged));
        small.candidate.change.transfer[row][i] = std::max(0.0, 1 - saved / time);
      });
  std::vector<Candidate> found;
  for (auto& [key, small] : kinds) {
    Finding& finding = small.candidate.finding;
    finding.confidence = Confidence::likely;
    finding.title = std::string(op_name(key.first)) + " in " + key.second +
                    " is sent in messages too small for the links";
    finding.evidence = messages_words(small);
    finding.advice =
        "Batch them: shard larger units (FSDP's auto_wrap_policy or fully_shard on "
        "blocks instead of layers) until a message has about " +
        size_words(kGoodSize * small.half) + "; all_gather_into_tensor_coalesced.";
    found.push_back(std::move(small.candidate));
  }
  return found;
}

// --- Buckets that wait until they are full while the link is idle ---

// Where all messages are of one size, what beginning one costs cannot be told; for one so large it
// matters little.
constexpr std::int64_t kSurelyLarge = 100'000'000;
constexpr std::int64_t kPartsOfOneSize = 4;

// A message as it would have been sent in parts.
struct Sent {
  std::uint32_t row = 0;
  std::uint32_t node = kNoNode;
  std::int64_t step = kUnknown;
  Ns full = 0;  // when all of it was there
  Ns done = 0;
};

struct Large {
  explicit Large(const Graph& graph) : transfers(graph) {}
  const Transfers transfers;
  Messages messages;
  Sent before;
  Ns idle = 0;            // of the streams before them
  bool one_size = false;  // alpha is not known
};

// When the last of equal parts has been sent: they become ready one after another in `filling`, and
// the link sends one at a time, from `free` on.
Ns done_in_parts(std::int64_t parts, Ns each, Interval filling, Ns free) {
  Ns done = free;
  for (std::int64_t part = 1; part <= parts; ++part) {
    const auto share = static_cast<double>(part) / static_cast<double>(parts);
    const auto filled = static_cast<Ns>(share * static_cast<double>(filling.length()));
    done = std::max(done, filling.start + filled) + each;
  }
  return done;
}

// A bucket fills from when the one before was full. Of the time since another step's message,
// gradients come in half of it at least, the backward pass. What began as soon as its stream was
// free may have been full before, nobody knows since when: it stays as it was.
void add_large(const Scene& scene, std::uint32_t row, std::size_t i, const CommOp& op,
               const MatchedOp* matched, Large& large) {
  if (matched == nullptr || !op.bytes) return;
  const auto fit = fitted(scene, op, matched);
  if (!fit && (*op.bytes < kSurelyLarge || scene.fit_of(*matched) != nullptr)) return;
  const Work& work = scene.graph().work(row);
  const std::uint32_t node = work.comm[i].node;
  const bool first = std::binary_search(work.stream_begins.begin(), work.stream_begins.end(), node);
  const Ns start = work.start[node];
  const Ns idle = first ? 0 : start - work.end[node - 1];
  const Ns transfer = large.transfers.length(row, work.comm[i]);
  const std::int64_t parts = fit ? *op.bytes / (kGoodSize * fit->half) : kPartsOfOneSize;

  const Sent before = large.before;
  const bool follows = !first && before.row == row && before.node == node - 1 &&
                       op.step != kUnknown && before.step == op.step;
  large.before = {.row = row, .node = node, .step = op.step, .full = start, .done = work.end[node]};
  if (parts < 2 || transfer <= 0 || idle <= work.latencies.stream) return;
  const Ns alpha = std::min(transfer, fit ? fit->fit->alpha_ns : 0);
  const Ns done = done_in_parts(parts, alpha + (transfer - alpha) / parts,
                                {follows ? before.full : start - idle / 2, start},
                                follows ? before.done : work.end[node - 1]);
  const Ns saved = start + transfer - done;
  if (saved <= 0) return;
  large.before.done = done;
  if (large.messages.count == 0) large.messages.candidate.change = unchanged(scene.graph());
  if (fit) {
    count(op, *fit, large.messages);
  } else {
    large.one_size = true;
    ++large.messages.count;
    large.messages.bytes = saturated_sum(large.messages.bytes, *op.bytes);
  }
  large.idle += idle;
  large.messages.candidate.change.transfer[row][i] =
      1 - static_cast<double>(saved) / static_cast<double>(transfer);
}

std::int64_t part_size(const Large& large) {
  return large.one_size ? large.messages.bytes / large.messages.count / kPartsOfOneSize
                        : kGoodSize * large.messages.half;
}

std::vector<Candidate> find_large_buckets(const Scene& scene) {
  Large large(scene.graph());
  scene.each_communication(
      [&](std::uint32_t row, std::size_t i, const CommOp& op, const MatchedOp* matched) {
        if ((op.op == Op::all_reduce || op.op == Op::reduce_scatter) &&
            is_data_parallel(scene, row, op))
          add_large(scene, row, i, op, matched, large);
      });
  Messages& messages = large.messages;
  if (messages.count == 0) return {};
  Finding& finding = messages.candidate.finding;
  finding.confidence = large.one_size ? Confidence::undecidable : Confidence::likely;
  finding.title = "Gradients are held back until large messages are full";
  finding.evidence =
      (large.one_size
           ? count_words(messages.count, "message") + " of " +
                 size_words(messages.bytes / messages.count) +
                 ", all of one size: what beginning one costs is not known, and taken as nothing"
           : messages_words(messages)) +
      "; before each, its stream was idle for " + time_words(large.idle / messages.count) +
      " in which its first parts could have been sent";
  finding.advice =
      "Smaller buckets: bucket_cap_mb=" +
      std::to_string(std::max<std::int64_t>(1, (part_size(large) + 500'000) / 1'000'000)) +
      " of DistributedDataParallel" +
      (large.one_size ? "" : " still reaches four fifths of the links' rate") +
      "; compare a run with them.";
  return {std::move(messages.candidate)};
}

}  // namespace

extern const Finder kLargerBuckets;
constinit const Finder kLargerBuckets{
    .id = "larger_buckets",
    .summary = "Gradients sent in messages too small to reach the links' rate",
    .find = find_small_buckets,
};

extern const Finder kSmallMessages;
constinit const Finder kSmallMessages{
    .id = "small_messages",
    .summary = "Sharded parameters sent in messages too small to reach the links' rate",
    .find = find_small_messages,
};

extern const Finder kSmallerBuckets;
constinit const Finder kSmallerBuckets{
    .id = "smaller_buckets",
    .summary = "Gradients held back until large messages are full, while the link is idle",
    .find = find_large_buckets,
    .least = 0.02,
};

}  // namespace commlens
