// Kineto texts at random: events as PyTorch writes them, and everything that can go wrong around
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace commlens {

class KinetoNoise {
 public:
  explicit KinetoNoise(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  // A whole trace, damaged or not.
  std::string document() {
    style_ = below(3);
    wild_ = one_in(2);
    shuffled_ = one_in(3);
    std::string text;
    if (one_in(20)) text += "\xEF\xBB\xBF";
    if (one_in(10)) text += blanks();
    if (one_in(6)) {
      text += events();
      if (one_in(3)) text += one_in(2) ? "\n" : " trailing {\"name\": \"x\"}";
    } else {
      text += '{';
      const auto metadata_in_front = below(4);
      for (std::uint64_t i = 0; i < metadata_in_front; ++i) text += member() + comma();
      text += quoted("traceEvents") + colon() + events();
      if (wild_ && one_in(4)) text += comma() + quoted("traceEvents") + colon() + events();
      const auto metadata_behind = below(4);
      for (std::uint64_t i = 0; i < metadata_behind; ++i) text += comma() + member();
      if (wild_ && one_in(6)) text += comma() + quoted("INFO") + colon() + events();
      text += line() + "}";
      if (one_in(5)) text += one_in(2) ? std::string("\n\n") : "," + event();
    }
    if (wild_ && one_in(4)) text.resize(below(text.size() + 1));
    if (wild_ && one_in(4)) damage(text);
    return text;
  }

  // One event; `shuffled` keys stand in an order of their own.
  std::string event() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return kernel();
      case 3: return memory();
      case 4: return launch();
      case 5: return record();
      case 6: return annotation();
      case 7: return step();
      case 8: return span();
      case 9: return metadata_event();
      default: return python();
    }
  }

  void set_style(std::uint64_t style, bool wild, bool shuffled) {
    style_ = style;
    wild_ = wild;
    shuffled_ = shuffled;
  }

 private:
  using Member = std::pair<std::string, std::string>;

  static std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }
  std::string line() { return style_ == 2 ? "" : "\n  "; }
  std::string colon() { return style_ == 2 ? ":" : ": "; }
  std::string comma() {
    if (wild_ && one_in(30)) return ",,";
    if (wild_ && one_in(60)) return "";
    if (wild_ && one_in(40)) return "," + blanks() + "," + line();
    return "," + line();
  }
  std::string blanks() { return std::string(below(one_in(4) ? 700 : 20), one_in(2) ? ' ' : '\n'); }
  std::string digits(std::uint64_t most) { return std::to_string(below(most)); }
  std::string time() { return digits(100'000) + "." + std::to_string(100 + below(900)); }

  // Text that looks like the start of an event, or the end of the list, inside a string.
  std::string bait() {
    static constexpr std::string_view kBaits[] = {R"({\"ph\": \"X\")",
                                                  R"({\"name\": \"y\"})",
                                                  "], ",
                                                  "]}",
                                                  "}, {",
                                                  R"(\\)",
                                                  R"(\")",
                                                  "[[[",
                                                  R"(\u007b\u0022)",
                                                  "plain",
                                                  "a]b"};
    return std::string(kBaits[below(std::size(kBaits))]);
  }
  // The same as a value.
  std::string bait_value() {
    static constexpr std::string_view kBaits[] = {
        R"({"name": "x", "ph": "X"})",
        R"([{"ph": "X", "cat": "kernel", "name": "inner", "ts": 5, "dur": 1, "args": {}}])",
        R"([1, 2], "deviceProperties": [3])",
        R"({"args": {"ts": [{"pid": 1}, {"tid": [[]]}]}})",
        R"([])",
        R"(NaN)",
        R"("{")",
        R"("],\"traceName\"")",
        R"({"ph": "X", "cat": "kernel", "name": "half)",
    };
    const std::uint64_t choices = std::size(kBaits) - (wild_ ? 0 : 1);
    if (wild_ && one_in(20)) {
      const auto depth = static_cast<std::size_t>(below(300));
      return std::string(depth, '[') + std::string(depth, ']');
    }
    return std::string(kBaits[below(choices)]);
  }

  std::string object(std::vector<Member> members) {
    if (one_in(wild_ ? 3 : 9)) {
      const auto at = static_cast<std::ptrdiff_t>(below(members.size() + 1));
      members.insert(members.begin() + at, {"extra", bait_value()});
    }
    if (one_in(20) && !members.empty()) members.push_back(members[below(members.size())]);
    if (shuffled_) std::shuffle(members.begin(), members.end(), random_);
    std::string text = "{";
    if (style_ != 2) text += "\n    ";
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) text += ',';
      if (i > 0 && style_ != 2) text += style_ == 1 || i % 4 == 0 ? "\n    " : " ";
      if (wild_ && one_in(200)) text += ',';
      std::string key = members[i].first;
      if (one_in(100)) key = "\\u00" + hex(key[0]) + key.substr(1);
      text += quoted(key) + colon();
      if (!(wild_ && one_in(300))) text += members[i].second;
    }
    return text + (style_ == 2 ? "}" : "\n  }");
  }
  static std::string hex(char c) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }

  std::vector<Member> head(std::string_view category, std::string_view name) {
    std::string spelled(name);
    if (wild_ && one_in(25)) spelled += one_in(2) ? "<\"unescaped\">" : "line\nbreak";
    if (one_in(10)) spelled += bait();
    return {{"ph", "\"X\""},
            {"cat", quoted(category)},
            {"name", quoted(spelled)},
            {"pid", digits(3)},
            {"tid", digits(5)},
            {"ts", one_in(60) ? "NaN" : time()},
            {"dur", one_in(60) ? "-1" : time()}};
  }
  std::string event_of(std::vector<Member> members, const std::vector<Member>& arguments) {
    members.emplace_back("args", object(arguments));
    return object(members);
  }
  std::vector<Member> collective() {
    static constexpr std::string_view kNames[] = {"allreduce", "_allgather_base", "wait",
                                                  "broadcast"};
    return {{"Collective name", quoted(kNames[below(4)])},
            {"dtype", one_in(2) ? "\"Float\"" : "\"BFloat16\""},
            {"In msg nelems", digits(5)},
            {"Out msg nelems", digits(5)},
            {"Group size", digits(4)},
            {"Process Group Name", quoted(digits(3))},
            {"Process Group Ranks", "\"[0, 1]\""}};
  }
  std::string kernel() {
    std::vector<Member> arguments = {
        {"External id", digits(20)}, {"device", digits(2)},       {"context", "1"},
        {"stream", digits(3)},       {"correlation", digits(50)}, {"grid", "[1, 1, 1]"}};
    if (one_in(2)) {
      const auto more = collective();
      arguments.insert(arguments.end(), more.begin(), more.end());
    }
    return event_of(head("kernel", "gemm_" + digits(40)), arguments);
  }
  std::string memory() {
    return event_of(head(one_in(2) ? "gpu_memcpy" : "gpu_memset", "Memcpy HtoD"),
                    {{"device", "0"}, {"stream", digits(3)}, {"bytes", digits(999)}});
  }
  std::string launch() {
    return event_of(head("cuda_runtime", one_in(3) ? "cudaEventQuery" : "cudaLaunchKernel"),
                    {{"cbid", "211"}, {"correlation", digits(50)}, {"External id", digits(20)}});
  }
  std::string record() {
    auto arguments = collective();
    arguments.emplace_back("External id", digits(20));
    return event_of(head("cpu_op", "record_param_comms"), arguments);
  }
  std::string annotation() {
    static constexpr std::string_view kNames[] = {"nccl:all_reduce", "gloo:broadcast", "forward ",
                                                  "aten::mm"};
    const std::string_view name = kNames[below(4)];
    return event_of(head(one_in(2) ? "user_annotation" : "cpu_op", name),
                    {{"External id", digits(20)}});
  }
  std::string step() {
    return event_of(
        head(one_in(2) ? "user_annotation" : "gpu_user_annotation", "ProfilerStep#" + digits(6)),
        {{"External id", digits(20)}});
  }
  std::string span() {
    auto members = head("Trace", "PyTorch Profiler (0)");
    if (one_in(5)) members.back().second = "100000000.5";
    return event_of(members, {{"Op count", "0"}});
  }
  std::string metadata_event() {
    return "{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":0,\"args\":{" +
           quoted("name") + colon() + quoted(bait()) + "}}";
  }
  std::string python() {
    return event_of(head("python_function", "<built-in " + digits(9) + ">"),
                    {{"Python id", digits(99)}, {"Python parent id", "null"}});
  }
  std::string stray() {
    static constexpr std::string_view kStrays[] = {"7",  "null", "\"text\"", "[1, {\"ph\": 2}]",
                                                   "]]", "}",    "nan:",     "\"{\\\"ph\\\"\"",
                                                   "{}", "{ }",  "\"",       "[[{\"name\": []}]]"};
    return std::string(kStrays[below(std::size(kStrays))]);
  }

  std::string events() {
    std::string text = "[";
    if (one_in(10)) text += blanks();
    if (wild_ && one_in(5)) text += std::string(below(300), ',');
    const auto count = below(40);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) text += comma();
      text += wild_ && one_in(20) ? stray() : event();
      if (one_in(40)) text += blanks();
    }
    if (wild_ && one_in(5)) text += one_in(2) ? "," : "," + blanks();
    return text + line() + "]";
  }

  std::string member() {
    switch (below(7)) {
      case 0: return quoted("schemaVersion") + colon() + "1";
      case 1: return quoted("baseTimeNanoseconds") + colon() + "1735632360000000" + digits(1000);
      case 2:
        return quoted("distributedInfo") + colon() +
               object({{"backend", one_in(4) ? "\"\"" : "\"nccl\""},
                       {"rank", one_in(4) ? "-1" : digits(4)},
                       {"world_size", digits(4)},
                       {"nccl_version", "\"2." + digits(30) + ".5\""},
                       {"pg_config", "[{\"pg_name\": \"" + digits(3) +
                                         "\", \"pg_size\": 2, \"ranks\": [0, 1]" +
                                         (wild_ && one_in(4) ? "" : "}") + "]"}});
      case 3: return quoted("deviceProperties") + colon() + "[" + object({{"id", "0"}}) + "]";
      case 4: return quoted("traceName") + colon() + quoted(bait());
      case 5: return quoted("host_name") + colon() + quoted("node" + digits(4));
      default: return quoted("other") + colon() + bait_value();
    }
  }

  // Some bytes are lost, doubled or others.
  void damage(std::string& text) {
    const auto count = 1 + below(4);
    for (std::uint64_t i = 0; i < count && !text.empty(); ++i) {
      const auto at = static_cast<std::size_t>(below(text.size()));
      static constexpr std::string_view kOthers = "\"\\{}[],:\n 0";
      switch (below(3)) {
        case 0: text.erase(at, 1 + below(3)); break;
        case 1: text.insert(at, 1, kOthers[below(kOthers.size())]); break;
        default: text[at] = kOthers[below(kOthers.size())];
      }
    }
  }

  std::mt19937_64 random_;
  std::uint64_t style_ = 0;
  bool wild_ = false;
  bool shuffled_ = false;
};

}  // namespace commlens
