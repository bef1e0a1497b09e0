#!/usr/bin/env python3
"""Checks the shape of what `--perf` prints: times differ from run to run, what they are times of does not.

    perf_check.py COMMLENS_BINARY

Two simulated ranks are analysed by one thread. Checked: the result on standard output is the same with and without;
each line of the tree is a stage with seconds, share, calls and, where it counts bytes, a rate; stages stand below the
one they belong to and take no longer than it; bytes and calls are those of the files. Exit code 1 if any is not so.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LINE = re.compile(r"^( *)(\w+) +(\d+\.\d{4}) s +(\d+\.\d) % +(\d+) calls(?: +(\d+\.\d) MB +(\d+) MB/s of text.*)?$")
STAGES = {"total", "read", "fetch", "classify", "windows", "figures", "arrange", "analyses", "output"}
WITH_BYTES = {"read", "fetch"}


def analyze(program, folder, *words):
    done = subprocess.run([program, "analyze", folder, "--jobs", "1", "--context", "never", "--format", "json", *words], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def check_tree(text, files):
    rows = {}
    above = []  # (indentation, seconds) of the stages that the next may belong to
    for line in text.splitlines():
        parts = LINE.match(line)
        assert parts, f"not a stage's line: {line!r}"
        indentation, name, seconds = len(parts[1]), parts[2], float(parts[3])
        assert name not in rows, f"{name} stands twice"
        while above and above[-1][0] >= indentation:
            above.pop()
        assert bool(above) == (name != "total"), f"{name} belongs to nothing"
        if above:
            assert indentation == above[-1][0] + 2, f"{name} is not below the stage that it belongs to"
            assert seconds <= above[-1][1] + 0.001, f"{name} takes longer than what it belongs to"
        above.append((indentation, seconds))
        assert (parts[6] is not None) == (name in WITH_BYTES), f"bytes of {name}: {line!r}"
        rows[name] = parts
    assert STAGES <= rows.keys(), f"missing: {STAGES - rows.keys()}"
    assert rows["total"][4] == "100.0" and rows["total"][5] == "1"
    assert rows["read"][5] == str(len(files)), "a read for each file"
    size = sum(file.stat().st_size for file in files)
    for name in WITH_BYTES:
        assert abs(float(rows[name][6]) - size / 1e6) <= 0.051, f"bytes of {name}: {rows[name][6]} MB of {size}"


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="commlens-perf-") as folder:
        subprocess.run([program, "simulate", "--dp", "2", "--layers", "4", "--steps", "3", "--quiet", "-o", folder],
                       check=True, timeout=60)
        plain, nothing = analyze(program, folder)
        with_tree, tree = analyze(program, folder, "--perf")
        assert with_tree == plain, "--perf changes the result"
        assert nothing == "", f"without --perf: {nothing!r}"
        check_tree(tree, sorted(Path(folder).glob("rank-*.json")))
    print("perf_check: ok")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as fault:
        sys.exit(f"perf_check: {fault}")
