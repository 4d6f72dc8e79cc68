"""Reads a run's event files with the `tensorboard` package and holds them against its metrics.jsonl.

    python3 tests/tensorboard/check.py OCTET VENV

OCTET is the program. The package is this Python's, or else one that is installed from PyPI into the virtual environment VENV, which stays
for the next time. Exit code 77: there is none and none can be had.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

UNAVAILABLE = 77
CONFIG = """
[model]
size = "llama-tiny"
layers = 2
width = 64
heads = 4
kv_heads = 2
hidden = 96
[recipe]
name = "block128"
[optim]
level = "O2"
[data]
path = "data"
sequence_length = 32
eval_fraction = 0.25
[train]
steps = 12
batch = 2
eval_every = 4
health_every = 3
[checkpoint]
every = 5
"""


def go_on_in(venv):
    """This script again, by a Python that has the package."""
    python = venv / "bin" / "python"
    done = venv / "installed"
    if not done.exists():
        commands = [[sys.executable, "-m", "venv", str(venv)],
                    [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
                     "--timeout", "20", "--retries", "1", "tensorboard<3"]]
        for command in commands:
            try:
                outcome = subprocess.run(command, capture_output=True, text=True, timeout=240)
            except subprocess.TimeoutExpired:
                outcome = None
            if outcome is None or outcome.returncode != 0:
                print("SKIPPED: no tensorboard package:", " ".join(command), outcome.stderr[-500:] if outcome else "takes too long")
                sys.exit(UNAVAILABLE)
        done.touch()
    os.execv(python, [str(python), *sys.argv])


def run(octet, folder, *arguments):
    subprocess.run([octet, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def trained(octet, folder):
    """A run of which a part was told twice: its process was killed in the middle of a record, and another one went on from step 10."""
    for i in range(4):
        (folder / f"{i}.txt").write_text("".join(f"document {i} counts to {k * k}\n" for k in range(120)))
    (folder / "run.toml").write_text(CONFIG)
    run(octet, folder, "tokenize", "--input", "*.txt", "--output", "data")
    run(octet, folder, "train", "run.toml", "--quiet")
    run_folder = folder / "runs" / "block128"
    last = run_folder / "checkpoints" / "step-000000012"
    for file in last.iterdir():
        file.unlink()
    last.rmdir()
    first_file, = run_folder.glob("*tfevents*")
    os.truncate(first_file, first_file.stat().st_size - 7)
    run(octet, folder, "train", "--resume", str(run_folder), "--quiet")
    assert len(list(run_folder.glob("*tfevents*"))) == 2
    return run_folder


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def told(run_folder):
    """What metrics.jsonl says, as {tag: [(step, value)]}."""
    sites = [f"tensors/{q['path']}/{q['operand']}" for q in json.loads((run_folder / "run.json").read_text())["quantizers"]]
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    scales = {e["step"]: e for e in lines if e["event"] == "scales"}
    out = {}

    def tell(tag, event, value):
        out.setdefault(tag, []).append((event["step"], float32(value)))

    for e in lines:
        if e["event"] == "step":
            for tag, field in [("loss/train", "loss"), ("optimizer/learning_rate", "lr"), ("optimizer/gradient_norm", "grad_norm"),
                               ("optimizer/parameter_norm", "param_norm"), ("speed/tokens_per_second", "tokens_per_second"),
                               ("speed/limit_share", "limit_share"), ("speed/data_wait", "data_wait"),
                               ("optimizer/skipped_steps", "skipped")]:
                tell(tag, e, e[field])
        if e["event"] == "eval":
            average = e.get("average_loss")
            tell("loss/eval" if average is None else "loss/eval_average", e, e["loss"] if average is None else average)
        if e["event"] != "health":
            continue
        tell("worst/saturated", e, max(e["saturated"]))
        tell("worst/flushed", e, max(e["flushed"]))
        for name in ("scale_deviation", "lossy_blocks"):
            known = [v for v in e.get(name, []) if v is not None]
            if known:
                tell(f"worst/{name}", e, max(known))
        for i, site in enumerate(sites):
            for name in ("amax", "scale_min", "scale_max"):
                tell(f"{site}/{name}", e, scales[e["step"]][name][i])
            for name in ("saturated", "flushed", "scale_deviation", "lossy_blocks"):
                if e.get(name) and e[name][i] is not None:
                    tell(f"{site}/{name}", e, e[name][i])
    return out


def main():
    octet, venv = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        import tensorboard
        from tensorboard.backend.event_processing import plugin_event_multiplexer
        from tensorboard.util import tensor_util
    except ImportError:
        return go_on_in(venv)

    with tempfile.TemporaryDirectory() as scratch:
        run_folder = trained(octet, pathlib.Path(scratch))
        board = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
        board.AddRunsFromDirectory(str(run_folder.parent))
        board.Reload()
        assert list(board.Runs()) == [run_folder.name], board.Runs()
        wanted = told(run_folder)
        tags = board.PluginRunToTagToContent("scalars")[run_folder.name]
        assert sorted(tags) == sorted(wanted), set(tags) ^ set(wanted)
        for tag, series in wanted.items():
            shown = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in board.Tensors(run_folder.name, tag)]
            assert shown == series, f"{tag}: TensorBoard shows {shown}, metrics.jsonl tells {series}"
        assert [step for step, _ in wanted["loss/train"]] == list(range(1, 13))
        plan = "".join(tensor_util.make_ndarray(e.tensor_proto).item().decode() for e in board.Tensors(run_folder.name, "plan"))
        assert list(board.PluginRunToTagToContent("text")[run_folder.name]) == ["plan"]
        for row in json.loads((run_folder / "run.json").read_text())["plan"]:
            assert f"| {row['path']} |".replace("_", "\\_") in plan, row
        assert "| second moments | f16 | level O2" in plan, plan
        print(f"tensorboard {tensorboard.__version__} shows {len(wanted)} tags as metrics.jsonl tells them")


if __name__ == "__main__":
    main()
