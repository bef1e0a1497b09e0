#!/usr/bin/env python3
"""Plants a secret wherever inputs of real jobs hold some, and looks for it in everything that every verb prints or writes:
text, JSON, timelines, standard error, of whole inputs and of damaged ones.

    secrets_test.py COMMLENS_BINARY
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_nsys  # noqa: E402

SECRET = "hf_Qx7ZsecretT0ken9931"
PLAIN = "correct-horse"  # like any word: known only by where it stands
PID = 4242
WRITTEN = "run.pftrace"

LOG = """\
node-a:4242:4242 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
node-a:4242:4242 [0] NCCL INFO NCCL_PLUGIN_TOKEN set by environment to @
node-a:4242:4242 [0] NCCL INFO AWS_SECRET_ACCESS_KEY set by environment to @
node-a:4242:4242 [0] NCCL INFO NCCL_NET_PLUGIN_API_KEY set by environment to @.
node-a:4242:4242 [0] NCCL INFO NCCL_CONF_FILE set by environment to https://joe:correct-horse@proxy:80/x
node-a:4242:4242 [0] NCCL INFO HF_TOKEN=@ was found in the environment
node-a:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node-a:4242:4242 [0] NCCL INFO NET/IB : Using [0]https://joe:correct-horse@nic:1/RoCE [1]token=@:1/IB [RO]; OOB eth0:10.0.0.1<0>
node-a:4242:4242 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [receive] via NET/IB token=@/0/GDRDMA
node-a:4242:4242 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3b000 commId 0xabc - Init START
node-a:4242:4242 [0] NCCL INFO ncclCommInitRank comm 0x10 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3b000 commId 0xabc - Init COMPLETE
node-a:4242:4242 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f0 recvbuff 0x7f1 count 256 datatype 7 op 0 root 0 comm 0x10 [nranks=2] stream 0x55

node-a:4242:4242 [0] net.cc:12 NCCL WARN connect to https://user:@@10.0.0.7/ failed, password=@ refused
node-a:4242:4242 [0] net.cc:13 NCCL WARN Cuda failure 'out of memory' --token @
+ export WANDB_API_KEY=@
+ python train.py --hf-token @ --password '@'
Authorization: Bearer @
{"api_key": "@"}
[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=256, NumelOut=256, Timeout(ms)=600000) ran for 600001 milliseconds before timing out. token=@
RuntimeError: NCCL error in: x.cpp:1, unhandled system error, api_key=@
"""

RAS = """\
Communicators... (0.00s)
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    0         1         2         4         8         8  RUNNING  ERROR,MISMATCH
DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 4242 on node https://joe:correct-horse@node-a managing GPU token=@
#0-0 (@) ERROR
#0-@ (78db921d1c117b4a) ERROR
#0-0 (78db921d1c117b4a) ERROR
  Asynchronous error on 2 ranks
  Rank 5 reported error password=@ -- GPU token=@ managed by process 4242 on node https://joe:correct-horse@node-a
  Rank 6 reported @ -- GPU 1 managed by process 4243 on node @
#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different status
  7 ranks have status RUNNING
  Rank 5 has status token=@ -- GPU 1 managed by process 4242 on node node-a
  Communicator ranks have different token=@ operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 4244 on node --token @
"""

# Ways to write a secret (%), in the lines of warnings.
FORMS = ["--token %", "--password '%'", "Authorization: Bearer %", "bearer %", "apikey=%", "x-api-key: %", "auth_key: %", "pwd=%",
         "DB_PASS=%", "SSHPASS=%", "PRIVATE_KEY=%", "SIGNING_KEY=%", "auth=%", "sig=%", "cookie: a=b; c=%", "session=%",
         "passphrase=%", "user:%@host", "//user:%@host", '"token": "%"', "{'secret': '%'}", "failed : password : %",
         "password is: %", "token was %", "secret key -> %"]


def form_log(forms):
    lines = ["node-a:4242:4242 [0] NCCL INFO NCCL_SIGNING_KEY set by environment to correct-horse"]
    for number, form in enumerate(forms):
        text = form.replace("%", PLAIN)
        lines.append(f"node-a:4242:4242 [0] net.cc:{number} NCCL WARN Cuda failure 'out of memory' {text}")
        lines.append(f"node-a:4242:4242 [0] net.cc:{number} NCCL WARN connect to 10.0.0.7 {text}")
    # Where evidence is cut, the beginning of a token is left.
    lines.append("node-a:4242:4242 [0] net.cc:99 NCCL WARN Cuda failure 'out of memory' ".ljust(228, "x") + f" {SECRET}")
    return "\n".join(lines) + "\n"


def kineto(rank):
    """A small trace with an environment in its metadata, in its arguments and in what no reader asks for."""
    meta = ('"Collective name": "allreduce", "In msg nelems": 256, "Out msg nelems": 256, "dtype": "Float", "Group size": 2, '
            '"Process Group Name": "0", "Process Group Description": "mesh https://joe:correct-horse@store/", "Process Group Ranks": "[0, 1]"')
    events = []
    for seq in range(1, 9):
        at, end = 1000 * seq, f'"External id": {seq}, "correlation": {seq}, "API_TOKEN": "{SECRET}", '
        events += [
            f'{{"ph": "X", "cat": "user_annotation", "name": "API_TOKEN={SECRET} https://joe:correct-horse@host/", '
            f'"pid": {PID + rank}, "tid": 1, "ts": {at - 5}, "dur": 900}}',
            f'{{"ph": "X", "cat": "python_function", "name": "run.py(3): main --token {SECRET}", "pid": {PID + rank}, "tid": 1, '
            f'"ts": {at - 4}, "dur": 890, "args": {{"Python id": {seq}}}}}',
            f'{{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": {PID + rank}, "tid": 1, "ts": {at}, "dur": 9, '
            f'"args": {{{end}{meta}, "Seq": {seq}}}}}',
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {PID + rank}, "tid": 1, "ts": {at + 2}, '
            f'"dur": 3, "args": {{{end}"env": {{"HF_TOKEN": "{SECRET}"}}}}}}',
            f'{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7, "ts": {at + 10}, '
            f'"dur": 300, "args": {{{end}"device": 0, "stream": 7, {meta}}}}}',
            f'{{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 9, "ts": {at + 400}, "dur": 300, '
            f'"args": {{"device": 0, "stream": 9, "secret": "{SECRET}"}}}}']
    head = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "env": {"HF_TOKEN": SECRET}, "args": f"--token {SECRET}",
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2, "store_password": SECRET,
                                "env": {"WANDB_API_KEY": SECRET}}}
    return json.dumps(head)[:-1] + ', "traceEvents": [' + ",\n".join(events) + f'], "user_metadata": "{SECRET}"}}'


def dump(rank):
    entry = {"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 9, "p2p_seq_id": 0, "op_id": 9,
             "profiling_name": "nccl:all_reduce", "time_created_ns": 1, "input_sizes": [[256]], "input_dtypes": ["Float"],
             "output_sizes": [[256]], "output_dtypes": ["Float"], "state": "scheduled", "retired": False, "is_p2p": False,
             "timeout_ms": 600000, "env": {"HF_TOKEN": SECRET},
             "frames": [{"name": f"step_token={SECRET}", "filename": "train.py", "line": 42, "locals": {"token": SECRET}}]}
    return json.dumps({"version": "2.9", "env": {"HF_TOKEN": SECRET}, "comm_lib_version": "2.21.5",
                       "pg_config": {"0": {"name": "0", "desc": f"mesh password={PLAIN}", "ranks": "[0, 1]", "password": SECRET},
                                     f"password={PLAIN}": {"name": f"password={PLAIN}", "desc": "", "ranks": "[0, 1]"}},
                       "pg_status": {}, "entries": [entry] if rank == 0 else []})


def inspector():
    """NCCL Inspector's records with keys that nobody asks for."""
    lines = []
    for number in range(4):
        lines.append(json.dumps({
            "header": {"id": "0xabc", "comm_name": f"world password={PLAIN}", "rank": 0, "n_ranks": 2, "nnodes": 1, "token": SECRET},
            "metadata": {"inspector_output_format_version": "v4.0", "git_rev": SECRET, "rec_mechanism": "nccl_profiler_interface",
                         "dump_timestamp_us": 1750000000000000, "hostname": f"https://joe:{PLAIN}@node-a", "pid": PID, "env": {"HF_TOKEN": SECRET}},
            "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1024, "coll_exec_time_us": 50,
                          "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 0.0, "coll_busbw_gbs": 0.0}, "args": SECRET}))
    return "\n".join(lines) + "\n"


def prometheus():
    """Its metrics, with labels that hold what they should not."""
    labels = (f'node="https://joe:{PLAIN}@node-a",gpu="GPU0 token={SECRET}",collective="AllReduce",comm_id="0xabc",'
              f'comm_name="password={PLAIN}",nranks="2",n_nodes="1",message_size="1-2MB",algo_proto="RING_{SECRET}"')
    return f'nccl_bus_bandwidth_gbs{{{labels}}} 10.5\nnccl_collective_exec_time_microseconds{{{labels}}} 50\n'


def tests_file():
    """What nccl-tests writes itself: with the whole environment of its process."""
    half = {"time": 50.0, "alg_bw": 21.0, "bus_bw": 21.0, "nwrong": 0.0}
    row = {"size": 1048576, "count": 262144, "type": f"float password={PLAIN}", "redop": "sum", "root": "    -1",
           "out_of_place": half, "in_place": {**half, "time": SECRET}, "experiment_name": SECRET}
    return json.dumps({"version": 2, "args": ["all_reduce_perf", SECRET], "env": [f"HF_TOKEN={SECRET}", f"PASSWORD={PLAIN}"],
                       "config": {"nthreads": 1, "ngpus": 2, "devices": [{"rank": 0, "hostname": f"https://joe:{PLAIN}@node-a"}]},
                       "results": [row, {"size": SECRET}], "errors": [SECRET]})


def write_inputs(folder):
    """Pairs of a name and its bytes; whole ones and damaged ones."""
    for rank in (0, 1):
        (folder / f"rank-{rank}.json").write_text(kineto(rank))
        (folder / f"dump_{rank}").write_text(dump(rank))
    (folder / "nccl.log").write_text(LOG.replace("horse@", "horse\0").replace("@", SECRET).replace("\0", "@"))
    (folder / "ras.txt").write_text(RAS.replace("horse@", "horse\0").replace("@", SECRET).replace("\0", "@"))
    (folder / "inspector.log").write_text(inspector())
    (folder / "metrics.prom").write_text(prometheus())
    (folder / "all_reduce.json").write_text(tests_file())
    make_nsys.write(folder / "export.sqlite", SECRET)
    make_nsys.write(folder / "export-json.sqlite", SECRET, form="broken")
    damaged = folder / "damaged"
    damaged.mkdir()
    for source in sorted(folder.iterdir()):
        if not source.is_file():
            continue
        data = source.read_bytes()
        # Cut inside the secret, behind it, in the middle and near the end.
        at = data.find(SECRET.encode())
        for name, end in (("in", at + 9), ("behind", at + len(SECRET)), ("half", len(data) // 2), ("late", len(data) - 40)):
            (damaged / f"{name}-{source.name}").write_bytes(data[:end])
        (damaged / f"bytes-{source.name}").write_bytes(data[:len(data) // 3] + b"\xff\x00{\"" + data[len(data) // 3 + 4:])
    # Events and values that cannot be read, with the secret first.
    odd = [f'{{"args": {{"HF_TOKEN": "{SECRET}"}}, "name": "a "quote" in it", "ph": "X"}}', f'"{SECRET}"', f'["{SECRET}"]',
           f'{{"HF_TOKEN": "{SECRET}" "ph": "X"}}', f'{{"ph": "X", "cat": "kernel", "name": "g", "ts": "{SECRET}", "args": {{}}}}']
    whole = kineto(0)
    (damaged / "odd.json").write_text(whole.replace('"traceEvents": [', '"traceEvents": [' + ",\n".join(odd) + ",\n"))
    (damaged / "odd-member.json").write_text(whole.replace('{"schemaVersion"', f'{{"env": "{SECRET}" "x", "schemaVersion"'))
    (damaged / "unknown.json").write_text(json.dumps({"HF_TOKEN": SECRET}))
    (damaged / "unknown.bin").write_bytes(SECRET.encode() * 3)
    (damaged / "hosts.txt").write_text(f"0 {SECRET}\n")
    forms = folder / "forms"
    forms.mkdir()
    for first in range(0, len(FORMS), 3):
        (forms / f"{first}.log").write_text(form_log(FORMS[first:first + 3]))


def commands(folder):
    inputs = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    for verb in ("formats", "analyses", "notes"):
        for how in ("text", "json"):
            yield [verb, "--format", how]
    together = [str(folder / name) for name in ("rank-0.json", "rank-1.json", "nccl.log", "dump_0", "dump_1")]
    for paths in [[str(folder)], [str(folder / "damaged")], together] + [[path] for path in inputs]:
        for how in ("text", "json"):
            yield ["analyze", "--format", how, *paths]
            yield ["diagnose", "--format", how, *paths]
            yield ["whatif", "--comm-speed", "2", "--format", how, *paths]
        yield ["timeline", "-o", "-", *paths]
        yield ["timeline", "-o", WRITTEN, *paths]
    yield ["analyze", "--by", "op,stream", "--explain", "0", "--format", "json", *together]
    yield ["analyze", "--context", "always", "--format", "json", *together]
    yield ["demo", "--format", "json"]


def main():
    binary, leaks, ran = str(pathlib.Path(sys.argv[1]).resolve()), [], 0
    codes = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "inputs"
        folder.mkdir()
        write_inputs(folder)
        for words in commands(folder):
            done = subprocess.run([binary, *words], cwd=name, capture_output=True, check=False, timeout=60)
            ran += 1
            codes[done.returncode] = codes.get(done.returncode, 0) + 1
            outputs = [("standard output", done.stdout), ("standard error", done.stderr)]
            if WRITTEN in words and done.returncode == 0:
                outputs.append((WRITTEN, (pathlib.Path(name) / WRITTEN).read_bytes()))
            for where, text in outputs:
                # A part of it is a leak as well.
                for part in (SECRET, SECRET[:9], PLAIN):
                    if part.encode() in text:
                        line = next(line for line in text.splitlines() if part.encode() in line)
                        leaks.append(f"{' '.join(words)}: {where}: {line[:300].decode(errors='replace')}")
                        break
            if done.returncode not in (0, 1, 2, 3):
                leaks.append(f"{' '.join(words)}: exit {done.returncode}: {done.stderr[:300].decode(errors='replace')}")
    print("\n".join(leaks) or f"{ran} commands (exit codes {codes}): the secret is in no output")
    # Nothing is shown by a test in which nothing ran.
    return 1 if leaks or not codes.get(0) or not codes.get(1) else 0


if __name__ == "__main__":
    sys.exit(main())
