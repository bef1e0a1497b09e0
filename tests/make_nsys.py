#!/usr/bin/env python3
"""Writes small Nsight Systems exports of our own making: `make_nsys.py FOLDER` for what a fuzz target starts from.

`write(path, secret)` makes one export whose lists of environment variables and command lines hold the secret, in every
place in which real exports have them.
"""
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
  domainId INTEGER, binaryData BLOB);
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


def write_process(db, pid, device, rank):
    """A gemm, an all-reduce of 4096 bytes, a send with a receive, and a copy."""
    gpu, thread = pid << 24, (pid << 24) + pid
    nvtx = [(100, 900, INIT, payload(INIT_SCHEMA, 16, struct.pack("<Qii", 77, 2, rank))),
            (1400, 1550, ALL_REDUCE, payload(CALL_SCHEMA, 16, struct.pack("<QQ", 77, 4096))),
            (2000, 2010, GROUP_START, None), (2020, 2030, SEND, None), (2040, 2050, RECV, None), (2060, 2200, GROUP_END, None)]
    for start, end, name, blob in nvtx:
        db.execute("INSERT INTO NVTX_EVENTS VALUES(?, ?, 59, NULL, ?, ?, 1, ?)", (start, end, name, thread, blob))
    for start, correlation, name in [(1000, 1, LAUNCH), (1500, 2, LAUNCH), (2100, 3, LAUNCH), (5000, 4, SYNC)]:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?)", (start, start + 10, thread, correlation, name))
    for start, end, stream, correlation, name in [(2000, 3000, 7, 1, GEMM), (3000, 5000, 20, 2, KERNEL), (5000, 6000, 21, 3, SEND_RECV)]:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?)",
                   (start, end, device, stream, correlation, gpu, name, name))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(6000, 6500, ?, 1, 7, 5, ?, 1, 4096)", (device, gpu))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(5000, 6500, ?, 1, 7, 4, ?, 3, NULL, NULL)", (device, gpu))


def write(path, secret="hunter2", processes=2):
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA page_size = 512")
        db.executescript(TABLES)
        names = NAMES + [f"API_TOKEN={secret}", f"python train.py --token {secret}"]
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
        db.execute("INSERT INTO NVTX_EVENTS VALUES(0, NULL, 75, 'NCCL', NULL, 0, 1, NULL)")
        db.execute("INSERT INTO NVTX_EVENTS VALUES(10, 20, 59, ?, NULL, 0, 0, NULL)", (f"login {secret}",))
        db.executemany("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES(1, ?, ?, ?, ?, ?)", [
            (INIT_SCHEMA, 0, 10, "NCCL communicator ID", 0), (INIT_SCHEMA, 1, 5, "No. of ranks", 8),
            (INIT_SCHEMA, 2, 5, "Rank", 12), (CALL_SCHEMA, 0, 10, "NCCL communicator ID", 0),
            (CALL_SCHEMA, 1, 22, "Message size [bytes]", 8)])
        for i in range(processes):
            write_process(db, 100 + i, i, i)
    db.close()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for count in (0, 1, 2):
        write(folder / f"export-{count}.sqlite", processes=count)
