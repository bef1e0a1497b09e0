#!/usr/bin/env python3
"""Runs the program on every malformed or odd input of make_bad_inputs.py and checks what it must never do.

    run_bad_inputs.py COMMLENS_BINARY [--asan] [--huge] [--only TEXT] [--keep DIR]

Each case is one `analyze X --format json` under a limit of time (10 s) and of memory (1 GB of address space; none with
--asan, which gets five times the time). Checked: no signal; the exit code; strictly valid JSON; the figures of `ranks`
and the ops where they are known; the five buckets of every row sum to its window; something odd has a warning in
`inputs[].warnings`; an unusable input is named in one short line on standard error.
Prints `ok` or `BAD name: why` per case and the total; exit code 1 if any is bad.
"""
import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_bad_inputs  # noqa: E402

SECONDS = 10
ADDRESS_SPACE = 10**9
BUCKETS = ("compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def no_constant(word):
    raise ValueError(f"{word} is no JSON")


def parse_strictly(data):
    return json.loads(data.decode("utf-8"), parse_constant=no_constant)


def rows_with_gpu(result):
    return [r for r in result.get("ranks") or [] if r.get("gpu_events")]


def table_fits(wanted, rows):
    """Every wanted row has a row of its own that agrees in all its figures, and none is left."""
    left = list(rows)
    for want in wanted:
        found = next((r for r in left if all(r.get(k) == v for k, v in want.items())), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def difference(wanted, rows):
    """In words, how the nearest of the acceptable tables differs."""
    if not wanted or len(wanted[0]) != len(rows):
        return f"{len(rows)} rows with GPU events, wanted {' or '.join(str(len(t)) for t in wanted)}"
    parts = [f"{k} {row.get(k)} not {v}" for want, row in zip(wanted[0], rows) for k, v in want.items() if row.get(k) != v]
    return ", ".join(parts[:6]) or "rows in another order or doubled"


def check_result(result, entry, code):
    """Lines for what is wrong in the program's JSON."""
    wrong = []
    rows = rows_with_gpu(result)
    for row in rows:
        parts = [row.get(b) for b in BUCKETS]
        if not all(isinstance(p, int) and p >= 0 for p in parts) or sum(parts) != row.get("window_ns"):
            wrong.append(f"buckets {parts} are not a window of {row.get('window_ns')}")
    if entry["ranks"] is not None and not (code == 3 and not rows):
        if not any(table_fits(table, rows) for table in entry["ranks"]):
            wrong.append(difference(entry["ranks"], rows))
        elif entry["ops"] is not None:
            ops = {o.get("op"): [o.get("count"), o.get("bytes")] for o in result.get("ops") or []}
            if ops != entry["ops"]:
                wrong.append(f"ops {ops} not {entry['ops']}")
    warnings = [w for i in result.get("inputs") or [] for w in i.get("warnings") or []]
    if entry["notes"] and code == 0 and not warnings:
        wrong.append("no warning (" + "; ".join(entry["notes"]) + ")")
    for w in warnings:
        if not isinstance(w.get("code"), str) or not w.get("message") or not isinstance(w.get("count"), int) or w["count"] < 1:
            wrong.append(f"odd warning {str(w)[:100]}")
    return wrong


def check_stderr(text, name):
    lines = text.decode("utf-8", "replace").splitlines()
    if not any(os.path.basename(name) in line and len(line) < 600 for line in lines):
        return [f"no short line on standard error names it: {' / '.join(lines)[:200]!r}"]
    if any(ord(c) < 32 and c != "\t" for line in lines for c in line):
        return ["control bytes on standard error"]
    return []


def run_case(binary, root, name, entry, asan):
    """What is wrong with this case, as a list of words; empty when it is well."""
    try:
        done = subprocess.run([binary, "analyze", os.path.join(root, name), "--format", "json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=SECONDS * (5 if asan else 1),
                              preexec_fn=None if asan else limit_memory, check=False)
    except subprocess.TimeoutExpired:
        return ["out of time"]
    code = done.returncode
    if code < 0:
        return [f"killed by {signal.Signals(-code).name}: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}"]
    wrong = []
    if code not in entry["exit"]:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        wrong.append(f"exit code {code}, not {' or '.join(map(str, entry['exit']))}: {said}")
    if code == 3:
        wrong += check_stderr(done.stderr, name)
    if code == 0 or (code == 3 and done.stdout.strip()):
        try:
            wrong += check_result(parse_strictly(done.stdout), entry, code)
        except (ValueError, AttributeError, RecursionError) as e:
            wrong.append(f"no valid JSON: {str(e)[:150]}")
    return wrong


def cannot_unpack(binary, name):
    """Whether this build cannot read files that are packed like this one, by its own word."""
    suffix = os.path.splitext(name)[1].encode()
    return suffix in (b".gz", b".zst") and suffix not in subprocess.run([binary, "formats"], stdout=subprocess.PIPE,
                                                                        check=True).stdout


def run_all(options, root):
    expected, _, disagree = make_bad_inputs.make(root, options.huge)
    bad = len(disagree)
    for name in disagree:
        print(f"BAD {name}: the expectation is not what the slow method says")
    passed = 0
    for name, entry in expected.items():
        if options.only and options.only not in name:
            continue
        if cannot_unpack(options.binary, name):
            entry = {**entry, "exit": [3], "ranks": None}
        wrong = run_case(options.binary, root, name, entry, options.asan)
        if wrong:
            bad += 1
            print(f"BAD {name}: {'; '.join(wrong)}" + (f"  [{entry['comment']}]" if entry["comment"] else ""))
        else:
            passed += 1
            print(f"ok  {name}")
    print(f"{passed} passed, {bad} failed")
    return 1 if bad or not passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--asan", action="store_true", help="no memory limit, five times the time")
    parser.add_argument("--huge", action="store_true", help="with a string of 1 GB")
    parser.add_argument("--only", metavar="TEXT", help="only cases with this in their name")
    parser.add_argument("--keep", metavar="DIR", help="make the inputs here and leave them")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        return run_all(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="commlens-bad-") as root:
        return run_all(options, root)


if __name__ == "__main__":
    sys.exit(main())
