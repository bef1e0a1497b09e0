#include "simulate/kineto_text.h"

#include <charconv>

#include "base/json_out.h"

namespace commlens::simulate {

void KinetoText::number(std::int64_t value) {
  char buffer[24];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  sink_.append(std::string_view(buffer, static_cast<std::size_t>(result.ptr - buffer)));
}

// 1234567 -> "1234.567". A time before the base is clamped to it, as Kineto does.
void KinetoText::microseconds(Ns ns) {
  if (ns < 0) ns = 0;
  number(ns / 1000);
  const auto digit = [](Ns value) { return static_cast<char>('0' + value % 10); };
  const char fraction[] = {'.', digit(ns / 100), digit(ns / 10), digit(ns)};
  sink_.append(std::string_view(fraction, sizeof fraction));
}

void KinetoText::open() {
  if (!first_event_) sink_.append(',');
  first_event_ = false;
  sink_.append("\n  {\n    ");
}

void KinetoText::begin(std::string_view cat, std::string_view name, Lane lane, Ns start,
                       Ns length) {
  open();
  sink_.append(R"("ph": "X", "cat": ")");
  sink_.append(cat);
  sink_.append(R"(", "name": )");
  append_json_string(sink_, name);
  sink_.append(R"(, "pid": )");
  number(lane.pid);
  sink_.append(R"(, "tid": )");
  number(lane.tid);
  sink_.append(",\n    \"ts\": ");
  microseconds(start);
  sink_.append(R"(, "dur": )");
  microseconds(length);
  sink_.append(",\n    \"args\": {\n      ");
  first_arg_ = true;
}

void KinetoText::key(std::string_view name) {
  if (!first_arg_) sink_.append(", ");
  first_arg_ = false;
  sink_.append('"');
  sink_.append(name);
  sink_.append("\": ");
}

void KinetoText::arg(std::string_view name, std::int64_t value) {
  key(name);
  number(value);
}

void KinetoText::arg(std::string_view name, std::string_view text) {
  key(name);
  append_json_string(sink_, text);
}

void KinetoText::raw_arg(std::string_view name, std::string_view json) {
  key(name);
  sink_.append(json);
}

void KinetoText::end() { sink_.append("\n    }\n  }"); }

void KinetoText::flow(char phase, std::int64_t id, Lane lane, Ns at) {
  open();
  sink_.append(R"("ph": ")");
  sink_.append(phase);
  sink_.append(R"(", "id": )");
  number(id);
  sink_.append(R"(, "pid": )");
  number(lane.pid);
  sink_.append(R"(, "tid": )");
  number(lane.tid);
  sink_.append(R"(, "ts": )");
  microseconds(at);
  sink_.append(",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"");
  if (phase == 'f') sink_.append(R"(, "bp": "e")");
  sink_.append("\n  }");
}

void KinetoText::metadata_head(std::string_view kind, Lane lane, Ns at, std::string_view name) {
  open();
  sink_.append(R"("name": ")");
  sink_.append(kind);
  sink_.append(R"(", "ph": "M", "ts": )");
  microseconds(at);
  sink_.append(R"(, "pid": )");
  number(lane.pid);
  sink_.append(R"(, "tid": )");
  number(lane.tid);
  sink_.append(",\n    \"args\": {\n      ");
  first_arg_ = true;
  key(name);
}

void KinetoText::metadata(std::string_view kind, Lane lane, Ns at, std::string_view name,
                          std::string_view text) {
  metadata_head(kind, lane, at, name);
  append_json_string(sink_, text);
  end();
}

void KinetoText::metadata(std::string_view kind, Lane lane, Ns at, std::string_view name,
                          std::int64_t value) {
  metadata_head(kind, lane, at, name);
  number(value);
  end();
}

void KinetoText::other(std::string_view fields, Ns at, Ns length) {
  open();
  sink_.append(fields);
  sink_.append(R"(, "ts": )");
  microseconds(at);
  if (length >= 0) {
    sink_.append(R"(, "dur": )");
    microseconds(length);
  }
  sink_.append("\n  }");
}

}  // namespace commlens::simulate
