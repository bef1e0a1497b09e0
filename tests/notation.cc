#include "notation.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "base/decimal.h"
#include "model/bandwidth.h"
#include "model/builder.h"
#include "model/rank_list.h"

namespace commlens::notation {
namespace {

[[noreturn]] void fail(std::string_view what) {
  throw std::runtime_error("notation: \"" + std::string(what) + "\" is not understood");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(separator), text.size());
    if (at > 0) parts.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

std::int64_t whole(std::string_view text) {
  const auto value = parse_int(text);
  if (!value) fail(text);
  return *value;
}

// "12", "1.5us", "2ms", "3s".
Ns time_of(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.-");
  if (unit_at == std::string_view::npos) return whole(text);
  const std::string_view unit = text.substr(unit_at);
  const std::string number(text.substr(0, unit_at));
  const std::string_view exponent = unit == "us"   ? "e0"
                                    : unit == "ms" ? "e3"
                                    : unit == "s"  ? "e6"
                                                   : "?";
  const auto value = microseconds_to_ns(number + std::string(exponent));
  if (!value) fail(text);
  return *value;
}

// "[1,2)" or "[5]".
Interval interval_of(std::string_view text) {
  if (text.size() < 3) fail(text);
  const auto ends = split(text.substr(1, text.size() - 2), ',');
  if (ends.empty() || ends.size() > 2) fail(text);
  return {time_of(ends.front()), time_of(ends.back())};
}

std::int64_t bytes_of(std::string_view text) {
  const std::size_t unit =
      text.empty() ? std::string_view::npos : std::string_view("KMG").find(text.back());
  if (unit == std::string_view::npos) return whole(text);
  return whole(text.substr(0, text.size() - 1)) << (10 * (unit + 1));
}

std::string_view kernel_name_of(Op op) {
  switch (op) {
    case Op::all_reduce:
      return "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    case Op::all_gather: return "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    case Op::reduce_scatter:
      return "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    case Op::broadcast: return "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    case Op::reduce:
      return "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    default: return "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  }
}

std::string collective_name_of(Op op) {
  switch (op) {
    case Op::all_reduce: return "allreduce";
    case Op::all_gather: return "_allgather_base";
    case Op::reduce_scatter: return "_reduce_scatter_base";
    default: return std::string(op_name(op));
  }
}

struct Statement {
  std::string_view word;
  std::int64_t number = 0;  // behind a #
  std::vector<std::int64_t> place;
  std::vector<Interval> times;
  std::map<std::string_view, std::string_view> more;
};

Statement statement_of(std::string_view text) {
  Statement s;
  for (const std::string_view part : split(text, ' ')) {
    if (s.word.empty()) {
      const auto at = split(part, '@');
      const auto hash = split(at[0], '#');
      s.word = hash[0];
      if (hash.size() > 1) s.number = whole(hash[1]);
      if (at.size() > 1)
        for (const std::string_view level : split(at[1], '/')) s.place.push_back(whole(level));
    } else if (part[0] == '[') {
      s.times.push_back(interval_of(part));
    } else {
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) fail(part);
      s.more[part.substr(0, equals)] = part.substr(equals + 1);
    }
  }
  return s;
}

std::string_view more(const Statement& s, std::string_view key) {
  const auto found = s.more.find(key);
  return found == s.more.end() ? std::string_view() : found->second;
}

std::uint64_t id_of(const Statement& s, std::string_view key) {
  const std::string_view text = more(s, key);
  return text.empty() ? 0 : static_cast<std::uint64_t>(whole(text));
}

// "0,1" as Kineto prints a list.
std::string list_of(const Statement& s, std::string_view key) {
  std::string list;
  if (more(s, key).empty()) return list;
  for (const std::string_view element : split(more(s, key), ','))
    list += (list.empty() ? "[" : ", ") + std::string(element);
  return list + "]";
}

void add_call(const Statement& s, Collective& c) {
  const auto number = [&s](std::string_view key, std::int64_t absent) {
    return more(s, key).empty() ? absent : whole(more(s, key));
  };
  c.start = number("start", kUnknown);
  c.stride = number("stride", kUnknown);
  c.splits = list_of(s, "split");
  const bool zero = c.splits.find("[0,") == 0 || c.splits.find(" 0") != std::string::npos;
  const bool other = c.splits.find_first_of("123456789") != std::string::npos;
  c.call = {.comms_id = id_of(s, "comms_id"),
            .seq = number("seq", kUnknown),
            .rank = static_cast<std::int32_t>(number("rank", -1)),
            .source = static_cast<std::int32_t>(number("src", -1)),
            .destination = static_cast<std::int32_t>(number("dst", -1)),
            .zero_split = (zero && other) || c.splits.find("...") != std::string::npos};
}

std::optional<Collective> collective_of(const Statement& s, std::optional<Op> op) {
  const std::string_view name = more(s, "op");
  if (name.empty() && !op) return std::nullopt;
  if (name.empty() && more(s, "bytes").empty() && more(s, "n").empty() &&
      more(s, "group").empty() && more(s, "ranks").empty())
    return std::nullopt;
  Collective c;
  c.name = name.empty() ? collective_name_of(*op) : std::string(name);
  if (const auto named = op_from_collective_name(c.name)) op = named;
  if (const auto n = more(s, "n"); !n.empty()) c.group_size = whole(n);
  c.group = more(s, "group");
  c.ranks = list_of(s, "ranks");
  add_call(s, c);
  if (const auto bytes = more(s, "bytes"); !bytes.empty()) {
    c.in_elements = c.out_elements = bytes_of(bytes);
    const std::int64_t parts = std::max<std::int64_t>(1, c.group_size);
    if (op == Op::all_gather) c.in_elements /= parts;
    if (op == Op::reduce_scatter) c.out_elements /= parts;
  }
  return c;
}

Stream stream_of(const Statement& s) {
  Stream stream{0, 1, 7};
  if (s.place.empty()) return stream;
  stream.stream = s.place.back();
  if (s.place.size() > 1) stream.device = s.place[0];
  if (s.place.size() > 2) stream.context = s.place[1];
  return stream;
}

void add_activity(const Statement& s, Situation& out) {
  Activity a;
  const std::optional<Op> op = op_from_name(s.word);
  if (s.word == "memcpy" || s.word == "memset") {
    a.kind = s.word == "memcpy" ? ActivityKind::memcpy : ActivityKind::memset;
    a.kind_of_work = ActivityClass::memory;
    a.name = s.word == "memcpy" ? "Memcpy DtoD (Device -> Device)" : "Memset (Device)";
  } else if (s.word == "compute") {
    a.name = "gemm_kernel";
  } else if (op) {
    a.kind_of_work = ActivityClass::communication;
    a.op = *op;
    a.name = kernel_name_of(*op);
  } else {
    fail(s.word);
  }
  if (const auto name = more(s, "name"); !name.empty()) a.name = name;
  a.stream = stream_of(s);
  a.correlation = id_of(s, "corr");
  a.external_id = id_of(s, "id");
  a.meta = collective_of(s, op);
  for (const Interval time : s.times) {
    a.time = time;
    out.activities.push_back(a);
  }
}

void add_statement(const Statement& s, Situation& out) {
  const std::int64_t thread = s.place.empty() ? 1 : s.place.back();
  if (s.word == "step" || s.word == "gpu_step") {
    for (const Interval time : s.times) out.steps.push_back({s.number, time, s.word == "gpu_step"});
  } else if (s.word == "launch") {
    for (const Interval time : s.times)
      out.launches.push_back({id_of(s, "corr"), time.start, thread});
  } else if (s.word == "record" || s.word == "range") {
    for (const Interval time : s.times) {
      out.host.push_back({.kind = s.word == "record" ? HostRangeKind::collective_record
                                                     : HostRangeKind::annotation,
                          .time = time,
                          .thread = thread,
                          .name = std::string(more(s, "name")),
                          .external_id = id_of(s, "id"),
                          .meta = s.word == "record" ? collective_of(s, {}) : std::nullopt});
    }
  } else {
    add_activity(s, out);
  }
}

template <class Change>
Situation changed(Situation s, Change change) {
  const auto both = [&change](Interval& time) { time = {change(time.start), change(time.end)}; };
  for (Activity& activity : s.activities) both(activity.time);
  for (Launch& launch : s.launches) launch.at = change(launch.at);
  for (Host& host : s.host) both(host.time);
  for (Step& step : s.steps) both(step.time);
  return s;
}

Interval on_clock(const Situation& s, Interval time) { return s.window(time.start, time.end); }

MetaId add_meta(TraceBuilder& builder, const std::optional<Collective>& c) {
  if (!c || !op_from_collective_name(c->name)) return {};
  const auto text = [&builder](const std::string& t) {
    return t.empty() ? StringId::none() : builder.intern(t);
  };
  return builder.add_meta({.collective = builder.intern(c->name),
                           .dtype = builder.intern(c->dtype),
                           .in_elements = c->in_elements,
                           .out_elements = c->out_elements,
                           .group_size = c->group_size,
                           .group_name = text(c->group),
                           .group_description = text(c->description),
                           .group_ranks = text(c->ranks),
                           .group_start = c->start,
                           .group_stride = c->stride});
}

CallKey call_of(const std::optional<Collective>& c) { return c ? c->call : CallKey{}; }

}  // namespace

Situation situation(std::string_view text) {
  Situation result;
  for (const std::string_view part : split(text, ';')) {
    const Statement s = statement_of(part);
    if (!s.word.empty()) add_statement(s, result);
  }
  return result;
}

Situation scaled(Situation s, Ns factor) {
  return changed(std::move(s), [factor](Ns time) { return time * factor; });
}

Situation moved(Situation s, Ns shift) {
  return changed(std::move(s), [shift](Ns time) { return time + shift; });
}

Recording recording(const Situation& s, std::string_view path) {
  TraceBuilder builder(path, "notation");
  Recording& about = builder.about();
  about.rank = s.rank;
  about.world_size = s.world_size;
  about.clock_base = kBase;
  about.clock = ClockBase::epoch;
  about.process = s.process;
  for (const Activity& a : s.activities) {
    const Interval time = on_clock(s, a.time);
    builder.add_activity({.kind = a.kind,
                          .start = time.start,
                          .end = time.end,
                          .name = a.name,
                          .stream = a.stream,
                          .correlation = a.correlation,
                          .external_id = a.external_id,
                          .meta = add_meta(builder, a.meta),
                          .call = call_of(a.meta)});
  }
  for (const Launch& launch : s.launches)
    builder.add_launch(launch.correlation, launch.at + s.origin,
                       builder.thread(s.process, launch.thread));
  for (const Host& host : s.host) {
    const Interval time = on_clock(s, host.time);
    HostRange range{.start = time.start,
                    .end = time.end,
                    .thread = builder.thread(s.process, host.thread),
                    .name = {},
                    .backend = {},
                    .meta = add_meta(builder, host.meta),
                    .external_id = host.external_id,
                    .kind = host.kind};
    if (host.kind == HostRangeKind::annotation) {
      const std::size_t colon = host.name.find(':');
      range.backend = builder.intern(host.name.substr(0, colon));
      range.name = builder.intern(host.name.substr(colon + 1));
    }
    if (host.kind == HostRangeKind::collective_record && host.meta && !range.meta.valid())
      continue;  // "wait" and "init"
    builder.add_host_range(range, call_of(host.meta));
  }
  for (const Step& step : s.steps)
    builder.add_step(step.number, on_clock(s, step.time), step.on_gpu);
  about.events = static_cast<std::int64_t>(s.activities.size() + s.launches.size() + s.host.size() +
                                           s.steps.size());
  return builder.finish();
}

DeviceTimeline device_timeline(const Situation& s, std::int64_t device) {
  RankTimeline rank = rank_timeline(s);
  for (DeviceTimeline& timeline : rank.devices) {
    if (timeline.device == device) return std::move(timeline);
  }
  fail("no such device");
}

RankTimeline rank_timeline(const Situation& s, std::int64_t rank) {
  RankTimeline result;
  result.rank = rank;
  result.recording = recording(s);
  const Recording& about = result.recording;
  std::set<std::int64_t> devices;
  for (const Activity& a : s.activities) devices.insert(a.stream.device);
  for (const std::int64_t device : devices) {
    DeviceTimeline timeline;
    timeline.device = device;
    std::vector<Interval> all;
    std::vector<Interval> compute;
    std::vector<Interval> memory;
    for (std::size_t i = 0; i < s.activities.size(); ++i) {
      const Activity& a = s.activities[i];
      if (a.stream.device != device) continue;
      const Interval time = about.gpu.interval(i);
      all.push_back(time);
      timeline.starts.push_back(time.start);
      if (a.kind_of_work == ActivityClass::compute) compute.push_back(time);
      if (a.kind_of_work == ActivityClass::memory) memory.push_back(time);
      if (a.kind_of_work != ActivityClass::communication) continue;
      CommOp op{.time = time,
                .source = i,
                .stream = about.gpu.stream[i],
                .name = about.gpu.name[i],
                .dtype = {},
                .op = a.op,
                .evidence = a.meta ? Evidence::metadata : Evidence::kernel_name,
                .bytes = {}};
      if (a.meta) {
        op.dtype = about.metas[about.gpu.meta[i].index()].dtype;
        op.group_size = a.meta->group_size;
        op.bytes = message_bytes(op.op, a.meta->in_elements, a.meta->out_elements,
                                 element_bytes(a.meta->dtype).value_or(0));
        const std::vector<int> ranks = parse_rank_list(a.meta->ranks);
        GroupIdentity group{a.meta->group, a.meta->description,
                            std::max(a.meta->group_size, static_cast<std::int64_t>(ranks.size())),
                            ranks};
        if (!(group == GroupIdentity{})) {
          auto found = std::find(result.groups.begin(), result.groups.end(), group);
          if (found == result.groups.end())
            found = result.groups.insert(result.groups.end(), std::move(group));
          op.group = static_cast<std::int32_t>(found - result.groups.begin());
        }
      }
      ++result.evidence[static_cast<std::size_t>(op.evidence)];
      timeline.comm.push_back(op);
    }
    timeline.compute = IntervalSet(std::move(compute));
    timeline.memory = IntervalSet(std::move(memory));
    std::sort(timeline.comm.begin(), timeline.comm.end(),
              [&about](const CommOp& a, const CommOp& b) {
                return std::tuple(a.time.start, about.streams[a.stream.index()], a.source) <
                       std::tuple(b.time.start, about.streams[b.stream.index()], b.source);
              });
    std::sort(timeline.starts.begin(), timeline.starts.end());
    timeline.extent = all.front();
    for (const Interval time : all)
      timeline.extent = {std::min(timeline.extent.start, time.start),
                         std::max(timeline.extent.end, time.end)};
    result.devices.push_back(std::move(timeline));
  }
  for (const Activity& a : s.activities) result.classes.push_back(a.kind_of_work);
  return result;
}

// ---------------------------------------------------------------------------------------------
// Kineto text

namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;  // key, value as JSON

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string microseconds(Ns ns) {
  const std::string digits = std::to_string(std::abs(ns) % 1000);
  return (ns < 0 ? "-" : "") + std::to_string(std::abs(ns) / 1000) + "." +
         std::string(3 - digits.size(), '0') + digits;
}

class KinetoText {
 public:
  KinetoText(const Situation& s, const KinetoLayout& layout)
      : s_(s), layout_(layout), random_(layout.shuffle) {}

  std::string run() {
    add_events();
    std::string events = "[" + line(1);
    for (std::size_t i = 0; i < events_.size(); ++i)
      events += (i > 0 ? "," + line(1) : "") + events_[i];
    events += line(0) + "]";
    if (layout_.bare_array) return events + "\n";
    Fields top = {{"schemaVersion", "1"}, {"deviceProperties", "[{\"id\": 0, \"name\": \"X\"}]"}};
    Fields base = {{"displayTimeUnit", "\"ms\""}};
    if (layout_.clock == Clock::base)
      base.emplace_back("baseTimeNanoseconds", std::to_string(kBase));
    if (s_.rank) {
      top.emplace_back("distributedInfo",
                       "{\"backend\": \"nccl\", \"rank\": " + std::to_string(*s_.rank) +
                           ", \"world_size\": " + std::to_string(s_.world_size) + "}");
    }
    if (!layout_.base_last) top.insert(top.end(), base.begin(), base.end());
    top.emplace_back("traceEvents", events);
    if (layout_.base_last) top.insert(top.end(), base.begin(), base.end());
    top.emplace_back("traceName", "\"rank.json\"");
    shuffle(top);
    std::string text = "{" + line(0);
    for (std::size_t i = 0; i < top.size(); ++i)
      text += (i > 0 ? "," + line(0) : "") + quoted(top[i].first) + colon() + top[i].second;
    return text + line(0) + "}\n";
  }

 private:
  void add_events() {
    for (const Activity& a : s_.activities) add_activity(a);
    for (const Launch& launch : s_.launches) {
      add({{"cat", "\"cuda_runtime\""}, {"name", "\"cudaLaunchKernel\""}},
          {std::to_string(s_.process), std::to_string(launch.thread)}, {launch.at, launch.at + 1},
          {{"cbid", "211"}, {"correlation", std::to_string(launch.correlation)}});
    }
    for (const Host& host : s_.host) {
      Fields args;
      if (host.external_id != 0) args.emplace_back("External id", std::to_string(host.external_id));
      add_collective(host.meta, args);
      const bool record = host.kind == HostRangeKind::collective_record;
      add({{"cat", record ? "\"cpu_op\"" : "\"user_annotation\""},
           {"name", record ? "\"record_param_comms\"" : quoted(host.name)}},
          {std::to_string(s_.process), std::to_string(host.thread)}, host.time, args);
    }
    for (const Step& step : s_.steps) {
      add({{"cat", step.on_gpu ? "\"gpu_user_annotation\"" : "\"user_annotation\""},
           {"name", quoted("ProfilerStep#" + std::to_string(step.number))}},
          {step.on_gpu ? "0" : std::to_string(s_.process), step.on_gpu ? "7" : "1"}, step.time,
          {{"External id", "3"}});
    }
  }

  void add_activity(const Activity& a) {
    Fields args;
    if (a.external_id != 0) args.emplace_back("External id", std::to_string(a.external_id));
    args.emplace_back("device", std::to_string(a.stream.device));
    args.emplace_back("context", std::to_string(a.stream.context));
    args.emplace_back("stream", std::to_string(a.stream.stream));
    if (a.correlation != 0) args.emplace_back("correlation", std::to_string(a.correlation));
    if (a.kind == ActivityKind::kernel) args.emplace_back("grid", "[1, 2, 3]");
    add_collective(a.meta, args);
    const std::string_view cat = a.kind == ActivityKind::kernel   ? "\"kernel\""
                                 : a.kind == ActivityKind::memcpy ? "\"gpu_memcpy\""
                                                                  : "\"gpu_memset\"";
    add({{"cat", std::string(cat)}, {"name", quoted(a.name)}},
        {std::to_string(a.stream.device), std::to_string(a.stream.stream)}, a.time, args);
  }

  static void add_collective(const std::optional<Collective>& c, Fields& args) {
    if (!c) return;
    args.emplace_back("Collective name", quoted(c->name));
    args.emplace_back("dtype", quoted(c->dtype));
    if (c->in_elements != kUnknown)
      args.emplace_back("In msg nelems", std::to_string(c->in_elements));
    if (c->out_elements != kUnknown)
      args.emplace_back("Out msg nelems", std::to_string(c->out_elements));
    if (c->group_size != 0) args.emplace_back("Group size", std::to_string(c->group_size));
    if (!c->group.empty()) args.emplace_back("Process Group Name", quoted(c->group));
    if (!c->description.empty())
      args.emplace_back("Process Group Description", quoted(c->description));
    if (!c->ranks.empty()) args.emplace_back("Process Group Ranks", quoted(c->ranks));
    const auto number = [&args](std::string_view key, std::int64_t value) {
      if (value >= 0) args.emplace_back(key, std::to_string(value));
    };
    number("Global rank start", c->start);
    number("Global rank stride", c->stride);
    number("Seq", c->call.seq);
    number("Rank", c->call.rank);
    number("Src Rank", c->call.source);
    number("Dst Rank", c->call.destination);
    if (c->call.comms_id != 0) args.emplace_back("Comms Id", std::to_string(c->call.comms_id));
    if (c->splits.empty()) return;
    args.emplace_back("In split size", quoted(c->splits));
    args.emplace_back("Out split size", quoted(c->splits));
  }

  void add(Fields fields, std::pair<std::string, std::string> lane, Interval time, Fields args) {
    const Ns origin = s_.origin + (layout_.clock == Clock::absolute ? kBase : 0);
    fields.insert(fields.begin(), {"ph", "\"X\""});
    fields.emplace_back("pid", lane.first);
    fields.emplace_back("tid", lane.second);
    fields.emplace_back("ts", microseconds(time.start + origin));
    fields.emplace_back("dur", microseconds(time.end - time.start));
    shuffle(args);
    fields.emplace_back("args", object(args, 3));
    shuffle(fields);
    events_.push_back(object(fields, 2));
  }

  std::string object(const Fields& fields, int depth) const {
    std::string text = "{" + line(depth);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      text += quoted(fields[i].first) + colon() + fields[i].second;
      if (i + 1 == fields.size()) break;
      // Kineto breaks its lines behind every third key or so.
      text += layout_.style == Style::classic && i % 3 != 2 ? ", " : "," + line(depth);
    }
    return text + line(depth - 1) + "}";
  }

  std::string line(int depth) const {
    return layout_.style == Style::compact
               ? ""
               : "\n" + std::string(static_cast<std::size_t>(2 * depth), ' ');
  }
  std::string colon() const { return layout_.style == Style::compact ? ":" : ": "; }
  void shuffle(Fields& fields) {
    if (layout_.shuffle != 0) std::shuffle(fields.begin(), fields.end(), random_);
  }

  const Situation& s_;
  const KinetoLayout& layout_;
  std::mt19937_64 random_;
  std::vector<std::string> events_;
};

}  // namespace

std::string kineto_text(const Situation& s, const KinetoLayout& layout) {
  return KinetoText(s, layout).run();
}

}  // namespace commlens::notation
