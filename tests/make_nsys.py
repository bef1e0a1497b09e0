#!/usr/bin/env python3
"""Writes small Nsight Systems exports of our own making: `make_nsys.py FOLDER` for what a fuzz target starts from.

`write(path, secret)` makes one export whose lists of environment variables and command lines hold the secret, in every
place in which real exports have them.
"""
import json
import pathlib
import sqlite3
import struct
import sys

TABLES = """
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);
CREATE TABLE META_DATA_CAPTURE(name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV(globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE PROCESS_STREAMS(globalPid INTEGER, filenameId INTEGER, contentId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, copyKind INTEGER, bytes INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER,
  domainId INTEGER, binaryData BLOB, jsonText TEXT, jsonTextId INTEGER, eventId INTEGER);
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER, name TEXT,
  offset INTEGER);
"""
NAMES = ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "gemm", "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020",
         "ncclAllReduce", "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv", "ncclDevKernel_SendRecv",
         "ncclCommInitRankConfig"]
KERNEL, GEMM, LAUNCH, SYNC, ALL_REDUCE, GROUP_START, GROUP_END, SEND, RECV, SEND_RECV, INIT = range(1, 12)
INIT_SCHEMA, CALL_SCHEMA = 50, 60


def payload(schema, size, *words):
    """A blob as NVTX exports it: domain, schema, size, offset, then the payload."""
    return struct.pack("<QQQQ", 1, schema, size, 32) + b"".join(words)


def attached(row, form, secret):
    """A range's payload in the form that the export has, beside words that nobody is to see: blob, json, string (JSON that
    stands in StringIds) or broken."""
    start, schema, names = row[0], row[3], row[4:]
    if not schema:
        return None, None, None
    words = dict(zip(["NCCL communicator ID", "No. of ranks", "Rank"] if schema == INIT_SCHEMA else
                     ["NCCL communicator ID", "Message size [bytes]"], names))
    if form == "blob":
        return payload(schema, 16, struct.pack("<Qii" if schema == INIT_SCHEMA else "<QQ", *names)), None, None
    if form == "string":
        return None, None, len(NAMES) + 3 if schema == INIT_SCHEMA else len(NAMES) + 4
    text = json.dumps({"payload": [words], "note": secret})
    return None, text[:-3] if form == "broken" and start > 1_000_000 else text, None


def write_process(db, pid, device, rank, form="blob", secret=""):
    """A gemm, an all-reduce of 4096 bytes, a send with a receive, and a copy."""
    gpu, thread = pid << 24, (pid << 24) + pid
    nvtx = [(100_000, 900_000, INIT, INIT_SCHEMA, 77, 2, rank), (1_400_000, 1_550_000, ALL_REDUCE, CALL_SCHEMA, 77, 4096),
            (2_000_000, 2_010_000, GROUP_START, 0),
            (2_020_000, 2_030_000, SEND, 0), (2_040_000, 2_050_000, RECV, 0), (2_060_000, 2_200_000, GROUP_END, 0)]
    for number, row in enumerate(nvtx):
        db.execute("INSERT INTO NVTX_EVENTS VALUES(?, ?, 59, NULL, ?, ?, 1, ?, ?, ?, ?)",
                   (*row[:3], thread, *attached(row, form, secret), pid * 100 + number))
    for start, correlation, name in [(1_000_000, 1, LAUNCH), (1_500_000, 2, LAUNCH), (2_100_000, 3, LAUNCH),
                                     (5_000_000, 4, SYNC)]:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?)",
                   (start, start + 10_000, thread, correlation, name))
    for start, end, stream, correlation, name in [(2_000_000, 3_000_000, 7, 1, GEMM), (3_000_000, 5_000_000, 20, 2, KERNEL),
                                                  (5_000_000, 6_000_000, 21, 3, SEND_RECV)]:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?)",
                   (start, end, device, stream, correlation, gpu, name, name))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(6000000, 6500000, ?, 1, 7, 5, ?, 1, 4096)", (device, gpu))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(5000000, 6500000, ?, 1, 7, 4, ?, 3, NULL, NULL)", (device, gpu))


def mark(db):
    """Steps that one thread starts and another ends, a call as such a range, and a payload with enumerations."""
    db.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN endGlobalTid INTEGER")
    thread = (100 << 24) + 100
    blob = payload(70, 24, struct.pack("<QQii", 77, 4096, 2, 9))
    for start, end, name, domain, data in [(900_000, 1_450_000, "step 0", 0, None), (1_450_000, 2_500_000, "step 1", 0, None),
                                           (1_700_000, 1_800_000, "ncclAllReduce", 1, blob)]:
        db.execute("INSERT INTO NVTX_EVENTS VALUES(?, ?, 60, ?, NULL, ?, ?, ?, NULL, NULL, ?, ?)",
                   (start, end, name, thread, domain, data, start, thread + (domain == 0)))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(1750000, 1760000, ?, 9, ?)", (thread, LAUNCH))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(7000000, 7500000, 0, 1, 20, 9, ?, ?, ?)", (100 << 24, KERNEL, KERNEL))
    db.executemany("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, 70, ?, ?, ?, NULL)", [
        (0, 10, "NCCL communicator ID"), (1, 22, "Message size [bytes]"), (2, 1 << 24 | 14, "Reduction operation"),
        (3, 1 << 24 | 15, "dataType")])
    db.execute("CREATE TABLE NVTX_PAYLOAD_ENUMS(domainId INTEGER, schemaId INTEGER, name TEXT, size INTEGER)")
    db.execute("CREATE TABLE NVTX_PAYLOAD_ENUM_ENTRIES(domainId INTEGER, schemaId INTEGER, idx INTEGER, name TEXT,"
               " value INTEGER, isFlag INTEGER)")
    db.execute("INSERT INTO NVTX_PAYLOAD_ENUMS VALUES(1, ?, 'op', 4)", (1 << 24 | 14,))
    db.executemany("INSERT INTO NVTX_PAYLOAD_ENUM_ENTRIES VALUES(1, ?, ?, ?, ?, 0)",
                   [(1 << 24 | 14, i, name, i) for i, name in enumerate(["Sum", "Product", "Max"])])


def write(path, secret="hunter2", processes=2, form="blob", marked=False):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA page_size = 512")
        db.executescript(TABLES)
        names = NAMES + [f"API_TOKEN={secret}", f"python train.py --token {secret}",
                         '{"NCCL communicator ID": 77, "No. of ranks": 2, "Rank": 0}',
                         '{"NCCL communicator ID": "0x4d", "Message size [bytes]": 4096}']
        db.executemany("INSERT INTO StringIds VALUES(?, ?)", enumerate(names, 1))
        db.execute("INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.25.0')")
        db.executemany("INSERT INTO META_DATA_CAPTURE VALUES(?, ?)", [
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'AWS_SECRET_ACCESS_KEY="{secret}"'),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'WANDB_API_KEY="{secret}"'),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'RANK="{secret}"'),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", 'SLURM_PROCID="0"'),
            ("PROCESS_0:ARGUMENT", f"--password={secret}")])
        db.executemany("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES(0, 'x', ?, 0, ?)",
                       [("Hostname", "node-a"), ("EnvironmentVariables", f"HF_TOKEN={secret}")])
        db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1700000000000000000, NULL, NULL)")
        db.execute("INSERT INTO PROCESSES VALUES(?, 100, ?)", (100 << 24, f"python --key {secret}"))
        db.execute("INSERT INTO PROCESS_STREAMS VALUES(?, 1, ?)", (100 << 24, len(NAMES) + 1))
        db.execute("INSERT INTO NVTX_EVENTS VALUES(0, NULL, 75, 'NCCL', NULL, 0, 1, NULL, NULL, NULL, 1)")
        db.execute("INSERT INTO NVTX_EVENTS VALUES(10, 20, 59, ?, NULL, 0, 0, NULL, NULL, NULL, 2)", (f"login {secret}",))
        db.executemany("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, ?, ?, ?, ?, ?)", [
            (INIT_SCHEMA, 0, 10, "NCCL communicator ID", 0), (INIT_SCHEMA, 1, 5, "No. of ranks", 8),
            (INIT_SCHEMA, 2, 5, "Rank", 12), (CALL_SCHEMA, 0, 10, "NCCL communicator ID", 0),
            (CALL_SCHEMA, 1, 22, "Message size [bytes]", 8)])
        for i in range(processes):
            write_process(db, 100 + i, i, i, form, secret)
        if marked:
            mark(db)
    db.close()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for count in (0, 1, 2):
        write(folder / f"export-{count}.sqlite", processes=count)
    for form in ("json", "string", "broken"):
        write(folder / f"export-{form}.sqlite", processes=1, form=form)
    write(folder / "export-marked.sqlite", processes=1, marked=True)
