#include "ingest/nccl_tests_file.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ingest/json_tree.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestFigure = 40;

class TestsFileReader {
 public:
  explicit TestsFileReader(const Tree& tree) : tree_(tree) {}
  NcclTestsFile read(NodeId root);

 private:
  void program(NodeId args);
  void config(NodeId config);
  void row(NodeId node);
  void half(NodeId node, NcclTestsRow& row);
  std::string_view text(NodeId node, std::string_view key) const {
    return tree_.text(tree_.find(node, key));
  }
  bool is(NodeId node, NodeKind kind) const { return node != kNoValue && tree_.kind(node) == kind; }

  const Tree& tree_;
  NcclTestsFile file_;
};

void TestsFileReader::program(NodeId args) {
  constexpr std::string_view kEnd = "_perf";
  if (!is(args, NodeKind::list) || tree_.items(args).empty()) return;
  std::string_view name = tree_.text(tree_.items(args).front());
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  if (name.ends_with(kEnd)) file_.op = op_of_nccl_test(name.substr(0, name.size() - kEnd.size()));
}

// Devices are those of a process' first rank, since only the first line of each process is written.
void TestsFileReader::config(NodeId config) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto number = [&](std::string_view key) {
    const std::int64_t value = tree_.integer(tree_.find(config, key)).value_or(0);
    return value > 0 && value <= kMost ? value : 0;
  };
  file_.iterations = std::max(number("iterations"), number("iters"));
  const std::int64_t of_process = number("nthreads") * number("ngpus");
  const NodeId devices = tree_.find(config, "devices");
  if (!is(devices, NodeKind::list)) return;
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> groups;
  std::set<std::string_view> hosts;
  for (const NodeId device : tree_.items(devices)) {
    if (!is(device, NodeKind::dict)) continue;
    if (const auto rank = tree_.integer(tree_.find(device, "rank"))) ranks.insert(*rank);
    groups.insert(tree_.integer(tree_.find(device, "group")).value_or(0));
    if (const auto host = text(device, "hostname"); !host.empty()) hosts.insert(host);
  }
  file_.hosts = static_cast<std::int64_t>(hosts.size());
  // Split into several communicators, their sizes are not told.
  if (ranks.empty() || groups.size() > 1) return;
  const auto listed = static_cast<std::int64_t>(ranks.size());
  const bool all_listed = listed > 1 && *ranks.rbegin() == listed - 1;
  if (all_listed || of_process == 1) file_.ranks = listed;
  if (!all_listed && of_process > 1 && of_process <= kMost) file_.ranks = listed * of_process;
}

// One of out of place and in place.
void TestsFileReader::half(NodeId node, NcclTestsRow& row) {
  double time = 0;
  if (is(node, NodeKind::dict)) {
    const NodeId cpu = tree_.find(node, "cpu_time");
    row.cpu_time = row.cpu_time || cpu != kNoValue;
    const NodeId value = cpu != kNoValue ? cpu : tree_.find(node, "time");
    const auto number = value == kNoValue ? std::nullopt : tree_.number(value);
    if (number && *number >= 0 && *number <= kLongestNcclTest) {
      time = *number;
    } else {
      row.odd_figures.emplace_back("time");
    }
    const NodeId wrong = tree_.find(node, "nwrong");
    const bool unchecked = wrong == kNoValue || tree_.kind(wrong) == NodeKind::null;
    const auto wrongs = unchecked ? std::nullopt : tree_.number(wrong);
    if (!unchecked && (!wrongs || *wrongs < 0)) row.odd_wrong = "nwrong";
    row.wrong = row.wrong || wrongs.value_or(0) > 0;
    if (row.bus_ratio == 0)
      row.bus_ratio = nccl_tests_bus_ratio(tree_.number(tree_.find(node, "alg_bw")).value_or(0),
                                           tree_.number(tree_.find(node, "bus_bw")).value_or(0));
  }
  row.times.push_back(time);
}

void TestsFileReader::row(NodeId node) {
  const auto bytes =
      is(node, NodeKind::dict) ? tree_.integer(tree_.find(node, "size")) : std::nullopt;
  if (!bytes || *bytes < 0) {
    ++file_.odd_rows;
    return;
  }
  // The row in which a file was cut may lack what follows.
  NcclTestsRow row{.bytes = *bytes};
  const auto count = tree_.integer(tree_.find(node, "count"));
  if (!count || *count < 0) row.odd_figures.emplace_back("count");
  row.count = std::max<std::int64_t>(count.value_or(0), 0);
  row.type = text(node, "type").substr(0, kLongestFigure);
  if (text(node, "redop") != "none") row.redop = text(node, "redop").substr(0, kLongestFigure);
  half(tree_.find(node, "out_of_place"), row);
  half(tree_.find(node, "in_place"), row);
  const std::int64_t iterations = tree_.integer(tree_.find(node, "actual_iterations")).value_or(0);
  if (iterations > 0 && iterations <= 1'000'000) row.iterations = iterations;
  file_.rows.push_back(std::move(row));
}

NcclTestsFile TestsFileReader::read(NodeId root) {
  if (!is(root, NodeKind::dict)) return {};
  program(tree_.find(root, "args"));
  config(tree_.find(root, "config"));
  const NodeId results = tree_.find(root, "results");
  if (is(results, NodeKind::list)) {
    for (const NodeId result : tree_.items(results)) row(result);
  }
  return std::move(file_);
}

}  // namespace

bool is_nccl_tests_file(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const std::size_t version = head.find("\"version\"");
  const std::size_t args = head.find("\"args\"");
  const std::size_t env = head.find("\"env\"");
  return version < args && args < env && env != std::string_view::npos &&
         head.substr(args, env - args).find("_perf\"") != std::string_view::npos;
}

NcclTestsFile read_nccl_tests_file(std::string_view text, const std::string& name) {
  const ReadTree read = read_json_tree(text, name);
  NcclTestsFile file = TestsFileReader(read.tree).read(read.root);
  file.truncation = read.truncation;
  return file;
}

std::string read_nccl_tests_text(Source& source, std::string_view head) {
  std::string text(head);
  std::string block(std::size_t{256} << 10U, '\0');
  while (const std::size_t got = source.read({block.data(), block.size()})) {
    text.append(block, 0, got);
    if (text.size() > Tree::kLongestText)
      throw Error(ErrorKind::input, source.name() + ": is too large for a file of nccl-tests");
  }
  return text;
}

}  // namespace commlens
