#include "report/chrome_events.h"

#include <array>
#include <charconv>

#include "base/json_out.h"

namespace commlens {
namespace {

std::string json_string(std::string_view text) {
  Sink sink;
  append_json_string(sink, text);
  return sink.text();
}

// Six digits, as many as a bandwidth that was measured can have.
void append_double(std::string& out, double number) {
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.begin(), digits.end(), number, std::chars_format::general, 6);
  out.append(digits.data(), end.ptr);
}

}  // namespace

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

const std::string& ChromeEvents::quoted(TextId id) {
  const std::size_t index = TimelineTexts::index(id);
  if (index >= quoted_.size()) quoted_.resize(texts_.size());
  std::string& text = quoted_[index];
  if (text.empty()) text = json_string(texts_.get(id));
  return text;
}

void ChromeEvents::begin_line() {
  line_.clear();
  if (!first_) line_ += ",\n";
  first_ = false;
}

void ChromeEvents::begin(std::optional<Ns> origin) {
  sink_.append("{\"schema\":\"commlens.timeline/1\",\"otherData\":{\"origin_epoch_ns\":");
  sink_.append(origin ? "\"" + std::to_string(*origin) + "\"" : "null");
  sink_.append("},\"traceEvents\":[\n");
}

void ChromeEvents::end() {
  for (std::size_t i = 0; i < arrows_.size(); ++i) {
    const Arrow& arrow = arrows_[i];
    if (!arrow.from || !arrow.to) continue;
    write_arrow_end(i + 1, "\"s\"", *arrow.from);
    write_arrow_end(i + 1, "\"f\",\"bp\":\"e\"", *arrow.to);
  }
  sink_.append("\n]}\n");
}

void ChromeEvents::name_process(std::int64_t process, std::string_view name) {
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

void ChromeEvents::name_thread(std::int64_t process, std::int64_t thread, std::string_view name) {
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
}

void ChromeEvents::append_name(const SliceName& name) {
  const std::string_view before = quoted(name.before);
  if (!name.number) {
    line_ += before;
    return;
  }
  line_ += before.substr(0, before.size() - 1);
  append_integer(line_, *name.number);
  line_ += std::string_view(quoted(name.after)).substr(1);
}

void ChromeEvents::append_arguments(std::span<const Argument> arguments) {
  char separator = '{';
  for (const Argument& argument : arguments) {
    line_ += separator;
    separator = ',';
    line_ += quoted(argument.key);
    line_ += ':';
    if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
      append_integer(line_, *number);
    } else if (const auto* text = std::get_if<TextId>(&argument.value)) {
      line_ += quoted(*text);
    } else if (const auto* real = std::get_if<double>(&argument.value)) {
      append_double(line_, *real);
    } else {
      line_ += std::get<bool>(argument.value) ? "true" : "false";
    }
  }
  line_ += '}';
}

void ChromeEvents::slice(const SliceEvent& event) {
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
  append_name(event.name);
  line_ += ",\"cat\":";
  line_ += quoted(event.category);
  if (!event.colour.empty()) {
    line_ += ",\"cname\":\"";
    line_ += event.colour;
    line_ += '"';
  }
  if (!event.arguments.empty()) {
    line_ += ",\"args\":";
    append_arguments(event.arguments);
  }
  line_ += '}';
  finish_line();
  if (event.arrow_in > 0) arrow(event.arrow_in).to = {event.process, event.thread, event.start};
  if (event.arrow_out == 0) return;
  // An arrow is tied to the slice that its end lies in: not to the one behind.
  const Ns last = event.length > 0 ? event.start + event.length - 1 : event.start;
  arrow(event.arrow_out).from = {event.process, event.thread, last};
}

ChromeEvents::Arrow& ChromeEvents::arrow(std::int64_t number) {
  const auto count = static_cast<std::size_t>(number);
  if (arrows_.size() < count) arrows_.resize(count);
  return arrows_[count - 1];
}

void ChromeEvents::write_arrow_end(std::size_t number, std::string_view phase,
                                   const ArrowEnd& end) {
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
  append_integer(line_, static_cast<std::int64_t>(number));
  line_ += ",\"name\":\"critical path\",\"cat\":\"critical path\"}";
  finish_line();
}

}  // namespace commlens
