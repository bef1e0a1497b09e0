// Problem: a folder holds one file a rank, or two captures of some, or one capture in pieces; the
// rank stands in the file, in its name, or nowhere. Method: rank by file, then name, then order.
// Files of one rank and one process that were recorded at the same time are pieces of one recording
// and are put together; otherwise they are runs of their own. When it is wrong: two processes of
// different jobs that both call themselves rank 3 are two runs of "rank 3", with a warning. Without
// process ids (a file of GPU events only), overlapping times count as the same recording.
#include "match/runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/decimal.h"
#include "match/merge.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// Two pieces of one recording that was cut in time lie no further apart than this.
constexpr Ns kLargestGap = 1'000'000;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// "rank3", "rank-3", "rank_3"; the last of them in the text.
std::optional<std::int64_t> rank_in_text(std::string_view text) {
  const std::string name = lower(text);
  for (std::size_t at = name.rfind("rank"); at != std::string::npos;
       at = at == 0 ? std::string::npos : name.rfind("rank", at - 1)) {
    std::size_t from = at + 4;
    if (from < name.size() && (name[from] == '-' || name[from] == '_')) ++from;
    std::size_t to = from;
    while (to < name.size() && is_digit(name[to])) ++to;
    if (to == from) continue;
    const auto rank = parse_int(name.substr(from, to - from));
    if (rank && *rank < kMostRanks) return rank;
  }
  return std::nullopt;
}

// "<host>_<pid>.<time>.pt.trace.json": the name that PyTorch's trace handler gives.
std::string host_in_name(std::string_view path) {
  const std::string_view name = base_name(path);
  const std::size_t suffix = name.find(".pt.trace.json");
  if (suffix == std::string_view::npos) return {};
  // A host's name may hold dots: only a last part of digits is the time.
  std::string_view stem = name.substr(0, suffix);
  const std::size_t dot = stem.rfind('.');
  if (dot != std::string_view::npos && is_number(stem.substr(dot + 1))) stem = stem.substr(0, dot);
  const std::size_t bar = stem.rfind('_');
  if (bar == std::string_view::npos || bar == 0) return {};
  return is_number(stem.substr(bar + 1)) ? std::string(stem.substr(0, bar)) : std::string();
}

// Gives every recording a rank.
void name_ranks(std::vector<RankTimeline>& ranks, RankFrom from) {
  std::vector<Recording*> nameless;
  std::set<std::int64_t> taken;
  for (RankTimeline& rank : ranks) {
    Recording& recording = rank.recording;
    const std::optional<std::int64_t> in_file = recording.rank;
    recording.rank.reset();
    if (from == RankFrom::automatic || from == RankFrom::file) recording.rank = in_file;
    if (!recording.rank && (from == RankFrom::automatic || from == RankFrom::name)) {
      recording.rank = rank_in_name(recording.path);
      if (recording.rank && from == RankFrom::automatic)
        recording.notes.add(Note::rank_from_file_name, recording.path);
    }
    if (recording.rank) {
      taken.insert(*recording.rank);
    } else {
      nameless.push_back(&recording);
    }
  }
  std::int64_t next = 0;
  for (Recording* recording : nameless) {
    while (taken.contains(next)) ++next;
    recording->rank = next++;
    if (from != RankFrom::order) recording->notes.add(Note::rank_from_order, recording->path);
  }
}

Interval absolute_extent(const Recording& recording) {
  const Interval extent = recorded_extent(recording);
  return {extent.start + recording.clock_base, extent.end + recording.clock_base};
}

// Whether `piece` belongs to the recording `whole` that covers `extent`.
bool same_recording(const Recording& whole, Interval extent, const Recording& piece) {
  const bool both_known = whole.process != kUnknown && piece.process != kUnknown;
  if (both_known && whole.process != piece.process) return false;
  if (!whole.host.empty() && !piece.host.empty() && whole.host != piece.host) return false;
  const bool other_job =
      whole.world_size != 0 && piece.world_size != 0 && whole.world_size != piece.world_size;
  if (other_job) return false;
  // A file without events says nothing about time: it belongs where its process does.
  if (piece.events == 0 || whole.events == 0) return true;
  const Interval other = absolute_extent(piece);
  return other.start <= extent.end + kLargestGap && extent.start <= other.end + kLargestGap;
}

// The recording with its columns, read again where they were let go; what was learned of it stays.
void bring_back_columns(RankTimeline& rank, const RunOptions& options) {
  if (!rank.recording.extent) return;
  Recording again = options.read_again(rank.recording.path);
  again.rank = rank.recording.rank;
  again.notes = std::move(rank.recording.notes);
  rank.recording = std::move(again);
}

// Each input keeps its own notes.
void put_into(RankTimeline& whole, RankTimeline& piece, const RunOptions& options, Job& job) {
  bring_back_columns(whole, options);
  bring_back_columns(piece, options);
  job.notes_of_pieces.emplace_back(piece.recording.path, piece.recording.notes);
  merge_recording(whole.recording, piece.recording);
  // What was derived from the whole alone no longer holds.
  Recording merged = std::move(whole.recording);
  whole = {};
  whole.recording = std::move(merged);
}

// The recordings of one rank, by time, pieces put together.
std::vector<RankTimeline> put_together(std::vector<RankTimeline> ranks, const RunOptions& options,
                                       Job& job) {
  std::vector<std::pair<Interval, RankTimeline>> sorted;
  for (RankTimeline& rank : ranks)
    sorted.emplace_back(absolute_extent(rank.recording), std::move(rank));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first.start, a.first.end, std::string_view(a.second.recording.path)) <
           std::tuple(b.first.start, b.first.end, std::string_view(b.second.recording.path));
  });
  std::vector<std::pair<Interval, RankTimeline>> kept;
  for (auto& [extent, rank] : sorted) {
    const auto home = std::find_if(kept.begin(), kept.end(), [&](const auto& whole) {
      return same_recording(whole.second.recording, whole.first, rank.recording);
    });
    if (home == kept.end()) {
      kept.emplace_back(extent, std::move(rank));
      continue;
    }
    put_into(home->second, rank, options, job);
    home->first = {std::min(home->first.start, extent.start),
                   std::max(home->first.end, extent.end)};
  }
  std::vector<RankTimeline> result;
  for (auto& [extent, rank] : kept) result.push_back(std::move(rank));
  return result;
}

void name_hosts(Job& job, const RunOptions& options) {
  bool from_trace = false;
  bool from_name = false;
  bool from_option = false;
  for (RankTimeline& rank : job.ranks) {
    if (options.host_of) rank.host = options.host_of(rank.rank, rank.recording.path);
    from_option = from_option || !rank.host.empty();
    if (!rank.host.empty()) continue;
    rank.host = rank.recording.host;
    from_trace = from_trace || !rank.host.empty();
    if (!rank.host.empty()) continue;
    rank.host = host_in_name(rank.recording.path);
    from_name = from_name || !rank.host.empty();
  }
  for (const auto& [found, how] :
       {std::pair{from_option, "--hosts"}, {from_trace, "trace"}, {from_name, "file name"}}) {
    if (found) job.hosts_from += (job.hosts_from.empty() ? "" : ", ") + std::string(how);
  }
}

void find_missing(Job& job) {
  std::set<std::int64_t> found;
  for (const RankTimeline& rank : job.ranks) {
    found.insert(rank.rank);
    job.world_size = std::max(job.world_size, rank.recording.world_size);
  }
  for (std::int64_t rank = 0; rank < job.world_size; ++rank) {
    if (!found.contains(rank)) job.missing_ranks.push_back(rank);
  }
  if (job.missing_ranks.empty()) return;
  job.notes.add(Note::missing_ranks,
                (job.missing_ranks.size() == 1 ? "rank " : "ranks ") +
                    format_ranks(job.missing_ranks) + " of " + std::to_string(job.world_size),
                static_cast<std::int64_t>(job.missing_ranks.size()));
}

}  // namespace

std::optional<std::int64_t> rank_in_name(std::string_view path) {
  if (const auto rank = rank_in_text(base_name(path))) return rank;
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::nullopt
                                         : rank_in_text(base_name(path.substr(0, slash)));
}

Job arrange_runs(std::vector<RankTimeline> ranks, const RunOptions& options) {
  Job job;
  name_ranks(ranks, options.rank_from);
  std::map<std::int64_t, std::vector<RankTimeline>> by_rank;
  for (RankTimeline& rank : ranks) {
    job.rank_of_path.emplace_back(rank.recording.path, *rank.recording.rank);
    by_rank[*rank.recording.rank].push_back(std::move(rank));
  }
  for (auto& [number, of_rank] : by_rank) {
    std::vector<RankTimeline> runs = put_together(std::move(of_rank), options, job);
    if (runs.size() > 1) {
      job.notes.add(Note::repeated_rank,
                    "rank " + std::to_string(number) + ": " + runs[0].recording.path + " and " +
                        runs[1].recording.path,
                    static_cast<std::int64_t>(runs.size()) - 1);
    }
    for (std::size_t run = 0; run < runs.size(); ++run) {
      runs[run].rank = number;
      runs[run].run = static_cast<int>(run);
      job.ranks.push_back(std::move(runs[run]));
    }
  }
  name_hosts(job, options);
  find_missing(job);
  return job;
}

Job arrange_runs(std::vector<Recording> recordings, const RunOptions& options) {
  std::vector<RankTimeline> ranks(recordings.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].recording = std::move(recordings[i]);
  return arrange_runs(std::move(ranks), options);
}

}  // namespace commlens
