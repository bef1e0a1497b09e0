// What NCCL attaches to its ranges in a Nsight Systems export: how much, to whom, in which
// communicator. An export holds it in one of three forms, by its options:
//
//   --include-blobs=true     NVTX_EVENTS.binaryData, laid out as NVTX_PAYLOAD_SCHEMA_ENTRIES says
//   --include-json=true      NVTX_EVENTS.jsonText, or jsonTextId for one that stands in StringIds
//   --dynamic-tables=all     DYNAMIC_NVTXPAYLOAD_DATATYPE_<process>_<domain>_<schema>, by eventId
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/nsys_database.h"

namespace commlens {

// A petabyte: more is no size, but damage or a number that is none.
inline constexpr std::int64_t kLargestNsysMessage = std::int64_t{1} << 50U;

// What a call's payload says; -1 and 0 where it does not.
struct NsysPayload {
  std::int64_t bytes = -1;  // as NCCL counts
  std::int64_t peer = -1;   // of send and receive; or the root: rank in the communicator
  std::int64_t ranks = -1;
  std::int64_t rank = -1;
  std::int64_t count = -1;         // elements
  std::int64_t element_bytes = 0;  // of one of these
  std::string_view dtype;          // in c10's words: "BFloat16"; static, empty: not said
  std::string_view reduction;      // "sum", "product", ...; the same
  std::uint64_t communicator = 0;
  bool of_gpu = false;  // speaks of the operation on the GPU that a call led to
  bool odd = false;     // damaged, or contradicts itself: nothing of it counts

  // An entry of any of the three forms. Names differ in case and in signs from release to release.
  void set_number(std::string_view name, std::uint64_t value, bool is_negative);
  void set_text(std::string_view name, std::string_view value);
  // Bytes by count and type where they are not said themselves. What is odd says nothing at all.
  void finish();

 private:
  void set(std::int64_t& field, std::uint64_t value, bool is_negative);
  void set_dtype(std::string_view name, std::int64_t bytes_of_one);
  void set_reduction(std::string_view name);
};

// {"NCCL communicator ID": 23283, "Message size [bytes]": 4096}, with any objects and lists around
// it. Damaged text is odd.
void read_json_payload(std::string_view json, NsysPayload& payload);

class NsysPayloads {
 public:
  explicit NsysPayloads(NsysDatabase& database);

  // Columns of NVTX_EVENTS that `read` needs, in this order.
  static const std::vector<std::string_view>& columns();
  // `first`: where these columns begin in the row.
  NsysPayload read(const NsysRow& row, int first) const;

 private:
  struct Entry {
    std::string name;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    bool is_signed = false;
    std::int64_t enumeration = -1;  // its schema; -1: a number
  };
  // An enumeration's names. Without any, numbers are those of NCCL's own enumerations.
  struct Enumeration {
    std::size_t bytes = 4;
    bool contradicts_itself = false;             // processes of several releases
    std::map<std::uint64_t, std::string> names;  // by value
  };
  using Enumerations = std::map<std::pair<std::int64_t, std::int64_t>, Enumeration>;
  using Schemas = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Entry>>;

  void read_enumerations();
  void read_schemas();
  void set_entry(std::int64_t domain, const Entry& entry, std::uint64_t value,
                 NsysPayload& payload) const;
  void read_tables();
  void read_blob(std::string_view blob, NsysPayload& payload) const;

  NsysDatabase& database_;
  Enumerations enumerations_;                     // by domain and schema
  Schemas schemas_;                               // the same
  std::map<std::int64_t, NsysPayload> by_event_;  // of tables of their own
};

}  // namespace commlens
