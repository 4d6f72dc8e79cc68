"""Runs of ranks that share one GPU: how they are started, and what they have written."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time

MODEL = """seed = 3
device = "gpu"
deterministic = true
[model]
size = "llama-tiny"
layers = 4
width = 512
heads = 8
kv_heads = 4
head_width = 64
hidden = 1536
tied = "no"
[data]
path = "data"
sequence_length = 256
[train]
steps = 12
batch = 2
eval_every = 0
eval_tokens = 8192
save_weights = false
[optim]
learning_rate = 1e-3
"""
MICRO_BATCHES = 8  # per step of one rank; each holds 2 sequences
used_ports = set()
gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")  # ranks take turns at them


def free_port():
    """A port that the system chose, and that no other run of this process has: processes beside this one choose others."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in used_ports:
            used_ports.add(port)
            return port


class Job:
    """A run: its ranks, their logs, the losses of its steps."""

    def __init__(self, name, ranks, keys, same_as, within, first=None):
        self.name, self.ranks, self.keys = name, ranks, keys
        self.same_as, self.within, self.first = same_as, within, first  # another run, the largest relative difference of losses; of the first
        self.code, self.seconds, self.losses = None, 0, []

    def start(self, octet, folder, folders=None):
        """folders: of ranks that run elsewhere."""
        port, processes = free_port(), []
        words = [octet, "train", "run.toml", "--output", f"runs/{self.name}"]
        for key in self.keys:
            words += ["--set", key]
        for rank in range(self.ranks):
            env = dict(os.environ, CUDA_VISIBLE_DEVICES=gpus[rank % len(gpus)])
            if self.ranks > len(gpus):
                env |= dict(NCCL_HOSTID=f"{port}.{rank}")
            if self.ranks > 1:
                env |= dict(NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_NVLS_ENABLE="0",
                            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(self.ranks), LOCAL_WORLD_SIZE=str(self.ranks),
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            log = open(f"{folder}/{self.name}.{rank}.log", "w")
            processes.append(subprocess.Popen(words, cwd=(folders or {}).get(rank, folder), env=env, stdout=log, stderr=subprocess.STDOUT))
        return processes

    def run(self, octet, folder, limit=150):
        begin = time.time()
        processes = self.start(octet, folder)
        codes = []
        for p in processes:
            try:
                codes.append(p.wait(max(1, begin + limit - time.time())))
            except subprocess.TimeoutExpired:
                p.kill()
                codes.append("timeout")
        self.code, self.seconds = next((c for c in codes if c != 0), 0), time.time() - begin
        self.losses = losses(folder, self.name)
        print(f"{self.name}: exit {self.code} after {self.seconds:.1f} s", file=sys.stderr, flush=True)


def losses(folder, name):
    found = list(pathlib.Path(folder, "runs", name).glob("**/metrics.jsonl"))
    lines = found[0].read_text().splitlines() if found else []
    steps = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return [e["loss"] for e in steps if e.get("event") == "step"]
