// Networks that were found and the one that is used.
//
//   NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
//   NET/Socket : Using [0]eth0:10.0.0.1<0> [1]veth1:fe80::1%veth1<0>
//   Bootstrap : Using [0]eth0:10.0.0.1<0>         Bootstrap: Using eth0:10.0.0.1<0>
//   NET : Using interface eth0:10.0.0.1<0>        2.2, 2.3
//   Using network IB                              Using internal Network Socket
//   NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
//   Topology detection : could not read /sys/..., ignoring       === System : maxBw 12.0
//   totalBw 12.0 ===
//
// "NET/IB : Using [RO]; OOB ..." is printed without any HCA too: no evidence of InfiniBand.
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

// "[0]mlx5_0:1/RoCE" without its number; nothing for "[RO];" and the like.
std::string_view without_number(std::string_view word) {
  if (!word.starts_with('[')) return word;
  const std::size_t close = word.find(']');
  if (close == std::string_view::npos || !decimal_number(word.substr(1, close - 1))) return {};
  return word.substr(close + 1);
}

// "eth0:fe80::1%eth0<0>": name and address.
bool add_socket(std::string_view word, LogInterfaces& list) {
  const std::size_t colon = word.find(':');
  const std::size_t open = word.find('<');
  if (colon == std::string_view::npos || colon == 0 || open == std::string_view::npos ||
      open < colon)
    return false;
  if (word.find('>', open) == std::string_view::npos) return false;
  list.names.emplace_back(word.substr(0, colon));
  list.addresses.emplace_back(word.substr(colon + 1, open - colon - 1));
  return true;
}

// Words up to the first that is no interface. The last one of a line that was cut counts only where
// its own closing token stands. A list of InfiniBand's always has something behind it: where it has
// not, a terminal or a web page has broken the line.
LogInterfaces list_of(LogInterfaces::Kind kind, std::string_view rest, bool ended) {
  LogInterfaces list;
  list.kind = kind;
  const auto words = words_of_line(rest);
  list.cut = !ended || kind == LogInterfaces::Kind::ib;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = without_number(words[i]);
    if (word.empty() || word == ";") {
      list.cut = false;
      break;
    }
    if (kind != LogInterfaces::Kind::ib) {
      if (!add_socket(word, list)) break;
    } else if (i + 1 < words.size() || ended) {
      list.names.emplace_back(word);
    }
  }
  return list;
}

struct Form {
  std::string_view beginning;
  LogInterfaces::Kind kind;
};
constexpr std::array<Form, 6> kForms = {{{"NET/IB : Using ", LogInterfaces::Kind::ib},
                                         {"NET/IB: Using ", LogInterfaces::Kind::ib},
                                         {"NET/Socket : Using ", LogInterfaces::Kind::socket},
                                         {"Bootstrap : Using ", LogInterfaces::Kind::bootstrap},
                                         {"Bootstrap: Using ", LogInterfaces::Kind::bootstrap},
                                         {"NET : Using interface ", LogInterfaces::Kind::socket}}};

Understood read_list(const LogRecord& record, LogBuilder& builder, const Form& form) {
  const std::string_view rest = record.message.substr(form.beginning.size());
  if (rest.starts_with("interface ")) return Understood::yes;  // "... for sideband communication"
  LogInterfaces list = list_of(form.kind, rest, record.ended);
  list.process = builder.process_of(record);
  list.line = record.line;
  if (list.names.empty()) return record.ended ? Understood::yes : Understood::cut;
  builder.add(std::move(list));
  return Understood::yes;
}

Understood read_used(const LogRecord& record, LogBuilder& builder, std::string_view name) {
  if (!record.ended) return Understood::cut;
  LogProcess& process = builder.process(builder.process_of(record));
  process.network = safe_start(name, 80);
  process.network_line = record.line;
  return Understood::yes;
}

Understood add_event(const LogRecord& record, LogBuilder& builder, LogEventKind kind,
                     std::string_view detail) {
  LogEvent event;
  event.kind = kind;
  event.detail = detail;
  builder.add(std::move(event), record);
  return Understood::yes;
}

}  // namespace

Understood read_network(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl || record.warning) return Understood::no;
  const LogText text(record.message, record.ended);
  for (const Form& form : kForms) {
    if (text.begins(form.beginning)) return read_list(record, builder, form);
  }
  if (text.begins("Using network ")) return read_used(record, builder, text.text().substr(14));
  if (text.begins("Using internal Network "))
    return read_used(record, builder, text.text().substr(23));
  if (text.has("GPU Direct RDMA Disabled for HCA")) {
    const auto name = text.behind("HCA ").value("'", "'");
    return name ? add_event(record, builder, LogEventKind::gdr_disabled, *name) : Understood::cut;
  }
  if (text.begins("Topology detection") && text.has("could not read"))
    return add_event(record, builder, LogEventKind::topology_hidden, {});
  if (text.begins("=== System : maxBw ")) {
    const auto most = text.real("maxBw ");
    if (!most) return Understood::cut;
    // What a PCIe 3.0 link of 16 lanes is modelled with; NVLink and real switches show more.
    constexpr double kPcieModel = 12.5;
    if (*most > kPcieModel) return Understood::yes;
    return add_event(record, builder, LogEventKind::low_bandwidth_model, *text.value("maxBw "));
  }
  return Understood::no;
}

}  // namespace commlens
