#!/usr/bin/env python3
"""Compares `commlens analyze FILE --format json` with the slow method, figure by figure, file by file.

    compare.py COMMLENS_BINARY FILE...      every Kineto file is one run of the program
    compare.py COMMLENS_BINARY --corpus     all Kineto files of the corpus (COMMLENS_CORPUS)
    compare.py COMMLENS_BINARY --only-run   the same, without the slow method: that the program reads them, no more

Exit code 1 with a line per differing figure, 77 where there is no corpus. Times and counts must be equal;
bandwidths and ratios to 1e-9.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import slow_analysis as slow  # noqa: E402

RANK_FIGURES = ("window_ns", "compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns",
                "overlap_ratio", "whole_event_overlap_ns", "gpu_events", "comm_events", "comm_busy_ns")
OP_FIGURES = ("count", "bytes", "unknown_size", "busy_ns", "hidden_ns", "exposed_ns", "exclusive_exposed_ns", "mean_ns",
              "p50_ns", "p95_ns", "p99_ns", "max_ns", "algbw_gbs", "busbw_gbs")


def same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        return abs(ours - theirs) <= 1e-9 * max(1e-300, abs(ours), abs(theirs))
    return type(ours) is type(theirs) and ours == theirs


def compare_rows(what, figures, ours, theirs):
    """Lines for what differs between two tables, each {key: row}."""
    lines = [f"{what} {key}: only the slow method has it" for key in ours if key not in theirs]
    lines += [f"{what} {key}: only the program has it" for key in theirs if key not in ours]
    for key in (k for k in ours if k in theirs):
        for figure in figures:
            if figure not in theirs[key]:
                lines.append(f"{what} {key}: {figure} is missing, slow method {ours[key][figure]}")
            elif not same(ours[key][figure], theirs[key][figure]):
                lines.append(f"{what} {key}: {figure} program {theirs[key][figure]}, slow method {ours[key][figure]}")
    return lines


def table(rows, key):
    """({key: row}, lines for keys that occur twice)."""
    out, lines = {}, []
    for row in rows or []:
        if row.get(key) in out:
            lines.append(f"two rows with {key} {row.get(key)}")
        out[row.get(key)] = row
    return out, lines


def without_gpu(row):
    return not row.get("gpu_events") and all(not row.get(f) for f in RANK_FIGURES)


def compare(ours, theirs):
    """Lines for every difference between the slow method's result and the program's JSON."""
    their_ranks, lines = table([r for r in theirs.get("ranks") or [] if not without_gpu(r) and r.get("basis") != "host"], "device")
    our_ranks, _ = table(ours["ranks"], "device")
    lines += compare_rows("device", RANK_FIGURES, our_ranks, their_ranks)
    if ours["rank"] is not None:
        lines += [f"device {d}: rank program {row.get('rank')}, slow method {ours['rank']}"
                  for d, row in their_ranks.items() if row.get("rank") != ours["rank"]]
    # Ranges on the host stand for communication where there is no GPU work: the slow method reads GPU events only.
    host_only = bool(theirs.get("ranks")) and all(r.get("basis") == "host" for r in theirs["ranks"])
    their_ops, repeated = table([] if host_only else theirs.get("ops"), "op")
    lines += repeated + compare_rows("op", OP_FIGURES, table(ours["ops"], "op")[0], their_ops)
    return lines


def run(binary, path):
    done = subprocess.run([binary, "analyze", path, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)
    if done.returncode != 0:
        return None, [f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:300]}"]
    try:
        result = json.loads(done.stdout)
        return result, [f"op {row['op']}: bandwidth_kind {row['bandwidth_kind']} for a single rank, not apparent"
                        for row in result.get("ops") or [] if row.get("bandwidth_kind") not in ("apparent", None)]
    except ValueError as e:
        return None, [f"no valid JSON: {e}"]


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    binary, files = arguments[0], arguments[1:]
    compared = files != ["--only-run"]
    if files in (["--corpus"], ["--only-run"]):
        if not os.path.isdir(slow.corpus_folder()):
            print(f"skipped: no corpus at {slow.corpus_folder()} (COMMLENS_CORPUS)")
            return 77
        files = [os.path.join(slow.corpus_folder(), "kineto", name) for name in slow.corpus_table()]
    bad = 0
    for path in files:
        theirs, lines = run(binary, path)
        if theirs is not None and compared:
            try:
                lines += compare(slow.analyse(path), theirs)
            except slow.Unusable as e:
                lines = [f"the slow method cannot read it: {e}"]
        bad += bool(lines)
        print(("BAD " if lines else "ok  ") + path + "".join("\n      " + line for line in lines))
    print(f"{len(files) - bad} {'equal' if compared else 'read'}, {bad} {'differ' if compared else 'not'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
