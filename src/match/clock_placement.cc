// Bounds drift apart with time, so each must know when it was observed: by a clock that all share,
// before the clocks are related. Nothing here needs to be right to more than a few milliseconds: a
// time that is off by some D loosens a bound by 200 parts per million of D.
#include "match/clock_placement.h"

#include <algorithm>
#include <optional>

namespace commlens {
namespace {

// Sets of domains that hang together, and what is added to each one's times for that.
class Pieces {
 public:
  explicit Pieces(const ClockEstimate& estimate)
      : of_(estimate.root), members_(of_.size()), shift_(of_.size(), 0) {
    for (std::uint32_t domain = 0; domain < of_.size(); ++domain)
      members_[of_[domain]].push_back(domain);
  }

  std::uint32_t of(std::uint32_t domain) const { return of_[domain]; }
  Ns shift(std::uint32_t domain) const { return shift_[domain]; }
  const std::vector<std::uint32_t>& members(std::uint32_t piece) const { return members_[piece]; }

  void shift_piece(std::uint32_t piece, Ns by) {
    for (const std::uint32_t member : members_[piece])
      shift_[member] = near_time(shift_[member] + by);
  }
  // Puts two pieces together, `ahead` being how far times of `b` are to be moved. The smaller one
  // moves, so that no domain moves more often than a logarithm of their number.
  void join(std::uint32_t a, std::uint32_t b, Ns ahead) {
    const bool moves_b = members_[a].size() >= members_[b].size();
    const std::uint32_t from = moves_b ? b : a;
    const std::uint32_t to = moves_b ? a : b;
    shift_piece(from, moves_b ? ahead : -ahead);
    for (const std::uint32_t member : members_[from]) of_[member] = to;
    members_[to].insert(members_[to].end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
  }

 private:
  std::vector<std::uint32_t> of_;  // by domain
  std::vector<std::vector<std::uint32_t>> members_;
  std::vector<Ns> shift_;  // by domain
};

// When a domain was in an operation: its exit, or of those who need nobody their entry.
Ns instant(const ClockSpan& span) {
  return span.left == ClockSpan::kNobody ? span.entered : span.left;
}

void join_by_operations(const ClockEvidence& evidence, const ClockEstimate& estimate,
                        Pieces& pieces) {
  const auto common = [&](const ClockSpan& span) {
    return near_time(estimate.lines[span.domain].common(instant(span)) + pieces.shift(span.domain));
  };
  for (const ClockOp& op : evidence.ops) {
    const ClockSpan& first = evidence.spans[op.first];
    for (std::uint32_t i = 1; i < op.count; ++i) {
      const ClockSpan& span = evidence.spans[op.first + i];
      const std::uint32_t a = pieces.of(first.domain);
      const std::uint32_t b = pieces.of(span.domain);
      if (a != b) pieces.join(a, b, common(first) - common(span));
    }
  }
}

// By row: its first start of anything, in its own time; nothing where there is none.
std::optional<Ns> first_start(const RankTimeline& rank) {
  std::optional<Ns> first;
  const auto take = [&first](Ns start) { first = first ? std::min(*first, start) : start; };
  for (const DeviceTimeline& device : rank.devices) {
    if (device.extent.length() > 0) take(device.extent.start);
    if (!device.comm.empty()) take(device.comm.front().time.start);
  }
  if (!first) return std::nullopt;
  return absolute_time(rank.recording, *first);
}

// The latest first start of a piece's ranks.
std::optional<Ns> start_of(const Job& job, const ClockDomains& domains,
                           const std::vector<EstimatedLine>& lines, const Pieces& pieces,
                           std::uint32_t piece) {
  std::optional<Ns> latest;
  for (std::size_t row = 0; row < job.ranks.size(); ++row) {
    const std::uint32_t domain = domains.of_row[row];
    if (domain >= domains.count || pieces.of(domain) != piece) continue;
    const std::optional<Ns> own = first_start(job.ranks[row]);
    if (!own) continue;
    const Ns common = near_time(lines[domain].common(*own));
    latest = latest ? std::max(*latest, common) : common;
  }
  return latest;
}

// A line's offset where its common time is `at`.
Ns offset_at(const EstimatedLine& line, Ns at) {
  const Ns since = near_time(at) - near_time(line.common(line.anchor));
  return line.offset + static_cast<Ns>(line.rate / (1 + line.rate) * static_cast<double>(since));
}

}  // namespace

ClockPlacement place_clocks(const Job& job, const ClockDomains& domains,
                            const ClockEvidence& evidence, const ClockEstimate& estimate) {
  Pieces pieces(estimate);
  join_by_operations(evidence, estimate, pieces);
  const std::uint32_t main = pieces.of(0);
  pieces.shift_piece(main, -pieces.shift(0));

  ClockPlacement placement;
  placement.lines = estimate.lines;
  const auto move = [&](std::uint32_t piece) {
    for (const std::uint32_t member : pieces.members(piece))
      placement.lines[member].offset =
          near_time(estimate.lines[member].offset + pieces.shift(member));
  };
  move(main);
  placement.origin = start_of(job, domains, placement.lines, pieces, main).value_or(0);

  // What nothing relates to the reference keeps its own time, or starts with it where that has no
  // known zero.
  for (std::uint32_t piece = 0; piece < domains.count; ++piece) {
    if (piece == main || pieces.members(piece).empty()) continue;
    const std::uint32_t first = pieces.members(piece).front();
    pieces.shift_piece(piece, -pieces.shift(first));
    move(piece);
    if (job.ranks[domains.first_row[first]].recording.clock == ClockBase::epoch) continue;
    const Ns start = start_of(job, domains, placement.lines, pieces, piece).value_or(0);
    pieces.shift_piece(piece, placement.origin - start);
    move(piece);
  }

  placement.end = placement.origin;
  for (const ClockSpan& span : evidence.spans) {
    const Ns at = near_time(placement.lines[span.domain].common(instant(span)));
    if (pieces.of(span.domain) == main) placement.end = std::max(placement.end, at);
  }
  for (const EstimatedLine& line : placement.lines)
    placement.at_origin.push_back(near_time(offset_at(line, placement.origin)));
  return placement;
}

}  // namespace commlens
