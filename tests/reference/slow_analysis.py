#!/usr/bin/env python3
"""The second method: a slow, obvious calculation of what `commlens analyze` must print for a Kineto trace.

It exists to disagree with the program. So it shares no idea with it: the whole file is one Python object, every time
is an exact fraction before it becomes an integer, time is painted onto a strip (every stretch
between two neighbouring starts or ends is one cell), and every figure is a count of painted cells.

    slow_analysis.py FILE...          one JSON object (a list for several files)
    slow_analysis.py --brief FILE     without the list of events
    slow_analysis.py --check-corpus   the six figures against the table in the corpus' README.md (COMMLENS_CORPUS)

Definitions: shared/methods.md sections 1-5, shared/formats/kineto-trace.md. Where those leave a choice open, the
choice is at the place, marked CHOICE. What it does not do: repair broken JSON, match ranks, align clocks.
"""
import argparse
import bisect
import gzip
import json
import os
import re
import subprocess
import sys
import zlib
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))

# ---------------------------------------------------------------------------------------------------------- reading


class Unusable(Exception):
    """The file is no trace that this method can read."""


def corpus_folder():
    return os.environ.get("COMMLENS_CORPUS", os.path.join(PROJECT, "..", "shared", "corpus"))


def read_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)                                    # all members
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=True).stdout
    return data


def load(path):
    """The trace as (top-level object, its events). Numbers with a point stay text, so that no digit is lost."""
    try:
        text = read_bytes(path).decode("utf-8-sig", "replace")
        top = json.loads(text, parse_float=str, parse_constant=lambda word: None, strict=False)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, subprocess.SubprocessError) as e:
        raise Unusable(f"{path}: {e}") from e
    if isinstance(top, list):
        top = {"traceEvents": top}
    if not isinstance(top, dict) or not isinstance(top.get("traceEvents"), list):
        raise Unusable(f"{path}: no traceEvents")
    return top, [e for e in top["traceEvents"] if isinstance(e, dict)]


def exact(value):
    """The number behind a JSON number or a string that holds one; None if there is none."""
    if isinstance(value, bool) or value is None:
        return None
    exponent = re.search(r"[eE]([+-]?\d+)\s*$", str(value))
    if exponent and abs(int(exponent.group(1)[:9])) > 400:         # 1e999999999 would fill the memory
        return None
    try:
        return Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError):
        return None


def whole(value):
    number = exact(value)
    return int(number) if number is not None and number.denominator == 1 else None


def to_ns(microseconds):
    """Nearest nanosecond, halves away from zero."""
    ns = abs(microseconds) * 1000
    rounded = (2 * ns.numerator + ns.denominator) // (2 * ns.denominator)
    return rounded if microseconds >= 0 else -rounded


CATEGORY = {"kernel": "kernel", "gpu_memcpy": "memcpy", "memcpy": "memcpy", "gpu_memset": "memset", "memset": "memset",
            "cuda_runtime": "launch", "cuda_driver": "launch", "runtime": "launch", "xpu_runtime": "launch",
            "xpu_driver": "launch", "mtia_runtime": "launch", "privateuse1_runtime": "launch",
            "privateuse1_driver": "launch", "cpu_op": "cpu_op", "operator": "cpu_op",
            "user_annotation": "annotation", "user": "annotation", "gpu_user_annotation": "gpu_annotation",
            "trace": "span"}


class Event:
    """One ph-X event: times in ns, end exclusive."""

    def __init__(self, index, kind, json_event, start, length):
        self.index, self.kind = index, kind
        self.name = str(json_event.get("name", ""))
        self.pid, self.tid = json_event.get("pid"), json_event.get("tid")
        args = json_event.get("args")
        self.args = args if isinstance(args, dict) else {}
        self.start, self.end = start, start + max(0, length)
        self.backwards = length < 0

    @property
    def thread(self):
        return str(self.pid), str(self.tid)

    @property
    def device(self):
        for value in (self.args.get("device"), self.pid, self.args.get("inDevice")):
            if whole(value) is not None:
                return whole(value)
        return None

    @property
    def stream(self):
        for value in (self.args.get("stream"), self.tid):
            if whole(value) is not None:
                return whole(value)
            if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]+", value):
                return int(value, 16)
            digits = re.fullmatch(r"stream (-?\d+)\s*", str(value))
            if digits:
                return int(digits.group(1))
        return 0


INT64 = range(-2**63, 2**63)


def read_events(top, json_events):
    """(events, dropped), where dropped counts GPU events without a usable time by reason."""
    base = whole(top.get("baseTimeNanoseconds")) or 0
    events, dropped = [], {}
    for index, e in enumerate(json_events):
        kind = CATEGORY.get(str(e.get("cat", "")).lower())
        if kind is None or e.get("ph") != "X":
            continue
        ts, dur = exact(e.get("ts")), exact(e.get("dur"))
        if ts is None or (ts == 0 and kind in GPU) or base + to_ns(ts) not in INT64:
            reason = "no usable ts" if ts is None else "ts is 0" if ts == 0 else "ts beyond 64 bits"
            if kind in GPU:
                dropped[reason] = dropped.get(reason, 0) + 1
            continue
        events.append(Event(index, kind, e, base + to_ns(ts), 0 if dur is None else to_ns(dur)))
    return repair_times(events, dropped), dropped


GPU = ("kernel", "memcpy", "memset")


def repair_times(events, dropped):
    """Clips GPU events longer than the whole recording, drops those that start an hour before it."""
    spans = [e for e in events if e.kind == "span" and e.end > e.start]
    if not spans:
        return events
    first, last = min(e.start for e in spans), max(e.end for e in spans)
    kept = []
    for e in events:
        if e.kind in GPU and e.start < first - 3600 * 10**9:
            dropped["an hour before the recording"] = dropped.get("an hour before the recording", 0) + 1
            continue
        if e.kind in GPU and e.end - e.start > last - first:      # CHOICE: "absurd" is longer than the recording
            e.end = max(e.start, last)
            e.clipped = True
        kept.append(e)
    return kept


# --------------------------------------------------------------------------------------------------- classification


def without_arguments(name):
    """A kernel's name without `void `, `<...>` and its arguments."""
    name = re.sub(r"^void ", "", name)
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}")
    out, depth = "", 0
    for c in name:
        if c == "<":
            depth += 1
        elif c == ">" and depth:
            depth -= 1
        elif depth == 0:
            if c == "(":
                break
            out += c
    return out.strip()


NCCL_FUNCTIONS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "AllGatherV": "all_gather",
                  "ReduceScatter": "reduce_scatter", "Reduce": "reduce", "Broadcast": "broadcast",
                  "SendRecv": "send_recv", "AllToAllPivot": "all_to_all"}
WORDS = [("all_?reduce", "all_reduce"), ("all_?gather", "all_gather"), ("reduce_?scatter", "reduce_scatter"),
         ("all_?to_?all|a2a", "all_to_all"), ("broadcast", "broadcast"), ("barrier", "barrier"), ("put|get", "put_get"),
         ("send", "send"), ("recv", "recv")]


def by_words(name):
    for pattern, op in WORDS:
        if re.search(pattern, name, re.I):
            return op
    return "unknown"


def op_by_name(full_name):
    """The op that a kernel's name shows, "unknown" for communication without a shown op, None for compute."""
    n = without_arguments(full_name)
    m = re.match(r"ncclSymk?DevKernel_(AllReduce|AllGather|ReduceScatter)_", n)
    if m:
        return NCCL_FUNCTIONS[m.group(1)]
    m = re.match(r"ncclDevKernel_(AllReduce|ReduceScatter|Reduce|AllGatherV|AllGather|Broadcast|SendRecv)(_|$)", n)
    if m:
        return NCCL_FUNCTIONS[m.group(1)]
    m = re.match(r"ncclKernel_(AllReduce|AllGather|ReduceScatter|Reduce|Broadcast|SendRecv|AllToAllPivot)_", n)
    if m:                              # the old SendRecv kernel is the generic entry as well: its name proves nothing
        return "unknown" if m.group(1) == "SendRecv" else NCCL_FUNCTIONS[m.group(1)]
    m = re.match(r"nccl(AllReduce|AllGather|ReduceScatter|Reduce|Broadcast|SendRecv)\w*Kernel_", n)
    if m:
        return NCCL_FUNCTIONS[m.group(1)]
    if re.search(r"deep_ep::.*get_dispatch_layout", n):
        return None
    if re.search(r"deep_ep::.*(notify|clean|barrier)", n):
        return "unknown"
    if re.search(r"deep_ep::.*dispatch|moeA2ADispatch|EpDispatch\w*Kernel|nccl_ep_.*dispatch", n):
        return "moe_dispatch"
    if re.search(r"deep_ep::.*combine|moeA2ACombine|EpCombine\w*Kernel|nccl_ep_.*combine", n):
        return "moe_combine"
    if re.search(r"cross_device_reduce_(1stage|2stage|half_butterfly)|allreduce_prototype_|quickreduce", n):
        return "all_reduce"
    if re.search(r"allreduce_fusion_kernel_|(one|two)[sS]hot.*[aA]ll_?[rR]educe|(one|two)_shot_all_?reduce|"
                 r"multimem.*all_reduce|multimem_one_shot_reduce", n) or re.search(r"lamport.*all_?reduce", n, re.I):
        return "all_reduce"
    if re.search(r"multimem_all_gather", n):
        return "all_gather"
    if re.search(r"nvshmem|userbuffers_|ubx_kernel_", n, re.I):
        return by_words(n)
    if re.match(r"nccl|mscclKernel_", n) or re.search(r"mscclpp|oneRankReduce|deep_ep::", n):
        return "unknown"
    return None


def op_by_collective(name):
    """The op behind a "Collective name" or the name of a range; None where it is no communication."""
    n = re.sub(r"^nccl:", "", name)
    if re.match(r"send( |$)", n):
        return "send"
    if re.match(r"recv( |$)", n):
        return "recv"
    n = n.lstrip("_")
    n = re.sub(r"(_tensor)?_coalesced$|_into_tensor$|_tensor$|_base$|_oop$|_sparse$", "", n)
    n = re.sub(r"_into_tensor$|_tensor$", "", n)
    n = {"allreduce": "all_reduce", "allgather": "all_gather", "all_to_allv": "all_to_all", "alltoall": "all_to_all",
         "all_reduce_barrier": "barrier"}.get(n, n)
    known = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
             "barrier")
    return n if n in known else None


def is_communication(event):
    """CHOICE: collective metadata on the kernel itself is enough; copies are memory whatever launched them."""
    if event.kind != "kernel":
        return False
    return op_by_name(event.name) is not None or op_by_collective(str(event.args.get("Collective name", ""))) is not None


# --------------------------------------------------------------------------------------------------------- evidence


def id_of(event, key):
    return whole(event.args.get(key))


class Host:
    """What the host's side of one file says about the kernels."""

    def __init__(self, events):
        self.launches = [e for e in events if e.kind == "launch"]
        self.records = [e for e in events if e.kind == "cpu_op" and e.name == "record_param_comms"]
        self.ranges = self.records + [e for e in events if e.kind == "annotation" and e.name.startswith("nccl:")]
        kernels = [e for e in events if e.kind == "kernel"]
        echoed = [k for k in kernels if id_of(k, "External id") is not None
                  and id_of(k, "External id") == id_of(k, "correlation")]
        self.external_ids_lie = 2 * len(echoed) > len(kernels)
        self.by_correlation = {}
        for launch in self.launches:
            self.by_correlation.setdefault(id_of(launch, "correlation"), []).append(launch)

    def launch_of(self, event):
        """The launch of a GPU event: of several with its correlation the nearest in time, then the shortest."""
        if id_of(event, "correlation") is None:
            return None
        candidates = self.by_correlation.get(id_of(event, "correlation"), [])
        return min(candidates, key=lambda l: (abs(l.start - event.start), l.end - l.start), default=None)

    def record_by_external_id(self, event, launch):
        if self.external_ids_lie or launch is None:
            return None
        wanted = id_of(launch, "External id")
        if wanted is None or wanted == id_of(launch, "correlation"):
            return None
        for record in self.records:
            if id_of(record, "External id") == wanted and range_op(record):
                return record
        return None

    def innermost_range(self, launch):
        """CHOICE: innermost is the shortest; 1 us of tolerance at both ends."""
        if launch is None:
            return None
        around = [r for r in self.ranges if r.thread == launch.thread and r.start - 1000 <= launch.start
                  and launch.end <= r.end + 1000 and range_op(r)]
        return min(around, key=lambda r: (r.end - r.start, -r.start), default=None)


def range_op(record_or_range):
    if record_or_range.kind == "annotation":
        return op_by_collective(record_or_range.name)
    return op_by_collective(str(record_or_range.args.get("Collective name", "")))


ELEMENT_BYTES = {"Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "UInt16": 2, "Half": 2, "BFloat16": 2, "Int": 4,
                 "UInt32": 4, "Float": 4, "Long": 8, "UInt64": 8, "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16}


def message_bytes(op, args):
    """The nccl-tests size, or None. CHOICE: a barrier has no size; gather and scatter take the total at the root
    (bandwidth-model.md section 1; kineto-trace.md section 10.5 says In x element)."""
    def count(*keys):
        for key in keys:
            if whole(args.get(key)) is not None:
                return whole(args[key]) if whole(args[key]) >= 0 else None
        return None
    dtype = str(args.get("dtype", ""))
    element = 1 if dtype.startswith("Float8_") else ELEMENT_BYTES.get(dtype)
    inward, outward = count("In msg nelems", "In msg size"), count("Out msg nelems", "Out msg size")
    if element is None or op in ("barrier", "unknown", None):
        return None
    larger = {"all_gather": outward, "gather": outward, "reduce_scatter": inward, "scatter": inward}
    if inward is None or outward is None:                      # one count is enough where it is known to be the larger
        count_known = larger[op] if op in larger else None if op == "all_to_all" else (
            outward if inward is None else inward)
    else:
        count_known = max(inward, outward)
    size = None if count_known is None else count_known * element
    return size if size is not None and size in INT64 else None


def group_size(args):
    """CHOICE: without a size, a list of the members that was not cut says it."""
    n = whole(args.get("Group size"))
    members = str(args.get("Process Group Ranks", ""))
    if n is None and "..." not in members:
        n = len(set(re.findall(r"\d+", members)))
    return n if n is not None and n > 0 else None


def bus_factor(op, n):
    """busbw / algbw; None where the op has none or the group's size n is needed and not known."""
    if op in ("barrier", "unknown"):
        return None
    if op in ("broadcast", "reduce", "send", "recv", "send_recv", "copy", "put_get"):
        return Fraction(1)
    if n is None:
        return None
    return Fraction(2 * (n - 1), n) if op == "all_reduce" else Fraction(n - 1, n)


def judge(event, host):
    """(op, kind of evidence, args that carry its size)."""
    op = op_by_collective(str(event.args.get("Collective name", "")))
    if op:
        return op, "metadata", event.args
    launch = host.launch_of(event)
    record = host.record_by_external_id(event, launch)
    if record:
        return range_op(record), "host_op", record.args
    around = host.innermost_range(launch)
    if around:
        return range_op(around), "range", around.args
    return op_by_name(event.name), "name", {}


# ----------------------------------------------------------------------------------------------------- the painted strip


class Strip:
    """One device's time as cells between neighbouring starts and ends; what lies on a cell is painted on it."""

    def __init__(self, events):
        self.edges = sorted({t for e in events for t in (e.start, e.end)})
        self.cell_of = {t: i for i, t in enumerate(self.edges)}
        self.count = max(0, len(self.edges) - 1)

    def cells(self, event):
        return range(self.cell_of[event.start], self.cell_of[event.end])

    def paint(self, events):
        painted = [False] * self.count
        for e in events:
            for i in self.cells(e):
                painted[i] = True
        return painted

    def length(self, i, lo=None, hi=None):
        start, end = self.edges[i], self.edges[i + 1]
        if lo is not None:
            start, end = max(start, lo), min(end, hi)
        return max(0, end - start)


def breakdown(strip, compute, comm, memory, lo, hi):
    figures = dict.fromkeys(("compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns"), 0)
    for i in range(strip.count):
        if comm[i]:
            bucket = "hidden_comm_ns" if compute[i] else "exposed_comm_ns"
        elif compute[i]:
            bucket = "compute_only_ns"
        else:
            bucket = "memory_only_ns" if memory[i] else "idle_ns"
        figures[bucket] += strip.length(i, lo, hi)
    inside = max(0, min(hi, strip.edges[-1]) - max(lo, strip.edges[0]))
    figures["idle_ns"] += (hi - lo) - inside                       # a window that reaches beyond the GPU's events
    assert sum(figures.values()) == hi - lo
    return {"window_ns": hi - lo, **figures}


def share_exposed_time(strip, comm_events, compute):
    """Exclusive exposed time: {event: ns}. A piece is a longest stretch on which the same events are exposed."""
    on_cell = [[] for _ in range(strip.count)]
    for e in comm_events:
        for i in strip.cells(e):
            on_cell[i].append(e)
    pieces = []                                                    # [events, length], neighbours with equal events joined
    for i in range(strip.count):
        exposed = [] if compute[i] else sorted(on_cell[i], key=order)
        if pieces and pieces[-1][0] == exposed:
            pieces[-1][1] += strip.length(i)
        else:
            pieces.append([exposed, strip.length(i)])
    share = {e: 0 for e in comm_events}
    for events, length in pieces:
        for position, e in enumerate(events):
            share[e] += length // len(events) + (1 if position < length % len(events) else 0)
    return share


def order(event):
    return event.start, event.stream, event.index


def analyse_device(events, host):
    """(figures of the window, rows of the communication events, strip and paint for steps)."""
    comm_events = [e for e in events if is_communication(e)]
    compute_events = [e for e in events if e.kind == "kernel" and not is_communication(e)]
    strip = Strip(events)
    compute, comm = strip.paint(compute_events), strip.paint(comm_events)
    memory = strip.paint([e for e in events if e.kind != "kernel"])
    figures = breakdown(strip, compute, comm, memory, strip.edges[0], strip.edges[-1])
    share = share_exposed_time(strip, comm_events, compute)
    rows = []
    for e in sorted(comm_events, key=order):
        op, evidence, args = judge(e, host)
        hidden = sum(strip.length(i) for i in strip.cells(e) if compute[i])
        size = message_bytes(op, args)
        rows.append({"op": op, "evidence": evidence, "bytes": size, "group_size": group_size(args), "start_ns": e.start,
                     "stream": e.stream, "device": e.device, "busy_ns": e.end - e.start, "hidden_ns": hidden,
                     "exposed_ns": e.end - e.start - hidden, "exclusive_exposed_ns": share[e], "name": e.name})
    assert sum(r["exclusive_exposed_ns"] for r in rows) == figures["exposed_comm_ns"]
    exposed, hidden = figures["exposed_comm_ns"], figures["hidden_comm_ns"]
    figures["overlap_ratio"] = hidden / (hidden + exposed) if hidden + exposed else None
    figures["whole_event_overlap_ns"] = sum(r["busy_ns"] for r in rows if r["hidden_ns"] > 0)
    figures["comm_busy_ns"] = sum(r["busy_ns"] for r in rows)      # CHOICE: summed over events, not their union
    figures["gpu_events"], figures["comm_events"] = len(events), len(rows)
    by_name = sum("nccl" in e.name for e in events if e.kind == "kernel")
    return figures, rows, by_name, (strip, compute, comm, memory)


# ------------------------------------------------------------------------------------------------------------ tables


def nearest_rank(sorted_values, percent):
    return sorted_values[max(1, -(-percent * len(sorted_values) // 100)) - 1]


def op_row(op, rows, time_of=lambda row: row["busy_ns"]):
    """`time_of` is the time that a bandwidth divides by: the whole, or the transfer alone."""
    busy = sorted(r["busy_ns"] for r in rows)
    sized = [r for r in rows if r["bytes"] is not None]
    # CHOICE: an event whose group's size is unknown has no bus bandwidth and is left out of that quotient's both sides.
    factored = [(r, bus_factor(op, r["group_size"])) for r in sized]
    factored = [(r, f) for r, f in factored if f is not None]

    def rate(amount, time):
        return float(Fraction(amount) / time) if time else None    # bytes per ns are GB of 1e9 per second
    return {"op": op, "count": len(rows), "bytes": sum(r["bytes"] for r in sized) if sized else None, "unknown_size": len(rows) - len(sized),
            "busy_ns": sum(busy), "hidden_ns": sum(r["hidden_ns"] for r in rows),
            "exposed_ns": sum(r["exposed_ns"] for r in rows),
            "exclusive_exposed_ns": sum(r["exclusive_exposed_ns"] for r in rows),
            "mean_ns": (2 * sum(busy) + len(busy)) // (2 * len(busy)),
            "p50_ns": nearest_rank(busy, 50), "p95_ns": nearest_rank(busy, 95), "p99_ns": nearest_rank(busy, 99),
            "max_ns": busy[-1],
            "algbw_gbs": rate(sum(r["bytes"] for r in sized), sum(time_of(r) for r in sized)) if sized else None,
            "busbw_gbs": rate(sum(r["bytes"] * f for r, f in factored), sum(time_of(r) for r, _ in factored))
            if factored else None}


def wait_for_last(recordings):
    """Adds "wait_ns" to each row: the n-th operation of its kind in each of the lists is one, all on one clock, and
    everybody needs everybody. Only for jobs in which that is so."""
    for op in {r["op"] for rows in recordings for r in rows}:
        lists = [sorted((r for r in rows if r["op"] == op), key=lambda r: r["start_ns"]) for rows in recordings]
        assert len({len(rows) for rows in lists}) == 1, op
        for together in zip(*lists):
            last = max(r["start_ns"] for r in together)
            for r in together:
                r["wait_ns"] = min(last - r["start_ns"], r["busy_ns"])


# ------------------------------------------------------------------------------------------------------------ ledger


def nothing_queued(gpu, host, strip, busy):
    """Pieces (start, end) of idle time in which every activity that starts later is not launched yet; None where fewer
    than nine in ten have a launch. Idle time is cut at every launch, so that a piece is all one or all the other."""
    launches = {e: host.launch_of(e) for e in gpu}
    known = [(l.start, e.start, e.end) for e, l in launches.items() if l is not None]
    if not known or 10 * len(known) < 9 * len(gpu):
        return None
    by_start = sorted(known, key=lambda row: row[1])
    earliest = [None] * (len(by_start) + 1)                        # launch of those that start at or after the i-th
    for i in range(len(by_start) - 1, -1, -1):
        earliest[i] = by_start[i][0] if earliest[i + 1] is None else min(by_start[i][0], earliest[i + 1])
    starts = [row[1] for row in by_start]
    cuts = sorted({launch for launch, _, _ in known})
    pieces = []
    for i in range(strip.count):
        if busy[i]:
            continue
        lo, hi = strip.edges[i], strip.edges[i + 1]
        inside = cuts[bisect.bisect_right(cuts, lo):bisect.bisect_left(cuts, hi)]
        for a, b in zip([lo, *inside], [*inside, hi]):
            # An activity without length is done with where it starts.
            next_launch = earliest[bisect.bisect_left(starts, b)]
            if next_launch is None or next_launch >= b:
                pieces.append((a, b))
    return pieces


def ledger_parts(gpu, host, rows, recorded):
    """What the ledger needs of one device: instants in pieces that are all one thing."""
    comm_events = [e for e in gpu if is_communication(e)]
    strip = Strip(gpu)
    compute = strip.paint([e for e in gpu if e.kind == "kernel" and not is_communication(e)])
    comm = strip.paint(comm_events)
    memory = strip.paint([e for e in gpu if e.kind != "kernel"])
    busy = [a or b or c for a, b, c in zip(compute, comm, memory)]
    return {"strip": strip, "compute": compute, "comm": comm, "memory": memory, "rows": rows, "recorded": recorded,
            "queue": nothing_queued(gpu, host, strip, busy), "lo": strip.edges[0], "hi": strip.edges[-1]}


def largest_remainder(amount, weights):
    total = sum(weights)
    if not total:
        return [0] * len(weights)
    shares = [amount * w // total for w in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i] % total), i))
    for i in order[:amount - sum(shares)]:
        shares[i] += 1
    return shares


PIECES = ("wait", "open", "transfer", "deficit")


def cut_communication(row, achievable):
    """[(piece, start, end)] of a communication: `wait_ns` of None is not known."""
    start, end = row["start_ns"], row["start_ns"] + row["busy_ns"]
    wait = row.get("wait_ns")
    limit = achievable(row)
    if wait is None:
        return [("open", start, end)]
    usual = end if limit is None else min(end, start + wait + limit)
    return [("wait", start, start + wait), ("transfer", start + wait, usual), ("deficit", usual, end)]


def exposed_pieces(part, achievable):
    """Exposed communication of a device by piece: time at which k are there is kept apart by k and rounded once."""
    strip, cuts = part["strip"], [c for row in part["rows"] for c in cut_communication(row, achievable)]
    edges = sorted(set(strip.edges) | {t for _, a, b in cuts for t in (a, b)})
    covered = {t: i for i, t in enumerate(strip.edges)}
    by_count, cell, coming, here = {}, 0, sorted(cuts, key=lambda c: -c[1]), []
    for lo, hi in zip(edges, edges[1:]):
        cell = covered.get(lo, cell)
        while coming and coming[-1][1] <= lo:
            here.append(coming.pop())
        here = [cut for cut in here if cut[2] > lo]
        there = [piece for piece, _, _ in here]
        if there and not part["compute"][cell]:
            sums = by_count.setdefault(len(there), dict.fromkeys(PIECES, 0))
            for piece in there:
                sums[piece] += hi - lo
    total = dict.fromkeys(PIECES, 0)
    for count, sums in by_count.items():
        shares = largest_remainder(sum(sums.values()) // count, [sums[p] for p in PIECES])
        for piece, share in zip(PIECES, shares):
            total[piece] += share
    return total


def ledger(parts, steps, achievable=lambda row: None):
    """The ledger of devices on one clock; waiting is not split by origin. `steps`: how many, 0 is not known."""
    lo, hi = min(p["lo"] for p in parts), max(p["hi"] for p in parts)
    sums = dict.fromkeys(("compute", "transfer", "deficit", "wait", "open", "memory", "host", "rest"), 0)
    for part in parts:
        strip = part["strip"]
        mine = exposed_pieces(part, achievable)
        mine["compute"] = sum(strip.length(i) for i in range(strip.count) if part["compute"][i])
        mine["memory"] = sum(strip.length(i) for i in range(strip.count)
                             if part["memory"][i] and not part["compute"][i] and not part["comm"][i])
        mine["host"] = 0
        if part["queue"] is not None:
            first, last = part["recorded"]
            mine["host"] = sum(b - a for a, b in part["queue"])
            mine["host"] += max(0, part["lo"] - max(lo, first)) + max(0, min(hi, last) - part["hi"])
        mine["rest"] = hi - lo - sum(mine.values())
        for key, value in mine.items():
            sums[key] += value
    return {"window": hi - lo, "step": (2 * (hi - lo) + max(1, steps)) // (2 * max(1, steps)), "gpus": len(parts), **sums}


def step_windows(events, gpu, host):
    """[(number, start, end)] of one device, in order: from each step's first GPU start to the next one's."""
    steps = {}
    for e in events:
        m = re.fullmatch(r"ProfilerStep\s*#(\d+)", e.name)
        if m and e.kind == "annotation":
            steps[int(m.group(1))] = (e.start, e.end)
    starts, last_end = [], None
    for number, (lo, hi) in sorted(steps.items()):
        launched = []
        for g in gpu:
            launch = host.launch_of(g)
            if launch is not None and lo <= launch.start < hi:
                launched.append(g)
        if launched:
            starts.append((number, min(g.start for g in launched)))
            last_end = max(g.end for g in launched)
    ends = [s for _, s in starts[1:]] + [last_end]
    # CHOICE: steps tile, so a step whose work begins before that of the step before it begins where that one ends.
    windows = []
    for (number, start), end in zip(starts, ends):
        start = max([start] + [hi for _, _, hi in windows[-1:]])
        windows.append((number, start, max(start, end)))
    return windows


def rank_of(path, top):
    info = top.get("distributedInfo")
    rank = whole(info.get("rank")) if isinstance(info, dict) else None
    if rank is None:
        m = re.search(r"rank[-_]?(\d+)", os.path.basename(path))
        rank = int(m.group(1)) if m else None
    return rank


def analyse(path):
    return analyse_trace(path, *load(path))


def analyse_trace(path, top, json_events):
    """The result for a trace in memory; `path` only names it (and may name its rank)."""
    events, dropped = read_events(top, json_events)
    host = Host(events)
    gpu = [e for e in events if e.kind in GPU]
    result = {"file": path, "rank": rank_of(path, top), "ranks": [], "ops": [], "steps": [], "events": [],
              "dropped": dropped, "backwards": sum(e.backwards for e in gpu),
              "clipped": sum(hasattr(e, "clipped") for e in gpu), "named_nccl": 0, "parts": []}
    steps = [e for e in events if e.kind == "annotation" and re.fullmatch(r"ProfilerStep\s*#(\d+)", e.name)]
    ranges = [e for e in host.ranges if range_op(e)]
    around = gpu + [e for e in steps if e.end > e.start] + ranges
    instants = [t for e in around for t in (e.start, e.end)] + [l.start for l in host.launches]
    for device in sorted({e.device for e in gpu}, key=lambda d: (d is None, d)):
        mine = [e for e in gpu if e.device == device]
        figures, rows, named, paint = analyse_device(mine, host)
        result["ranks"].append({"device": device, **figures})
        result["events"] += rows
        result["named_nccl"] += named
        result["parts"].append(ledger_parts(mine, host, rows, (min(instants), max(instants))))
        for number, lo, hi in step_windows(events, mine, host):
            result["steps"].append({"device": device, "step": number, **breakdown(*paint, lo, max(lo, hi))})
    for op in sorted({r["op"] for r in result["events"]}):
        result["ops"].append(op_row(op, [r for r in result["events"] if r["op"] == op]))
    return result


# ------------------------------------------------------------------------------------------------------------ corpus

COLUMNS = ("gpu_events", "comm_events", "window_ns", "compute_only_ns", "hidden_comm_ns", "exposed_comm_ns",
           "memory_only_ns", "idle_ns")


def corpus_table():
    """{file: the figures of COLUMNS}, None for a dash, from the table in the corpus' README."""
    table = {}
    with open(os.path.join(corpus_folder(), "README.md"), encoding="utf-8") as f:
        for line in f:
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if len(cells) == 2 + len(COLUMNS) and re.search(r"\.json(\.gz)?$", cells[0]):
                table[cells[0]] = [None if c == "-" else int(c) for c in cells[2:]]
    return table


def check_corpus():
    bad = 0
    table = corpus_table()
    for name, expected in table.items():
        result = analyse(os.path.join(corpus_folder(), "kineto", name))
        if result["ranks"]:
            got = [result["ranks"][0][c] for c in COLUMNS]
        else:
            got = [0, 0] + [None] * (len(COLUMNS) - 2)
        remarks = []
        if len(result["ranks"]) > 1:
            remarks.append(f"{len(result['ranks'])} devices")
        if result["named_nccl"] != got[1]:
            remarks.append(f"by name alone {result['named_nccl']} would be communication")
        evidence = {}
        for row in result["events"]:
            key = f"{row['op']} by {row['evidence']}"
            evidence[key] = evidence.get(key, 0) + 1
        remarks += [f"{n} {key}" for key, n in sorted(evidence.items())]
        wrong = [f"{c} {g} not {e}" for c, g, e in zip(COLUMNS, got, expected) if g != e]
        bad += bool(wrong)
        print(("BAD " if wrong else "ok  ") + name + ": " + "; ".join(wrong + remarks))
    print(f"{len(table) - bad} match, {bad} differ")
    return 1 if bad or not table else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--brief", action="store_true", help="without the list of events")
    parser.add_argument("--check-corpus", action="store_true")
    options = parser.parse_args()
    if options.check_corpus:
        return check_corpus()
    if not options.files:
        parser.error("no file")
    try:
        results = [analyse(path) for path in options.files]
    except Unusable as e:
        print(f"slow_analysis: {e}", file=sys.stderr)
        return 3
    for result in results:
        del result["parts"]
        if options.brief:
            del result["events"]
    json.dump(results[0] if len(results) == 1 else results, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
