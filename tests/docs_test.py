#!/usr/bin/env python3
"""Checks that the documentation says what the program does: keys of the JSON, verbs, options, notes, names, links.

    docs_test.py COMMLENS            prints one line for each fault and fails if there is any
    docs_test.py COMMLENS --update   writes what is generated: docs/notes.md, the example in docs/json.md, docs/report.svg
    docs_test.py --code COMPILER     compiles the files that docs/add-*.md show

docs/json.md names a key by the headings' paths and the first column of the tables below them: under "## `ranks[]`,
`steps[]`" the row "| `idle_ns` |" is the key idle_ns of the rows of both lists.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LISTS = ("formats", "analyses", "notes")
faults = []


def expect(condition, fault):
    if not condition:
        faults.append(fault)


def read(path):
    return path.read_text(encoding="utf-8")


def check_format_pages():
    """Each page says how to capture the format, what it can and cannot answer, and shows a command that reads it."""
    for page in sorted((DOCS / "formats").glob("*.md")):
        text, name = read(page), f"docs/formats/{page.name}"
        for heading in ("How to capture", "What it can answer", "What it cannot"):
            expect(re.search(rf"^## {heading}$", without_code(text), flags=re.M), f'{name}: lacks the heading "{heading}"')
        blocks = re.findall(r"^```.*?^```$", text, flags=re.M | re.S)
        shown = any(re.search(r"^commlens (analyze|diagnose) \S", block, flags=re.M) for block in blocks)
        expect(shown or re.search(r"`commlens analyze [^`]+`", text), f"{name}: shows no command that reads it")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


class Program:
    def __init__(self, binary):
        self.binary = binary

    def output(self, *words, cwd=None):
        return subprocess.run([self.binary, *words], check=True, capture_output=True, text=True, cwd=cwd).stdout

    def complaint(self, *words, cwd=None):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, cwd=cwd).stderr

    def list(self, verb):
        return json.loads(self.output(verb, "--format", "json"))

    def verbs(self):
        listed = self.output("--help").split("Subcommands:")[1]
        return re.findall(r"^  ([a-z]\w*) ", listed, flags=re.M)

    def options(self, verb):
        """Pairs of an option's long name and its default as the help prints it; an empty text is none."""
        rows = re.findall(r"^  (?:-\w,)?(--[\w-]+)(?: [A-Z|]+)?(?:=(\S+))?", self.output(verb, "--help"), flags=re.M)
        return [(name, default) for name, default in rows if name != "--help"]


# ---- JSON

def printed_keys(value, path=""):
    """Paths of all keys: "ranks[].idle_ns". Tables of `by` are one: their names are the user's."""
    if isinstance(value, list):
        for item in value:
            yield from printed_keys(item, path + "[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            at = f"{path}.{key}" if path else key
            at = re.sub(r"^by\.[\w,]+\[\]", "by.NAME[]", at)
            yield at
            yield from printed_keys(item, re.sub(r"^by\.[\w,]+$", "by.NAME", at))


def documented_keys(text):
    paths = [""]
    for line in without_code(text).splitlines():
        if line.startswith("## "):
            paths = re.findall(r"`([^`]+)`", line) or ([""] if line == "## Top level" else None)
        row = re.match(r"\| `([^`]+)`", line)
        for path in (paths or []) if row else []:
            yield f"{path}.{row.group(1)}" if path else row.group(1)


def analysis(program, folder, *options):
    """The report on a small run, with a file that is no trace beside it."""
    run = pathlib.Path(folder, "run")
    if not run.exists():
        program.output("simulate", "--dp", "2", "--quiet", "-o", "run", cwd=folder)
    return json.loads(program.output("analyze", "run/", "--format", "json", *options, cwd=folder))


def check_json(program, folder, odd):
    all_keys = "op,group,size,dtype,stream,step,rank,device,host,evidence"
    printed = set(printed_keys(analysis(program, folder, "--by", all_keys))) | set(printed_keys(odd))
    printed |= set(printed_keys(slow_analysis(program, folder))) | set(printed_keys(open_analysis(program, folder)))
    printed |= set(printed_keys(joined_analysis(program, folder)))
    printed |= set(printed_keys(measured_analysis(program)))
    # A table is written as a key of `by`, whatever its name.
    printed = {key for key in printed if not re.match(r"by\.(?!NAME)[\w,]+$", key) or key.count(",") == 0}
    documented = set(documented_keys(read(DOCS / "json.md")))
    for key in sorted(printed - documented):
        faults.append(f"docs/json.md: does not mention the key {key}")
    for key in sorted(documented - printed):
        faults.append(f"docs/json.md: mentions the key {key}, which is not printed")


def slow_analysis(program, folder):
    """Of a job with a slow rank: a straggler, and the trails of a rank that waits for it."""
    program.output("simulate", "--dp", "2", "--tp", "2", "--slow", "1:1.5", "--quiet", "-o", "slow", cwd=folder)
    return json.loads(program.output("analyze", "slow/", "--explain", "0", "--format", "json", cwd=folder))


def joined_analysis(program, folder):
    """With a log of another run beside the traces: what could not be joined has the same keys."""
    log = "node-0:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1b000 commId 0x2 - Init COMPLETE\n"
    pathlib.Path(folder, "nccl.log").write_text(log)
    return json.loads(program.output("analyze", "run/", "nccl.log", "--format", "json", cwd=folder))


def measured_analysis(program):
    """Of inputs that are no timelines: calls, who waited in them, timers."""
    data = ROOT / "tests" / "data" / "measured"
    return json.loads(program.output("analyze", data / "inspector", data / "training.log", "--format", "json"))


def open_analysis(program, folder):
    """Of a job with a missing rank: who made the others wait stays open."""
    program.output("simulate", "--dp", "4", "--slow", "1:1.5", "--missing", "3", "--quiet", "-o", "open", cwd=folder)
    return json.loads(program.output("analyze", "open/", "--format", "json", cwd=folder))


def odd_analysis(program, folder):
    """Of a file that stops in the middle, beside one that does not: warnings of an input, what is not matched."""
    analysis(program, folder)
    whole = pathlib.Path(folder, "run", "rank-0.json").read_bytes()
    pathlib.Path(folder, "cut.json").write_bytes(whole[:len(whole) // 2])
    return json.loads(program.output("analyze", "cut.json", "run/rank-1.json", "--format", "json", cwd=folder))


def first_rows(value):
    if isinstance(value, list):
        return [first_rows(item) for item in (value if all(isinstance(i, (int, str)) for i in value) else value[:1])]
    return {key: first_rows(item) for key, item in value.items()} if isinstance(value, dict) else value


def without(value, keys):
    """A value without the members of these names, however deep."""
    if isinstance(value, list):
        return [without(item, keys) for item in value]
    if isinstance(value, dict):
        return {key: without(item, keys) for key, item in value.items() if key not in keys}
    return value


def wrapped(text, indent, width=110):
    """JSON on lines that break between members only."""
    lines = [indent]
    for part in re.split(r'(?<=, )(?=["{])', text):
        if len(lines[-1] + part) > width:
            lines.append(indent + " ")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def example(program, folder):
    """One row of each list; the columns of windows and of sums in the first list that has them."""
    report = first_rows(analysis(program, folder, "--steps", "10"))
    windows = set(report["ranks"][0]) - {"rank", "device", "run", "window_ns"}
    sums = set(report["ops"][0]) - {"op", "count"}
    for name, columns in {"steps": windows, "groups": sums, "sizes": sums, "by": sums}.items():
        report[name] = without(report[name], columns)
    members = [wrapped(f"{json.dumps(key)}: {json.dumps(value)}", " ") for key, value in report.items()]
    return "```json\n{\n" + ",\n".join(members) + "\n}\n```"


# ---- Generated text

def notes_page(program):
    lines = ["# Notes", "",
             "Everything that commlens can meet in an input and tell about: the table behind `commlens notes`. An odd record",
             "is counted under its code and reading goes on; every report ends with the notes that fired, with the first",
             "example of each. In JSON they are `warnings`, with the code ([json.md](json.md)).", "",
             "`info`: no figure suffers. `warning`: some figure may be incomplete. `error`: the input was cut short or could",
             "not be used.", "",
             "This page is written by `tests/docs_test.py COMMLENS --update`; the table is in `src/model/notes.h`.", "",
             "| code | severity | what happened | what to do |", "|---|---|---|---|"]
    for note in program.list("notes"):
        lines.append("| `{name}` | {severity} | {summary} | {advice} |".format(**note))
    return "\n".join(lines) + "\n"


def picture(program):
    words = [sys.executable, str(ROOT / "scripts" / "picture"), str(program.binary), "-"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def generated(program, folder):
    """Pairs of a file and the text that it should hold."""
    page = read(DOCS / "json.md")
    marks = r"(?<=<!-- example -->\n).*?(?=\n<!-- end of example -->)"
    yield DOCS / "notes.md", notes_page(program)
    yield DOCS / "report.svg", picture(program)
    yield DOCS / "json.md", re.sub(marks, lambda _: example(program, folder), page, flags=re.S)


# ---- Command line and names

def check_options(program):
    page = read(DOCS / "cli.md")
    known = {"--help", "--version"}
    for verb in program.verbs():
        expect(re.search(rf"^## .*`{verb}`", page, flags=re.M), f"docs/cli.md: has no section for the verb {verb}")
        expect(f"`{verb}`" in read(ROOT / "README.md"), f"README.md: does not mention the verb {verb}")
        for name, default in program.options(verb):
            known.add(name)
            rows = [line for line in page.splitlines() if re.match(rf"\| `[^|]*{name}\b(?!-)", line)]
            expect(rows, f"docs/cli.md: has no row for {name} of {verb}")
            expect(not default or not rows or any(f"| {default} |" in row for row in rows),
                   f"docs/cli.md: the row for {name} of {verb} does not say that the default is {default}")
    for name in sorted(set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page)) - known):
        faults.append(f"docs/cli.md: mentions {name}, which no verb has")


def check_names(program, folder):
    numbers = read(DOCS / "numbers.md")
    pathlib.Path(folder, "bad.rules").write_text("x = no_such_operation\n")
    ops = program.complaint("analyze", "--rules", "bad.rules", "run", cwd=folder).split(" one of ")[1].strip().split(", ")
    evidence = [row["evidence"] for row in analysis(program, folder)["evidence"]]
    for name in ops + evidence:
        expect(f"`{name}`" in numbers, f"docs/numbers.md: does not define {name}")
    for verb in LISTS:
        for entry in program.list(verb):
            places = {"formats": DOCS / "formats" / f"{entry['name']}.md", "analyses": DOCS / "architecture.md",
                      "notes": DOCS / "notes.md"}
            place = places[verb]
            expect(place.exists() and f"`{entry['name']}`" in read(place),
                   f"{place.relative_to(ROOT)}: does not mention {entry['name']} of `commlens {verb}`")


# ---- Code

def shown_files():
    """Pairs of a path and its text, of the whole files in the walk-throughs."""
    for page in sorted(DOCS.glob("add-*.md")):
        yield from re.findall(r"^`((?:src|tests)/\S+\.cc)`:\n\n```cpp\n(.*?)^```$", read(page), flags=re.M | re.S)


def check_code(compiler):
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, (path, text) in enumerate(shown_files()):
            file = pathlib.Path(folder, f"{number}-{pathlib.PurePath(path).name}")
            file.write_text(text, encoding="utf-8")
            words = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Isrc", "-Iinclude", "-Itests", file]
            running.append((path, subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)))
        expect(running, "docs/add-*.md: show no code")
        for path, process in running:
            complaints = process.communicate()[1]
            expect(process.returncode == 0, f"docs/add-*.md: {path} does not compile:\n{complaints}")


def check_layers():
    """The table in docs/architecture.md is that of tests/layers.py, for the folders that exist."""
    sys.path.insert(0, str(ROOT / "tests"))
    import layers
    table = read(DOCS / "architecture.md").split("## Who may include whom")[1]
    said = {}
    for folders, others in re.findall(r"^\| (`.*?`) \| (.*?) \|$", table, flags=re.M):
        words = others.replace("the public headers", "commlens").replace("nothing of ours", "").replace(",", " ")
        for folder in re.findall(r"`(\w+)`", folders):
            said[folder] = set(words.replace(" of include/commlens", "").split())
    for folder, others in layers.MAY.items():
        there = {other for other in others.split() if other == "commlens" or (ROOT / "src" / other).is_dir()}
        expect(not (ROOT / "src" / folder).is_dir() or said.get(folder) == there,
               f"docs/architecture.md: {folder} may include, besides itself: {', '.join(sorted(there)) or 'nothing'}")


# ---- Links and paths

def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def check_links():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]:
        where, text = page.relative_to(ROOT), without_code(read(page))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            name, _, mark = target.partition("#")
            file = page.parent / name if name else page
            expect(file.exists(), f"{where}: links to {target}, which does not exist")
            if mark and file.exists():
                headings = re.findall(r"^#+ (.*)$", without_code(read(file)), flags=re.M)
                expect(mark in map(anchor, headings), f"{where}: links to {target}; there is no such heading")
        if page.name.startswith("add-"):
            continue  # they name files that their reader makes
        for path in re.findall(r"`((?:src|docs|scripts|tests|bench|cmake|include)/[\w./-]*\w)`", text):
            expect((ROOT / path).exists(), f"{where}: names {path}, which does not exist")


def finish():
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


def main():
    if sys.argv[1] == "--code":
        check_code(sys.argv[2])
        finish()
    program = Program(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[2:] == ["--update"]:
            for path, text in generated(program, folder):
                path.write_text(text, encoding="utf-8")
            return
        check_json(program, folder, odd_analysis(program, folder))
        for path, text in generated(program, folder):
            expect(path.exists() and read(path) == text,
                   f"{path.relative_to(ROOT)}: is not as tests/docs_test.py COMMLENS --update writes it")
        check_options(program)
        check_names(program, folder)
        check_format_pages()
        check_layers()
        check_links()
    finish()


if __name__ == "__main__":
    main()
