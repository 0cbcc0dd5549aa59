"""Measures time and memory of an evaluation of many examples of many classes.

    cargo build --release && pip install numpy
    python benchmarks/evaluation.py [--examples 5000 50000 500000] [--out benchmarks/evaluation.md]

Made-up data of the size of ImageNet-21k: 21,843 classes, 8 features, 2 to 8 labels for each example,
written as `12;857;20011` in a CSV file. A head with shared noise is trained for two steps on 2,000
examples; then `aleator eval RUN --data` evaluates it on other examples, in one pass. Memory is the
largest resident set of that process.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(HERE, "..", "target", "release", "aleator")
CLASSES, FEATURES, TRAINING, RANK = 21_843, 8, 2_000, 50


def source(folder, name, examples, seed):
    """Embeddings, and labels that the first feature says something about."""
    draws = np.random.default_rng(seed)
    x = draws.standard_normal((examples, FEATURES)).astype(np.float32)
    np.save(f"{folder}/{name}.npy", x)
    ends = np.cumsum(draws.integers(2, 9, examples))
    # Frequent classes have low numbers, as in a list that is sorted by frequency.
    classes = (CLASSES * draws.random(ends[-1]) ** 3).astype(int)
    with open(f"{folder}/{name}.csv", "w") as file:
        file.write("label\n")
        for own, labels in zip(x, np.split(classes, ends[:-1])):
            shifted = (labels + int(abs(own[0]) * 1000)) % CLASSES
            file.write(";".join(str(it) for it in sorted(set(shifted.tolist()))) + "\n")


def sets(folder):
    keys = {"data.classes": CLASSES, "data.label_kind": "multi-hot",
            "tune": "off", "head.rank": RANK, "optimizer.refit": "false", "optimizer.memory": 1,
            "schedule.epochs": 2, "training.parts": 100, "evaluation.batch": 64,
            "evaluation.predictions": "none", "data.train.features": f"{folder}/train.npy",
            "data.train.labels": f"{folder}/train.csv"}
    return [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]


def train(folder, threads):
    source(folder, "train", TRAINING, 0)
    command = [OURS, "train", "multilabel-shared", "--quiet", "--threads", threads]
    subprocess.run(command + ["--out", f"{folder}/run"] + sets(folder), check=True,
                   stdout=subprocess.DEVNULL)


def evaluate(folder, examples, threads):
    """Seconds, peak MiB, and the scores, of an evaluation."""
    name = f"held_out_{examples}"
    source(folder, name, examples, 1)
    start = time.time()
    child = subprocess.Popen([OURS, "eval", f"{folder}/run", "--data", f"{folder}/{name}.npy",
                              "--labels", f"{folder}/{name}.csv", "--out", f"{folder}/{name}.json",
                              "--quiet", "--threads", threads], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit("aleator eval failed")
    scores = json.load(open(f"{folder}/{name}.json"))["label"]
    return time.time() - start, usage.ru_maxrss / 1024, scores


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--examples", type=int, nargs="+", default=[5_000, 50_000, 500_000])
    args.add_argument("--threads", default="2")
    args.add_argument("--out")
    args = args.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        train(folder, args.threads)
        for examples in args.examples:
            seconds, mib, scores = evaluate(folder, examples, args.threads)
            errors = [f"{scores[key]:.5f} ± {scores.get(key + '_error', 0):.1g}"
                      for key in ("gap", "mean_ap")]
            rows.append(f"| {examples:,} | {seconds:.0f} s | {mib:.0f} MiB | {' | '.join(errors)} |")
            print(rows[-1], flush=True)
    if args.out:
        with open(args.out, "w") as file:
            file.write(f"""# Evaluation of {CLASSES:,} classes

Made-up examples, a head with shared noise of rank {RANK}, no predictions on disk; {platform.machine()}, {args.threads} threads.
Made by `python benchmarks/evaluation.py`; the goal is below 2 GiB at 500,000 examples.

| examples | time | peak memory | gAP | mean AP |
|---|---|---|---|---|
""" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
