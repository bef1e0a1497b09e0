// From slots to matched operations: checked, counted, and what fails named.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "match/mismatch_list.h"
#include "match/slots.h"

namespace commlens {

class OperationWriter {
 public:
  OperationWriter(const Job& job, Matching& matching);

  // The operations of a group's members, by `slots`. `group` is a row of Matching::groups. Where
  // the members of the group are not known for certain, `all_members` is false: then nothing is
  // whole.
  void write_group(std::int32_t group, const std::vector<Member>& members, const Slots& slots,
                   bool all_members);
  // A send with its receive.
  void write_pair(std::int32_t group, const Part& source, const Part& destination,
                  const CommEvent& send, const CommEvent& receive, MatchedBy by, bool sure);
  // Events of one rank that found no partner.
  void leave(const std::string& group, std::int64_t rank, std::int64_t seq, std::int64_t count,
             std::string reason, std::string_view kind = "unmatched");

  void finish() { matching_.mismatches = list_.take(); }
  MismatchList& list() { return list_; }

 private:
  struct Placed {
    std::uint32_t member = 0;
    std::uint32_t event = 0;
  };
  using Placement = std::vector<Placed>;

  void write_operation(std::int32_t group, const std::vector<Member>& members, const Slot& slot,
                       const Placed* first, std::size_t count, bool all_members, bool sure);
  void name_missing(const MatchGroup& group, const std::vector<Member>& members,
                    const Placed* first, std::size_t count, std::int64_t seq, bool alone);
  bool agree(const MatchGroup& group, const std::vector<Member>& members, const Placed* first,
             std::size_t count, std::int64_t seq);

  const Job& job_;
  Matching& matching_;
  MismatchList list_;
  std::set<std::int64_t> traced_;  // ranks that have a trace
};

}  // namespace commlens
