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
  messages.bytes += *op.bytes;
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

struct Large {
  Messages messages;
  Ns idle = 0;            // of the streams before them
  bool one_size = false;  // alpha is not known
};

// The time before a message in which its first parts were ready and its stream idle. Gradients come
// one after another during the backward pass: of the time since another step's message, that is no
// less than half.
Ns idle_before(const Scene& scene, std::uint32_t row, std::size_t i, const CommOp& op) {
  const RankTimeline& rank = scene.job().ranks[row];
  const Work& work = rank.work;
  const std::uint32_t node = work.comm[i].node;
  if (std::binary_search(work.stream_begins.begin(), work.stream_begins.end(), node)) return 0;
  const Ns idle = work.start[node] - work.end[node - 1];
  const bool follows = i > 0 && work.comm[i - 1].node == node - 1;
  const CommNode& before = work.comm[follows ? i - 1 : i];
  const bool same_step =
      follows && op.step != kUnknown && rank.devices[before.device].comm[before.op].step == op.step;
  return same_step ? idle : idle / 2;
}

// How much sooner a message would be done had its first parts been sent while its stream was idle.
Ns saved_by_parts(std::int64_t parts, Ns alpha, Ns transfer, Ns idle) {
  if (parts < 2) return 0;
  return std::min(idle, transfer - transfer / parts) - (parts - 1) * alpha;
}

void add_large(const Scene& scene, std::uint32_t row, std::size_t i, const CommOp& op,
               const MatchedOp* matched, Large& large) {
  if (matched == nullptr || !op.bytes) return;
  const auto fit = fitted(scene, op, matched);
  if (!fit && (*op.bytes < kSurelyLarge || scene.fit_of(*matched) != nullptr)) return;
  const Ns idle = idle_before(scene, row, i, op);
  const Ns transfer = transfer_length(scene.graph(), row, scene.graph().work(row).comm[i]);
  const std::int64_t parts = fit ? *op.bytes / (kGoodSize * fit->half) : kPartsOfOneSize;
  const Ns saved = saved_by_parts(parts, fit ? fit->fit->alpha_ns : 0, transfer, idle);
  if (saved <= 0 || transfer <= 0) return;
  if (large.messages.count == 0) large.messages.candidate.change = unchanged(scene.graph());
  if (fit) {
    count(op, *fit, large.messages);
  } else {
    large.one_size = true;
    ++large.messages.count;
    large.messages.bytes += *op.bytes;
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
  Large large;
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
  finding.advice = "Smaller buckets: bucket_cap_mb=" +
                   std::to_string(std::max<std::int64_t>(1, part_size(large) / 1'000'000)) +
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
};

}  // namespace commlens
