#!/usr/bin/env python3
"""Whole-program tests as data: runs every case of tests/golden/ and compares what it prints with what was recorded.

    golden.py COMMLENS_BINARY [--update] [--corpus | --own] [CASE...]

A case is a folder with `command`, `expected` and whatever input it needs; adding one needs no other change. It runs in
an empty folder in which `case` is the case's folder, `data` is tests/data and `corpus` is the corpus of real recordings
(COMMLENS_CORPUS), so that what is printed holds no path of this machine. `command` has one command line on each line:

    # a comment
    NO_COLOR=1 analyze case/rank0.json --format json < case/input > written.json | figures

without the program's name. `<` and `>` are as in a shell; what stands behind `|` is a filter of standard output: a name
of FILTERS with its arguments. `expected` is what was printed: standard output, then lines of standard error marked `! `,
then `exit N` where it is not 0; with several command lines each part begins with `$ ` and its line. The program's version
is printed as VERSION.

--update records. It refuses where a whole recording's figures (filter `figures`) are not what the second method
(tests/reference) finds in the same files. --corpus runs only cases that read the corpus and exits with 77 where it is
absent; --own runs only the others.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "reference"))
import compare  # noqa: E402
import slow_analysis as slow  # noqa: E402

SKIPPED = 77
SECONDS = 60

# ------------------------------------------------------------------------------------------------------------- filters


def one_line(value):
    return json.dumps(value, ensure_ascii=False)


def without_empty(row):
    return {key: value for key, value in row.items() if value is not None}


def codes(warnings):
    return {w["code"]: w["count"] for w in warnings}


def keep(text, *parts):
    """The named parts of a JSON result, a row on each line; `inputs` and `warnings` with codes and counts only."""
    result, lines = json.loads(text), []
    for part in parts:
        value = result
        for key in part.split("/"):
            value = value[key]
        if part == "inputs":
            value = [{**i, "warnings": codes(i["warnings"])} for i in value]
        if part == "warnings":
            value = codes(w for w in value if w["code"] != "part_not_computed")
        if part == "evidence":
            value = {row["evidence"]: row["count"] for row in value if row["count"]}
        lines.append(f"{part}:")
        lines += ["  " + one_line(without_empty(row) if isinstance(row, dict) else row)
                  for row in (value if isinstance(value, list) else [value])]
    return "\n".join(lines) + "\n"


def figures(text):
    return keep(text, "inputs", "job", "ranks", "ops", "ledger", "evidence", "warnings")


def cat(_, path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def grep(text, pattern):
    return "".join(line for line in text.splitlines(True) if re.search(pattern, line))


def without(text, pattern):
    return re.sub(pattern, "", text)


def after(text, mark):
    """From the line that holds `mark` to the end: what a library's version does not lay out."""
    lines = text.splitlines(True)
    return "".join(lines[next((i for i, line in enumerate(lines) if mark in line), len(lines)):])


def events(text):
    """How many events a timeline holds by phase and category."""
    count = {}
    for event in json.loads(text)["traceEvents"]:
        key = f"{event['ph']} {event.get('cat', event['name'] if event['ph'] in 'MC' else '')}"
        count[key] = count.get(key, 0) + 1
    return "".join(f"{key}: {count[key]}\n" for key in sorted(count))


def escapes(text):
    """Escape sequences made visible, or a line that says that there are none."""
    return text.replace("\x1b", "<ESC>") if "\x1b" in text else "no escape sequences\n"


def accepted_by(text, *words):
    """Whether another program takes the text on its standard input, where that program is at hand."""
    if shutil.which(words[0]):
        done = subprocess.run(words, input=text.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "MANWIDTH": "80"})
        if done.returncode != 0 or done.stderr:
            return f"{' '.join(words)} complains: {done.stderr.decode('utf-8', 'replace')}"
    return f"accepted by {' '.join(words)}\n"


FILTERS = {"keep": keep, "figures": figures, "cat": cat, "grep": grep, "without": without, "after": after,
           "events": events, "escapes": escapes, "accepted-by": accepted_by}

# ------------------------------------------------------------------------------------------------------- second method


STEP_FIGURES = ("window_ns", "compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns")


def rows_of(result, part, **where):
    return [r for r in result[part] if all(r.get(k) == v for k, v in where.items())]


LEDGER_ROWS = {"compute": ["compute_ns"], "transfer": ["transfer_ns", "link_deficit_ns"], "memory": ["memory_ns"],
               "wait": ["wait_compute_ns", "wait_host_ns", "wait_link_ns", "wait_imbalance_ns", "wait_undecided_ns"],
               "host": ["host_ns"], "rest": ["unexplained_ns"]}


def ledger_disagreements(result, parts, net):
    """Lines for a ledger that does not sum up; of GPUs on one clock, for each row that the second method finds otherwise.
    `net`: the waiting of all communication is known."""
    found = result["ledger"]
    if found is None:
        return ["ledger: is null"] if parts else []
    rows = [row for names in LEDGER_ROWS.values() for row in names]
    lines = []
    if sum(found[row] for row in rows) != found["step_ns"] or any(found[row] < 0 for row in rows):
        lines.append(f"ledger: the rows do not sum to the step: {found}")
    clocks = result["clocks"] or []
    one_clock = len(result["inputs"]) == 1 or (net and clocks and all(c["offset_ns"] == 0 for c in clocks))
    if not parts or not one_clock:
        return lines
    ours = slow.ledger(parts, found["steps"] or 0)
    for name, theirs in (("window", "window_ns"), ("step", "step_ns"), ("gpus", "gpus")):
        if ours[name] != found[theirs]:
            lines.append(f"ledger: {theirs} program {found[theirs]}, slow method {ours[name]}")
    ours["transfer"] += ours["deficit"]
    ours["wait"] += ours["open"]
    # Each row is rounded down or up, so that a sum of several is away from the mean by less than as many.
    per = ours["gpus"] * max(1, found["steps"] or 0)
    for name, names in LEDGER_ROWS.items():
        theirs = sum(found[row] for row in names)
        if abs(theirs * per - ours[name]) >= len(names) * per:
            lines.append(f"ledger: {'+'.join(names)} program {theirs}, slow method {ours[name] / per}")
    return lines


def disagreements(result):
    """Lines for what the second method finds otherwise in the inputs of a result over whole recordings."""
    used = [i for i in result["inputs"] if i["format"] is not None and i["events"]]
    if len({i["rank"] for i in used}) != len(used):
        return ["two recordings of one rank: the second method reads files one by one"]
    lines, recordings, analysed = [], [], []
    for given in used:
        ours = slow.analyse(given["path"])
        analysed.append(ours)
        recordings.append(ours["events"])
        rows = rows_of(result, "ranks", rank=given["rank"])
        lines += compare.compare({**ours, "rank": None, "ops": []}, {"ranks": rows, "ops": []})
        steps = {(s["device"], s["step"]): s for s in ours["steps"]}
        if steps:                       # by launches: the second method knows no other windows of steps
            theirs = {(s["device"], s["step"]): s for s in rows_of(result, "steps", rank=given["rank"])}
            lines += compare.compare_rows("step", STEP_FIGURES, steps, theirs)
    found = [event for events in recordings for event in events]
    net = {row["op"] for row in result["ops"] or [] if row["bandwidth_kind"] == "net"}
    if net:
        slow.wait_for_last(recordings)
    ops = []
    for op in sorted({e["op"] for e in found}):
        rows = [e for e in found if e["op"] == op]
        time_of = (lambda r: r["busy_ns"] - r["wait_ns"]) if op in net else (lambda r: r["busy_ns"])
        ops.append(slow.op_row(op, rows, time_of))
    parts = [part for ours in analysed for part in ours["parts"]]
    lines += ledger_disagreements(result, parts, all(row["op"] in net for row in ops))
    if any(r.get("basis") == "gpu" for r in result["ranks"]):
        lines += compare.compare({"rank": None, "ranks": [], "ops": ops}, {"ranks": [], "ops": result["ops"]})
    return lines


# --------------------------------------------------------------------------------------------------------------- cases


class Line:
    """One command line, taken apart."""

    def __init__(self, text):
        self.text = text
        lexer = shlex.shlex(text, posix=True, punctuation_chars="|<>")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
        self.env = {}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, self.env[name] = words.pop(0).split("=", 1)
        parts = [[]]
        for word in words:
            if word == "|":
                parts.append([])
            else:
                parts[-1].append(word)
        self.filters = parts[1:]
        self.stdin, self.stdout = "/dev/null", None
        self.arguments = []
        given = iter(parts[0])
        for word in given:
            if word == "<":
                self.stdin = next(given)
            elif word == ">":
                self.stdout = next(given)
            else:
                self.arguments.append(word)

    @property
    def takes_figures(self):
        return ["figures"] in self.filters


def run_line(line, binary, folder, version):
    """(what was printed, as `expected` has it; standard output before the filters)."""
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment.update({"LC_ALL": "C.UTF-8", **line.env})
    with open(os.path.join(folder, line.stdin), "rb") as stdin:
        out = open(os.path.join(folder, line.stdout), "wb") if line.stdout else subprocess.PIPE
        done = subprocess.run([binary, *line.arguments], stdin=stdin, stdout=out, stderr=subprocess.PIPE, cwd=folder,
                              timeout=SECONDS, check=False, env=environment)
    raw = (done.stdout or b"").decode("utf-8")
    text = raw
    if done.returncode == 0 or raw:
        for name, *arguments in line.filters:
            text = FILTERS[name](text, *arguments)
    text = text.replace(f"commlens {version}", "commlens VERSION")
    if text and not text.endswith("\n"):
        text += "\n"
    text += "".join(f"! {words}\n" for words in done.stderr.decode("utf-8", "replace").splitlines())
    return text + (f"exit {done.returncode}\n" if done.returncode else ""), raw


class Case:
    def __init__(self, name):
        self.name = name
        self.folder = os.path.join(HERE, "golden", name)
        with open(os.path.join(self.folder, "command"), encoding="utf-8") as f:
            text = f.read()
        self.lines = [Line(words) for words in text.splitlines() if words.strip() and not words.startswith("#")]
        self.needs_corpus = re.search(r"\bcorpus/", text) is not None

    @property
    def expected_path(self):
        return os.path.join(self.folder, "expected")

    def expected(self):
        try:
            with open(self.expected_path, encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def run(self, binary, version, check):
        """(what was printed, what the second method disagrees with if `check`)."""
        printed, wrong = "", []
        with tempfile.TemporaryDirectory(prefix="commlens-golden-") as folder:
            for name, target in (("case", self.folder), ("data", os.path.join(HERE, "data")),
                                 ("corpus", slow.corpus_folder())):
                os.symlink(os.path.abspath(target), os.path.join(folder, name))
            here = os.getcwd()
            os.chdir(folder)                              # filters and the second method read by the same names
            try:
                for line in self.lines:
                    text, raw = run_line(line, binary, folder, version)
                    printed += (f"$ {line.text}\n" if len(self.lines) > 1 else "") + text
                    if check and line.takes_figures and raw:
                        wrong += disagreements(json.loads(raw))
            finally:
                os.chdir(here)
        return printed, wrong


def first_difference(wanted, got):
    wanted, got = wanted.splitlines(), got.splitlines()
    for i in range(max(len(wanted), len(got))):
        ours, theirs = (lines[i] if i < len(lines) else "(nothing)" for lines in (wanted, got))
        if ours != theirs:
            return f"line {i + 1}:\n      - {ours[:1000]}\n      + {theirs[:1000]}"
    return "line ends"


def record(case, printed, wrong):
    """Whether the case may be recorded; it then is."""
    if wrong:
        print(f"BAD {case.name}: not recorded, the second method disagrees" + "".join(f"\n      {w}" for w in wrong[:20]))
        return False
    if printed != case.expected():
        with open(case.expected_path, "w", encoding="utf-8") as f:
            f.write(printed)
        print(f"new {case.name}")
    return True


def check(case, printed):
    if printed == case.expected():
        return True
    print(f"BAD {case.name}: {first_difference(case.expected(), printed)}")
    return False


def chosen_cases(options):
    names = options.cases or sorted(os.listdir(os.path.join(HERE, "golden")))
    cases = [Case(name) for name in names]
    if options.corpus or options.own:
        cases = [case for case in cases if case.needs_corpus == options.corpus]
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--update", action="store_true", help="record what is printed now")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--corpus", action="store_true", help="only cases that read the corpus")
    which.add_argument("--own", action="store_true", help="only cases that do not")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    version = subprocess.run([binary, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().split()[1]
    cases = chosen_cases(options)
    skipped = [c for c in cases if c.needs_corpus] if not os.path.isdir(slow.corpus_folder()) else []
    if skipped:
        print(f"skipped {len(skipped)} cases: no corpus at {slow.corpus_folder()} (COMMLENS_CORPUS)")
    bad = 0
    cases = [c for c in cases if c not in skipped]
    for case in cases:
        try:
            printed, wrong = case.run(binary, version, options.update)
        except (subprocess.SubprocessError, ValueError, KeyError, OSError, slow.Unusable) as e:
            print(f"BAD {case.name}: {type(e).__name__}: {e}")
            bad += 1
            continue
        bad += not (record(case, printed, wrong) if options.update else check(case, printed))
    print(f"{len(cases) - bad} as expected, {bad} not")
    return 1 if bad else SKIPPED if skipped and not cases else 0


if __name__ == "__main__":
    sys.exit(main())
