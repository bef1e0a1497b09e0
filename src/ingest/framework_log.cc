// Logs of training jobs, with what DeepSpeed's communication logger and Megatron's timers print
// into them. One log can hold both; all other lines are passed over.
#include "base/error.h"
#include "ingest/framework_deepspeed.h"
#include "ingest/framework_megatron.h"
#include "ingest/measured_format.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

// Both print milliseconds with two decimals at most.
constexpr Ns kResolution = 10'000;

// Without the codes that colour a terminal: they stand between words.
std::string without_colour(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1B' && i + 1 < line.size() && line[i + 1] == '[') {
      i = std::min(line.find_first_not_of("0123456789;", i + 2), line.size());
    } else {
      plain += line[i];
    }
  }
  return plain;
}

bool sniff(std::string_view head) {
  const std::string_view text = trimmed_text(head);
  // JSON: a log's line may begin with a bracket, but not so.
  if (text.starts_with('{') || text.starts_with("[{") || text.starts_with("[\n")) return false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    if (is_deepspeed_line(line) || is_megatron_line(line)) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

void read(Source& source, std::string_view head, Measured& measured) {
  measured.resolution = kResolution;
  DeepspeedReader deepspeed(measured);
  MegatronReader megatron(measured);
  const auto use = [&](std::string_view line, std::int64_t number) {
    if (!deepspeed.line(line, number)) megatron.line(line, number);
  };
  read_measured_lines(source, head, measured, [&](std::string_view line, std::int64_t number) {
    if (line.find('\x1B') == std::string_view::npos) return use(line, number);
    use(without_colour(line), number);
  });
  deepspeed.finish();
  if (measured.empty())
    throw Error(ErrorKind::input,
                source.name() +
                    ": holds no whole line of DeepSpeed's communication logger and none of "
                    "Megatron's timers");
}

}  // namespace

extern const MeasuredFormat kFrameworkLog;
constinit const MeasuredFormat kFrameworkLog{
    .name = "framework_log",
    .summary = "Logs with DeepSpeed's communication logger or Megatron's timers in them",
    .sniff = sniff,
    .read = read,
    .at_the_end = true,
};

}  // namespace commlens
