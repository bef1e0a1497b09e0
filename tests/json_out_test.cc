#include "base/json_out.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace commlens {
namespace {

TEST(JsonOut, NestsWithCommasAndIndentation) {
  Sink sink;
  JsonOut json(sink);
  json.begin_object();
  json.key("a");
  json.value(1);
  json.key("b");
  json.begin_array();
  json.value(true);
  json.null();
  json.end_array();
  json.key("c");
  json.compact_next();
  json.begin_array();
  json.value(1);
  json.value(2);
  json.end_array();
  json.end_object();
  EXPECT_EQ(sink.text(), "{\n \"a\": 1,\n \"b\": [\n  true,\n  null\n ],\n \"c\": [1, 2]\n}\n");
}

TEST(JsonOut, WritesWhatJsonCannotHoldAsSomethingItCan) {
  Sink sink;
  JsonOut json(sink, 0);
  json.begin_array();
  json.value(std::nan(""));
  json.value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<std::int64_t>::min());
  json.value(std::numeric_limits<std::uint64_t>::max());
  json.value(0.1);
  json.end_array();
  EXPECT_EQ(sink.text(), "[null,null,-9223372036854775808,18446744073709551615,0.1]");
}

TEST(JsonOut, EscapesControlBytesAndReplacesInvalidUtf8) {
  Sink sink;
  append_json_string(sink, "a\"\\\n\x01\x7F\xC3\xA9\xFF\xE2\x82");
  EXPECT_EQ(sink.text(),
            "\"a\\\"\\\\\\n\\u0001\\u007f\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace commlens
