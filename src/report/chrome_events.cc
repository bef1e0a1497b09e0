#include "report/chrome_events.h"

#include <charconv>

#include "base/json_out.h"

namespace commlens {

void append_integer(std::string& out, std::int64_t number) {
  char buffer[20];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, number);
  out.append(buffer, result.ptr);
}

void append_microseconds(std::string& out, Ns time) {
  append_integer(out, time / 1000);
  const auto rest = static_cast<int>(time % 1000);
  const char digits[4] = {'.', static_cast<char>('0' + rest / 100),
                          static_cast<char>('0' + rest / 10 % 10),
                          static_cast<char>('0' + rest % 10)};
  out.append(digits, sizeof digits);
}

std::string json_string(std::string_view text) {
  Sink sink;
  append_json_string(sink, text);
  return sink.text();
}

std::string cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t end = bytes;
  // Not inside a character: at most three bytes back, and no further in bytes that are no UTF-8.
  while (end + 3 > bytes && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

void TraceEvents::begin_line() {
  line_.clear();
  if (!first_) line_ += ",\n";
  first_ = false;
}

void TraceEvents::begin(std::string_view other_data) {
  sink_.append("{\"schema\":\"commlens.timeline/1\",\"otherData\":{");
  sink_.append(other_data);
  sink_.append("},\"traceEvents\":[\n");
}

void TraceEvents::end() { sink_.append("\n]}\n"); }

void TraceEvents::name_process(std::int64_t process, std::string_view name) {
  begin_line();
  line_ += "{\"ph\":\"M\",\"pid\":";
  append_integer(line_, process);
  line_ += ",\"name\":\"process_name\",\"args\":{\"name\":" + json_string(name) + "}},\n";
  line_ += "{\"ph\":\"M\",\"pid\":";
  append_integer(line_, process);
  line_ += ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":";
  append_integer(line_, process);
  line_ += "}}";
  finish_line();
}

std::int64_t TraceEvents::open_thread(std::int64_t process, std::string_view name) {
  const std::int64_t thread = next_thread_++;
  for (const bool index : {false, true}) {
    begin_line();
    line_ += "{\"ph\":\"M\",\"pid\":";
    append_integer(line_, process);
    line_ += ",\"tid\":";
    append_integer(line_, thread);
    line_ += index ? ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":"
                   : ",\"name\":\"thread_name\",\"args\":{\"name\":";
    line_ += index ? std::to_string(thread) : json_string(name);
    line_ += "}}";
    finish_line();
  }
  return thread;
}

void TraceEvents::slice(const SliceEvent& event) {
  begin_line();
  line_ += "{\"ph\":\"X\",\"pid\":";
  append_integer(line_, event.process);
  line_ += ",\"tid\":";
  append_integer(line_, event.thread);
  line_ += ",\"ts\":";
  append_microseconds(line_, event.start);
  line_ += ",\"dur\":";
  append_microseconds(line_, event.length);
  line_ += ",\"name\":";
  line_ += event.name;
  line_ += ",\"cat\":";
  line_ += event.category;
  if (!event.colour.empty()) {
    line_ += ",\"cname\":";
    line_ += event.colour;
  }
  if (!event.arguments.empty()) {
    line_ += ",\"args\":{";
    line_ += event.arguments;
    line_ += '}';
  }
  line_ += '}';
  finish_line();
}

void TraceEvents::arrow(std::int64_t id, const ArrowEnd& from, const ArrowEnd& to) {
  arrow_end(id, "\"s\"", from);
  arrow_end(id, "\"f\",\"bp\":\"e\"", to);
}

void TraceEvents::arrow_end(std::int64_t id, std::string_view phase, const ArrowEnd& end) {
  begin_line();
  line_ += "{\"ph\":";
  line_ += phase;
  line_ += ",\"pid\":";
  append_integer(line_, end.process);
  line_ += ",\"tid\":";
  append_integer(line_, end.thread);
  line_ += ",\"ts\":";
  append_microseconds(line_, end.time);
  line_ += ",\"id\":";
  append_integer(line_, id);
  line_ += ",\"name\":\"critical path\",\"cat\":\"critical path\"}";
  finish_line();
}

}  // namespace commlens
