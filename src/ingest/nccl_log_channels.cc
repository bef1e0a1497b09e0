// Which way two ranks are connected.
//
//   Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA
//   Channel 00 : 0[0] -> 1[1] via P2P/direct pointer       Channel 02 : 1[4000] -> 0[3000] via
//   SHM/direct/direct Ring 00 : 0[0] -> 1[1] via P2P/IPC                     Ring 00 : 1 -> 0
//   [receive] via NET/Socket/0     2.4 - 2.6 CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA
//
// `Channel 00/02 :    0   1` is the order of a ring and connects nothing.
#include <algorithm>
#include <array>

#include "ingest/nccl_log_builder.h"
#include "ingest/nccl_log_lines.h"

namespace commlens {
namespace {

constexpr std::array<std::string_view, 3> kBeginnings = {"Channel ", "Ring ", "CollNet "};

struct Place {
  std::int64_t rank = -1;
  std::size_t length = 0;
};

// "3[3b000]" at the start of `text`; the id in the brackets differs between versions and is not
// read.
Place place_at(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto rank = decimal_number(text.substr(0, end));
  if (!rank || end == text.size()) return {};
  if (text[end] != '[') return {*rank, end};
  const std::size_t close = text.find(']', end);
  return close == std::string_view::npos ? Place{} : Place{*rank, close + 1};
}

// What stands behind "via ", with blanks ("direct pointer", "AWS Libfabric/0/GDRDMA").
bool read_way(std::string_view way, LogChannel& channel) {
  if (way.starts_with("P2P/")) {
    channel.transport = LogTransport::p2p;
  } else if (way.starts_with("SHM") || way.starts_with("direct shared memory")) {
    channel.transport = LogTransport::shm;
  } else if (way.starts_with("NET/") || way.starts_with("COLLNET/")) {
    channel.transport = way.starts_with("NET/") ? LogTransport::net : LogTransport::collnet;
    const std::size_t name = way.find('/') + 1;
    const std::size_t slash = way.find('/', name);
    if (slash == std::string_view::npos) return false;
    channel.network = way.substr(name, slash - name);
    const std::size_t end = std::min(way.find_first_not_of("0123456789", slash + 1), way.size());
    channel.device = decimal_number(way.substr(slash + 1, end - slash - 1)).value_or(-1);
    channel.gdr = way.find("/GDRDMA", end) != std::string_view::npos;
  } else {
    return false;
  }
  channel.via = way.size() > 80 ? safe_start(way, 80) : std::string(way);
  return true;
}

// "NET/IB/0/GDR", "NET/IB/0(": a terminal has cut what stands behind the device, so that nothing is
// known of it.
bool ends_inside_a_mark(std::string_view way) {
  if (!way.starts_with("NET/") && !way.starts_with("COLLNET/")) return false;
  const std::size_t last = way.find_last_of("/(");
  const std::string_view mark = way.substr(last);
  constexpr std::array<std::string_view, 3> kMarks = {"/GDRDMA", "/Shared", "(PCI)"};
  const bool begins = std::any_of(kMarks.begin(), kMarks.end(), [mark](std::string_view known) {
    return mark.size() < known.size() && known.starts_with(mark);
  });
  // "(3)": the rank whose proxy is used.
  const bool proxy = mark.starts_with('(') && mark.find_first_not_of("0123456789", 1) == mark.npos;
  return begins || proxy;
}

// "3[3] -> 4[0] [send] ": the two ranks.
bool read_ranks(std::string_view text, LogChannel& channel) {
  const Place from = place_at(text);
  text = text.substr(std::min(from.length, text.size()));
  if (from.rank < 0 || !text.starts_with(" -> ")) return false;
  const Place to = place_at(text.substr(4));
  channel.from = from.rank;
  channel.to = to.rank;
  return to.rank >= 0;
}

// "16 coll channels, 0 collnet channels, 16 nvls channels, ..."
bool read_counts(const LogRecord& record, std::string_view message, LogBuilder& builder) {
  const std::size_t end = message.find(" coll channels,");
  const auto collective = decimal_number(message.substr(0, std::min(end, message.size())));
  if (end == std::string_view::npos || !collective) return false;
  LogChannelCount row;
  row.process = builder.process_of(record);
  row.collective = *collective;
  row.line = record.line;
  if (const std::size_t nvls = message.find(" nvls channels"); nvls != std::string_view::npos) {
    const std::string_view before = message.substr(0, nvls);
    row.nvls = decimal_number(before.substr(before.rfind(' ') + 1)).value_or(0);
  }
  builder.add(row);
  return true;
}

}  // namespace

Understood read_channels(const LogRecord& record, LogBuilder& builder) {
  if (record.kind != LogRecord::Kind::nccl) return Understood::no;
  const LogText text(record.message, record.ended);
  if (read_counts(record, record.message, builder)) return Understood::yes;
  bool begins = false;
  for (const std::string_view beginning : kBeginnings) begins = begins || text.begins(beginning);
  if (!begins) return Understood::no;
  const std::size_t colon = text.text().find(" : ");
  if (colon == std::string_view::npos) return Understood::cut;
  const std::string_view ranks = text.text().substr(colon + 3);
  const std::size_t via = ranks.find(" via ");
  if (via == std::string_view::npos) {
    // "Ring 00 : 1 -> 0 -> 1" and the orders of rings.
    const bool connects = ranks.find("[receive]") != std::string_view::npos ||
                          ranks.find("[send]") != std::string_view::npos;
    return connects || !record.ended ? Understood::cut : Understood::yes;
  }
  LogChannel channel;
  channel.process = builder.process_of(record);
  channel.line = record.line;
  channel.channel = text.number(text.begins("Ring") ? "Ring " : "Channel ", "/").value_or(-1);
  if (const std::size_t slash = text.text().find('/'); text.begins("Channel ") && slash < colon)
    channel.connection =
        decimal_number(text.text().substr(slash + 1, colon - slash - 1)).value_or(-1);
  channel.sends = ranks.find("[send]") < via;
  channel.receives = ranks.find("[receive]") < via;
  if (text.begins("CollNet ")) {
    channel.from = channel.to = place_at(ranks).rank;
  } else if (!read_ranks(ranks, channel)) {
    return Understood::no;
  }
  const std::string_view way = trimmed(ranks.substr(via + 5));
  // What the line stops in could go on with "/GDRDMA".
  if (!record.ended || ends_inside_a_mark(way)) return Understood::cut;
  if (!read_way(way, channel)) return Understood::no;
  builder.add(std::move(channel));
  return Understood::yes;
}

}  // namespace commlens
