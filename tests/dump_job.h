// Flight Recorder dumps of a small job, as text: a test says who called what, and gets the files.
//
//   DumpJob job(4);                                  // ranks 0-3, group "0" of all of them
//   job.all({.op = "all_reduce", .seq = 1, .state = "completed"});
//   job.ranks({0, 1, 3}, {.op = "all_reduce", .seq = 2});
//   const auto findings = job.findings();            // rank 2 is missing
//
// Counters (pg_status) follow from the calls. Every call has a record number and a time of its own,
// later than all before it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/diagnosis.h"
#include "model/witness.h"

namespace commlens {

struct DumpCall {
  std::string op = "all_reduce";  // as PyTorch names it, without its backend
  std::int64_t seq = 1;
  std::string state = "scheduled";
  std::string group = "0";
  std::string in = "[[1024]]";
  std::string out = "[[1024]]";
  std::string dtype = "Float";
  std::string thread = {};
  bool p2p = false;
  bool retired = false;
  std::int64_t timeout_ms = 600000;
};

// "[1024,8]" as "[[1024, 8]]" needs no quoting in either format.
class DumpJob {
 public:
  explicit DumpJob(int ranks);

  void add_group(const std::string& name, const std::string& description, std::vector<int> members);
  void call(int rank, const DumpCall& call);
  void ranks(const std::vector<int>& ranks, const DumpCall& call);
  void all(const DumpCall& call) { ranks(everyone_, call); }
  void advance(std::int64_t ms) { now_ms_ += ms; }  // time passes

  // The watchdog has given up all that is pending: a sign of a hang.
  void give_up() { given_up_ = true; }
  void lose(int rank) { lost_.insert(rank); }  // no file
  void without_counters() { counters_ = false; }
  void only_pending() { only_pending_ = true; }
  void version(const std::string& version) { version_ = version; }
  void shuffle() { reversed_ = true; }  // entries in another order

  std::string json(int rank) const;
  std::string pickle(int rank) const;
  std::vector<Witness> witnesses() const;
  std::vector<DiagnosisFinding> findings() const;

 private:
  struct Group {
    std::string description;
    std::vector<int> members;
  };
  struct Made {
    DumpCall call;
    std::int64_t record;
    std::int64_t created_ns;
  };
  std::vector<Made> kept(int rank) const;

  std::vector<int> everyone_;
  std::map<std::string, Group> groups_;
  std::map<int, std::vector<Made>> calls_;
  std::set<int> lost_;
  std::int64_t now_ms_ = 1767189312000;
  bool counters_ = true;
  bool only_pending_ = false;
  bool reversed_ = false;
  bool given_up_ = false;
  std::string version_ = "2.9";
};

Witness read_dump(const std::string& path, const std::string& text);
std::vector<DiagnosisFinding> find_all(const std::vector<Witness>& witnesses);

}  // namespace commlens
