// Megatron's timers, in the forms of --timing-log-option and of the oldest versions, and its
// training lines:
//
//    iteration       30/ 1000000 | consumed samples: 120 | elapsed time per iteration (ms): 123.4 |
//    ...
//   (min, max) time across ranks (ms):
//       forward-backward ...............................: (1093.58, 1094.24)
//   max time across ranks (ms):
//       optimizer ......................................: 57.50
//   times across ranks (ms):
//     forward-backward:
//        rank  0: 1093.58
//   time (ms) | forward-compute: 105.94 | backward-compute: 155.04 |
//   backward-params-all-reduce: 40.91
//
// Values are milliseconds per iteration, by the host's clock between two synchronisations with the
// device. Timers contain each other. Some writers print "current/average": the first counts. Lines
// that begin with "[Rank 0] (after 20 iterations)" are of memory.
#include "ingest/framework_megatron.h"

#include <algorithm>

#include "base/decimal.h"
#include "ingest/measured_text.h"

namespace commlens {
namespace {

constexpr std::string_view kElapsed = "elapsed time per iteration (ms)";
constexpr std::string_view kOneLine = "time (ms) |";
constexpr std::string_view kAcross = "across ranks (ms):";
constexpr std::size_t kLongestName = 100;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '/' || c == '.';
         });
}

// "123.4" or "1460.8/1450.4".
std::string_view current(std::string_view text) {
  text = trimmed_text(text);
  return trimmed_text(text.substr(0, text.find('/')));
}

// Where "iteration 6/ 10" begins; nothing where it is none.
std::size_t iteration_at(std::string_view text) {
  for (std::size_t at = text.find("iteration "); at != std::string_view::npos;
       at = text.find("iteration ", at + 1)) {
    const std::size_t digit = text.find_first_not_of(' ', at + 10);
    const std::size_t behind = text.find_first_not_of("0123456789", digit);
    if (digit < text.size() && behind > digit && behind < text.size() && text[behind] == '/')
      return at;
  }
  return std::string_view::npos;
}

}  // namespace

bool is_megatron_line(std::string_view line) {
  if (line.find(kAcross) != std::string_view::npos) return true;
  if (line.find(kElapsed) != std::string_view::npos) return iteration_at(line) < line.size();
  const std::size_t at = line.find(kOneLine);
  return at != std::string_view::npos && line.find(": ", at) != std::string_view::npos;
}

bool MegatronReader::line(std::string_view text, std::int64_t number) {
  if (text.find(kElapsed) != std::string_view::npos && training(text, number)) {
    form_ = Form::none;
    return true;
  }
  if (text.find(kAcross) != std::string_view::npos) {
    form_ = text.find("(min, max) time") != std::string_view::npos ? Form::min_max
            : text.find("max time") != std::string_view::npos      ? Form::max
            : text.find("times across") != std::string_view::npos  ? Form::all
                                                                   : Form::none;
    name_.clear();
    ranks_begun_ = false;
    return true;
  }
  // A verbose line of DeepSpeed's communication logger holds "time (ms):", not this.
  if (const std::size_t at = text.find(kOneLine); at != std::string_view::npos) {
    one_line(text.substr(at + kOneLine.size()), number);
    return true;
  }
  if (form_ == Form::none) return false;
  return form_ == Form::all ? timer_of_rank(text, number) : timer(text, number);
}

void MegatronReader::add(MeasuredTimer timer) {
  ++measured_.records;
  timer.iteration = iteration_;
  measured_.timers.push_back(std::move(timer));
}

void MegatronReader::odd(std::int64_t number, std::string_view text) {
  measured_.notes.add(Note::odd_record, example_line(number, text));
}

bool MegatronReader::training(std::string_view text, std::int64_t number) {
  const std::size_t at = iteration_at(text);
  if (at == std::string_view::npos) return false;
  MeasuredIteration row{.where = number};
  const std::string_view counted = trimmed_text(text.substr(at + 10));
  const std::size_t slash = counted.find('/');
  row.iteration = parse_int(trimmed_text(counted.substr(0, slash))).value_or(-1);
  const std::string_view of = trimmed_text(counted.substr(slash + 1));
  row.of = parse_int(of.substr(0, of.find_first_not_of("0123456789"))).value_or(-1);
  text.remove_prefix(at);
  bool time_is_odd = false;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::string_view part = text.substr(0, bar);
    text.remove_prefix(std::min(bar + 1, text.size()));
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed_text(part.substr(0, colon));
    const std::string_view value = current(part.substr(colon + 1));
    if (key.ends_with(kElapsed)) {
      row.time = milliseconds_to_ns(value).value_or(-1);
      // The last part may be cut.
      time_is_odd = row.time < 0 && !text.empty();
    }
    if (key == "TFLOPs" || key.starts_with("throughput per GPU")) {
      const auto tflops = printed_number(value);
      if (tflops && *tflops >= 0) row.tflops_per_gpu = *tflops;
      if (!tflops || *tflops < 0) odd(number, trimmed_text(part));
    }
  }
  if (time_is_odd) {
    odd(number, counted);
    return true;
  }
  // A line that was cut before its time tells nothing.
  if (row.time < 0) {
    measured_.notes.add(Note::cut_log_line, example_line(number, counted));
    return true;
  }
  ++measured_.records;
  iteration_ = row.iteration;
  measured_.iterations.push_back(row);
  return true;
}

void MegatronReader::one_line(std::string_view text, std::int64_t number) {
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::size_t text_size = text.size();
    const std::string_view part = trimmed_text(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t colon = part.rfind(": ");
    const std::string_view name = part.substr(0, std::min(colon, part.size()));
    const auto time = colon == std::string_view::npos
                          ? std::nullopt
                          : milliseconds_to_ns(current(part.substr(colon + 2)));
    if (time && is_name(name)) {
      add({.name = std::string(name), .one = *time, .where = number});
    } else if (bar < text_size) {
      odd(number, part);
    } else {
      measured_.notes.add(Note::cut_log_line, example_line(number, part));
    }
  }
}

// "    forward-backward ....: (1093.58, 1094.24)", "    optimizer ....: 57.50"
bool MegatronReader::timer(std::string_view text, std::int64_t number) {
  const std::size_t colon = text.rfind(": ");
  if (colon == std::string_view::npos) return false;
  std::string_view name = text.substr(0, colon);
  const std::size_t dots = name.find_last_not_of('.') + 1;
  const bool padded = dots < name.size();
  name = trimmed_text(name.substr(0, dots));
  name.remove_prefix(std::min(name.find_last_of(" \t]") + 1, name.size()));
  std::string_view value = trimmed_text(text.substr(colon + 2));
  if (!is_name(name)) return false;
  if (form_ == Form::max) {
    const auto most = milliseconds_to_ns(current(value));
    if (!padded) return false;
    if (most) add({.name = std::string(name), .most = *most, .where = number});
    if (!most) odd(number, trimmed_text(text));
    return true;
  }
  const std::size_t comma = value.find(',');
  if (!value.starts_with('(') || !value.ends_with(')') || comma == std::string_view::npos) {
    if (padded) odd(number, trimmed_text(text));
    return padded;
  }
  const auto least = milliseconds_to_ns(trimmed_text(value.substr(1, comma - 1)));
  const auto most =
      milliseconds_to_ns(trimmed_text(value.substr(comma + 1, value.size() - comma - 2)));
  if (!least || !most || *most < *least) {
    odd(number, trimmed_text(text));
  } else {
    add({.name = std::string(name), .least = *least, .most = *most, .where = number});
  }
  return true;
}

bool MegatronReader::timer_of_rank(std::string_view text, std::int64_t number) {
  text = trimmed_text(text);
  const std::size_t at = text.find("rank ");
  const std::size_t colon = text.rfind(':');
  if (at != std::string_view::npos && colon != std::string_view::npos && colon > at) {
    const auto rank = parse_int(trimmed_text(text.substr(at + 5, colon - at - 5)));
    const std::string_view value = trimmed_text(text.substr(colon + 1));
    const auto time = milliseconds_to_ns(value);
    if (!rank || *rank < 0 || name_.empty()) return false;
    if (time) {
      time_of_rank(*rank, *time, number);
    } else if (value.find(' ') == std::string_view::npos) {
      odd(number, text);
    }
    return true;
  }
  if (!text.ends_with(':')) return false;
  text.remove_suffix(1);
  text.remove_prefix(std::min(text.find_last_of(" \t]") + 1, text.size()));
  if (!is_name(text)) return false;
  name_ = text;
  ranks_begun_ = false;
  return true;
}

// All ranks of a list are one timer.
void MegatronReader::time_of_rank(std::int64_t rank, Ns time, std::int64_t number) {
  if (!ranks_begun_) {
    add({.name = name_, .slowest = rank, .least = time, .most = time, .where = number});
    ranks_begun_ = true;
    return;
  }
  MeasuredTimer& timer = measured_.timers.back();
  timer.least = std::min(timer.least, time);
  if (time == timer.most) timer.slowest = -1;
  if (time <= timer.most) return;
  timer.most = time;
  timer.slowest = rank;
}

}  // namespace commlens
