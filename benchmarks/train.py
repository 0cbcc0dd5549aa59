"""Times head-only training in Aleator and in PyTorch, interleaved, in one run.

    cargo build --release && pip install torch numpy
    python benchmarks/train.py [--rounds 3] [--out benchmarks/train.md]

50,000 embeddings of 256 numbers, 10 classes, rank 6, 1,000 samples, batch 128. Aleator runs as
users run it, `aleator train` with checkpoints and logs; its rate is taken from the times of the
steps in its TensorBoard file, so it has reading, batching, loss, optimizer and logging in it.
PyTorch runs peers/train_torch.py, which reads a matrix in memory and logs nothing. The two take
turns, so that a slow phase of the machine hits both.
"""
import argparse
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(HERE, "..", "target", "release", "aleator")
PEER = os.path.join(HERE, "peers", "train_torch.py")
EXAMPLES, FEATURES, CLASSES, BATCH = 50_000, 256, 10, 128


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def step_times(path):
    """(step, wall time) of the records that have a step."""
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        record, at = data[at + 12:at + 12 + length], at + 16 + length
        (time,) = struct.unpack_from("<d", record, 1)  # field 1, a double
        if record[9] == 0x10:  # field 2, the step
            out.append((varint(record, 10)[0], time))
    return out


def ours(folder, round):
    out = os.path.join(folder, f"run-{round}")
    sets = [f"data.train.features={folder}/x.npy", f"data.train.labels={folder}/y.npy",
            "head.samples=1000", "head.rank=6", f"training.batch={BATCH}", "schedule.epochs=2",
            "evaluation.samples=10"]
    command = [OURS, "train", "features-full", "--threads", "2", "--quiet", "--out", out]
    subprocess.run(command + [part for it in sets for part in ("--set", it)], check=True,
                   stdout=subprocess.DEVNULL)
    times = dict(step_times(os.path.join(out, "tensorboard", "events.out.tfevents.0.aleator")))
    last = max(times) // 2 - 1  # the first epoch, without the checkpoint at its end
    return (last - 5) * BATCH / (times[last] - times[5])


def peer(folder):
    out = subprocess.run([sys.executable, PEER, f"{folder}/x.npy", f"{folder}/y.npy"],
                         capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["examples_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        centers = rng.standard_normal((CLASSES, FEATURES))
        labels = rng.integers(0, CLASSES, EXAMPLES)
        features = 0.3 * centers[labels] + rng.standard_normal((EXAMPLES, FEATURES))
        np.save(f"{folder}/x.npy", features.astype(np.float16))
        np.save(f"{folder}/y.npy", labels.astype(np.uint8))
        rates = [(ours(folder, round), peer(folder)) for round in range(args.rounds)]
    import torch
    lines = [
        "# Head-only training: examples a second",
        "",
        f"{EXAMPLES:,} embeddings of {FEATURES} numbers, {CLASSES} classes, rank 6, 1,000 samples, "
        f"batch {BATCH}; {platform.machine()}, 2 threads, PyTorch {torch.__version__} (eager).",
        "Made by `python benchmarks/train.py`; the goal is 6 times.",
        "",
        "| round | PyTorch | Aleator | times faster |",
        "|---|---|---|---|",
    ]
    for round, (mine, theirs) in enumerate(rates, 1):
        lines.append(f"| {round} | {theirs:,.0f} | {mine:,.0f} | {mine / theirs:.1f} |")
    print("\n".join(lines))
    if args.out:
        open(args.out, "w").write("\n".join(lines) + "\n")


main()
