#!/usr/bin/env python3
"""Compares commlens::NcclProfilerSim with the Python class that it follows, on random inputs, every field bit for bit.

  nccl_profiler_sim_check.py REPLAY           runs the cases by both and compares
  nccl_profiler_sim_check.py --write FILE     writes cases with the Python class's answers, for the C++ test alone

REPLAY is the program built from nccl_profiler_sim_replay.cc; nccl_profiler_sim_replay.h describes the text. The Python
class is reference/nccl_profiler_sim.py beside the corpus (COMMLENS_CORPUS, else ../shared/corpus beside the project);
without it the exit code is 77.
"""
import argparse
import importlib.util
import math
import os
import random
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
INT64_MAX = 2**63 - 1
# From 64 values on, how CPython sorts what has no order depends on its version; so it does for fewer from 3.13 on.
MOST_UNORDERED = 63 if sys.version_info < (3, 13) else 0

OPS = ["all_reduce", "all_gather", "broadcast", "reduce_scatter", "send 0->1", "", " ", "%", "a=b", "A", "a", "é",
       "全归约", "\U0001F680", "\uffff", "all_reduce\n", "tab\there"]
ODD_TIMES = [0.0, -0.0, 1.0, 2.0, 5e-324, 1e-308, 1e-9, 1e308, -1e308, math.inf, -math.inf, 0.1, 0.2, 0.3]


def load_reference():
    root = Path(__file__).resolve().parent.parent
    corpus = Path(os.environ.get("COMMLENS_CORPUS") or root / "../shared/corpus")
    path = corpus / "../reference/nccl_profiler_sim.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("reference_nccl_profiler_sim", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    module.sum = sum_from_left
    return module.NCCLProfilerSim


def sum_from_left(numbers):
    """Python's `sum` up to 3.11; later ones correct the rounding of doubles on the way."""
    total = 0
    for number in numbers:
        total = total + number
    return total


def times_of(rng):
    """A way to draw (start, end) pairs, one for a whole case."""
    kind = rng.choice(["trace", "trace", "grid", "grid", "wild", "odd", "nan"])
    if kind == "trace":
        def draw():
            start = rng.uniform(0, 100)
            return start, start + rng.expovariate(0.3)
        return draw
    pool = {"grid": [float(n) for n in range(6)],
            "wild": [rng.uniform(-1, 1) * 10 ** rng.randint(-300, 300) for _ in range(20)],
            "odd": ODD_TIMES,
            "nan": ODD_TIMES[:6] + [math.nan, math.nan]}[kind]
    # A new object for each time: Python takes a NaN for equal to itself, but to no other one.
    return lambda: (float(str(rng.choice(pool))), float(str(rng.choice(pool))))


def bytes_of(rng):
    kind = rng.choice(["usual", "usual", "usual", "huge", "signed"])
    if kind == "usual":
        return rng.choice([0, 1, rng.randint(0, 2**20), rng.randint(0, 2**33)])
    if kind == "huge":
        return rng.choice([INT64_MAX, INT64_MAX // 4, 2**53 + 1, 2**62])
    return rng.choice([-INT64_MAX - 1, -1, -2**53 - 1, rng.randint(-1000, 1000)])


def random_case(rng, most):
    """A list of calls: ("compute", name, start, end) or ("comm", op, start, end, bytes)."""
    draw = times_of(rng)
    huge_bytes = rng.random() < 0.3
    compute_share = rng.choice([0.0, 0.2, 0.5, 0.9])
    ops = rng.sample(OPS, rng.randint(1, len(OPS)))
    calls = []
    for _ in range(rng.choice([0, 1, 2, 5, 10, most])):
        start, end = draw()
        if rng.random() < compute_share:
            calls.append(("compute", rng.choice(["forward", "backward", ""]), start, end))
        else:
            calls.append(("comm", rng.choice(ops), start, end, bytes_of(rng) if huge_bytes else rng.randint(0, 2**30)))
    return [call for call in calls if call[0] == "compute"] + [call for call in calls if call[0] == "comm"] \
        if rng.random() < 0.3 else calls


def unordered(calls):
    return any(call[0] == "comm" and any(math.isnan(time) for time in call[2:4]) for call in calls)


def comm_count(calls):
    return sum(call[0] == "comm" for call in calls)


def random_cases(seed, count, most):
    rng = random.Random(seed)
    cases = []
    while len(cases) < count:
        calls = random_case(rng, most)
        if not unordered(calls) or comm_count(calls) <= MOST_UNORDERED:
            cases.append(calls)
    return cases


def name_text(name):
    safe = (chr(byte) if byte < 128 and (chr(byte).isalnum() or byte == 0x5F) else f"%{byte:02X}"
            for byte in name.encode())
    return "".join(safe) or "%"


def number_text(number):
    return "nan" if math.isnan(number) else f"{number:.17g}"


def input_lines(calls):
    for verb, name, start, end, *size in calls:
        yield " ".join([verb, name_text(name), number_text(start), number_text(end), *map(str, size)])


def expected_lines(sim_class, calls):
    sim = sim_class()
    for verb, *arguments in calls:
        (sim.add_compute if verb == "compute" else sim.add_comm)(*arguments)
    yield from summary_lines(sim)
    for e in sim.events:
        yield (f"= event {name_text(e.op)} {number_text(e.start)} {number_text(e.end)} {e.bytes} "
               f"{int(e.overlap_with_compute)}")
    for r in sim.timeline():
        yield (f"= record {name_text(r['op'])} {number_text(r['start'])} {number_text(r['end'])} "
               f"{number_text(r['duration'])} {r['bytes']} {int(r['overlap'])}")


def summary_lines(sim):
    if overflows(sim.events):
        return ["= overflow"]
    summary = sim.summarize()
    lines = [f"= summary {summary['num_comm_events']} {number_text(summary['total_comm_time'])} "
             f"{number_text(summary['overlap_time'])} {number_text(summary['overlap_ratio'])}"]
    for op, item in summary["by_op"].items():
        lines.append(f"= by_op {name_text(op)} {item['count']} {number_text(item['time'])} {item['bytes']}")
    return lines


def overflows(events):
    """Whether a 64-bit sum of an op's bytes would not fit on the way."""
    totals = {}
    for event in events:
        totals[event.op] = totals.get(event.op, 0) + event.bytes
        if not -INT64_MAX - 1 <= totals[event.op] <= INT64_MAX:
            return True
    return False


def write(sim_class, path):
    lines = ["# Calls of NcclProfilerSim and the Python class's answers, by nccl_profiler_sim_check.py --write; the",
             "# form is described in nccl_profiler_sim_replay.h."]
    for number, calls in enumerate(random_cases(seed=1, count=200, most=6)):
        lines += [f"case {number}", *input_lines(calls), *expected_lines(sim_class, calls)]
    Path(path).write_text("\n".join(lines) + "\n")


def compare(sim_class, replay, count, seed):
    cases = random_cases(seed, count, most=60) + random_cases(seed + 1, count // 100, most=400)
    text = "".join(f"case {number}\n" + "".join(line + "\n" for line in input_lines(calls))
                   for number, calls in enumerate(cases))
    answer = subprocess.run([replay], input=text, capture_output=True, text=True, check=True).stdout
    printed = iter(answer.splitlines())
    for number, calls in enumerate(cases):
        for expected in [f"case {number}", *expected_lines(sim_class, calls)]:
            got = next(printed, "(end of output)")
            if got != expected:
                print("\n".join([f"case {number}", *input_lines(calls)]))
                print(f"expected: {expected}\ngot:      {got}")
                return 1
    if next(printed, None) is not None:
        print("the replay printed more than the cases ask for")
        return 1
    print(f"{len(cases)} random cases equal in every field")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("replay", nargs="?")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=20240501)
    options = parser.parse_args()
    sim_class = load_reference()
    if sim_class is None:
        print("SKIPPED: no reference/nccl_profiler_sim.py beside the corpus (COMMLENS_CORPUS): not compared with Python")
        return SKIPPED
    if options.write:
        write(sim_class, options.write)
        return 0
    if not options.replay:
        parser.error("expected REPLAY or --write FILE")
    return compare(sim_class, options.replay, options.cases, options.seed)


if __name__ == "__main__":
    sys.exit(main())
