#!/usr/bin/env python3
"""Makes tests/data/small: recordings that are small enough to work out every figure by hand.

    make_small_inputs.py            writes the files again
    make_small_inputs.py --check    fails where they are not what this script writes

Two ranks train three steps of 100 us (numbered 10 to 12), rank 1 reaching each all-reduce 10 us earlier. In us from the
start of a step, on the GPU (launched at 5 to 9 on the host):

    stream 7    gemm                [10,50)          copy to the device [80,85)
    stream 20   all_reduce of 4 MB  [40,70), on rank 1 [30,70)
    step 10     my_exchange_kernel  [52,58) on stream 21: compute, unless a rule says otherwise
    step 11     all_gather, 4000 B  [72,78) on stream 20

So rank 0, steps 11: compute only 30, hidden 10, exposed 20 + 6, memory 5; from the first GPU start in step 10 (at 10) to
the last end (285) all of them are 275 us.
"""
import argparse
import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "small")
BASE_NS = 1_700_000_000_000_000_000
GROUP = {"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]",
         "Group size": 2}
ALL_REDUCE = {"Collective name": "allreduce", "In msg nelems": 1_000_000, "Out msg nelems": 1_000_000, "dtype": "Float",
              **GROUP}
ALL_GATHER = {"Collective name": "_allgather_base", "In msg nelems": 1000, "Out msg nelems": 2000, "dtype": "BFloat16",
              **GROUP}
GEMM = "void cutlass::gemm<128, float>(float*, int)"


def x(cat, name, pid, tid, start, end, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": 1000 + start, "dur": end - start,
            "args": args}


class Recording:
    """The events of one rank; every GPU event has its launch."""

    def __init__(self, rank, metadata=True, steps=True):
        self.rank, self.metadata = rank, metadata
        self.host, self.gpu = [], []
        for number in (10, 11, 12):
            self.step(number, 100 * (number - 10), steps)

    def step(self, number, at, named):
        if named:
            self.host.append(x("user_annotation", f"ProfilerStep#{number}", 500 + self.rank, 1, at, at + 100))
        early = 10 * self.rank
        self.on_gpu("kernel", GEMM, 7, at, 10, 50)
        self.on_gpu("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, at,
                    40 - early, 70, ALL_REDUCE)
        if number == 10:
            self.on_gpu("kernel", "my_exchange_kernel(char*, int)", 21, at, 52, 58)
        if number == 11:
            self.on_gpu("kernel", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, at, 72, 78,
                        ALL_GATHER)
        self.on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, at, 80, 85)

    def on_gpu(self, cat, name, stream, at, start, end, collective=None):
        correlation = 100 + len(self.gpu)
        call = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
        launched = at + 5 + len(self.gpu) % 5
        self.host.append(x("cuda_runtime", call, 500 + self.rank, 1, launched, launched + 1, correlation=correlation))
        more = collective if collective and self.metadata else {}
        self.gpu.append(x(cat, name, self.rank, stream, at + start, at + end, device=self.rank, context=1, stream=stream,
                          correlation=correlation, **more))

    def text(self, **head):
        lines = ",\n  ".join(json.dumps(event) for event in self.host + self.gpu)
        head = "".join(f' "{key}": {json.dumps(value)},\n' for key, value in head.items())
        return f'{{\n{head} "baseTimeNanoseconds": {BASE_NS},\n "traceEvents": [\n  {lines}\n ]\n}}\n'


def info(rank):
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}


def files():
    return {
        # on two hosts, as the folders' names say; the ranks stand in the files
        "job/node-a/first.json": Recording(0).text(**info(0)),
        "job/node-b/second.json": Recording(1).text(**info(1)),
        # no rank in the files: in one folder the names have it, in the other nothing has
        "named/rank4.json": Recording(0).text(),
        "named/rank_5.json": Recording(1).text(),
        "nameless/a.json": Recording(0).text(),
        "nameless/b.json": Recording(1).text(),
        # the name says another rank than the file
        "disagree/rank7.json": Recording(0).text(**info(0)),
        # operations known from kernel names only, and no step
        "bare/rank0.json": Recording(0, metadata=False, steps=False).text(**info(0)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    differ = 0
    for name, text in files().items():
        path = os.path.join(FOLDER, name)
        if not options.check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            continue
        with open(path, encoding="utf-8") as f:
            if f.read() != text:
                print(f"{path} is not what this script writes")
                differ += 1
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
