"""Faults of one of several ranks while graphs are replayed: the others end in time, or train on, as docs/parallel.md says."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

from job import Job, losses

LIMIT = 8  # seconds without a rank: ranks.limit_seconds
SLACK = 20  # more seconds, on a GPU that other runs share
DATA, INTERRUPTED, RANKS, DIVERGED = 64, 75, 76, 90  # docs/errors.md


class Fault:
    """A run of some ranks on some axes, whose rank `bad` has a fault. fails(): the first thing that was not as it must be, or ''."""

    name, keys_of_fault, steps_before = "", [], 8

    def __init__(self, axes, ranks, bad=-1):
        self.axes, self.ranks, self.bad = axes, ranks, bad % ranks
        self.run = "-".join([self.name, *(key.removeprefix("ranks.").replace("=", "") for key in axes if key.startswith("ranks.")), f"rank{self.bad}"])
        self.seconds, self.processes = 0, []

    def check(self, octet, folder):
        self.octet, self.folder = octet, folder
        keys = [*self.axes, f"ranks.limit_seconds={LIMIT}", "train.steps=100000", "checkpoint.every=5", "recipe.name=current", *self.keys_of_fault]
        self.processes = Job(self.run, self.ranks, keys, None, 0).start(octet, folder, {self.bad: self.folder_of_bad()})
        try:
            begun = self.wait_until(lambda: self.steps() >= self.steps_before, 120)
            why = self.fails() if begun else "it did not begin"
        finally:
            for p in self.processes:
                p.kill()
        print(f"{'FAILED' if why else 'ok    '} {self.run:42} ended after {self.seconds:4.1f} s: {why or self.told(self.bad)[:110]}", flush=True)
        return bool(why)

    def folder_of_bad(self):
        return self.folder

    def steps(self):
        return len(losses(self.folder, self.run))

    def wait_until(self, holds, seconds):
        end = time.time() + seconds
        while not holds():
            if time.time() > end or self.processes[0].poll() is not None:
                return holds()
            time.sleep(0.1)
        return True

    def codes(self, seconds=LIMIT + SLACK):
        """Exit codes; None for a rank that has not ended in time. A stopped rank is killed once the others have ended."""
        begin = time.time()
        while time.time() - begin < seconds and any(p.poll() is None for r, p in enumerate(self.processes) if r != self.bad):
            time.sleep(0.05)
        self.seconds = time.time() - begin
        return [p.poll() for p in self.processes]

    def told(self, rank):
        """The last line of a rank."""
        return (pathlib.Path(self.folder, f"{self.run}.{rank}.log").read_text().strip().splitlines() or [""])[-1]

    def others_lose_it(self):
        """All other ranks end by the loss of this one, and the first of them names it."""
        codes = self.codes()
        others = [code for r, code in enumerate(codes) if r != self.bad]
        first = 0 if self.bad else 1
        if others != [RANKS] * len(others):
            return f"exit codes {codes}; {self.told(first)}"
        return "" if f"rank {self.bad} " in self.told(first) else f"rank {first} says: {self.told(first)}"

    def saved(self):
        """Checkpoints that are complete, oldest first."""
        return sorted(pathlib.Path(self.folder, "runs", self.run).glob("**/checkpoints/step-*"))

    def saves_and_ends(self):
        """After a stop signal to one rank all save and end; the newest checkpoint is good."""
        self.processes[self.bad].send_signal(signal.SIGTERM)
        begin = time.time()
        try:
            codes = [p.wait(LIMIT + SLACK) for p in self.processes]
        except subprocess.TimeoutExpired:
            return "a rank does not end"
        self.seconds = time.time() - begin
        if codes != [INTERRUPTED] * self.ranks:
            return f"exit codes {codes}; {self.told(0)}"
        done = subprocess.run([self.octet, "inspect", self.saved()[-1]], cwd=self.folder, capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr


class Killed(Fault):
    name, how = "killed", signal.SIGKILL

    def fails(self):
        self.processes[self.bad].send_signal(self.how)
        return self.others_lose_it()


class Stopped(Killed):
    name, how = "stopped", signal.SIGSTOP


class Terminated(Fault):
    name = "terminated"

    def fails(self):
        return self.saves_and_ends()


class FullDisk(Fault):
    """No file of the rank can grow: training continues, no incomplete checkpoint has a name, and later ones are saved."""

    name = "full-disk"

    def fails(self):
        if not self.wait_until(self.saved, 60):
            return "no checkpoint is saved"
        self.let_files_grow(1000)
        told = f"training continues: rank {self.bad} on "
        if not self.wait_until(lambda: told in self.events(), 60):
            return f"metrics.jsonl does not have '{told}'"
        steps, newest = self.steps(), self.saved()[-1]
        if not self.wait_until(lambda: self.steps() > steps + 10, 60):
            return "training does not continue"
        if self.saved()[-1] != newest:
            return f"{self.saved()[-1]} was saved without room"
        self.let_files_grow(resource.RLIM_INFINITY)
        return self.saves_and_ends() if self.wait_until(lambda: self.saved()[-1] > newest, 60) else "nothing is saved once there is room"

    def let_files_grow(self, most):
        resource.prlimit(self.processes[self.bad].pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def events(self):
        return "".join(p.read_text() for p in pathlib.Path(self.folder, "runs", self.run).glob("**/metrics.jsonl"))


class ChangedData(Fault):
    """The rank's own copy of the dataset is written to: it ends by the error of its data, the others by its loss."""

    name = "changed-data"

    def folder_of_bad(self):
        own = pathlib.Path(self.folder, f"{self.run}.own")
        own.mkdir()
        shutil.copy(f"{self.folder}/run.toml", own)
        shutil.copytree(f"{self.folder}/data", own / "data")
        os.symlink("../runs", own / "runs")
        return own

    def fails(self):
        for shard in pathlib.Path(self.folder, f"{self.run}.own", "data").glob("**/*.tok"):
            with open(shard, "ab") as file:
                file.write(b"0")
        why = self.others_lose_it()
        try:
            code = self.processes[self.bad].wait(SLACK)
        except subprocess.TimeoutExpired:
            return "the rank itself does not end"
        if code != DATA or ".tok" not in self.told(self.bad):
            return f"rank {self.bad} ends with {code}: {self.told(self.bad)}"
        return why


class Diverged(Fault):
    """Every rank ends by the same steps that are not finite, before the limit."""

    name, keys_of_fault, steps_before = "diverged", ["optim.learning_rate=1e30", "optim.schedule.warmup=0"], 1

    def fails(self):
        codes = self.codes(60)
        self.processes[self.bad].wait(SLACK)
        return "" if set(codes) <= {DIVERGED, None} and codes[0] == DIVERGED else f"exit codes {codes}; {self.told(0)}"


def faults():
    few = "train.accumulate=2"
    mesh, stages = ["ranks.tensor=2", "ranks.data=2", few], ["ranks.pipeline=2", "train.accumulate=8"]
    return [
        Killed(["ranks.zero=1"], 2), Killed(["ranks.zero=3", few], 2), Killed(mesh, 4), Killed(stages, 2), Stopped([], 2),
        Terminated(["ranks.zero=1"], 2), Terminated(mesh, 4), Terminated(stages, 2), FullDisk(["ranks.zero=1"], 2),
        ChangedData(["ranks.zero=1"], 2), ChangedData(["ranks.zero=1"], 2, 0), ChangedData(mesh, 4), ChangedData(stages, 2),
        ChangedData(stages, 2, 0), Diverged(["ranks.zero=1"], 2),
    ]
