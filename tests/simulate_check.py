#!/usr/bin/env python3
"""Reads a simulated run as any reader of Kineto traces would, and compares what it finds with truth.json.

    simulate_check.py FOLDER

Prints one line for each difference and fails if there is any. Nothing here is shared with the program.
"""
import json
import pathlib
import re
import sys

faults = []


def expect(condition, *words):
    if not condition:
        faults.append(" ".join(str(word) for word in words))


def read_ns(text):
    """Exact: a float holds only a quarter of a microsecond there."""
    whole, fraction = text.split(".")
    assert len(fraction) == 3, text
    return int(whole) * 1000 + int(fraction)


def read(path):
    return json.loads(path.read_text(), parse_float=lambda text: text)


class Trace:
    def __init__(self, path, epoch):
        document = read(path)
        self.info = document["distributedInfo"]
        self.shift = document["baseTimeNanoseconds"] - epoch
        self.events = [event for event in document["traceEvents"] if event["ph"] == "X"]
        for event in self.events:
            event["start"] = read_ns(event["ts"]) + self.shift
            event["end"] = event["start"] + read_ns(event["dur"])
        self.flows = [event for event in document["traceEvents"] if event["ph"] in "sf"]
        self.gpu = self.of("kernel", "gpu_memcpy", "gpu_memset")
        self.calls = {call["args"]["correlation"]: call for call in self.of("cuda_runtime")}

    def of(self, *cats):
        return [event for event in self.events if event["cat"] in cats]


def is_comm(event):
    return event["cat"] == "kernel" and event["name"].startswith("nccl")


def buckets(events, start, end):
    """One bit a class; a sweep over the ends of the clipped events."""
    ends = []
    for event in events:
        kind = 2 if is_comm(event) else 1 if event["cat"] == "kernel" else 4
        ends.append((min(max(event["start"], start), end), kind, 1))
        ends.append((min(max(event["end"], start), end), kind, -1))
    ends.append((end, 4, 0))
    running = {1: 0, 2: 0, 4: 0}
    names = ["compute_only_ns", "hidden_comm_ns", "exposed_comm_ns", "memory_only_ns", "idle_ns"]
    found = dict.fromkeys(names, 0)
    last = start
    for at, kind, change in sorted(ends):
        if running[2]:
            name = names[1] if running[1] else names[2]
        elif running[1]:
            name = names[0]
        else:
            name = names[3] if running[4] else names[4]
        found[name] += at - last
        last = at
        running[kind] += change
    return found | {"window_ns": end - start}


def compare(where, found, expected):
    for key, value in found.items():
        expect(value == expected[key], where, key, "is", value, "but truth says", expected[key])


def check_rank(trace, truth):
    where = f"rank {truth['rank']}:"
    expect(trace.info["rank"] == truth["rank"], where, "distributedInfo.rank is", trace.info["rank"])
    start = min(event["start"] for event in trace.gpu)
    end = max(event["end"] for event in trace.gpu)
    comm = [event for event in trace.gpu if is_comm(event)]
    compute = [event for event in trace.gpu if event["cat"] == "kernel" and not is_comm(event)]
    overlapped = [
        event for event in comm
        if any(other["start"] < event["end"] and event["start"] < other["end"] and other["start"] < other["end"]
               for other in compute)
    ]
    compare(where, buckets(trace.gpu, start, end) | {
        "start_ns": start, "end_ns": end, "gpu_events": len(trace.gpu), "comm_events": len(comm),
        "comm_busy_ns": sum(event["end"] - event["start"] for event in comm),
        "whole_event_overlap_ns": sum(event["end"] - event["start"] for event in overlapped),
    }, truth)
    check_steps(where, trace, truth)
    check_links(where, trace)


def check_steps(where, trace, truth):
    ranges = [event for event in trace.of("user_annotation") if event["name"].startswith("ProfilerStep#")]
    launched = []
    for step in ranges:
        inside = [event for event in trace.gpu
                  if step["start"] <= trace.calls[event["args"]["correlation"]]["start"] < step["end"]]
        launched.append((step["name"], min(event["start"] for event in inside), max(event["end"] for event in inside)))
    expect(len(launched) == len(truth["steps"]), where, len(launched), "steps")
    for i, (name, start, end) in enumerate(launched):
        end = launched[i + 1][1] if i + 1 < len(launched) else end
        expected = truth["steps"][i]
        expect(name == f"ProfilerStep#{expected['step']}", where, name, "at", expected["step"])
        compare(f"{where} {name}", buckets(trace.gpu, start, end) | {"start_ns": start, "end_ns": end}, expected)


def check_links(where, trace):
    ops = {op["args"]["External id"]: op for op in trace.of("cpu_op")}
    annotations = trace.of("gpu_user_annotation")
    for event in trace.gpu:
        args = event["args"]
        call = trace.calls.get(args["correlation"])
        expect(call is not None and call["end"] <= event["start"], where, "launch of", event)
        op = ops.get(args["External id"])
        expect(op is not None and op["start"] <= call["start"] and call["end"] <= op["end"], where, "operator of", event)
        if not is_comm(event):
            continue
        expect(op["name"] == "record_param_comms", where, "operator", op["name"])
        for key in set(args) & set(op["args"]) - {"Seq"}:
            expect(args[key] == op["args"][key], where, key, args[key], op["args"][key])
        expect(any(other["tid"] == event["tid"] and other["start"] == event["start"] - 1 and
                   other["end"] == event["end"] + 1 for other in annotations), where, "no annotation over", event)
    for sync in trace.of("cuda_sync"):
        if sync["name"] == "Stream Wait Event":
            record = trace.calls[sync["args"]["wait_on_cuda_event_record_corr_id"]]
            expect(record["name"] == "cudaEventRecord" and record["end"] <= sync["start"], where, "record of", sync)
    arrows = {phase: {flow["id"] for flow in trace.flows if flow["ph"] == phase} for phase in "sf"}
    expect(arrows["s"] == arrows["f"], where, "arrows without an end")


def check_collectives(traces, truth, incomplete):
    """Groups kernels by group and Seq, and pairs by (source, destination) in order."""
    found = {}
    for rank, trace in traces.items():
        if rank in incomplete:
            continue
        ops = {op["args"]["External id"]: op["args"] for op in trace.of("cpu_op")}
        order = {}
        for event in filter(is_comm, trace.gpu):
            args = ops[event["args"]["External id"]]
            if args["Collective name"] in ("send", "recv"):
                pair = (args["Src Rank"], args["Dst Rank"])
                order[pair] = order.get(pair, 0) + 1
                key = (args["Process Group Name"], pair, order[pair])
            else:
                ranks = tuple(int(word) for word in re.findall(r"\d+", args["Process Group Ranks"]))
                key = (args["Process Group Name"], ranks, args["Seq"])
            size = 2 * max(args["In msg nelems"], args["Out msg nelems"])
            found.setdefault(key, []).append((rank, size, event["start"], event["end"]))
    if not incomplete:
        expect(len(found) == len(truth["collectives"]), len(found), "collectives of", len(truth["collectives"]))
    for expected in truth["collectives"]:
        if incomplete & set(expected["ranks"]):
            continue
        members = found.get((expected["group"], tuple(expected["ranks"]), expected["seq"]), [])
        by_rank = {member[0]: member for member in members}
        rows = [by_rank.get(rank) for rank in expected["ranks"]]
        if None in rows:
            faults.append(f"no such collective: {expected}")
            continue
        last = max(row[2] for row in rows)
        compare(f"{expected['op']} {expected['group']}/{expected['seq']}", {
            "start_ns": [row[2] for row in rows], "end_ns": [row[3] for row in rows],
            "wait_ns": [last - row[2] for row in rows], "bytes": max(row[1] for row in rows),
        }, expected)
    check_sums(truth)


def check_sums(truth):
    waits = truth["waits"]
    total = waits["total_ns"]
    expect(total == sum(row["waited_ns"] for row in waits["by_rank"]), "waited sums")
    expect(total == sum(row["caused_ns"] for row in waits["by_rank"]), "caused sums")
    expect(total == sum(row["ns"] for row in waits["blame"]), "blame sums")
    all_waits = sum(sum(row["wait_ns"]) for row in truth["collectives"])
    expect(truth["waits_with_senders"]["total_ns"] == all_waits, "waits of collectives sum")
    expect(sum(row["waited_ns"] for row in truth["ops"]) == all_waits, "waits of ops sum")
    expect(sum(row["count"] for row in truth["ops"]) == sum(row["comm_events"] for row in truth["ranks"]), "op counts")
    path = truth["critical_path"]
    parts = ["compute_ns", "transfer_ns", "host_ns", "memory_ns"]
    window = max(row["end_ns"] for row in truth["ranks"]) - min(row["start_ns"] for row in truth["ranks"])
    expect(path["window_ns"] == window == sum(path[part] for part in parts), "the path tiles the window")
    for part in parts:
        expect(path[part] == sum(row[part] for row in path["by_rank"]), "the path by rank:", part)
    expect(all(row["ns"] == sum(row[part] for part in parts) for row in path["by_rank"]), "ranks' parts of the path")
    expect(path["transfer_ns"] == sum(row["ns"] for row in path["by_op"]), "the path by operation")
    expect(sum(row["busy_ns"] for row in truth["ops"]) == sum(row["comm_busy_ns"] for row in truth["ranks"]), "busy")


def ranks_with(truth, *kinds):
    return {fault["rank"] for fault in truth.get("faults", []) if fault["kind"] in kinds}


def main():
    folder = pathlib.Path(sys.argv[1])
    truth = read(folder / "truth.json")
    ahead = {clock["host"]: clock["ahead_ns"] for clock in truth.get("clocks", [])}
    missing = ranks_with(truth, "missing")
    gaps = ranks_with(truth, "lose", "window_shift")
    traces = {}
    for row in truth["ranks"]:
        path = folder / f"rank-{row['rank']}.json"
        expect(path.exists() == (row["rank"] not in missing), path, "is there, or not")
        if path.exists():
            traces[row["rank"]] = Trace(path, truth["epoch_ns"] + ahead.get(row["host"], 0))
    for row in truth["ranks"]:
        if row["rank"] in traces and row["rank"] not in gaps:
            check_rank(traces[row["rank"]], row)
    check_collectives(traces, truth, missing | gaps)
    for fault in faults[:20]:
        print(fault)
    sys.exit(1 if faults else 0)


main()
