// PyTorch's Flight Recorder: the last calls of each process group, written by each rank when a
// watchdog times out or on request. One file per rank, a pickle (usual) or JSON of the same tree:
//
//   {"version": "2.10", "comm_lib_version": "2.27.5",
//    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
//    "pg_status": {"0": {"last_enqueued_collective": 2, "last_started_collective": 1,
//                        "last_completed_collective": 1}},
//    "entries": [{...}, ...]}
//
// The rank is not in it: it stands at the end of the file's name, and must be a member of every
// group of `pg_config`. `pg_status` is keyed by a number that means something in this process only;
// entries tell which group that is, and where a group has none, both lists count up in the order of
// creation. The counters are those of the group's last call: of sends and receives where that was
// one. Older writers leave out whatever they do not know; only `entries` are needed, and even these
// are left out of JSON where there are none.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/decimal.h"
#include "base/error.h"
#include "base/utf8.h"
#include "ingest/flight_recorder_entry.h"
#include "ingest/json_tree.h"
#include "ingest/pickle.h"
#include "ingest/witness_format.h"
#include "ingest/witness_secrets.h"
#include "model/rank_list.h"

namespace commlens {
namespace {

// Of all groups of a dump, in bytes of their lists: far beyond any job, and a bound for lists that
// are shared by hostile ones.
constexpr std::size_t kMostMembers = std::size_t{8} << 20U;

bool is_pickle(std::string_view text) { return text.starts_with('\x80'); }

bool sniff(std::string_view head) {
  const auto holds = [head](std::string_view key) {
    return head.find(key) != std::string_view::npos;
  };
  // A dump that lost all but its first bytes is still known by how PyTorch begins one.
  if (head.starts_with("\x80\x02}"))
    return holds("pg_config") || holds("pg_status") || holds("entries") || head.size() < 64;
  if (is_pickle(head))
    return holds("pg_config") || holds("profiling_name") || holds("collective_seq_id");
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{' || holds("\"traceEvents\""))
    return false;
  return holds("\"pg_config\"") || holds("\"pg_status\"") ||
         (holds("\"entries\"") && (holds("\"profiling_name\"") || holds("\"version\"")));
}

std::string read_text(Source& source, std::string_view head) {
  std::string text(head);
  std::string block(std::size_t{64} << 10U, '\0');
  while (text.size() <= Tree::kLongestText) {
    const std::size_t got = source.read({block.data(), block.size()});
    if (got == 0) return text;
    text.append(block, 0, got);
  }
  throw Error(ErrorKind::input, source.name() + ": holds more than 1 GiB, which no dump does");
}

class DumpReader {
 public:
  DumpReader(const ReadTree& read, Witness& witness)
      : tree_(read.tree), root_(read.root), witness_(witness) {}
  void read();

 private:
  NodeId member(std::string_view key) const { return tree_.find(root_, key); }
  void read_versions();
  void read_groups();
  void read_entries();
  void read_status();
  std::map<std::int64_t, std::uint32_t> groups_by_local_id() const;
  void keep_last_segment();

  const Tree& tree_;
  NodeId root_;
  Witness& witness_;
  std::map<std::int64_t, std::uint32_t> proven_;  // local id -> group, by entries
};

void DumpReader::read_versions() {
  witness_.version = tree_.text(member("version")).substr(0, 40);
  for (const std::string_view key : {"comm_lib_version", "nccl_version"}) {
    if (const std::string_view text = tree_.text(member(key)); !text.empty())
      witness_.library = "NCCL " + std::string(text.substr(0, 40));
  }
  if (!witness_.version.starts_with("2."))
    witness_.notes.add(Note::dump_version, witness_.version.empty()
                                               ? std::string("no version")
                                               : "version " + printable(witness_.version));
}

// "[0, 1, 2]" or a list, in the order of the ranks in the group; empty where it is none.
std::vector<int> members_of(const Tree& tree, NodeId ranks) {
  if (ranks == kNoValue) return {};
  if (tree.kind(ranks) == NodeKind::text) {
    if (tree.text(ranks).find("...") != std::string_view::npos) return {};
    const ReadTree list = read_json_tree(tree.text(ranks), "ranks");
    if (list.root == kNoValue || !list.truncation.empty() ||
        list.tree.kind(list.root) == NodeKind::text)
      return {};
    return members_of(list.tree, list.root);
  }
  if (tree.kind(ranks) != NodeKind::list) return {};
  std::vector<int> members;
  for (const NodeId item : tree.items(ranks)) {
    const auto rank = tree.integer(item);
    if (!rank || *rank < 0 || *rank >= kMostRanks) return {};
    members.push_back(static_cast<int>(*rank));
  }
  return members;
}

// Whether a group's ranks were to be told: writers leave them out, empty, or shortened by "...".
bool tells_ranks(const Tree& tree, NodeId ranks) {
  if (ranks == kNoValue) return false;
  if (tree.kind(ranks) == NodeKind::list) return !tree.items(ranks).empty();
  if (tree.kind(ranks) != NodeKind::text) return tree.kind(ranks) != NodeKind::null;
  const std::string_view text = tree.text(ranks);
  return text.find("...") == std::string_view::npos &&
         text.find_first_not_of("[] ") != std::string_view::npos;
}

void DumpReader::read_groups() {
  const NodeId config = member("pg_config");
  if (config == kNoValue || tree_.kind(config) != NodeKind::dict) return;
  const std::vector<NodeId>& pairs = tree_.items(config);
  std::size_t left = kMostMembers;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    WitnessGroup group{.name = std::string(tree_.text(pairs[i])),
                       .description = without_secrets(tree_.text(tree_.find(pairs[i + 1], "desc"))),
                       .members = {},
                       .size = 0};
    const NodeId ranks = tree_.find(pairs[i + 1], "ranks");
    try {
      const std::size_t bytes = tree_.text(ranks).size();
      if (bytes < left) group.members = members_of(tree_, ranks);
      left -= std::min(left, std::max(bytes, group.members.size()));
    } catch (const Error&) {
      group.members.clear();
    }
    if (group.members.empty() && tells_ranks(tree_, ranks))
      witness_.notes.add(Note::odd_entry, "the ranks of group " + printable(group.name) +
                                              " cannot be read: its members are not known");
    group.size = static_cast<std::int64_t>(group.members.size());
    if (group.description == "undefined") group.description.clear();
    if (!group.name.empty()) witness_.groups.push_back(std::move(group));
  }
}

// Two keys of one name with different values: which of them was meant cannot be told.
bool contradicts_itself(const Tree& tree, NodeId dict) {
  constexpr std::size_t kMostLooked = 256;  // keys and values; writers have some thirty keys
  if (dict == kNoValue || tree.kind(dict) != NodeKind::dict) return false;
  const std::vector<NodeId>& pairs = tree.items(dict);
  if (pairs.size() > kMostLooked) return false;
  for (std::size_t i = 2; i + 1 < pairs.size(); i += 2) {
    for (std::size_t before = 0; before < i; before += 2) {
      if (tree.text(pairs[i]) != tree.text(pairs[before]) || tree.text(pairs[i]).empty()) continue;
      const NodeId a = pairs[i + 1];
      const NodeId b = pairs[before + 1];
      const bool same = tree.kind(a) == tree.kind(b) && tree.text(a) == tree.text(b) &&
                        tree.integer(a) == tree.integer(b) && tree.boolean(a) == tree.boolean(b);
      const bool plain = tree.kind(a) != NodeKind::dict && tree.kind(a) != NodeKind::list;
      if (!same || !plain) return true;
    }
  }
  return false;
}

void DumpReader::read_entries() {
  const NodeId entries = member("entries");
  witness_.lists_pending = entries != kNoValue && tree_.kind(entries) == NodeKind::list;
  if (entries != kNoValue && !witness_.lists_pending) {
    witness_.damaged = true;
    witness_.notes.add(Note::odd_entry, "byte " + std::to_string(tree_.position(entries)) +
                                            ": \"entries\" is no list");
  }
  if (!witness_.lists_pending) return;
  FlightRecorderEntries reader(tree_, witness_);
  bool any_odd = false;
  for (const NodeId entry : tree_.items(entries)) {
    if (contradicts_itself(tree_, entry)) {
      witness_.damaged = true;  // the call was made; which one is not known
      witness_.notes.add(Note::odd_entry, "byte " + std::to_string(tree_.position(entry)) +
                                              ": one key has two values");
      any_odd = true;
      continue;
    }
    const auto call = reader.call(entry);
    if (!call) {
      // One that was being written when the file was cut is said with the cut.
      if (tree_.kind(entry) == NodeKind::dict && tree_.cut(entry)) continue;
      witness_.notes.add(Note::odd_entry, "byte " + std::to_string(tree_.position(entry)));
      any_odd = true;
      continue;
    }
    witness_.calls.push_back(*call);
    if (const auto id = tree_.integer(tree_.find(entry, "pg_id")))
      proven_.emplace(*id, call->group);
  }
  witness_.entries_lost = any_odd && witness_.calls.empty();
  witness_.records = static_cast<std::int64_t>(witness_.calls.size());
  keep_last_segment();
}

// After a reset the writer counts from 0 again. Entries in any other order are put into theirs: an
// earlier number that comes later counts as a reset only if its time is later as well.
void DumpReader::keep_last_segment() {
  std::vector<WitnessCall>& calls = witness_.calls;
  std::size_t from = 0;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    constexpr std::int64_t kScatter = 1'000'000;  // threads note their times before their turn
    if (calls[i].record < calls[i - 1].record &&
        calls[i].created_ns > calls[i - 1].created_ns + kScatter)
      from = i;
  }
  if (from > 0) {
    witness_.notes.add(Note::dump_segments, "before byte " + std::to_string(calls[from].where),
                       static_cast<std::int64_t>(from));
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(from));
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const WitnessCall& a, const WitnessCall& b) { return a.record < b.record; });
  const bool any_completed = std::any_of(calls.begin(), calls.end(), [](const WitnessCall& call) {
    return call.state == CallState::completed;
  });
  // Numbered from 0 without a gap: nothing was left out, it is the job's beginning.
  const bool from_start = !calls.empty() && calls.front().record == 0 &&
                          calls.back().record == static_cast<std::int64_t>(calls.size()) - 1;
  witness_.only_pending = !any_completed && !calls.empty() && !from_start;
}

// Which group each number of `pg_status` means.
std::map<std::int64_t, std::uint32_t> DumpReader::groups_by_local_id() const {
  std::map<std::int64_t, std::uint32_t> groups = proven_;
  std::vector<std::int64_t> ids;
  const std::vector<NodeId>& pairs = tree_.items(member("pg_status"));
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (const auto id = tree_.integer(pairs[i])) ids.push_back(*id);
  }
  if (ids.size() != witness_.groups.size()) return groups;
  // By position, where the names count up as well; or the last that is left.
  std::vector<std::pair<std::int64_t, std::uint32_t>> names;
  for (std::size_t i = 0; i < witness_.groups.size(); ++i) {
    if (const auto number = parse_int(witness_.groups[i].name))
      names.emplace_back(*number, static_cast<std::uint32_t>(i));
  }
  std::sort(ids.begin(), ids.end());
  std::sort(names.begin(), names.end());
  if (names.size() == ids.size()) {
    for (std::size_t i = 0; i < ids.size(); ++i) groups.emplace(ids[i], names[i].second);
  } else if (ids.size() == 1) {
    groups.emplace(ids.front(), 0);
  }
  return groups;
}

void DumpReader::read_status() {
  const NodeId status = member("pg_status");
  if (status == kNoValue || tree_.kind(status) != NodeKind::dict) return;
  const auto groups = groups_by_local_id();
  const std::vector<NodeId>& pairs = tree_.items(status);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto id = tree_.integer(pairs[i]);
    const auto group = id ? groups.find(*id) : groups.end();
    if (group == groups.end()) continue;
    const auto number = [&](std::string_view key) {
      return tree_.integer(tree_.find(pairs[i + 1], key)).value_or(WitnessProgress::kNotSaid);
    };
    witness_.progress.push_back({.group = group->second,
                                 .rank = -1,
                                 .enqueued = number("last_enqueued_collective"),
                                 .started = number("last_started_collective"),
                                 .completed = number("last_completed_collective"),
                                 .where = tree_.position(pairs[i])});
  }
}

void DumpReader::read() {
  if (contradicts_itself(tree_, root_)) {
    witness_.damaged = true;
    witness_.notes.add(Note::duplicate_key, "byte " + std::to_string(tree_.position(root_)));
  }
  read_versions();
  read_groups();
  read_entries();
  read_status();
  // JSON without entries: there are none, or they were not asked for. Counters that are equal
  // everywhere tell that nothing is pending.
  if (!witness_.lists_pending && !witness_.damaged)
    witness_.lists_pending =
        !witness_.progress.empty() &&
        std::all_of(witness_.progress.begin(), witness_.progress.end(),
                    [](const WitnessProgress& row) {
                      return row.enqueued >= -1 && row.enqueued == row.completed;
                    });
  if (!witness_.lists_pending && !witness_.damaged)
    witness_.notes.add(Note::odd_entry,
                       "there are no \"entries\", and counters do not say that "
                       "nothing is pending");
}

// ---- the rank

std::string_view without_extensions(std::string_view name) {
  for (const std::string_view end :
       {".gz", ".zst", ".json", ".pickle", ".pkl", ".bin", ".txt", ".dump"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  return name;
}

std::optional<std::int64_t> number_at_end(std::string_view name) {
  const std::size_t from = name.find_last_not_of("0123456789") + 1;
  const auto number = parse_int(name.substr(from));
  if (!number || *number >= kMostRanks) return std::nullopt;
  return number;
}

// "rank3", "rank_3", "rank-3" anywhere in the name.
std::optional<std::int64_t> number_behind_rank(std::string_view name) {
  std::size_t at = name.rfind("rank");
  if (at == std::string_view::npos) return std::nullopt;
  at += 4;
  if (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
  const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
  const auto number = parse_int(name.substr(at, end - at));
  if (!number || *number >= kMostRanks) return std::nullopt;
  return number;
}

// Ranks that belong to every group of the file; nothing where its groups are not known.
std::optional<std::set<int>> common_members(const Witness& witness) {
  std::optional<std::set<int>> common;
  for (const WitnessGroup& group : witness.groups) {
    if (group.members.empty()) continue;
    const std::set<int> members(group.members.begin(), group.members.end());
    if (!common) {
      common = members;
      continue;
    }
    std::erase_if(*common, [&members](int rank) { return !members.contains(rank); });
  }
  return common;
}

void find_rank(Witness& witness) {
  std::string_view name = witness.path;
  name.remove_prefix(name.rfind('/') + 1);
  name = without_extensions(name);
  const auto common = common_members(witness);
  for (const auto number : {number_at_end(name), number_behind_rank(name)}) {
    if (!number || (common && !common->contains(static_cast<int>(*number)))) continue;
    witness.rank = *number;
    return;
  }
  if (!common || common->size() != 1)
    throw Error(ErrorKind::input, witness.path +
                                      ": nothing says which rank wrote this dump; name the file "
                                      "so that it ends in the rank's number: _dump_13");
  witness.rank = *common->begin();
  witness.notes.add(Note::rank_from_groups);
}

void read(Source& source, std::string_view head, Witness& witness) {
  const std::string text = read_text(source, head);
  ReadTree read =
      is_pickle(text) ? read_pickle(text, source.name()) : read_json_tree(text, source.name());
  if (!read.truncation.empty()) {
    witness.damaged = true;
    witness.notes.add(Note::truncated, "byte " + std::to_string(text.size()));
  }
  if (source.end() == SourceEnd::corrupt || source.end() == SourceEnd::failed) {
    witness.damaged = true;
    witness.notes.add(
        source.end() == SourceEnd::corrupt ? Note::corrupt_compression : Note::read_failed,
        source.trouble());
  }
  const bool dict = read.root != kNoValue && read.tree.kind(read.root) == NodeKind::dict;
  const auto has = [&](std::string_view key) {
    return dict && read.tree.find(read.root, key) != kNoValue;
  };
  if (!has("entries") && !has("pg_status") && !has("pg_config")) {
    if (!read.truncation.empty())
      throw Error(ErrorKind::input, read.truncation +
                                        ", before anything of use; the process was probably "
                                        "killed while it wrote");
    throw Error(ErrorKind::input,
                source.name() + ": is no Flight Recorder dump: it has neither entries nor groups");
  }
  DumpReader(read, witness).read();
  find_rank(witness);
  for (WitnessCall& call : witness.calls) call.rank = witness.rank;
  for (WitnessProgress& row : witness.progress) row.rank = witness.rank;
}

}  // namespace

extern const WitnessFormat kFlightRecorder;
constinit const WitnessFormat kFlightRecorder{
    .name = "flight_recorder",
    .summary = "PyTorch Flight Recorder dumps, one per rank, as pickle or JSON",
    .sniff = sniff,
    .read = read,
};

}  // namespace commlens
