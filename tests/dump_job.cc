#include "dump_job.h"

#include <algorithm>
#include <numeric>

#include "diagnose/order.h"
#include "diagnose/verdict.h"
#include "ingest/json_tree.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string list_text(const std::vector<int>& ranks) {
  std::string text = "[";
  for (const int rank : ranks) text += (text.size() > 1 ? ", " : "") + std::to_string(rank);
  return text + "]";
}

// A pickle of what JSON text says, in the opcodes of PyTorch's writer.
void append_pickle(const Tree& tree, NodeId node, std::string& out) {
  const auto little = [&out](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFFU);
  };
  switch (tree.kind(node)) {
    case NodeKind::null: out += 'N'; return;
    case NodeKind::boolean: out += *tree.boolean(node) ? '\x88' : '\x89'; return;
    case NodeKind::integer:
      out += "\x8a\x08";
      return little(static_cast<std::uint64_t>(*tree.integer(node)), 8);
    case NodeKind::real: out += 'N'; return;
    case NodeKind::text:
      out += 'X';
      little(tree.text(node).size(), 4);
      out += tree.text(node);
      return;
    case NodeKind::list:
    case NodeKind::dict:
      out += tree.kind(node) == NodeKind::list ? "](" : "}(";
      for (const NodeId item : tree.items(node)) append_pickle(tree, item, out);
      out += tree.kind(node) == NodeKind::list ? 'e' : 'u';
  }
}

}  // namespace

DumpJob::DumpJob(int ranks) : everyone_(static_cast<std::size_t>(ranks)) {
  std::iota(everyone_.begin(), everyone_.end(), 0);
  add_group("0", "default_pg", everyone_);
}

void DumpJob::add_group(const std::string& name, const std::string& description,
                        std::vector<int> members) {
  groups_[name] = {description, std::move(members)};
}

void DumpJob::call(int rank, const DumpCall& call) {
  std::vector<Made>& calls = calls_[rank];
  now_ms_ += 1;
  calls.push_back({call, static_cast<std::int64_t>(calls.size()), now_ms_ * 1000000});
}

void DumpJob::ranks(const std::vector<int>& ranks, const DumpCall& one) {
  for (const int rank : ranks) call(rank, one);
}

std::vector<DumpJob::Made> DumpJob::kept(int rank) const {
  std::vector<Made> calls;
  if (const auto found = calls_.find(rank); found != calls_.end()) calls = found->second;
  if (only_pending_)
    std::erase_if(calls, [](const Made& made) { return made.call.state == "completed"; });
  if (reversed_) std::reverse(calls.begin(), calls.end());
  return calls;
}

std::string DumpJob::json(int rank) const {
  std::string config;
  std::string status;
  std::int64_t id = 0;
  std::map<std::string, std::int64_t> ids;
  for (const auto& [name, group] : groups_) {
    if (std::find(group.members.begin(), group.members.end(), rank) == group.members.end())
      continue;
    config += (config.empty() ? "" : ",") + quoted(name) + ":{\"name\":" + quoted(name) +
              ",\"desc\":" + quoted(group.description) +
              ",\"ranks\":" + quoted(list_text(group.members)) + "}";
    std::int64_t enqueued = -1;
    std::int64_t completed = -1;
    if (const auto found = calls_.find(rank); found != calls_.end()) {
      for (const Made& made : found->second) {
        if (made.call.group != name) continue;
        enqueued = made.call.seq;
        if (made.call.state == "completed") completed = std::max(completed, made.call.seq);
      }
    }
    ids[name] = id;
    status += (status.empty() ? "" : ",") + quoted(std::to_string(id)) +
              ":{\"last_enqueued_collective\":" + quoted(std::to_string(enqueued)) +
              ",\"last_started_collective\":\"-1\",\"last_completed_collective\":" +
              quoted(std::to_string(completed)) + "}";
    id += 2;
  }
  std::string entries;
  for (const Made& made : kept(rank)) {
    const DumpCall& call = made.call;
    const std::string seq = std::to_string(call.seq);
    entries += (entries.empty() ? "{" : ",{") + ("\"record_id\":" + std::to_string(made.record)) +
               ",\"pg_id\":" + std::to_string(ids[call.group]) + ",\"process_group\":[" +
               quoted(call.group) + "," + quoted(groups_.at(call.group).description) +
               "],\"collective_seq_id\":" + (call.p2p ? "0" : seq) +
               ",\"p2p_seq_id\":" + (call.p2p ? seq : "0") +
               ",\"profiling_name\":" + quoted("nccl:" + call.op) +
               ",\"time_created_ns\":" + std::to_string(made.created_ns) +
               ",\"input_sizes\":" + call.in + ",\"input_dtypes\":[" + quoted(call.dtype) +
               "],\"output_sizes\":" + call.out + ",\"output_dtypes\":[" + quoted(call.dtype) +
               "],\"state\":" + quoted(call.state) + ",\"retired\":" +
               (call.retired || (given_up_ && call.state != "completed") ? "true" : "false") +
               ",\"timeout_ms\":" + std::to_string(call.timeout_ms) +
               ",\"is_p2p\":" + (call.p2p ? "true" : "false") +
               (call.thread.empty() ? "" : ",\"thread_id\":" + quoted(call.thread)) + "}";
  }
  return "{\"version\":" + quoted(version_) + ",\"pg_config\":{" + config +
         "},\"nccl_version\":\"2.27.3\"" +
         (counters_ ? ",\"pg_status\":{" + status + "}" : std::string()) + ",\"entries\":[" +
         entries + "]}";
}

std::string DumpJob::pickle(int rank) const {
  const ReadTree read = read_json_tree(json(rank), "made");
  std::string out = "\x80\x02";
  append_pickle(read.tree, read.root, out);
  return out + ".";
}

Witness read_dump(const std::string& path, const std::string& text) {
  Witness witness;
  witness.path = path;
  const WitnessFormat& format = *find_witness_format("flight_recorder");
  witness.format = format.name;
  Source source = Source::memory(path, text);
  format.read(source, "", witness);
  return witness;
}

std::vector<Witness> DumpJob::witnesses() const {
  std::vector<Witness> witnesses;
  for (const int rank : everyone_) {
    if (lost_.contains(rank)) continue;
    witnesses.push_back(
        read_dump("_dump_" + std::to_string(rank), rank % 2 == 0 ? json(rank) : pickle(rank)));
  }
  return witnesses;
}

std::vector<DiagnosisFinding> find_all(const std::vector<Witness>& witnesses) {
  std::vector<DiagnosisFinding> findings;
  for (const Verdict* verdict : verdicts()) {
    for (DiagnosisFinding& finding : verdict->find(witnesses))
      findings.push_back(std::move(finding));
  }
  return order_findings(std::move(findings));
}

std::vector<DiagnosisFinding> DumpJob::findings() const { return find_all(witnesses()); }

}  // namespace commlens
