#!/usr/bin/env python3
"""Writes malformed and odd Kineto traces, all made from one small trace, with what must come out of each.

    make_bad_inputs.py OUTDIR [--huge]

OUTDIR/expected.json: {path: {"exit": [codes allowed], "notes": [what must be said, in words], "ranks": ..., "ops": ...,
"comment": ...}}. A path may be a folder: it is given as a whole. `notes` not empty: at least one warning (or, with
exit code 3, a line on stderr that names the input). `ranks`: null (not checked), or a list of acceptable tables, each a
list of rows; a row holds figures of `ranks` in the contract's names that must be equal. An empty table: no GPU figures.
`ops`: null or {op: [count, bytes]}.

No figure is guessed: those of the base trace stand below, worked out by hand; the others are the slow method's
(reference/slow_analysis.py) for the events that a reader must have kept.

A row of the list below: (path, content, exit, ranks, notes, comment).
"""
import argparse
import copy
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))
import slow_analysis as slow  # noqa: E402

# ------------------------------------------------------------------------------------------------------ the base trace
# Stream 7 computes, stream 24 communicates; times in us:
#   compute   [5000,5100) [5100.5,5150.25)            [5400,5600) [5600,5650)              [5900,6000)
#   comm           [5050,            5300)    [5350,5500)         [5620,      5800)             [5950,6050.125)
#   memory                                                                                    [6100,6120.5) [6121,6122)
# window 1122; |compute| 100 + 49.75 + 250 + 100 = 499.75; |comm| 250 + 150 + 180 + 100.125 = 680.125;
# hidden (50 + 49.75) + 100 + 30 + 50 = 279.75; exposed 680.125 - 279.75; compute only 499.75 - 279.75; memory 21.5.

BASE_NS = 1735632360000000000
BASE_FIGURES = {"device": 0, "gpu_events": 11, "comm_events": 4, "window_ns": 1122000, "compute_only_ns": 220000,
                "hidden_comm_ns": 279750, "exposed_comm_ns": 400375, "memory_only_ns": 21500, "idle_ns": 200375}
# Evidence: metadata on the kernel, a host record by External id, an nccl: range, the name alone.
BASE_OPS = {"all_reduce": [2, 4194304], "all_gather": [1, 2097152], "reduce_scatter": [1, None]}
FIGURES = tuple(BASE_FIGURES)

GEMM = "void cutlass::gemm<128, float>(float*, int)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GROUP = {"dtype": "Float", "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
AR_META = {"Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, **GROUP}
AG_META = {"Collective name": "_allgather_base", "In msg nelems": 262144, "Out msg nelems": 524288, **GROUP}


def us(value):
    """A time of the trace as Kineto prints it: three decimals."""
    return f"{value:.3f}"


def x(cat, name, pid, tid, start, end, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": us(end - start),
            "args": {k.replace("_id", " id"): v for k, v in args.items()}}


def on_gpu(cat, name, stream, start, end, correlation, **more):
    return x(cat, name, 0, stream, start, end, device=0, context=1, stream=stream, correlation=correlation, **more)


def launch(at, correlation, **more):
    return x("cuda_driver", "cuLaunchKernelEx", 4100, 4100, at, at + 5, cbid=652, correlation=correlation, **more)


def base_events():
    """The events: host first, then the GPU's in order of start, then the recording's span."""
    host = [
        x("user_annotation", "ProfilerStep#3", 4100, 4100, 4910, 6150),
        x("python_function", "train.py(12): step", 4100, 4100, 4911, 6140, Python_id=1),
        x("cpu_op", "record_param_comms", 4100, 4100, 4920, 4935, External_id=71, **AR_META),
        launch(4925, 901, External_id=71),
        x("cpu_op", "record_param_comms", 4100, 4100, 4940, 4955, External_id=72, **AG_META),
        launch(4945, 903, External_id=72),
        x("user_annotation", "nccl:_reduce_scatter_base", 4100, 4100, 4960, 4975),
        launch(4965, 905),
        x("cpu_op", "aten::mm", 4100, 4100, 4976, 4990, External_id=73),
        launch(4980, 900, External_id=73)]
    gpu = [
        on_gpu("kernel", GEMM, 7, 5000, 5100, 900, External_id=73),
        on_gpu("kernel", ALL_REDUCE, 24, 5050, 5300, 901, External_id=71, **AR_META),
        on_gpu("kernel", "void at::native::vectorized_elementwise_kernel<4>(int)", 7, 5100.5, 5150.25, 902),
        on_gpu("kernel", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 24, 5350, 5500, 903,
               External_id=72),
        on_gpu("kernel", GEMM, 7, 5400, 5600, 904),
        on_gpu("kernel", "void at::native::reduce_kernel<512, 1>(float)", 7, 5600, 5650, 906),
        on_gpu("kernel", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 24, 5620, 5800,
               905),
        on_gpu("kernel", "gemm_3", 7, 5900, 6000, 907),
        on_gpu("kernel", ALL_REDUCE, 24, 5950, 6050.125, 908),
        on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 6100, 6120.5, 909, bytes=4096),
        on_gpu("gpu_memset", "Memset (Device)", 7, 6121, 6122, 910, bytes=64)]
    span = [x("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 4900, 6200)]
    return host + gpu + span


# Places in base_events().
PYTHON, RECORD, MM, FIRST_GPU, COMM_1, COMM_2, GEMM_3, COMM_4, MEMCPY, SPAN = 1, 2, 8, 10, 11, 13, 17, 18, 19, 21


class Raw(str):
    """Text that stands in the file as it is, not as a JSON string."""


def changed(place, args=None, events=None, **fields):
    """Base events with one event's fields replaced (None removes); `args` likewise for its args."""
    events = copy.deepcopy(events if events is not None else base_events())
    for target, news in ((events[place], fields), (events[place]["args"], args or {})):
        for key, value in news.items():
            target.pop(key, None)
            if value is not None:
                target[key] = value
    return events


def all_gpu(function, events=None):
    """Base events with every GPU event passed through a function."""
    events = events if events is not None else base_events()
    return [function(copy.deepcopy(e)) if FIRST_GPU <= i < SPAN else e for i, e in enumerate(events)]


def times(function):
    """Base events with ts and dur (numbers of us) rewritten by functions of the event's texts."""
    out = base_events()
    for e in out:
        e["ts"], e["dur"] = function(e["ts"], e["dur"])
    return out


# --------------------------------------------------------------------------------------------------------- writing text


def value(v, key=""):
    if isinstance(v, Raw) or (isinstance(v, str) and key in ("ts", "dur")):
        return str(v)
    if isinstance(v, dict):
        return "{" + ", ".join(f'"{k}": {value(w, k)}' for k, w in v.items()) + "}"
    return json.dumps(v)


def pretty(e):
    """One event as Kineto lays it out."""
    if not isinstance(e, dict):
        return "  " + value(e)
    lines = [[k for k in ("ph", "cat", "name", "pid", "tid") if k in e], [k for k in ("ts", "dur") if k in e],
             [k for k in e if k not in ("ph", "cat", "name", "pid", "tid", "ts", "dur")]]
    parts = []
    for keys in lines:
        one = ", ".join(f'"{k}": {value(e[k], k)}' if k != "args" or not isinstance(e[k], dict) else
                        '"args": {\n      ' + value(e[k])[1:-1] + "\n    }" for k in keys)
        if one:
            parts.append("    " + one)
    return "  {\n" + ",\n".join(parts) + "\n  }"


def compact(e):
    return value(e).replace('", "', '","').replace('": ', '":')


def in_order(e):
    """One event with its keys in the order of the dictionary, a field a line."""
    return "{\n" + ",\n".join(f'"{k}": {value(v, k)}' for k, v in e.items()) + "\n}"


INFO = ('"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1, "pg_config": [{"pg_name": "0", '
        '"pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}], "nccl_version": "2.21.5"},')
HEAD = '\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": "X", "numSms": 132\n    }\n  ],\n'
BASE_KEY = f'  "baseTimeNanoseconds": {BASE_NS},\n'
TAIL = '\n  ],\n  "traceName": "trace.json"\n}\n'


def trace(events=None, info=INFO, before="", base=BASE_KEY, after="", layout=pretty, separator=",\n", tail=None):
    """The text of a trace. `before` stands before, `after` behind `traceEvents`."""
    events = events if events is not None else base_events()
    head = HEAD + (f"  {info}\n" if info else "") + before + '  "displayTimeUnit": "ms",\n' + base
    end = TAIL if tail is None else tail
    return head + '  "traceEvents": [\n' + separator.join(layout(e) for e in events) + end.replace("\n  ],", "\n  ]," + after, 1)


def cut(mark, keep, events=None, offset=0, **options):
    """The trace's text up to `keep` characters behind the first `mark` at or after an offset."""
    text = trace(events, **options)
    return text[:text.index(mark, offset) + keep]


FILLER = [x("python_function", f"module_{i}.py({i * 7919 % 1000}): call_{i * 104729 % 99991}", 4100, 4100, 4912 + i / 100,
            4913 + i / 100) for i in range(3000)]
WITH_FILLER = base_events() + FILLER            # the GPU's events lie within the first few KB, the rest is of no interest


# --------------------------------------------------------------------------------------------------------- expectations


def row(result_row, rank=None):
    kept = {k: result_row[k] for k in FIGURES}
    return {**kept, "rank": rank} if rank is not None else kept


def figures(events, **head):
    """One acceptable table: the slow method's rows for these events."""
    as_json = json.loads("[" + ",".join(value(e) for e in events) + "]", parse_float=str, parse_constant=lambda w: None)
    result = slow.analyse_trace("x", {"baseTimeNanoseconds": BASE_NS, **head}, [e for e in as_json if isinstance(e, dict)])
    return [row(r) for r in result["ranks"]]


BASE = [BASE_FIGURES]
NONE = []                                       # a table without GPU figures


def without(*places):
    return [e for i, e in enumerate(base_events()) if i not in places]


def lost(*places):
    """Acceptable tables where these events may be lost or repaired."""
    return [BASE, figures(without(*places))]


# ---------------------------------------------------------------------------------------------------------------- cases


def cases_of_truncation():
    gemm = '"gemm_3"'                            # the event that is cut: what stands before it must be kept
    kept = [figures(base_events()[:GEMM_3])]
    said = ["truncated"]
    return [
        ("truncated/in_name.json", cut(gemm, 4), 0, kept, said, "inside the string of a name"),
        ("truncated/after_name.json", cut(gemm, len(gemm)), 0, kept, said, ""),
        ("truncated/after_comma_in_event.json", cut(gemm, len(gemm) + 1), 0, kept, said, ""),
        ("truncated/in_key.json", cut('"gemm_3", "pi', 12), 0, kept, said, "inside a key"),
        ("truncated/in_number.json", cut('"ts": 5900.000', 10), 0, kept, said, "ts would read 5900"),
        ("truncated/in_dur.json", cut('"ts": 5900.000, "dur": 100.000', 25), 0, kept, said, "dur would read 10"),
        ("truncated/in_args.json", cut('"correlation": 907', 14), 0, kept, said, "times known, event not complete: dropped"),
        ("truncated/before_event_end.json", cut('"correlation": 907\n    }', 24), 0, kept, said,
         "args are closed, the event is not: dropped"),
        ("truncated/after_event.json", cut('"correlation": 907\n    }\n  }', 28), 0, [figures(base_events()[:GEMM_3 + 1])],
         said, "this event is complete"),
        ("truncated/after_comma.json", cut('"correlation": 907\n    }\n  },', 29), 0, [figures(base_events()[:GEMM_3 + 1])],
         said, ""),
        ("truncated/after_brace.json", cut('"correlation": 907\n    }\n  },\n  {', 33), 0,
         [figures(base_events()[:GEMM_3 + 1])], said, "an event has just begun"),
        ("truncated/before_bracket.json", trace(tail=""), 0, [BASE], said, "all events there, no ]"),
        ("truncated/after_bracket.json", trace(tail="\n  ]"), 0, [BASE], said, "all events there, no }"),
        ("truncated/in_trace_name.json", trace(tail='\n  ],\n  "traceName": "tra'), 0, [BASE], said, ""),
        ("truncated/before_base.json", trace(base="", tail='\n  ],\n  "traceName": "t",\n  "baseTimeNanoseconds": 17356'), 0,
         [BASE], said, "the base is cut: it must not be read as 17356"),
        ("truncated/in_escape.json", cut(r"\u00e9", 4, changed(GEMM_3, name="gemm_é")), 0, kept, said, r"ends in \u00e"),
        ("truncated/before_any_event.json", cut('"traceEvents": [', 16), [0, 3], [NONE], said, "no event at all"),
        ("truncated/in_head.json", cut('"deviceProperties": [', 21), 3, None, said, "traceEvents was never reached"),
        ("truncated/one_brace.json", "{", 3, None, said, ""),
        ("truncated/trace.json.tmp", trace(tail=""), 0, [BASE], said, "the name that a killed process leaves"),
    ]


def cases_of_compression():
    whole, filled = trace().encode(), trace(WITH_FILLER).encode()
    packed, big = gzip.compress(whole, mtime=0), gzip.compress(filled, mtime=0)
    late = len(big) * 3 // 4
    noise = random.Random(1).randbytes(200)
    rows = [
        ("packed/plain_named.json.gz", whole, 0, [BASE], [], "not compressed: content decides"),
        ("packed/gzip_named.json", packed, 0, [BASE], [], ""),
        ("packed/truncated.json.gz", big[:late], 0, [BASE], ["truncated gzip"], "cut behind the GPU's events"),
        ("packed/truncated_early.json.gz", packed[:len(packed) // 2], [0, 3], None, ["truncated gzip"], ""),
        ("packed/header_only.json.gz", packed[:10], 3, None, ["truncated gzip"], ""),
        ("packed/half_header.json.gz", packed[:5], 3, None, ["truncated gzip"], ""),
        ("packed/no_trailer.json.gz", packed[:-8], 0, [BASE], ["truncated gzip"], "all data, no checksum"),
        ("packed/bad_crc.json.gz", packed[:-8] + b"\1\2\3\4" + packed[-4:], 0, [BASE], ["gzip checksum"], ""),
        ("packed/bad_length.json.gz", packed[:-4] + b"\1\2\3\4", 0, [BASE], ["gzip checksum"], ""),
        ("packed/garbage_inside.json.gz", big[:late] + noise + big[late + 200:], 0, [BASE], ["corrupt gzip"],
         "behind the GPU's events and more than a deflate window away from them"),
        ("packed/garbage_inside_early.json.gz", packed[:60] + noise + packed[260:], [0, 3], None, ["corrupt gzip"], ""),
        ("packed/garbage_behind.json.gz", packed + noise, 0, [BASE], ["bytes behind the gzip data"], ""),
        ("packed/zeros_behind.json.gz", packed + bytes(512), 0, [BASE], [], "padding of a tape or a block device"),
        ("packed/members.json.gz", b"".join(gzip.compress(whole[i:i + 997]) for i in range(0, len(whole), 997)), 0, [BASE], [],
         "members that end inside tokens"),
        ("packed/empty_member_between.json.gz", gzip.compress(whole[:2000]) + gzip.compress(b"") + gzip.compress(whole[2000:]),
         0, [BASE], [], ""),
        ("packed/second_member_truncated.json.gz", gzip.compress(filled[:60000]) + gzip.compress(filled[60000:])[:900], 0,
         [BASE], ["truncated gzip"], ""),
        ("packed/empty_member.json.gz", gzip.compress(b""), 3, None, ["empty"], ""),
        ("packed/empty_file.json.gz", b"", 3, None, ["empty"], ""),
        ("packed/packed_twice.json.gz", gzip.compress(packed), [0, 3], [BASE], ["compressed twice"], "reading it is as good"),
        ("packed/noise.json.gz", b"\x1f\x8b\x08\0" + random.Random(2).randbytes(3000), 3, None, ["corrupt gzip"], ""),
        ("packed/bomb.json.gz", gzip.compress(trace(before='  "pad": "' + " " * 50_000_000 + '",\n').encode(), 6), 0, [BASE],
         [], "50 MB out of 60 KB"),
        ("packed/raw_zlib.json", zlib.compress(whole), 3, None, ["no known format"], ""),
    ]
    if shutil.which("zstd"):
        def zstd(data):
            return subprocess.run(["zstd", "-c", "-q"], input=data, stdout=subprocess.PIPE, check=True).stdout
        zbig = zstd(trace(WITH_FILLER + FILLER).encode())
        z = zstd(whole)
        rows += [
            ("packed/good.json.zst", z, 0, [BASE], [], ""),
            ("packed/frames.json.zst", zstd(whole[:3000]) + zstd(whole[3000:]), 0, [BASE], [], ""),
            ("packed/truncated.json.zst", zbig[:-500], 0, [BASE], ["truncated zstd"], "cut behind the GPU's block"),
            ("packed/header_only.json.zst", z[:6], 3, None, ["truncated zstd"], ""),
            ("packed/bad_checksum.json.zst", z[:-4] + b"\1\2\3\4", [0, 3], None, ["zstd checksum"],
             "figures are checked nowhere: the library may keep the last block back"),
            ("packed/noise.json.zst", b"\x28\xb5\x2f\xfd" + random.Random(3).randbytes(3000), 3, None, ["corrupt zstd"], ""),
        ]
    return rows


def cases_of_tokens():
    gone = [figures(without(GEMM_3))]
    return [(f"tokens/{word.strip('-')}{'_negative' if word[0] == '-' else ''}_in_args.json",
             trace(changed(MEMCPY, {"memory bandwidth (GB/s)": Raw(word)})), 0, [BASE], [], "read as null")
            for word in ("NaN", "Infinity", "-Infinity", "inf", "-inf", "nan", "-nan")] + [
        ("tokens/nan_at_top.json", trace(before='  "user_value": NaN,\n  "other": -nan,\n  "list": [inf, NaN],\n'), 0, [BASE], [],
         ""),
        ("tokens/nan_ts.json", trace(changed(GEMM_3, ts="NaN")), 0, gone, ["no time"], ""),
        ("tokens/nan_dur.json", trace(changed(GEMM_3, dur="-nan")), 0, [figures(changed(GEMM_3, dur="0"))], ["no dur"],
         "like a missing dur"),
        ("tokens/commas_in_args.json", trace(changed(GEMM_3, {"occupancy": Raw(", , 1,")})), 0, [BASE] + gone, [],
         "empty fragments: the event is kept, or at worst lost with a count"),
        ("tokens/comma_before_brace.json", trace().replace('"correlation": 907\n', '"correlation": 907,\n'), 0, [BASE], [], ""),
        ("tokens/comma_at_args_start.json", trace().replace('"args": {\n      "device"', '"args": {\n      , "device"'), 0,
         [BASE], [], ""),
        ("tokens/commas_doubled.json", trace(separator=",\n ,\n"), 0, [BASE], [], ""),
        ("tokens/comma_before_bracket.json", trace(tail=",\n  ],\n  \"traceName\": \"t\"\n}"), 0, [BASE], [], ""),
        ("tokens/comma_missing.json", trace(separator="\n"), 0, [BASE], ["comma"], "no comma between events"),
        ("tokens/comma_at_top.json", trace(after="\n  , ,", before="  ,\n"), 0, [BASE], [], ""),
        ("tokens/text_behind.json", trace() + "\nProfiler done.\n", 0, [BASE], ["text behind the end"], ""),
        ("tokens/second_trace_behind.json", trace() + trace(), 0, [BASE], ["text behind the end"],
         "two files written one behind the other: the second is not added"),
    ]


def cases_of_strings():
    def name(place, text, mode="raw"):
        return trace(changed(place, name=Raw(text) if mode == "raw" else text))
    said = ["unescaped text"]
    quotes = r'"C:\temp\"new" model.py(3): "forward""'
    rows = []
    for place, kind in ((PYTHON, "python_function"), (GEMM_3, "kernel")):
        ranks = [BASE] if place == PYTHON else lost(GEMM_3)
        rows += [
            (f"strings/quotes_in_{kind}.json", name(place, '"a "quoted" name"'), 0, ranks, said, ""),
            (f"strings/quotes_and_braces_in_{kind}.json", name(place, '"f(", {"x": 1}], "y": [")"'), 0, ranks, said,
             "what follows looks like structure"),
            (f"strings/odd_quotes_in_{kind}.json", name(place, '"one " only"'), 0, ranks, said,
             "the string's parity is turned round"),
            (f"strings/windows_path_in_{kind}.json", name(place, quotes), 0, ranks, said, ""),
            (f"strings/bad_escapes_in_{kind}.json", name(place, r'"C:\users\q\x41\u12 name"'), 0, ranks, [],
             "escapes that JSON does not know"),
            (f"strings/backslash_at_end_of_{kind}.json", name(place, r'"C:\dir\"'), 0, ranks, said,
             "the closing quote is escaped"),
            (f"strings/newline_in_{kind}.json", name(place, '"two\nlines"'), 0, ranks, [], "a raw newline"),
            (f"strings/control_bytes_in_{kind}.json", name(place, '"a\x00b\x01\x1f\x7f\tc"'), 0, ranks, [], ""),
            (f"strings/invalid_utf8_in_{kind}.json", trace(changed(place, name="BAD")).encode().replace(
                b'"BAD"', b'"\xff\xfe\xc0\x80 \xed\xa0\x80 \xf5"'), 0, [BASE], [], "strings are bytes"),
            (f"strings/lone_surrogates_in_{kind}.json", name(place, r'"\ud800 \udc00\ud800"'), 0, [BASE], [], ""),
            (f"strings/escaped_everything_in_{kind}.json", name(place, 'q " b \\ /\b\f\n\r\t é \U0001f600', "json"), 0, [BASE],
             [], "all of it valid"),
            (f"strings/event_in_name_of_{kind}.json",
             name(place, '\n  {\n    "ph": "X", "cat": "kernel", "ts": 1, "dur": 9', "json"), 0, [BASE], [],
             "an escaped event start: a careless resynchronisation takes it for one"),
        ]
    rows += [
        ("strings/quotes_in_args.json", trace(changed(MM, {"Call stack": Raw('"a.py(1): "f""')})), 0, [BASE], said, ""),
        ("strings/quotes_in_two_events.json", trace(changed(MM, name=Raw('"a "b"'), events=changed(PYTHON, name=Raw('"c" d"')))),
         0, [BASE], said, ""),
        ("strings/quotes_compact.json", trace(changed(PYTHON, name=Raw('"a "quoted" name"')), layout=compact, separator=","), 0,
         None, said, "no event start to resynchronise on as Kineto writes it: figures are not checked"),
        ("strings/unclosed_with_brackets.json", cut('"[{[{', 90000, changed(GEMM_3, name=Raw('"' + "[{" * 50000))),
         0, [figures(base_events()[:GEMM_3])], ["truncated"], "an unclosed string of brackets"),
        ("strings/unescaped_info_before.json",
         trace(before='  "INFO": ["a "quoted" {line", "C:\\x", "two\nlines [" ],\n'), 0, [BASE], said, "skip to traceEvents"),
        ("strings/unescaped_warning_behind.json", trace(after='\n  "WARNING": ["a "quoted" {line", "]"],'), 0, [BASE], said, ""),
        ("strings/traceevents_in_info.json", trace(before='  "INFO": ["no \\"traceEvents\\": [ here", "traceEvents"],\n'), 0,
         [BASE], [], "valid: the word stands in a string"),
        ("strings/traceevents_in_metadata.json",
         trace(before='  "user": {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]},\n'), 0, [BASE], [],
         "a key of the same name, deeper"),
        ("strings/event_in_args.json",
         trace(changed(MM, {"x": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 9}]})), 0, [BASE],
         [], "an object in args that looks like an event"),
    ]
    return rows


def cases_of_times():
    def gemm(**fields):
        return changed(GEMM_3, **fields)
    gone = [figures(without(GEMM_3))]
    point = [figures(gemm(dur="0"))]
    clipped = [figures(gemm(dur="300.000"))]     # to the end of the recording's span: 5900 + 300 = 6200
    rows = [
        ("times/dur_missing.json", trace(gemm(dur=None)), 0, point, ["no dur"], "an event of no length"),
        ("times/dur_null.json", trace(gemm(dur=Raw("null"))), 0, point, ["no dur"], ""),
        ("times/dur_negative.json", trace(gemm(dur="-5.000")), 0, point, ["negative dur"], "clamped to 0"),
        ("times/dur_absurd.json", trace(gemm(dur="1e18")), 0, clipped, ["absurd dur"], "1e21 ns do not fit 64 bits"),
        ("times/dur_longer_than_recording.json", trace(gemm(dur="86400000000.000")), 0, clipped, ["absurd dur"], "a day"),
        ("times/dur_absurd_no_span.json", trace(gemm(dur="1e18")[:SPAN]), 0, None, ["absurd dur"],
         "no span to clip to: figures are not checked"),
        ("times/dur_string.json", trace(gemm(dur=Raw('"100.000"'))), 0, [BASE], [], ""),
        ("times/ts_string.json", trace(gemm(ts=Raw('"5900.000"'))), 0, [BASE], [], ""),
        ("times/ts_word.json", trace(gemm(ts=Raw('"soon"'))), 0, gone, ["no time"], ""),
        ("times/ts_missing.json", trace(gemm(ts=None)), 0, gone, ["no time"], ""),
        ("times/ts_null.json", trace(gemm(ts=Raw("null"))), 0, gone, ["no time"], ""),
        ("times/ts_array.json", trace(gemm(ts=Raw("[5900]"))), 0, gone, ["no time"], ""),
        ("times/ts_zero.json", trace(gemm(ts="0")), 0, gone, ["ts 0"], "CUPTI lost the time"),
        ("times/ts_zero_decimals.json", trace(gemm(ts="0.000")), 0, gone, ["ts 0"], ""),
        ("times/ts_an_hour_before.json", trace(times(lambda t, d: (us(float(t) + 7e9), d))[:SPAN]
                                               + changed(SPAN, ts=us(7e9 + 4900))[SPAN:]
                                               + [on_gpu("kernel", GEMM, 7, 10, 20, 999)]), 0, [BASE], ["far before"],
         "a kernel two hours before the recording"),
        ("times/ts_huge.json", trace(gemm(ts="1e30")), 0, gone, ["no time"], "beyond 64 bits"),
        ("times/ts_huge_digits.json", trace(gemm(ts="9" * 5000)), 0, gone, ["no time"], ""),
        ("times/ts_exponent_bomb.json", trace(gemm(ts="1e999999999")), 0, gone, ["no time"], ""),
        ("times/dur_small_exponent_bomb.json", trace(gemm(dur="1e-999999999")), 0, point, [], "rounds to 0"),
        ("times/integers.json", trace(times(lambda t, d: (t.split(".")[0], d.split(".")[0]))), 0,
         [figures(times(lambda t, d: (t.split(".")[0], d.split(".")[0])))], [], "as Kineto up to 2024-03"),
        ("times/exponent.json", trace(gemm(ts="5.9e3", dur="1E+2")), 0, [BASE], [], ""),
        ("times/exponent_negative.json", trace(gemm(ts="5900000E-3", dur="1000.00e-1")), 0, [BASE], [], ""),
        ("times/decimals_down.json", trace(times(lambda t, d: (t + "4999", d + "4"))), 0, [BASE], [], "below half a ns"),
        ("times/decimals_up.json", trace(gemm(dur="100.0005")), 0, [figures(gemm(dur="100.001"))], [], "half a ns: up"),
        ("times/decimals_many.json", trace(gemm(ts="5900." + "0" * 4000 + "1")), 0, [BASE], [], ""),
        ("times/negative_all.json", trace(times(lambda t, d: (us(float(t) - 10000), d))), 0, [BASE], [],
         "before the base: figures do not move"),
        ("times/absolute.json", trace(times(lambda t, d: (str(BASE_NS // 1000 + int(t[:-4])) + t[-4:], d)), base=""), 0, [BASE], [],
         "epoch us with fractions, no base: no nanosecond may be lost"),
        ("times/base_behind.json", trace(base="", tail=f'\n  ],\n  "traceName": "t",\n  "baseTimeNanoseconds": {BASE_NS}\n}}'), 0,
         [BASE], [], "as before 2025-03"),
        ("times/base_missing.json", trace(base=""), 0, [BASE], [], "relative, cannot be aligned by clock"),
        ("times/base_string.json", trace(base=f'  "baseTimeNanoseconds": "{BASE_NS}",\n'), 0, [BASE], [], ""),
        ("times/base_null.json", trace(base='  "baseTimeNanoseconds": null,\n'), 0, [BASE], [], ""),
        ("times/base_huge.json", trace(base='  "baseTimeNanoseconds": 9223372036854775807,\n'), [0, 3], None, [],
         "base + ts does not fit 64 bits: no crash, no wrong figure claimed"),
        ("times/unsorted.json", trace(base_events()[::-1]), 0, [BASE], [], "backwards"),
        ("times/zero_length.json", trace(base_events() + [on_gpu("kernel", GEMM, 7, t, t, 2000 + t) for t in (5310, 5100, 5400)]),
         0, [figures(base_events() + [on_gpu("kernel", GEMM, 7, t, t, 2000 + t) for t in (5310, 5100, 5400)])], [],
         "events without time count as events"),
        ("times/only_zero_length.json", trace([on_gpu("kernel", GEMM, 7, 5000, 5000, 1)]), 0,
         [figures([on_gpu("kernel", GEMM, 7, 5000, 5000, 1)])], [], "a window of 0 ns: no division by it"),
        ("times/overlap_on_one_stream.json", trace(base_events() + [on_gpu("kernel", GEMM, 7, 5050, 5450, 2001)]), 0,
         [figures(base_events() + [on_gpu("kernel", GEMM, 7, 5050, 5450, 2001)])], [], ""),
        ("times/three_share_the_exposed.json",
         trace(three := [on_gpu("kernel", ALL_REDUCE, s, 5000, 5000.01, s) for s in (31, 30, 29)]), 0, [figures(three)], [],
         "10 ns among three: 4, 3, 3"),
    ]
    return rows


def cases_of_layout():
    def kind(names):
        return [{**e, "cat": names.get(e["cat"], e["cat"])} for e in base_events()]
    old = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "cuda_driver": "Runtime", "cpu_op": "Operator",
           "user_annotation": "User"}
    turned = [{k: e[k] for k in ("args", "name", "tid", "dur", "pid", "ts", "ph", "cat")} for e in base_events()]
    text = trace()
    dup = text.replace('"ts": 5900.000, "dur": 100.000', '"ts": 1.000, "dur": 7.000, "ts": 5900.000, "dur": 100.000')
    array = "[\n" + ",\n".join(pretty(e) for e in base_events())
    return [
        ("layout/good.json", text, 0, [BASE], [], "the base trace"),
        ("layout/keys_turned.json", trace(turned, layout=in_order), 0, [BASE], [], "args first, name behind it, cat last"),
        ("layout/old_categories.json", trace(kind(old)), 0, [BASE], [], "spellings up to torch 1.11"),
        ("layout/upper_case_categories.json", trace(kind({c: c.upper() for c in old})), 0, [BASE], [], ""),
        ("layout/unknown_categories.json", trace(base_events() + [x("new_thing", "n", 0, 7, 1, 2), {"ph": "Q"}, {}]), 0, [BASE], [],
         ""),
        ("layout/compact.json", trace(layout=compact, separator=",").replace("\n", ""), 0, [BASE], [], "one line"),
        ("layout/field_a_line.json", trace(layout=in_order), 0, [BASE], [], ""),
        ("layout/indented.json", json.dumps(json.loads(text), indent=4), 0, [BASE], [], "by json.dump"),
        ("layout/spaces.json", json.dumps(json.loads(text), separators=(" ,\r\n\t ", " \t:\n ")), 0, [BASE], [],
         "white space around every colon and comma"),
        ("layout/crlf.json", text.replace("\n", "\r\n"), 0, [BASE], [], ""),
        ("layout/bom.json", b"\xef\xbb\xbf" + text.encode(), 0, [BASE], [], ""),
        ("layout/white_space_before.json", " \t\r\n" * 30000 + text, 0, [BASE], [], ""),
        ("layout/utf16.json", text.encode("utf-16"), 3, None, ["no known format"], ""),
        ("layout/utf16_big_endian.json", text.encode("utf-16-be"), 3, None, ["no known format"], "without a mark"),
        ("layout/array.json", array + "\n]\n", [0, 3], [BASE], [], "top-level array: read, or called unsupported"),
        ("layout/array_open.json", array + ",\n", [0, 3], [BASE], [], "as chrome allows"),
        ("layout/duplicate_keys.json", dup, 0, [BASE], [], "the last wins"),
        ("layout/duplicate_keys_in_args.json", text.replace('"correlation": 903', '"correlation": 1, "correlation": 903'), 0, [BASE],
         [], "the last wins: the link to the host record"),
        ("layout/escaped_keys.json", text.replace('"cat": "kernel"', r'"c\u0061t": "k\u0065rnel"'), 0, [BASE], [],
         "valid JSON that nobody writes"),
        ("layout/escaped_trace_events.json", text.replace('"traceEvents"', r'"trace\u0045vents"'), [0, 3], [BASE], [],
         "valid JSON that nobody writes: read, or called unusable"),
        ("layout/two_trace_events.json", trace(after='\n  "traceEvents": [\n' + ",\n".join(pretty(e) for e in base_events()[:GEMM_3])
                                              + "\n  ],"), 0,
         [BASE, figures(base_events()[:GEMM_3]), figures(base_events() + base_events()[:GEMM_3])], [],
         "one of them or both; never a crash"),
        ("layout/events_null.json", '{"traceEvents": null}', 3, None, ["no traceEvents"], ""),
        ("layout/events_object.json", '{"traceEvents": {"ph": "X"}}', 3, None, ["no traceEvents"], ""),
        ("layout/events_string.json", '{"traceEvents": "[]"}', 3, None, ["no traceEvents"], ""),
        ("layout/events_empty.json", '{"traceEvents": []}', 0, [NONE], ["no GPU activity"], ""),
        ("layout/events_not_objects.json", trace([1, "a {", None, [], [[{}]], True] + base_events() + [Raw("-2.5e3"), ""]), 0,
         [BASE], ["no event"], ""),
    ]


def cases_of_fields():
    def args(**news):
        return trace(all_gpu(lambda e: {**e, "args": {**e["args"], **news}}))

    def link(number):
        return trace().replace('"correlation": 903', f'"correlation": {number}').encode()
    two = base_events() + [{**e, "pid": 1, "args": {**e["args"], "device": 1}} for e in base_events()[FIRST_GPU:GEMM_3]]
    contexts = base_events() + [on_gpu("kernel", GEMM, 7, 5040, 5420, 2001)]
    contexts[-1]["args"]["context"] = 2
    no_args = [figures(all_gpu(lambda e: {**e, "args": {}}))]
    return [
        ("fields/string_pid_tid.json", trace(all_gpu(lambda e: {**e, "pid": "0", "tid": f"stream {e['tid']}"})), 0, [BASE], [],
         "torch 1.8"),
        ("fields/string_tid_trailing_blank.json", trace(all_gpu(lambda e: {**e, "tid": f"stream {e['tid']} "})), 0, [BASE], [], ""),
        ("fields/hex_stream.json", args(stream="0x55d0c0a8f3b0"), 0, [BASE], [], "older ROCm"),
        ("fields/numbers_as_strings.json", trace(all_gpu(lambda e: {**e, "args": {k: str(v) for k, v in e["args"].items()}})), 0,
         [BASE], [], "device, stream and correlation as strings"),
        ("fields/correlation_33_bits.json", link(2**32 + 903), 0, [BASE], [], "903 in the low bits: no other link"),
        ("fields/correlation_64_bits.json", link(2**64 - 1), 0, [BASE], [], ""),
        ("fields/correlation_beyond_64_bits.json", link(2**70), 0, [BASE], [], "whether it links is not checked"),
        ("fields/correlation_negative.json", link(-7), 0, [BASE], [], ""),
        ("fields/correlation_fraction.json", link("903.0"), 0, [BASE], [], ""),
        ("fields/stream_negative.json", args(stream=-1), 0, [BASE], [], ""),
        ("fields/stream_huge.json", args(stream=2**63), 0, [BASE], [], ""),
        ("fields/args_missing.json", trace(all_gpu(lambda e: {k: v for k, v in e.items() if k != "args"})), 0, no_args, [],
         "device by pid, op by name"),
        ("fields/args_null.json", trace(all_gpu(lambda e: {**e, "args": None})), 0, no_args, [], ""),
        ("fields/args_array.json", trace(all_gpu(lambda e: {**e, "args": [1, {"device": 5}]})), 0, no_args, [], ""),
        ("fields/args_string.json", trace(all_gpu(lambda e: {**e, "args": "device"})), 0, no_args, [], ""),
        ("fields/name_missing.json", trace(changed(FIRST_GPU, name=None)), 0, [BASE], [], "a kernel without a name computes"),
        ("fields/name_number.json", trace(changed(FIRST_GPU, name=17)), 0, [BASE], [], ""),
        ("fields/name_empty.json", trace(changed(FIRST_GPU, name="")), 0, [BASE], [], ""),
        ("fields/metadata_odd.json", trace(changed(COMM_1, {"In msg nelems": -2147483648, "Group size": "2", "dtype": "Tiny",
                                                           "Process Group Ranks": "[0, 1, ...]", "In split size": [1, 2],
                                                           "Comms Id": Raw("18446744073709551615")})), 0, [BASE], [],
         "negative size, unknown dtype: size unknown, not wrong"),
        ("fields/metadata_overflow.json", trace(changed(COMM_1, {"In msg nelems": 2**62, "Out msg nelems": 2**62})), 0, [BASE], [],
         "2^64 bytes do not fit"),
        ("fields/metadata_size_0.json", trace(changed(COMM_1, {"Group size": 0})), 0, [BASE], [], "no division by it"),
        ("fields/two_devices.json", trace(two), 0, [figures(two)], [], "two rows"),
        ("fields/two_contexts.json", trace(contexts), 0, [figures(contexts)], [], "equal stream numbers, overlapping"),
        ("fields/sync_records.json", trace(base_events() + [
            x("cuda_sync", "Stream Sync", 0, 7, 4000, 9000, stream=7, device=0), x("cuda_event", "cudaEvent", 0, 7, 4000, 4000.001),
            x("gpu_user_annotation", "nccl:all_reduce", 0, 24, 4000, 9000), x("overhead", "Buffer Flush", -1, 0, 4000, 9000)]), 0,
         [BASE], [], "none of these is GPU time"),
        ("fields/wait_record.json", trace(base_events()[:10] + [
            x("cpu_op", "record_param_comms", 4100, 4100, 4944, 4951, External_id=72, **{**AG_META, "Collective name": "wait"})]
            + base_events()[10:]), 0, [BASE], [], "a wait inside the collective's record, same External id: no collective"),
        ("fields/info_odd.json", trace(info='"distributedInfo": {"backend": 7, "rank": "0", "world_size": 0, "pg_config": '
                                            '[null, {"ranks": "[0, 1, ...]"}, []]},'), 0, [BASE], [], ""),
        ("fields/info_null.json", trace(info='"distributedInfo": null,'), 0, [BASE], [], ""),
        ("fields/info_rank_negative.json", trace(info='"distributedInfo": {"rank": -1, "world_size": 2},'), 0, [BASE], [], ""),
        ("fields/info_rank_huge.json", trace(info='"distributedInfo": {"rank": 99999999999, "world_size": 1e300},'), 0, [BASE], [],
         "no table with a row per rank up to it"),
    ]


def cases_of_kind():
    computing = [e for e in base_events() if "nccl" not in e["name"] and e["name"] != "record_param_comms"]
    host_only = base_events()[:FIRST_GPU] + base_events()[SPAN:]
    gloo = [x("user_annotation", "gloo:all_reduce", 4100, 4100, 5000, 5400), x("cpu_op", "record_param_comms", 4100, 4100, 5000, 5010)]
    gloo_info = '"distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2},'
    return [
        ("kind/no_communication.json", trace(computing), 0, [figures(computing)], [], "a right answer, not an error"),
        ("kind/host_only.json", trace(host_only), 0, [NONE], ["no GPU activity"], ""),
        ("kind/gloo.json", trace(gloo, info=gloo_info), 0, [NONE], ["no GPU activity"], "collectives on the host"),
        ("kind/memory_snapshot.json", '{"segments": [{"address": 1}], "device_traces": [[]], "allocator_settings": {}}', 3, None,
         ["memory snapshot"], ""),
        ("kind/memory_timeline.json", "[[1, 2, 3], [[0, 5], [7, 9]]]", 3, None, ["memory timeline"], ""),
        ("kind/snapshot.pickle", b"\x80\x04\x95" + b"\x19" + bytes(7) + b"}\x94(\x8c\x08segments\x94]\x94u.", 3, None, ["pickle"], ""),
        ("kind/timeline.html", "<!DOCTYPE html>\n<html><body><img src='data:image/png;base64,AAAA'></body></html>\n", 3, None,
         ["no known format"], ""),
        ("kind/other.json", '{"a": [1, 2, {"b": null}]}', 3, None, ["no traceEvents"], ""),
        ("kind/number.json", "17\n", 3, None, ["no known format"], ""),
        ("kind/string.json", '"traceEvents"', 3, None, ["no known format"], ""),
        ("kind/null.json", "null", 3, None, ["no known format"], ""),
        ("kind/empty.json", b"", 3, None, ["empty"], ""),
        ("kind/blank.json", " \n\t\r\n" * 1000, 3, None, ["empty"], ""),
        ("kind/zeros.json", bytes(100000), 3, None, ["no known format"], "a disk that lost the data"),
        ("kind/noise.json", random.Random(4).randbytes(100000), 3, None, ["no known format"], ""),
        ("kind/text.json", "This is no trace.\n" * 100, 3, None, ["no known format"], ""),
    ]


def deep(levels):
    return "[" * levels + "]" * levels


def cases_of_size(huge):
    names = 100_000
    many = ",\n".join(f'{{"ph":"X","cat":"kernel","name":"k_{i}_{i * 7919 % 100003}","pid":0,"tid":7,"ts":{1000 + i}.000,"dur":1.000,'
                      f'"args":{{"device":0,"stream":7}}}}' for i in range(names))
    # One kernel after the other for 100,000 us, all compute: known without the slow method.
    many_row = [{"device": 0, "gpu_events": names, "comm_events": 0, "window_ns": names * 1000, "compute_only_ns": names * 1000,
                 "hidden_comm_ns": 0, "exposed_comm_ns": 0, "memory_only_ns": 0, "idle_ns": 0}]
    mb = 1_000_000
    head, tail = trace(changed(PYTHON, name="HOLE")).split("HOLE")
    string = (head, 1000 * mb, tail) if huge else head + "x" * (64 * mb) + tail
    return [
        ("size/string.json", string, 0, [BASE], [], "one string of 64 MB; with --huge 1 GB of zero bytes"),
        ("size/args.json", trace(changed(MM, {"Input Dims": Raw("[" + "[1,2]," * (40 * mb // 6) + "[]]")})), 0, [BASE], [],
         "one event with 40 MB of args"),
        ("size/kernel_name.json", trace(changed(FIRST_GPU, name="void f<" + "A, " * (mb // 3) + "B>(int)")), 0, [BASE], [], "1 MB"),
        ("size/kernel_name_comm.json", trace(changed(COMM_1, name=ALL_REDUCE[:-1] + "<" * (mb // 2) + ")")), 0, [BASE], [],
         "unbalanced brackets"),
        ("size/distinct_names.json", '{"traceEvents": [\n' + many + "\n]}", 0, [many_row], [], "100,000 of them"),
        ("size/deep_args_10k.json", trace(changed(MM, {"x": Raw(deep(10_000))})), 0, [BASE], [], ""),
        ("size/deep_args_1m.json", trace(changed(MM, {"x": Raw(deep(1_000_000))})), 0, [BASE], [], ""),
        ("size/deep_args_of_kernel.json", trace(changed(GEMM_3, {"x": Raw(deep(10_000))})), 0, lost(GEMM_3), [], ""),
        ("size/deep_objects_10k.json", trace(changed(MM, {"x": Raw('{"a":' * 10_000 + "1" + "}" * 10_000)})), 0, [BASE], [], ""),
        ("size/deep_at_top_10k.json", trace(before=f'  "x": {deep(10_000)},\n'), 0, [BASE], [], "before traceEvents"),
        ("size/deep_at_top_1m.json", trace(before=f'  "x": {deep(1_000_000)},\n'), 0, [BASE], [], ""),
        ("size/deep_event.json", trace([Raw(deep(1_000_000))] + base_events()), 0, [BASE], ["no event"], "instead of an event"),
        ("size/deep_and_nothing.json", "[" * 1_000_000, 3, None, ["no known format"], ""),
        ("size/deep_objects_and_nothing.json", '{"a":' * 1_000_000, 3, None, ["no traceEvents"], ""),
    ]


def folder_cases():
    """Folders given as a whole: (folder, {file: content}, exit, ranks, notes, comment)."""
    def of(rank, world=2, shift=0.0, pid=4100):
        events = times(lambda t, d: (us(float(t) + shift), d))
        for e in events:
            if e["pid"] == 4100:
                e["pid"] = e["tid"] = pid
        info = f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {world}}},'
        return trace(events, info=info if rank is not None else "")

    def rows(*ranks):
        return [{**BASE_FIGURES, "rank": r} for r in ranks]
    one_or_two = [rows(0), rows(0, 0)]
    return [
        ("folders/rank_in_name", {"rank3.json": of(None)}, 0, [rows(3)], [], "no rank in the file"),
        ("folders/rank_in_name_dashed", {"trace_rank-12.pt.trace.json": of(None)}, 0, [rows(12)], [], ""),
        ("folders/rank_in_both", {"rank5.json": of(1)}, 0, [rows(1)], [], "the file's own word counts"),
        ("folders/no_rank", {"a.json": of(None), "b.json": of(None)}, 0, [rows(0, 1)], ["rank by order"], "in order of names"),
        ("folders/rank_missing", {f"r{r}.json": of(r, 4) for r in (0, 1, 3)}, 0, [rows(0, 1, 3)], ["rank 2 of 4 is missing"], ""),
        ("folders/rank_beyond_world", {f"r{r}.json": of(r, 2) for r in (0, 7)}, 0, [rows(0, 7)], ["rank 7 of 2"], ""),
        ("folders/two_captures", {"a.json": of(0), "b.json": of(0, shift=5_000_000)}, 0, one_or_two, ["rank 0 twice"],
         "two windows of one process, 5 s apart: two runs, or one of them; never one window over both"),
        ("folders/two_processes", {"a.json": of(0), "b.json": of(0, shift=0.5, pid=7777)}, 0, one_or_two, ["rank 0 twice"],
         "two processes say that they are rank 0"),
        ("folders/same_file_twice", {"a.json": of(0), "copy_of_a.json": of(0)}, 0, one_or_two, ["same file twice"],
         "never counted together"),
        ("folders/plain_and_packed", {"a.json": of(0), "a.json.gz": gzip.compress(of(0).encode())}, 0, one_or_two,
         ["same trace twice"], ""),
        ("folders/world_sizes_differ", {"a.json": of(0, 2), "b.json": of(1, 4)}, 0, [rows(0, 1)], ["world size"], ""),
        ("folders/deep_below", {"x/y/z/a.json": of(0, 1)}, 0, [rows(0)], [], "found in sub-folders"),
        ("folders/with_other_things", {"a.json": of(0, 1), "README.md": "# A folder\n", "run.py": "print(1)\n",
                                       "loss.png": b"\x89PNG\r\n\x1a\n" + bytes(64), "empty.txt": b""}, 0, [rows(0)], [],
         "what is no input in a folder is passed over"),
        ("folders/with_a_broken_trace", {"a.json": of(0, 2), "b.json": of(1, 2)[:300]}, [0, 3], [rows(0)], ["b.json"],
         "passed over with a word, or counted as an input that could not be used: code 3"),
        ("folders/only_other_things", {"README.md": "# A folder\n", "run.py": "print(1)\n"}, 3, None, ["no input"], ""),
        ("folders/empty", {}, 3, None, ["no input"], ""),
        ("folders/named_like_a_file.json", {"a.json": of(0, 1)}, 0, [rows(0)], [], "a folder called x.json"),
        ("folders/odd_names", {"sp ace 'q'.json": of(0, 2), "[1]*?.json": of(1, 2)}, 0, [rows(0, 1)], [],
         "names with blanks, quotes and glob characters"),
    ]


# -------------------------------------------------------------------------------------------------------------- writing


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(content, tuple):                                   # (head, hole in bytes, tail): a sparse file
        head, hole, tail = content
        with open(path, "wb") as f:
            f.write(head.encode())
            f.seek(hole, os.SEEK_CUR)
            f.write(tail.encode())
        return
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)


def expectation(exit_codes, ranks, notes, comment):
    return {"exit": exit_codes if isinstance(exit_codes, list) else [exit_codes], "notes": list(notes), "ranks": ranks, "ops": None,
            "comment": comment}


def slow_check(path, entry):
    """Where the file is valid JSON as it stands, the slow method must come to one of the expected tables, and adds ops."""
    if entry["ranks"] is None or os.path.getsize(path) > 3_000_000:
        return None
    try:
        result = slow.analyse(path)
    except slow.Unusable:
        return None
    rows = [row(r) for r in result["ranks"]]
    if len(entry["ranks"]) == 1 and rows == entry["ranks"][0]:
        entry["ops"] = {o["op"]: [o["count"], o["bytes"]] for o in result["ops"]}
    return rows in entry["ranks"]


def make(out, huge=False):
    """Writes everything; returns (expected, names that the slow method confirmed, names where it disagrees)."""
    assert figures(base_events()) == BASE, "the base trace's figures by hand are not the slow method's"
    expected, confirmed, disagree = {}, [], []
    single = (cases_of_truncation() + cases_of_compression() + cases_of_tokens() + cases_of_strings() + cases_of_times()
              + cases_of_layout() + cases_of_fields() + cases_of_kind() + cases_of_size(huge))
    for path, content, exit_codes, ranks, notes, comment in single:
        assert path not in expected, path
        entry = expected[path] = expectation(exit_codes, ranks, notes, comment)
        write(os.path.join(out, path), content)
        verdict = slow_check(os.path.join(out, path), entry)
        if verdict is not None:
            (confirmed if verdict else disagree).append(path)
    assert expected["layout/good.json"]["ops"] == BASE_OPS
    expected["kind/gloo.json"]["ops"] = None                                # host ranges: the slow method reads GPU events only
    expected["fields/correlation_beyond_64_bits.json"]["ops"] = None        # no identifier of any writer
    for folder, files, exit_codes, ranks, notes, comment in folder_cases():
        expected[folder] = expectation(exit_codes, ranks, notes, comment)
        os.makedirs(os.path.join(out, folder), exist_ok=True)
        for name, content in files.items():
            write(os.path.join(out, folder, name), content)
    with open(os.path.join(out, "expected.json"), "w", encoding="utf-8") as f:
        json.dump(expected, f, indent=1)
    return expected, confirmed, disagree


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("outdir")
    parser.add_argument("--huge", action="store_true", help="the long string has 1 GB (a sparse file)")
    options = parser.parse_args()
    os.makedirs(options.outdir, exist_ok=True)
    expected, confirmed, disagree = make(options.outdir, options.huge)
    print(f"{len(expected)} cases, {len(confirmed)} confirmed by the slow method")
    for path in disagree:
        print(f"BAD {path}: the slow method reads it and comes to other figures")
    return 1 if disagree else 0


if __name__ == "__main__":
    sys.exit(main())
