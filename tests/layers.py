#!/usr/bin/env python3
"""Checks that every file of src/ and include/ includes only what its layer may know (docs/architecture.md).

Prints one line for each fault and fails if there is any.  `layers.py --self-test` shows that it finds them.
"""
import pathlib
import re
import sys
import tempfile

# What a folder may include besides itself. `commlens` is include/commlens: the public headers.
MAY = {
    "commlens": "",
    "base": "",
    "wire": "",
    "model": "base commlens",
    "ingest": "base model wire",
    "match": "base model",
    "replay": "base model",
    "advice": "base model replay",
    "analysis": "base model",
    "diagnose": "base model",
    "report": "base model",
    "simulate": "base model",
    "study": "base model ingest match replay advice analysis diagnose report",
    "cli": "base model study simulate commlens",
    "python": "base model study",
    "mpi": "base model study",
    "capture": "wire",
}

# Folders of equals: one file per format, analysis or writer, none of which knows another. A file may include its own
# family (the first word of its name: kineto_json.cc and kineto_names.h are one), and the families that all share.
SHARED = {
    "ingest": "format call chrome json key measured pickle tree window witness",
    "analysis": "analysis",
    "diagnose": "verdict joint words",
    "advice": "advice candidate words",
    "report": "writer timeline",
}
# The files whose work it is to know all of them.
LISTS = {"ingest/formats", "ingest/load", "ingest/load_witness", "ingest/measured_formats", "ingest/witness_formats", "analysis/analyses",
         "advice/finders", "diagnose/verdicts", "report/timeline_out", "report/writers"}

# (header, where it may be included, why not elsewhere); places are full matches of "folder/file.ext".
LIBRARIES = [
    (r"CLI/.*", r"cli/args\w*\.cc", "compiles for seconds: only cli/args*.cc may include it"),
    (r"regex", r"", "compiles for seconds: do not use it"),
    (r"iostream", r"cli/.*\.cc", "only cli/*.cc talks to the terminal: append to a Sink"),
    (r"(fmt/.*|protozero/.*|simdjson\.h|sqlite3\.h)", r".*\.cc", "only in .cc files: it is slow to compile"),
]
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')


def family(path):
    return pathlib.PurePath(path).stem.split("_")[0]


def own_fault(folder, name, header):
    """What is wrong with the file `folder/name` including `header`, one of ours."""
    target = header.split("/")[0]
    if folder not in MAY:
        return f"{folder}/ is not among the layers of tests/layers.py"
    if target != folder:
        return None if target in MAY[folder].split() else f"{folder}/ must not know {target}/"
    is_list = f"{folder}/{pathlib.PurePath(name).stem}" in LISTS
    if folder not in SHARED or is_list or family(header) in SHARED[folder].split() + [family(name)]:
        return None
    return f"{folder}/{name} must not know its sibling {header}; what both need moves to a shared header, model/ or base/"


def library_fault(place, header):
    for pattern, allowed, why in LIBRARIES:
        if re.fullmatch(pattern, header) and not re.fullmatch(allowed, place):
            return f"<{header}> {why}"
    return None


def faults(root):
    files = [p for top in ("src", "include") for p in sorted((root / top).rglob("*")) if p.suffix in (".h", ".cc")]
    for path in files:
        folder, name = path.relative_to(root).parts[1], path.name
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, header = match.groups()
            ours = quote == '"' or header.split("/")[0] in MAY
            fault = own_fault(folder, name, header) if ours else library_fault(f"{folder}/{name}", header)
            if fault:
                yield f"{path.relative_to(root)}:{number}: {fault}"


def self_test():
    tree = {
        "src/analysis/overlap.cc": '#include "analysis/overlap.h"\n#include "report/writer.h"\n',
        "src/analysis/overlap.h": '#include "analysis/analysis.h"\n#include "model/trace.h"\n',
        "src/analysis/skew.cc": '#include "analysis/overlap.h"\n',
        "src/analysis/analyses.cc": '#include "analysis/overlap.h"\n',
        "src/cli/args.cc": "#include <CLI/CLI.hpp>\n#include <iostream>\n",
        "src/cli/report.cc": "#include <CLI/CLI.hpp>\n",
        "src/ingest/kineto_json.cc": '#include <fmt/core.h>\n#include "ingest/kineto_names.h"\n#include "ingest/chrome_json.h"\n',
        "src/model/trace.h": "#include <fmt/core.h>\n#include <vector>\n",
        "src/extra/a.cc": '#include "base/error.h"\n',
        "include/commlens/sim.h": '#include "model/trace.h"\n',
    }
    expected = [
        "src/analysis/overlap.cc:2: analysis/ must not know report/",
        "src/analysis/skew.cc:1: analysis/skew.cc must not know its sibling analysis/overlap.h",
        "src/cli/report.cc:1: <CLI/CLI.hpp> compiles for seconds",
        "src/extra/a.cc:1: extra/ is not among the layers",
        "src/model/trace.h:1: <fmt/core.h> only in .cc files",
        "include/commlens/sim.h:1: commlens/ must not know model/",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = list(faults(pathlib.Path(folder)))
    if len(found) != len(expected) or not all(f.startswith(e) for f, e in zip(found, expected)):
        sys.exit("self-test failed; found:\n" + "\n".join(found))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        found = list(faults(pathlib.Path(__file__).resolve().parent.parent))
        print("\n".join(found), end="\n" if found else "")
        sys.exit(1 if found else 0)
