#!/usr/bin/env python3
"""What must hold for every input, tried through the program itself on simulated jobs and on random recordings.

    properties.py COMMLENS_BINARY [--simulated N] [--random N] [--big N] [--seed S] [--keep DIR]

A simulated job comes with truth.json: what the analysis says equals it. A random recording is a heap of events that no
training run would write (overlapping collectives, kernels without launches, steps without work); there the second
method (tests/reference) says what is right. On both: the number of threads, the order and the way in which files are
named, how a recording is cut into files or packed, and when the clock started change no figure; times that are k times
as long make figures that are; parts add up to their sum. Prints one line for each failure; exit code 1 if there is any.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import golden  # noqa: E402

BUCKETS = ("window_ns", "compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns")
SUMS = ("count", "bytes", "unknown_size", "name_only", "busy_ns", "hidden_ns", "exposed_ns", "exclusive_exposed_ns")
FIGURES = ("ranks", "steps", "ops", "groups", "sizes", "by", "evidence")
SECONDS = 60

# ----------------------------------------------------------------------------------------------------- recordings


class Event:
    """One event: times in whole ns (None where it has none), and the rest as its JSON has it."""

    __slots__ = ("ts", "dur", "rest")

    def __init__(self, ts, dur, rest):
        self.ts, self.dur, self.rest = ts, dur, rest

    @staticmethod
    def of(fields):
        ts, dur = fields.pop("ts", None), fields.pop("dur", None)
        return Event(ts, dur, json.dumps(fields)[1:])

    def text(self):
        ts = "" if self.ts is None else f'"ts": {in_us(self.ts)}, '
        return "{" + ts + ("" if self.dur is None else f'"dur": {in_us(self.dur)}, ') + self.rest


class Recording:
    """One file: what stands before the events, and the events."""

    def __init__(self, name, head, events):
        self.name, self.head, self.events = name, head, events

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as f:
            head = json.load(f, parse_float=str)
        events = head.pop("traceEvents")
        for event in events:
            event.update({key: to_ns(event[key]) for key in ("ts", "dur") if key in event})
        return Recording(os.path.basename(path), head, [Event.of(event) for event in events])

    def changed(self, times=1, later=0):
        return Recording(self.name, self.head, [
            Event(e.ts if e.ts is None else e.ts * times + later, e.dur if e.dur is None else e.dur * times, e.rest)
            for e in self.events])

    def text(self):
        head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in self.head.items())
        return "{\n" + head + '"traceEvents": [\n' + ",\n".join(e.text() for e in self.events) + "\n]}\n"

    def write(self, folder, name=None):
        with open(os.path.join(folder, name or self.name), "w", encoding="utf-8") as f:
            f.write(self.text())


def to_ns(us):
    whole, _, fraction = str(us).partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def in_us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


COMPUTE = ("void cutlass::gemm<128, float>(float*, int)", "void at::native::reduce_kernel<512, 1>(float)", "flash_fwd")
COMM = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
COLLECTIVES = ("allreduce", "_allgather_base", "_reduce_scatter_base", "all_to_all", "broadcast", "wait")


class Random:
    """A recording of one rank at random. On the host, operations of one thread nest; their times lie on a grid of 2 us,
    beyond the tolerance of nesting (1 us)."""

    def __init__(self, dice, rank, world):
        self.dice, self.rank, self.world = dice, rank, world
        self.devices = [rank] if dice.random() < 0.8 else [rank, rank + 100]
        self.correlation = 1000
        self.host, self.gpu, self.taken = [], [], set()

    def event(self, cat, name, pid, tid, start, length, **args):
        return Event.of({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": 5_000_000 + start,
                         "dur": length, "args": args})

    def on_host(self, cat, name, start, length, **args):
        self.host.append(self.event(cat, name, 500 + self.rank, 500 + self.rank, start, length, **args))

    def metadata(self):
        group = self.dice.choice([[0, 1], list(range(self.world))])
        meta = {"Collective name": self.dice.choice(COLLECTIVES), "dtype": self.dice.choice(["Float", "BFloat16", "Odd"]),
                "In msg nelems": self.dice.randrange(1, 10**6), "Out msg nelems": self.dice.randrange(1, 10**6),
                "Group size": len(group), "Process Group Name": str(len(group)), "Process Group Description": "default_pg",
                "Process Group Ranks": str(group)}
        for key in list(meta):
            if self.dice.random() < 0.08:
                del meta[key]
        return meta

    def gpu_event(self, span):
        dice = self.dice
        kind = dice.choice(["compute", "compute", "comm", "comm", "memcpy", "memset"])
        start, length = dice.randrange(span), dice.choice([0, 1, dice.randrange(50), dice.randrange(span // 4)])
        stream = dice.choice([7, 20, 24])
        while (start, stream) in self.taken:           # equal times and streams are told apart by the order in the file
            start += 1
        self.taken.add((start, stream))
        self.correlation += 1
        args = {"stream": stream, "device": dice.choice(self.devices), "context": 1, "correlation": self.correlation}
        external = 500_000 + self.correlation
        meta = self.metadata() if kind == "comm" else {}
        if dice.random() < 0.85:
            self.launch(external, kind, meta)
        name = {"compute": dice.choice(COMPUTE), "comm": dice.choice(COMM), "memcpy": "Memcpy DtoD (Device -> Device)",
                "memset": "Memset (Device)"}[kind]
        cat = {"memcpy": "gpu_memcpy", "memset": "gpu_memset"}.get(kind, "kernel")
        if kind == "comm" and dice.random() < 0.4:
            args.update(meta)
        if dice.random() < 0.5:
            args["External id"] = external
        self.gpu.append(self.event(cat, name, args["device"], stream, start, length, **args))

    def launch(self, external, kind, meta):
        dice = self.dice
        at = 20_000 * self.slots.pop()
        linked = {"External id": external} if dice.random() < 0.6 else {}
        self.on_host("cuda_runtime", "cudaLaunchKernel", at + 6000, 2000, correlation=self.correlation, **linked)
        if kind == "comm" and dice.random() < 0.5:
            self.on_host("cpu_op", "record_param_comms", at + 4000, 6000, **{"External id": external, **meta})
        if kind == "comm" and dice.random() < 0.3:
            self.on_host("user_annotation", "nccl:" + dice.choice(["all_reduce", "all_to_all", "send"]), at + 2000, 10000)

    def recording(self):
        dice = self.dice
        span = dice.choice([20_000, 100_000, 400_000])
        count = dice.randrange(2, 50)
        self.slots = list(range(count))                # 20 us of the host each, in any order
        dice.shuffle(self.slots)
        at = 0
        for number in range(dice.randrange(4)):
            length = 20_000 * dice.randrange(1, max(2, count // 2))
            self.on_host("user_annotation", f"ProfilerStep#{7 + number}", at, length)
            at += length + 20_000 * dice.randrange(2)
        for _ in range(count):
            self.gpu_event(span)
        events = self.host + self.gpu
        if dice.random() < 0.5:
            dice.shuffle(events)
        head = {"baseTimeNanoseconds": 1_700_000_000_000_000_000,
                "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.world}}
        return Recording(f"part{(7 * self.rank) % 10}.json", head, events)


# ---------------------------------------------------------------------------------------------------------- checks


class Failure(Exception):
    pass


def same(what, ours, theirs):
    """Stops where two results differ, with the place."""
    place, a, b = difference(ours, theirs, "")
    if place is not None:
        raise Failure(f"{what}: {place or 'all'} is {str(b)[:200]}, not {str(a)[:200]}")


def difference(a, b, place):
    if type(a) is type(b) and isinstance(a, dict) and a.keys() == b.keys():
        pairs = [(f"{place}.{key}", a[key], b[key]) for key in a]
    elif type(a) is type(b) and isinstance(a, list) and len(a) == len(b):
        pairs = [(f"{place}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))]
    else:
        return (None, None, None) if a == b else (place, a, b)
    for inner, x, y in pairs:
        found = difference(x, y, inner)
        if found[0] is not None:
            return found
    return None, None, None


def only(result, parts=FIGURES):
    return {part: result[part] for part in parts}


def total(rows, figure):
    return sum(row[figure] or 0 for row in rows)


class Trial:
    """One job in one folder, and everything that is tried on it."""

    def __init__(self, binary, folder, recordings, dice):
        self.binary, self.folder, self.recordings, self.dice = binary, folder, recordings, dice
        self.runs = 0

    def run(self, *arguments, cwd=None):
        self.runs += 1
        done = subprocess.run([self.binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              cwd=cwd or self.folder, timeout=SECONDS)
        if done.returncode != 0:
            raise Failure(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.decode('utf-8', 'replace')[:300]}")
        return done.stdout

    def analyze(self, *arguments):
        return json.loads(self.run("analyze", *arguments, "--format", "json"))

    def fresh(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path)
        return path

    def written(self, name, recordings):
        folder = self.fresh(name)
        for recording in recordings:
            recording.write(folder)
        return self.analyze(name)

    def all(self):
        base = self.analyze("run")
        self.threads()
        self.naming(base)
        self.sums(base)
        self.steps()
        base = self.written("again", self.recordings)              # the same through our own writer
        self.cuts(base)
        self.clock(base)
        self.longer(base)
        self.packed(base)
        return base

    def screen(self):
        """What matters stands in front and fits on a screen of 48 lines: who makes whom wait, the waterfall, three findings."""
        lines = self.run("analyze", "run").decode().split("\n")
        rest = next((i for i, line in enumerate(lines) if line.startswith(("Critical path: ", "Communication takes "))), 0)
        if not 0 < rest <= 48:
            raise Failure(f"the answers take {rest} lines of text")
        wide = [line for line in lines[:rest] if len(line) > 100]
        if wide:
            raise Failure(f"{len(wide)} lines are wider than 100 columns: {wide[0]}")

    def threads(self):
        for more in (("--format", "json"), ("--format", "text"), ("--window", "steps") if self.has_steps() else ()):
            if self.run("analyze", "run", *more, "--jobs", "1") != self.run("analyze", "run", *more, "--jobs", "2"):
                raise Failure(f"--jobs 1 and --jobs 2 differ {' '.join(more)}")

    def has_steps(self):
        return bool(self.analyze("run")["job"]["steps"])

    def naming(self, base):
        names = [f"run/{name}" for name in os.listdir(os.path.join(self.folder, "run")) if name != "truth.json"]
        self.dice.shuffle(names)
        for what, paths in (("in another order", names), ("by a glob", ["run/[rp]a*.json"]), ("twice", ["run", names[0]]),
                            ("by a file and the folder", [names[0], "run"])):
            found = self.analyze(*paths)
            for result in (found, base):
                result["inputs"].sort(key=lambda row: row["path"])
                result["inputs"] = [i for i in result["inputs"] if i["format"]]
                result["warnings"] = [w for w in result["warnings"] if w["code"] != "skipped_file"]
            same(f"files {what}", base, found)

    def sums(self, base):
        for row in base["ranks"] + base["steps"]:
            if row["window_ns"] != sum(row[b] for b in BUCKETS[1:]):
                raise Failure(f"buckets of {row}")
        same("exclusive shares", total(base["ranks"], "exposed_comm_ns"), total(base["ops"], "exclusive_exposed_ns"))
        same("busy", total(base["ranks"], "comm_busy_ns"), total(base["ops"], "busy_ns"))
        keys = ["op", "group", "size", "dtype", "stream", "rank", "device", "host", "evidence"]
        pairs = sorted({",".join(self.dice.sample(keys, 2)) for _ in range(3)})
        tables = self.analyze("run", *[word for key in keys + pairs for word in ("--by", key)])["by"]
        for key in keys + pairs:
            for figure in SUMS:
                same(f"sum of {figure} by {key}", total(base["ops"], figure), total(tables[key], figure))
        for row in base["groups"]:
            for figure in SUMS:
                same(f"sum of {figure} over the operations of group {row['id']}", row[figure] or 0,
                     total(row["ops"], figure))

    def steps(self):
        if not self.has_steps():
            return
        found = self.analyze("run", "--window", "steps", "--by", "step,op")
        for row in (r for r in found["ranks"] if r["window_ns"] is not None):
            mine = [s for s in found["steps"] if all(s[k] == row[k] for k in ("rank", "device", "run"))]
            for figure in (*BUCKETS, "gpu_events", "comm_events", "comm_busy_ns"):
                same(f"rank {row['rank']}: {figure} over its steps", row[figure], total(mine, figure))
        for key in ("step", "step,op"):
            for figure in ("busy_ns", "hidden_ns", "exposed_ns", "exclusive_exposed_ns"):
                same(f"sum of {figure} by {key}", total(found["ops"], figure), total(found["by"][key], figure))

    def cuts(self, base):
        """One rank's events in two files: at random, and by time."""
        victim = self.dice.choice(self.recordings)
        middle = sorted(e.ts or 0 for e in victim.events)[len(victim.events) // 2]
        coin = {e: self.dice.random() < 0.5 for e in victim.events}
        coin[victim.events[0]], coin[victim.events[-1]] = True, False      # a file without events is a run of its own
        for name, first in (("random", coin.get), ("time", lambda e: (e.ts or 0) < middle)):
            halves = [Recording(f"{half}-{victim.name}", victim.head, [e for e in victim.events if first(e) == (half == "a")])
                      for half in "ab"]
            found = self.written(f"cut-{name}", [r for r in self.recordings if r is not victim] + halves)
            same(f"cut in two by {name}", only(base), only(found))

    def clock(self, base):
        later = self.dice.randrange(1, 10**15)
        shifted = [r.changed(later=later) for r in self.recordings]
        same(f"{later} ns later", only(base), only(self.written("later", shifted)))
        moved = [Recording(r.name, {**r.head, "baseTimeNanoseconds": r.head["baseTimeNanoseconds"] + later}, r.events)
                 for r in self.recordings]
        same(f"base {later} ns later", only(base), only(self.written("base", moved)))

    def longer(self, base):
        k = self.dice.choice([2, 3, 7])
        found = self.written("longer", [r.changed(times=k) for r in self.recordings])
        # Operations stand in the order of their cost, and its shares are rounded: they are compared by name.
        base, found = ({**result, "ops": sorted(result["ops"], key=lambda row: row["op"])} for result in (base, found))
        for part, figures in (("ranks", (*BUCKETS, "whole_event_overlap_ns", "comm_busy_ns")), ("steps", BUCKETS),
                              ("ops", ("busy_ns", "hidden_ns", "exposed_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"))):
            for figure in figures:
                same(f"times {k}: {part} {figure}", [row[figure] * k for row in base[part]],
                     [row[figure] for row in found[part]])
        for ours, theirs in zip(base["ops"], found["ops"]):
            same(f"times {k}: ops", [ours[f] for f in ("op", "count", "bytes", "unknown_size")],
                 [theirs[f] for f in ("op", "count", "bytes", "unknown_size")])
            slack = 1e-9
            if ours["bandwidth_kind"] == "net" and ours["algbw_gbs"]:
                # Clocks' offsets are means of differences, rounded to whole ns: so is each transfer.
                slack += 3 * ours["count"] / (ours["bytes"] / ours["algbw_gbs"])
            for figure in ("algbw_gbs", "busbw_gbs"):
                if ours[figure] is not None and abs(theirs[figure] * k / ours[figure] - 1) > slack:
                    raise Failure(f"times {k}: {figure} of {ours['op']}")

    def packed(self, base):
        """gzip in several members, and zstd where that program is at hand: the same but for path and size."""
        packers = [(".gz", self.members)]
        if shutil.which("zstd") and self.zstd_is_read():
            packers.append((".zst", lambda text: subprocess.run(["zstd", "-c", "-q"], input=text, stdout=subprocess.PIPE,
                                                                check=True).stdout))
        for suffix, pack in packers:
            folder = self.fresh("packed" + suffix)
            for recording in self.recordings:
                with open(os.path.join(folder, recording.name + suffix), "wb") as f:
                    f.write(pack(recording.text().encode()))
            found = json.loads(json.dumps(self.analyze("packed" + suffix)).replace(suffix, ""))
            wanted = json.loads(json.dumps(base).replace('"again/', '"packed/'))
            for row in wanted["inputs"] + found["inputs"]:
                del row["bytes"]
            same(suffix, wanted, found)

    def members(self, text):
        at = sorted([0, len(text), *(self.dice.randrange(len(text)) for _ in range(3))])
        return b"".join(gzip.compress(text[a:b]) for a, b in zip(at, at[1:]))

    def zstd_is_read(self):
        return b".zst" in self.run("formats")


def check_truth(trial, result):
    """Figures that both the truth and the result have."""
    with open(os.path.join(trial.folder, "run", "truth.json"), encoding="utf-8") as f:
        truth = json.load(f)
    for kind, keys in (("ranks", ("rank",)), ("steps", ("rank", "step")), ("ops", ("op",))):
        wanted = truth[kind] if kind != "steps" else [{"rank": r["rank"], **s} for r in truth["ranks"] for s in r["steps"]]
        wanted = {tuple(row[k] for k in keys): row for row in wanted}
        found = {tuple(row[k] for k in keys): row for row in result[kind]}
        same(f"truth: {kind}", sorted(wanted), sorted(found))
        for key, row in wanted.items():
            for figure in sorted(row.keys() & found[key].keys()):
                if isinstance(row[figure], float):
                    ok = abs(row[figure] - found[key][figure]) < 1e-12
                else:
                    ok = row[figure] == found[key][figure]
                if not ok:
                    raise Failure(f"truth: {kind} {key}: {figure} is {found[key][figure]}, not {row[figure]}")


# ----------------------------------------------------------------------------------------------------------- trials


def layout(dice, number):
    """Options of a job; every kind of parallelism comes up in the first few."""
    kinds = [{}, {"tp": 2}, {"pp": 2}, {"fsdp": True}, {"moe": True}, {"tp": 2, "pp": 2}, {"moe": True, "tp": 2},
             {"fsdp": True, "tp": 2}, {"pp": 3}, {"moe": True, "pp": 2}]
    spec = {"dp": dice.choice([1, 2, 2, 3, 4]), **kinds[number % len(kinds)]}
    if spec["dp"] * spec.get("tp", 1) * spec.get("pp", 1) > 6 or spec.get("fsdp") or spec.get("moe"):
        spec["dp"] = 2
    spec.update({"layers": dice.choice([1, 2]) * spec.get("pp", 1), "steps": dice.choice([1, 2, 3]),
                 "microbatches": dice.choice([1, 1, 2]), "seed": dice.randrange(10**9),
                 "noise": dice.choice([0, 0.02, 0.3]), "ranks-per-host": dice.choice([1, 2, 8]),
                 "bucket": dice.choice(["1MB", "25MB", "1GB"]), "layer-time": dice.choice(["40us", "1.2ms"]),
                 "first-step": dice.choice([0, 10, 551])})
    words = []
    for key, value in spec.items():
        words += [f"--{key}"] if value is True else [f"--{key}", str(value)]
    return words


def faults(dice, words):
    """Faults that leave the figures of each rank what truth.json says: nothing is lost, no clock drifts."""
    spec = dict(zip(words, words[1:]))
    world = int(spec["--dp"]) * int(spec.get("--tp", 1)) * int(spec.get("--pp", 1))
    rank = dice.randrange(world)
    step = int(spec["--first-step"]) + dice.randrange(int(spec["--steps"]))
    choices = [["--slow", f"{rank}:1.7"], ["--slow", f"{rank}:3@{step}"], ["--late", f"{rank}:900"],
               ["--late", f"{rank}:2000.5@{step}"], ["--end-jitter", "3"], ["--clock", f"0:{dice.randrange(-9000, 9000)}"],
               ["--seq", "wrong"]]
    if world > 1:
        choices.append(["--slow-link", f"{rank}-{(rank + 1) % world}:4"])
    if "--moe" in words:
        choices.append(["--unequal", f"{rank}:1.5"])
    return [word for choice in dice.sample(choices, dice.choice([1, 2])) for word in choice]


def simulated(binary, folder, number, seed):
    dice = random.Random(f"simulated {seed} {number}")
    trial = Trial(binary, folder, [], dice)
    words = layout(dice, number)
    if number % 2:
        words += faults(dice, words)
    try:
        trial.run("simulate", *words, "-o", "run", "--quiet")
        result = trial.analyze("run")
        check_truth(trial, result)
        trial.recordings = [Recording.read(os.path.join(folder, "run", i["path"].split("/")[-1])) for i in result["inputs"]]
        trial.screen()
        trial.all()
    except Failure as failure:
        return trial.runs, f"simulate {' '.join(words)}: {failure}"
    return trial.runs, None


def at_random(binary, folder, number, seed):
    dice = random.Random(f"random {seed} {number}")
    world = dice.choice([2, 3, 8])
    recordings = [Random(dice, rank, world).recording() for rank in dice.sample(range(world), dice.choice([1, 2, 2]))]
    trial = Trial(binary, folder, recordings, dice)
    try:
        run = trial.fresh("run")
        for recording in recordings:
            recording.write(run)
        result = trial.analyze(run)                     # by its whole path, for the second method to read
        wrong = golden.disagreements(result)
        if wrong:
            raise Failure("the second method: " + "; ".join(wrong[:3]))
        trial.all()
    except Failure as failure:
        return trial.runs, f"random recording {number}: {failure}"
    return trial.runs, None


# Text in which a reader that begins in the middle of a file could take something else for an event.
TRAPS = ('"},\n{"ph": "X", "cat": "kernel", "ts": 1', "\\", '\\"', "\n  {", '{"ph":"X"}', "]}", "\u2028")


def big_text(dice, size):
    """A recording of this many bytes at least: random ones one after the other, with traps at the seams."""
    recording = Random(dice, 0, 2).recording()
    parts, length, round_ = [], 0, 0
    while length < size:
        events = recording.changed(later=round_ * 2_000_000).events
        trap = [{"ph": "X", "cat": "kernel", "name": "inner", "ts": 1, "dur": 5, "pid": 0, "tid": 7}]
        inner = {dice.choice(TRAPS): dice.choice(TRAPS), "nested": trap * dice.randrange(3)}
        events.append(Event.of({"ph": "X", "cat": "cpu_op", "name": dice.choice(TRAPS), "pid": 1, "tid": 1, "args": inner,
                                "ts": 5_000_000 + round_ * 2_000_000, "dur": 1000}))
        part = dice.choice([",", ",\n", " ,\n  "]).join(e.text() for e in events)
        parts.append(part)
        length += len(part)
        round_ += 1
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in recording.head.items())
    return "{\n" + head + '"traceEvents": [\n' + ",\n".join(parts) + "\n]}\n"


def big(binary, folder, number, seed):
    """A file that is large enough to be read by several threads: the same bytes out for any number of them."""
    dice = random.Random(f"big {seed} {number}")
    trial = Trial(binary, folder, [], dice)
    text = big_text(dice, 27_000_000).encode()
    for what, change in (("whole", lambda t: t), ("cut", lambda t: t[:dice.randrange(len(t) // 2, len(t))]),
                         ("damaged", lambda t: t.replace(b'"cpu_op"', b'"cpu"op"', dice.randrange(2, 200)))):
        with open(os.path.join(folder, "rank0.json"), "wb") as f:
            f.write(change(text))
        try:
            wanted = trial.run("analyze", "rank0.json", "--format", "json", "--jobs", "1")
            for jobs in ("2", "3"):
                found = trial.run("analyze", "rank0.json", "--format", "json", "--jobs", jobs)
                if found != wanted:
                    same(f"--jobs {jobs}", json.loads(wanted), json.loads(found))
                    raise Failure(f"--jobs {jobs}: other bytes")
        except Failure as failure:
            return trial.runs, f"big file {number}, {what}: {failure}"
    return trial.runs, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--simulated", type=int, default=30, metavar="N", help="simulated jobs to try")
    parser.add_argument("--random", type=int, default=100, metavar="N", help="random recordings to try")
    parser.add_argument("--big", type=int, default=1, metavar="N", help="files of 27 MB to try")
    parser.add_argument("--seed", default="1", help="other jobs and recordings")
    parser.add_argument("--keep", metavar="DIR", help="make the inputs here and leave them")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    root = options.keep or tempfile.mkdtemp(prefix="commlens-properties-")
    bad, runs = 0, 0
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = []
            for trial, count in ((big, options.big), (simulated, options.simulated), (at_random, options.random)):
                for number in range(count):
                    folder = os.path.join(os.path.abspath(root), f"{trial.__name__}-{number}")
                    os.makedirs(folder)
                    waiting.append(pool.submit(trial, binary, folder, number, options.seed))
            for future in waiting:
                made, failure = future.result()
                runs += made
                if failure:
                    bad += 1
                    print(f"BAD {failure}")
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)
    print(f"{len(waiting) - bad} jobs hold, {bad} do not ({runs} runs of the program)")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
