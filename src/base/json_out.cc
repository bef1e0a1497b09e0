#include "base/json_out.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace commlens {
namespace {

// The escape of one byte that may not stand in a JSON string as it is, or nothing.
std::string_view escape(unsigned char byte, char (&buffer)[7]) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (byte >= 0x20 && byte != 0x7F) return {};
  buffer[0] = '\\';
  buffer[1] = 'u';
  buffer[2] = buffer[3] = '0';
  buffer[4] = kHex[byte >> 4U];
  buffer[5] = kHex[byte & 15U];
  return {buffer, 6};
}

template <class Number>
void append_number(Sink& sink, Number number) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, number);
  sink.append(std::string_view(buffer, static_cast<std::size_t>(result.ptr - buffer)));
}

}  // namespace

void append_json_string(Sink& sink, std::string_view text) {
  sink.append('"');
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    char buffer[7];
    if (length == 0) {
      sink.append("\xEF\xBF\xBD");
    } else if (const auto escaped = escape(static_cast<unsigned char>(text[0]), buffer);
               length == 1 && !escaped.empty()) {
      sink.append(escaped);
    } else {
      sink.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  sink.append('"');
}

void JsonOut::new_line() {
  if (indent_ == 0 || levels_.empty() || levels_.back().compact) return;
  sink_.append('\n');
  for (std::size_t i = 0; i < levels_.size() * static_cast<std::size_t>(indent_); ++i)
    sink_.append(' ');
}

void JsonOut::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  if (!levels_.back().empty) sink_.append(levels_.back().compact ? ", " : ",");
  levels_.back().empty = false;
  new_line();
}

void JsonOut::open(char bracket) {
  before_value();
  sink_.append(bracket);
  const bool compact = compact_next_ || (!levels_.empty() && levels_.back().compact);
  compact_next_ = false;
  levels_.push_back({.empty = true, .compact = compact});
}

void JsonOut::close(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.compact && indent_ > 0) {
    sink_.append('\n');
    for (std::size_t i = 0; i < levels_.size() * static_cast<std::size_t>(indent_); ++i)
      sink_.append(' ');
  }
  sink_.append(bracket);
  if (levels_.empty() && indent_ > 0) sink_.append('\n');
}

void JsonOut::key(std::string_view name) {
  before_value();
  append_json_string(sink_, name);
  sink_.append(": ");
  after_key_ = true;
}

void JsonOut::value(std::string_view text) {
  before_value();
  append_json_string(sink_, text);
}

void JsonOut::value(bool flag) { raw(flag ? "true" : "false"); }

void JsonOut::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  append_number(sink_, number);
}

void JsonOut::value(std::int64_t number) {
  before_value();
  append_number(sink_, number);
}

void JsonOut::value(std::uint64_t number) {
  before_value();
  append_number(sink_, number);
}

void JsonOut::null() { raw("null"); }

void JsonOut::raw(std::string_view text) {
  before_value();
  sink_.append(text);
}

}  // namespace commlens
