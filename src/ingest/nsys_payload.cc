// Problem: the three forms name their entries alike, but nothing promises that. Method: names are
// compared without case, blanks and signs; what stands twice with different values, or is no number
// that a message can have, makes the payload odd, and then nothing of it counts: a size that is not
// known is better than a wrong one. When it is wrong: a release that uses a name for something
// else.
#include "ingest/nsys_payload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

namespace commlens {
namespace {

constexpr std::size_t kLongestJson = std::size_t{1} << 16U;
constexpr int kDeepestJson = 8;
constexpr std::size_t kMostEntries = 64;  // of a schema; NCCL's have up to five
constexpr std::int64_t kMostPayloadBytes = 4096;
constexpr std::size_t kMostTables = 4096;

// "Message size [bytes]" and "messageSize_bytes" alike: "messagesizebytes".
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (plain.size() == 64) break;
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c + 32);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  return plain;
}

// Types and reductions of NCCL by number ("datatype int" and "op int" of its log), and in words.
struct PayloadType {
  std::string_view dtype;  // c10's
  std::int64_t bytes;
};
constexpr std::array<PayloadType, 12> kPayloadTypes{{{"Char", 1},
                                                     {"Byte", 1},
                                                     {"Int", 4},
                                                     {"UInt32", 4},
                                                     {"Long", 8},
                                                     {"UInt64", 8},
                                                     {"Half", 2},
                                                     {"Float", 4},
                                                     {"Double", 8},
                                                     {"BFloat16", 2},
                                                     {"Float8_e4m3fn", 1},
                                                     {"Float8_e5m2", 1}}};
constexpr std::array<std::string_view, 6> kReductions{"sum", "product", "max",
                                                      "min", "avg",     "user-defined"};

// "ncclFloat32" and "Float 32" alike: "float32".
std::string plain_value(std::string_view name) {
  std::string plain = plain_name(name);
  if (plain.starts_with("nccl")) plain.erase(0, 4);
  return plain;
}

// Row of kPayloadTypes; nothing for others.
std::optional<std::size_t> type_of_name(std::string_view name) {
  struct Named {
    std::string_view name;
    std::size_t type;
  };
  constexpr std::array<Named, 19> kNamed{{{"int8", 0},
                                          {"char", 0},
                                          {"uint8", 1},
                                          {"int32", 2},
                                          {"int", 2},
                                          {"uint32", 3},
                                          {"int64", 4},
                                          {"uint64", 5},
                                          {"float16", 6},
                                          {"half", 6},
                                          {"float32", 7},
                                          {"float", 7},
                                          {"float64", 8},
                                          {"double", 8},
                                          {"bfloat16", 9},
                                          {"float8e4m3", 10},
                                          {"fp8e4m3", 10},
                                          {"float8e5m2", 11},
                                          {"fp8e5m2", 11}}};
  const std::string plain = plain_value(name);
  const auto* const found = std::find_if(kNamed.begin(), kNamed.end(),
                                         [&plain](const Named& one) { return one.name == plain; });
  return found == kNamed.end() ? std::nullopt : std::optional(found->type);
}

// Empty for other words.
std::string_view reduction_of_name(std::string_view name) {
  const std::string plain = plain_value(name);
  if (plain == "prod") return "product";
  const auto* const found = std::find(kReductions.begin(), kReductions.end(), plain);
  return found == kReductions.end() ? std::string_view() : *found;
}

// NVTX gives types of its own, enumerations among them, numbers from here on.
constexpr std::int64_t kFirstOwnType = std::int64_t{1} << 24U;

bool is_datatype(std::string_view plain) { return plain == "datatype"; }
bool is_reduction(std::string_view plain) {
  return plain == "reductionoperation" || plain == "redop";
}

// Codes of NVTX's header; 0 for what is no whole number.
std::size_t bytes_of_type(std::int64_t type) {
  switch (type) {
    case 5:
    case 6:
    case 15:
    case 16: return 4;
    case 3:
    case 4:
    case 13:
    case 14: return 2;
    case 7:
    case 8:
    case 9:
    case 10:
    case 17:
    case 18:
    case 22: return 8;
    case 1:
    case 2:
    case 11:
    case 12: return 1;
    default: return 0;
  }
}

bool is_signed_type(std::int64_t type) {
  return type == 3 || type == 5 || type == 7 || type == 9 || type == 11 || type == 13 ||
         type == 15 || type == 17;
}

struct SchemaRow {
  std::string name;
  std::int64_t type = 0;
  std::int64_t offset = -1;  // -1: none
  std::int64_t bytes = 0;    // 0: not known
  bool is_enumeration = false;
  bool operator==(const SchemaRow&) const = default;
};
using SchemaRows = std::map<std::int64_t, SchemaRow>;  // by index

// Where each entry lies; -1: not to be read. Those without an offset lie as a compiler of C would
// lay them behind the one before, and so do those at 0 where another lies: NVTX writes 0 for none.
// Nothing at all where two would share bytes: that is not how they lie.
std::vector<std::int64_t> offsets_of(const SchemaRows& rows) {
  std::vector<std::int64_t> offsets;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  const auto is_taken = [&taken](std::int64_t from, std::int64_t bytes) {
    return std::any_of(taken.begin(), taken.end(), [=](const auto& other) {
      return from < other.second && other.first < from + bytes;
    });
  };
  std::int64_t end = 0;  // of the entry before; -1: not known
  for (const auto& [index, row] : rows) {
    const std::int64_t bytes = row.bytes;
    const std::int64_t least = std::max<std::int64_t>(1, bytes);
    std::int64_t offset = row.offset;
    offsets.push_back(-1);
    if (offset < 0 || (offset == 0 && is_taken(0, least))) {
      if (end < 0 || bytes == 0) {
        end = -1;
        continue;
      }
      offset = (end + bytes - 1) / bytes * bytes;
    }
    if (offset > kMostPayloadBytes) continue;
    if (is_taken(offset, least)) return {};
    taken.emplace_back(offset, offset + least);
    end = bytes == 0 ? -1 : offset + bytes;
    if (bytes > 0) offsets.back() = offset;
  }
  return offsets;
}

std::uint64_t payload_word(std::string_view blob, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, blob.data() + at, bytes);  // little-endian, as every machine of NCCL's
  return value;
}

// The numbers and texts of a JSON value, with the key that each stands under.
class JsonPayload {
 public:
  JsonPayload(std::string_view text, NsysPayload& payload) : text_(text), payload_(payload) {}

  // False for what is no JSON.
  bool read() {
    const bool good = value({}, 0);
    skip_blanks();
    return good && at_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool value(std::string_view key, int depth) {
    skip_blanks();
    if (at_ >= text_.size() || depth > kDeepestJson) return false;
    switch (text_[at_]) {
      case '{': return members('}', key, depth);
      case '[': return members(']', key, depth);
      case '"': {
        const auto text = string();
        if (text) payload_.set_text(key, *text);
        return text.has_value();
      }
      default: return scalar(key);
    }
  }

  // Of an object, or of a list, whose values stand under the list's own key.
  bool members(char closing, std::string_view key, int depth) {
    ++at_;
    if (take(closing)) return true;
    do {
      std::string_view own = key;
      if (closing == '}') {
        skip_blanks();
        const auto name = string();
        if (!name || !take(':')) return false;
        own = *name;
      }
      if (!value(own, depth + 1)) return false;
    } while (take(','));
    return take(closing);
  }

  // Escapes stay as they are: no name that counts has any.
  std::optional<std::string_view> string() {
    if (at_ >= text_.size() || text_[at_] != '"') return std::nullopt;
    const std::size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return std::nullopt;
    return text_.substr(from, at_++ - from);
  }

  bool scalar(std::string_view key) {
    const std::size_t from = at_;
    while (at_ < text_.size() &&
           std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos)
      ++at_;
    std::string_view word = text_.substr(from, at_ - from);
    if (word == "true" || word == "false" || word == "null") return true;
    const bool is_negative = word.starts_with('-');
    std::string_view digits = is_negative ? word.substr(1) : word;
    if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
        digits.front() < '0' || digits.front() > '9')
      return false;
    std::uint64_t number = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    // Fractions, and what does not fit, are nothing that a payload's entry can be.
    if (end.ec == std::errc{} && end.ptr == digits.data() + digits.size()) {
      payload_.set_number(key, number, is_negative);
    } else {
      payload_.set_text(key, word);
    }
    return true;
  }

  std::string_view text_;
  NsysPayload& payload_;
  std::size_t at_ = 0;
};

}  // namespace

void NsysPayload::set(std::int64_t& field, std::uint64_t value, bool is_negative) {
  if (is_negative && value != 0) return;  // "none" of a root or a peer
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    odd = true;
    return;
  }
  const auto number = static_cast<std::int64_t>(value);
  odd = odd || (field >= 0 && field != number);
  field = number;
}

void NsysPayload::set_dtype(std::string_view name, std::int64_t bytes_of_one) {
  odd = odd || (!dtype.empty() && dtype != name);
  dtype = name;
  element_bytes = bytes_of_one;
}

void NsysPayload::set_reduction(std::string_view name) {
  odd = odd || (!reduction.empty() && reduction != name);
  reduction = name;
}

void NsysPayload::set_number(std::string_view name, std::uint64_t value, bool is_negative) {
  const std::string plain = plain_name(name);
  if (plain == "messagesizebytes" || plain == "bytes") {
    odd = odd || (is_negative && value != 0);
    set(bytes, value, is_negative);
  } else if (plain == "peerrank" || plain == "peer" || plain == "root") {
    set(peer, value, is_negative);
  } else if (plain == "noofranks" || plain == "nranks") {
    set(ranks, value, is_negative);
  } else if (plain == "rank" || plain == "commrank") {
    set(rank, value, is_negative);
  } else if (plain == "count") {
    odd = odd || (is_negative && value != 0);
    set(count, value, is_negative);
  } else if (is_datatype(plain)) {
    if (!is_negative && value < kPayloadTypes.size())
      set_dtype(kPayloadTypes[value].dtype, kPayloadTypes[value].bytes);
  } else if (is_reduction(plain)) {
    if (!is_negative) set_reduction(kReductions[std::min<std::size_t>(value, 5)]);
  } else if (plain == "ncclcommunicatorid" || plain == "commhash") {
    const std::uint64_t id = is_negative ? ~value + 1 : value;  // 64 bits, signed or not
    odd = odd || (communicator != 0 && communicator != id);
    communicator = id;
  } else if (plain == "apiid") {
    of_gpu = true;
  }
}

// Numbers in quotes, by 16 with "0x"; the names of types. Where a number that counts is none, it is
// not known how the rest is to be read.
void NsysPayload::set_text(std::string_view name, std::string_view value) {
  const std::string plain = plain_name(name);
  if (const auto type = type_of_name(value); type && is_datatype(plain))
    return set_dtype(kPayloadTypes[*type].dtype, kPayloadTypes[*type].bytes);
  if (const std::string_view told = reduction_of_name(value); !told.empty() && is_reduction(plain))
    return set_reduction(told);
  const bool by_16 = value.starts_with("0x") || value.starts_with("0X");
  const std::string_view digits = by_16 ? value.substr(2) : value;
  std::uint64_t number = 0;
  const auto end =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, by_16 ? 16 : 10);
  if (end.ec == std::errc{} && end.ptr == digits.data() + digits.size()) {
    set_number(name, number, false);
    return;
  }
  for (const std::string_view counts :
       {"messagesizebytes", "bytes", "count", "ncclcommunicatorid", "commhash"})
    odd = odd || plain == counts;
}

void NsysPayload::finish() {
  std::int64_t counted = 0;
  if (count >= 0 && element_bytes > 0) {
    if (__builtin_mul_overflow(count, element_bytes, &counted)) odd = true;
    odd = odd || (bytes >= 0 && bytes != counted);
    bytes = counted;
  }
  odd = odd || bytes > kLargestNsysMessage;
  if (!odd) return;
  *this = {};
  odd = true;
}

void read_json_payload(std::string_view json, NsysPayload& payload) {
  if (json.empty()) return;
  if (json.size() > kLongestJson || !JsonPayload(json, payload).read()) payload.odd = true;
}

NsysPayloads::NsysPayloads(NsysDatabase& database) : database_(database) {
  read_enumerations();
  read_schemas();
  read_tables();
}

const std::vector<std::string_view>& NsysPayloads::columns() {
  static const std::vector<std::string_view> kColumns{"binaryData", "jsonText", "jsonTextId",
                                                      "eventId"};
  return kColumns;
}

// Rows repeat for each process, in any order. Where these contradict each other, no name counts.
void NsysPayloads::read_enumerations() {
  database_.each("NVTX_PAYLOAD_ENUMS", {"domainId", "schemaId", "size"}, [&](const NsysRow& row) {
    const auto [known, is_new] = enumerations_.try_emplace({row.integer(0), row.integer(1)});
    const std::int64_t bytes = row.integer(2, 4);
    const bool usable = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    const auto said = static_cast<std::size_t>(usable ? bytes : 0);
    Enumeration& one = known->second;
    one.contradicts_itself = one.contradicts_itself || said == 0 || (!is_new && one.bytes != said);
    one.bytes = said;
  });
  database_.each("NVTX_PAYLOAD_ENUM_ENTRIES", {"domainId", "schemaId", "value", "name", "isFlag"},
                 [&](const NsysRow& row) {
                   if (row.is_null(2)) return;
                   Enumeration& one = enumerations_[{row.integer(0), row.integer(1)}];
                   const auto value = static_cast<std::uint64_t>(row.integer(2));
                   if (one.names.size() >= kMostEntries && !one.names.contains(value)) return;
                   const auto [known, is_new] =
                       one.names.try_emplace(value, std::string(row.text(3)));
                   // Flags are added up: a value is no single name.
                   one.contradicts_itself = one.contradicts_itself || row.integer(4) != 0 ||
                                            known->second != row.text(3);
                 });
}

// Rows repeat for each process, in any order.
void NsysPayloads::read_schemas() {
  database_.need("NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name"});
  std::map<std::pair<std::int64_t, std::int64_t>, SchemaRows> rows;
  // Of processes with different releases of NCCL: whose rows these are is not said.
  std::set<std::pair<std::int64_t, std::int64_t>> contradicted;
  database_.each(
      "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "idx", "type", "name", "offset"},
      [&](const NsysRow& row) {
        const std::pair schema{row.integer(0), row.integer(1)};
        auto& entries = rows[schema];
        SchemaRow entry{
            .name = std::string(row.text(4)), .type = row.integer(3), .offset = row.integer(5, -1)};
        entry.bytes = static_cast<std::int64_t>(bytes_of_type(entry.type));
        // The tables of enumerations can be missing: then an entry that NCCL gives one is an int.
        const auto known_enum = enumerations_.find({schema.first, entry.type});
        const std::string plain = plain_name(entry.name);
        const bool named_by_nccl = is_datatype(plain) || is_reduction(plain);
        entry.is_enumeration =
            entry.type >= kFirstOwnType && (known_enum != enumerations_.end() || named_by_nccl);
        if (entry.is_enumeration)
          entry.bytes = known_enum == enumerations_.end()
                            ? 4
                            : static_cast<std::int64_t>(known_enum->second.bytes);
        const bool again =
            row.is_null(2) && std::any_of(entries.begin(), entries.end(),
                                          [&](const auto& known) { return known.second == entry; });
        if (again) return;
        const auto known = entries.find(row.integer(2, static_cast<std::int64_t>(entries.size())));
        if (known != entries.end()) {
          if (known->second != entry) contradicted.insert(schema);
        } else if (entries.size() < kMostEntries) {
          entries.emplace(row.integer(2, static_cast<std::int64_t>(entries.size())), entry);
        }
      });
  for (const auto& [schema, entries] : rows) {
    if (contradicted.contains(schema)) continue;
    const std::vector<std::int64_t> offsets = offsets_of(entries);
    auto offset = offsets.begin();
    for (const auto& [index, row] : entries) {
      if (offset == offsets.end()) break;
      const std::int64_t at = *offset++;
      if (at < 0) continue;
      schemas_[schema].push_back({.name = row.name,
                                  .offset = static_cast<std::size_t>(at),
                                  .bytes = static_cast<std::size_t>(row.bytes),
                                  .is_signed = is_signed_type(row.type),
                                  .enumeration = row.is_enumeration ? row.type : -1});
    }
  }
}

// Columns that are named like entries, and eventId for which range they are of.
void NsysPayloads::read_tables() {
  std::vector<std::string> tables = database_.tables("DYNAMIC_NVTXPAYLOAD_DATATYPE_");
  if (tables.size() > kMostTables) tables.resize(kMostTables);
  for (const std::string& table : tables) {
    if (!database_.has_column(table, "eventId")) continue;
    const std::vector<std::string> names = database_.columns(table);
    std::vector<std::string_view> columns{"eventId"};
    for (const std::string& name : names) {
      if (name != "eventId" && columns.size() < kMostEntries) columns.push_back(name);
    }
    database_.each(table, columns, [&](const NsysRow& row) {
      if (row.is_null(0)) return;
      NsysPayload& payload = by_event_[row.integer(0)];
      for (std::size_t i = 1; i < columns.size(); ++i) {
        const int column = static_cast<int>(i);
        if (row.is_null(column)) continue;
        if (row.is_integer(column)) {
          const std::int64_t value = row.integer(column);
          const auto bits = static_cast<std::uint64_t>(value);
          payload.set_number(columns[i], value < 0 ? ~bits + 1 : bits, value < 0);
        } else {
          payload.set_text(columns[i], row.text(column));
        }
      }
    });
  }
}

void NsysPayloads::read_blob(std::string_view blob, NsysPayload& payload) const {
  constexpr std::size_t kHead = 32;
  if (blob.size() < kHead) return;
  const auto domain = static_cast<std::int64_t>(payload_word(blob, 0, 8));
  const auto schema = static_cast<std::int64_t>(payload_word(blob, 8, 8));
  const std::uint64_t size = payload_word(blob, 16, 8);
  const std::uint64_t said = payload_word(blob, 24, 8);
  const bool is_offset = said >= kHead && size <= blob.size() && said <= blob.size() - size;
  const std::size_t from = is_offset ? static_cast<std::size_t>(said) : kHead;
  const auto found = schemas_.find({domain, schema});
  if (found == schemas_.end()) return;
  for (const Entry& entry : found->second) {
    if (entry.offset > size || entry.bytes > size - entry.offset) continue;
    const std::size_t at = from + entry.offset;
    if (at > blob.size() || entry.bytes > blob.size() - at) continue;
    set_entry(domain, entry, payload_word(blob, at, entry.bytes), payload);
  }
}

void NsysPayloads::set_entry(std::int64_t domain, const Entry& entry, std::uint64_t value,
                             NsysPayload& payload) const {
  const auto known = enumerations_.find({domain, entry.enumeration});
  if (entry.enumeration >= 0 && known != enumerations_.end() &&
      (known->second.contradicts_itself || !known->second.names.empty())) {
    const auto& names = known->second.names;
    const auto name = names.find(value);
    if (known->second.contradicts_itself) return;
    // Reductions that a program makes itself have numbers behind those with a name.
    if (name != names.end()) {
      payload.set_text(entry.name, name->second);
    } else if (is_reduction(plain_name(entry.name))) {
      payload.set_number(entry.name, kReductions.size() - 1, false);
    }
    return;
  }
  const std::uint64_t sign = std::uint64_t{1} << (8 * entry.bytes - 1);
  const bool is_negative = entry.is_signed && (value & sign) != 0;
  payload.set_number(entry.name, is_negative ? (sign << 1U) - value : value, is_negative);
}

NsysPayload NsysPayloads::read(const NsysRow& row, int first) const {
  NsysPayload payload;
  if (const auto known = by_event_.find(row.integer(first + 3, -1)); known != by_event_.end())
    payload = known->second;
  read_blob(row.bytes(first), payload);
  const std::string_view json = row.text(first + 1);
  read_json_payload(json.empty() ? database_.string(row.integer(first + 2, -1)) : json, payload);
  payload.finish();
  return payload;
}

}  // namespace commlens
