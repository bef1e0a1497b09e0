#!/usr/bin/env python3
"""A timeline in Perfetto's format holds what the Chrome JSON of the same run holds.

    pftrace_test.py COMMLENS_BINARY [FILE.pftrace FILE.json]

Decodes the protobuf wire format by itself, holds the packets to the rules of Perfetto's reader, and compares every process,
track, slice (place, start, length, name, category, arguments) and arrow with the JSON. With two files: these instead.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Field numbers of protos/perfetto/trace/*.proto: name, and how its bytes are to be read. "*" marks repeated ones.
MESSAGES = {
    "Trace": {1: "*packet:TracePacket"},
    "TracePacket": {6: "clock_snapshot:ClockSnapshot", 8: "timestamp:uint", 10: "sequence:uint", 11: "track_event:TrackEvent",
                    12: "interned_data:InternedData", 13: "sequence_flags:uint", 60: "track_descriptor:TrackDescriptor"},
    "ClockSnapshot": {1: "*clocks:Clock", 2: "primary_trace_clock:uint"},
    "Clock": {1: "clock_id:uint", 2: "timestamp:uint"},
    "TrackDescriptor": {1: "uuid:uint", 3: "process:ProcessDescriptor", 4: "thread:ThreadDescriptor"},
    "ProcessDescriptor": {1: "pid:uint", 3: "legacy_sort_index:uint", 6: "process_name:text"},
    "ThreadDescriptor": {1: "pid:uint", 2: "tid:uint", 3: "legacy_sort_index:uint", 5: "thread_name:text"},
    "InternedData": {1: "*category:Definition", 2: "*name:Definition", 3: "*key:Definition", 29: "*value:Definition"},
    "Definition": {1: "iid:uint", 2: "text:text"},
    "TrackEvent": {3: "category_iid:uint", 4: "*annotations:DebugAnnotation", 9: "type:uint", 10: "name_iid:uint",
                   11: "track_uuid:uint", 47: "flow:fixed64", 48: "terminating_flow:fixed64"},
    "DebugAnnotation": {1: "name_iid:uint", 2: "bool_value:bool", 4: "int_value:int", 5: "double_value:double",
                        17: "string_value_iid:uint"},
}
WIRE_TYPE = {"uint": 0, "int": 0, "bool": 0, "fixed64": 1, "double": 1}
CLEARED, NEEDS_STATE = 1, 2
BEGIN, END = 1, 2
REALTIME, BOOTTIME = 1, 6


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            assert value < 1 << 64 and (byte or shift == 7), "a varint that is not the shortest"
            return value, at


def decode(data, message):
    """One message as a dict; a field that is not known, of another wire type, or there twice is a fault."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        assert number in MESSAGES[message], f"{message} has no field {number} here"
        name, kind = MESSAGES[message][number].split(":")
        assert wire == WIRE_TYPE.get(kind, 2), f"{message}.{name} of wire type {wire}"
        if wire == 0:
            value, at = varint(data, at)
            value = value - (1 << 64) if kind == "int" and value >> 63 else bool(value) if kind == "bool" else value
        elif wire == 1:
            value, = struct.unpack_from("<d" if kind == "double" else "<Q", data, at)
            at += 8
        else:
            length, at = varint(data, at)
            assert at + length <= len(data), f"{message}.{name} is cut"
            value = data[at:at + length]
            value = value.decode("utf-8") if kind == "text" else decode(value, kind)
            at += length
        if name[0] == "*":
            found.setdefault(name[1:], []).append(value)
        else:
            assert name not in found, f"{message}.{name} twice"
            found[name] = value
    return found


class Timeline:
    """What both formats tell: processes and tracks by name and in order, slices by track, arrows by their two ends."""

    def __init__(self):
        self.origin, self.processes, self.tracks, self.slices, self.arrows = None, [], [], {}, set()


def read_pftrace(data):
    timeline, tracks, defined, flows = Timeline(), {}, {}, {}
    packets = decode(data, "Trace")["packet"]
    assert packets[0].get("sequence_flags") == CLEARED
    for number, packet in enumerate(packets):
        assert packet["sequence"] == 1
        assert number == 0 or packet.get("sequence_flags", NEEDS_STATE) == NEEDS_STATE
        if "clock_snapshot" in packet:
            clocks = {c["clock_id"]: c["timestamp"] for c in packet["clock_snapshot"]["clocks"]}
            assert packet["clock_snapshot"]["primary_trace_clock"] == BOOTTIME and clocks.pop(BOOTTIME) == 0
            timeline.origin = clocks.pop(REALTIME)
            assert not clocks
        for kind, definitions in packet.get("interned_data", {}).items():
            assert packet["sequence_flags"] == NEEDS_STATE
            for definition in definitions:
                assert definition["iid"] > 0 and (kind, definition["iid"]) not in defined
                defined[kind, definition["iid"]] = definition["text"]
        if "track_descriptor" in packet:
            describe(packet["track_descriptor"], timeline, tracks)
        if "track_event" in packet:
            take_event(packet, timeline, tracks, defined, flows)
    assert all("open" not in track for track in tracks.values()), "a slice without an end"
    for ends in flows.values():
        assert len(ends) == 2, f"an arrow with the ends {ends}"
        timeline.arrows.add((ends["flow"], ends["terminating_flow"]))
    return timeline


def describe(descriptor, timeline, tracks):
    number = descriptor["uuid"]
    assert number > 0 and number not in tracks and len(descriptor) == 2
    if "process" in descriptor:
        process = descriptor["process"]
        assert process["pid"] == process["legacy_sort_index"] == number
        tracks[number] = {"process": process["process_name"]}
        timeline.processes.append(process["process_name"])
    else:
        thread, place = descriptor["thread"], len(timeline.tracks)
        assert thread["tid"] == thread["legacy_sort_index"] == number
        tracks[number] = {"place": place, "last": 0}
        timeline.tracks.append((tracks[thread["pid"]]["process"], thread["thread_name"]))
        timeline.slices[place] = []


def take_event(packet, timeline, tracks, defined, flows):
    event, time = packet["track_event"], packet["timestamp"]
    track = tracks[event["track_uuid"]]
    assert track["last"] <= time < 1 << 63, "events of one track come by time"
    track["last"] = time
    if event["type"] == END:
        assert set(event) == {"type", "track_uuid"}
        start, *rest = track.pop("open")
        timeline.slices[track["place"]].append((start, time - start, *rest))
        return
    assert event["type"] == BEGIN and "open" not in track and packet["sequence_flags"] == NEEDS_STATE
    arguments = {}
    for annotation in event.get("annotations", []):
        key = defined["key", annotation.pop("name_iid")]
        assert key not in arguments and len(annotation) == 1
        (kind, value), = annotation.items()
        arguments[key] = defined["value", value] if kind == "string_value_iid" else value
    track["open"] = (time, defined["name", event["name_iid"]], defined["category", event["category_iid"]], arguments)
    for end in ("flow", "terminating_flow"):
        if end in event:
            ends = flows.setdefault(event[end], {})
            assert end not in ends
            ends[end] = (track["place"], time)


def read_json(text):
    timeline, processes, places, ends = Timeline(), {}, {}, {}
    whole = json.loads(text, parse_float=lambda digits: digits)
    origin = whole["otherData"]["origin_epoch_ns"]
    timeline.origin = None if origin is None else int(origin)
    for event in whole["traceEvents"]:
        place = places.get(event.get("tid"))
        if event["ph"] == "X":
            arguments = {key: float(value) if key == "algbw_gbs" else value for key, value in event.get("args", {}).items()}
            timeline.slices[place].append((to_ns(event["ts"]), to_ns(event["dur"]), event["name"], event["cat"], arguments))
        elif event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
            timeline.processes.append(event["args"]["name"])
        elif event["name"] == "thread_name":
            places[event["tid"]] = len(timeline.tracks)
            timeline.slices[len(timeline.tracks)] = []
            timeline.tracks.append((processes[event["pid"]], event["args"]["name"]))
        elif event["ph"] in "sf":
            ends.setdefault(event["id"], {})[event["ph"]] = (place, slice_at(timeline.slices[place], to_ns(event["ts"])))
    timeline.arrows = {(both["s"], both["f"]) for both in ends.values()}
    return timeline


def slice_at(slices, time):
    """The start of the slice that holds a moment; slices of one track do not overlap."""
    return max(start for start, length, *_ in slices if start <= time < start + max(length, 1))


def to_ns(us):
    assert re.fullmatch(r"\d+\.\d{3}", us), us
    return int(us.replace(".", ""))


def difference(ours, theirs):
    """Where a timeline differs from the JSON's, in words; None where they are the same."""
    for part in ("origin", "processes", "tracks", "arrows"):
        if getattr(ours, part) != getattr(theirs, part):
            return f"{part}: {str(getattr(ours, part))[:300]} is not {str(getattr(theirs, part))[:300]}"
    for place, track in enumerate(ours.tracks):
        if len(ours.slices[place]) != len(theirs.slices[place]):
            return f"{track}: {len(ours.slices[place])} slices, not {len(theirs.slices[place])}"
        for mine, other in zip(ours.slices[place], theirs.slices[place]):
            # A NUL would end a text in Perfetto.
            if mine[:4] != (*other[:2], other[2].replace("\0", "\ufffd"), other[3]) or not same_arguments(mine[4], other[4]):
                return f"{track}: {mine} is not {other}"
    return None


def same_arguments(ours, theirs):
    """The same keys in one order, of the same types; JSON's bandwidths have six digits."""
    return list(ours) == list(theirs) and all(
        type(a) is type(b) and (float(f"{a:.6g}") == b if isinstance(a, float) else a == b)
        for a, b in zip(ours.values(), theirs.values()))


# ---------------------------------------------------------------------------------------------------------- inputs


def hostile():
    """One rank whose names are odd and whose slices have no length, touch, or lie inside others."""
    def kernel(name, start, length, stream=7):
        return (b'{"ph": "X", "cat": "kernel", "name": "' + name + b'", "pid": 0, "tid": %d, "ts": %d.%03d, "dur": %d.%03d, '
                b'"args": {"device": 0, "stream": %d, "correlation": 1}}'
                % (stream, start // 1000, start % 1000, length // 1000, length % 1000, stream))
    events = [kernel(b"bad \xff\xc3( end", 1000, 1), kernel(b"", 1001, 0), kernel(b"", 1001, 0), kernel(b"zero", 2000, 0),
              kernel(b"x" * 70000, 2000, 999), kernel("\u20ac".encode() * 300, 2999, 1), kernel(b"nul \\u0000 line \\n", 3000, 7),
              kernel(b"inside", 3001, 2), kernel(b"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2500, 501, 9),
              kernel(b"ncclDevKernel_AllGather_RING_LL", 4000, 0, 9)]
    return (b'{"baseTimeNanoseconds": 5, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [' + b",\n".join(events) + b"]}")


SIMULATED = [["--dp", "2", "--tp", "2", "--layers", "3", "--steps", "2", "--slow", "1:1.3", "--ranks-per-host", "2", "--clock", "1:180"],
             ["--pp", "3", "--microbatches", "4", "--layers", "3", "--steps", "2", "--noise", "0.2", "--seed", "7"]]


def check(name, pftrace, text, want):
    ours, theirs = read_pftrace(pftrace), read_json(text)
    wrong = difference(ours, theirs)
    slices = sum(map(len, ours.slices.values()))
    if wrong is None and (slices < want[0] or len(ours.arrows) < want[1]):
        wrong = "there is too little in it"
    print(f"{name}: {wrong or 'the same'}: {slices} slices, {len(ours.arrows)} arrows, {len(pftrace)} bytes for {len(text)}")
    return wrong is None


def main():
    if len(sys.argv) == 4:
        return 0 if check(sys.argv[2], pathlib.Path(sys.argv[2]).read_bytes(), pathlib.Path(sys.argv[3]).read_bytes(), (0, 0)) else 1
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    fine = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def commlens(*words):
            subprocess.run([binary, *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=120)

        (folder / "hostile.json").write_bytes(hostile())
        (folder / "small").symlink_to(HERE / "data" / "small" / "job")
        cases = [(["hostile.json"], (10, 0)), (["small"], (30, 0)), (["small", "--steps", "11"], (10, 0))]
        for number, words in enumerate(SIMULATED):
            commlens("simulate", *words, "-o", f"simulated-{number}", "--quiet")
            cases.append(([f"simulated-{number}"], (500, 5 * number)))  # the first one's path stays on the slow rank
        for words, want in cases:
            commlens("timeline", *words, "-o", "run.pftrace")
            commlens("timeline", *words, "-o", "run.json")
            fine &= check(" ".join(words), (folder / "run.pftrace").read_bytes(), (folder / "run.json").read_bytes(), want)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
