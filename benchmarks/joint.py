"""Labels learned together beside labels learned one by one, on multilabel data.

    cargo build --release
    python3 benchmarks/joint.py DIR [--sets scene yeast] [--seeds 5] [--program aleator] [--out table.json]

DIR holds NAME_{train,test}_{x,y}.npy. Models: multilabel-none (labels independent given the
example), multilabel-full (noise, trained on marginals), multilabel-joint. Every seed draws 80 % of
the training rows and is the seed of training; tests stay as they are. Measured on the test rows:
-log P of the whole set of labels (of the first two models the sum over labels), the share of
examples whose predicted set is exactly right, and -log P of the other labels when the three most
frequent ones are known (of the first two models these change nothing). Mean and standard deviation
over seeds; nothing is chosen on test data. Needs numpy.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
MODELS = ["none", "full", "joint"]
KNOWN = 3


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def binary_loss(probs, labels):
    probs = np.clip(probs.astype(np.float64), 1e-12, 1 - 1e-12)
    return -np.where(labels > 0, np.log(probs), np.log1p(-probs))


def given_known(program, run_dir, x, labels, known, work):
    """-log P of the other labels of each example, the known ones given."""
    losses = np.zeros(len(x))
    for labels_on in np.unique(labels, axis=0):
        own = np.flatnonzero((labels == labels_on).all(axis=1))
        np.save(work / "rows.npy", x[own])

        def log_prob(classes):
            flags = [part for k in classes for part in ("--on" if labels_on[k] else "--off", str(k))]
            out = run(program, "predict", run_dir, work / "rows.npy", "--json", *flags)
            return np.log([json.loads(line)["known_probability"] for line in out.splitlines()])

        losses[own] = log_prob(known) - log_prob(range(labels.shape[1]))
    return losses.mean()


def measure(program, model, x, y, test_x, test_y, known, seed, work):
    np.save(work / "x.npy", x), np.save(work / "y.npy", y)
    np.save(work / "tx.npy", test_x), np.save(work / "ty.npy", test_y)
    run_dir = work / f"{model}-{seed}"
    files = [f"data.{split}.{kind}={work / name}.npy" for split, kind, name in [
        ("train", "features", "x"), ("train", "labels", "y"), ("test", "features", "tx"), ("test", "labels", "ty")]]
    sets = [part for file in files for part in ("--set", file)]
    run(program, "train", f"multilabel-{model}", "-q", "--seed", seed, "--out", run_dir, *sets)
    test = json.loads((run_dir / "evaluation.json").read_text())["test"]
    if model == "joint":
        rest = given_known(program, run_dir, test_x, test_y, known, work)
    else:
        run(program, "predict", run_dir, work / "tx.npy", "--out", work / "p.npy")
        others = [k for k in range(test_y.shape[1]) if k not in known]
        rest = binary_loss(np.load(work / "p.npy"), test_y)[:, others].sum(axis=1).mean()
    return {"nll": test["nll"], "subset": 100 * test["subset_accuracy"], "given": rest}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--sets", nargs="+", default=["scene", "yeast"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "target/release/aleator"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    for name in options.sets:
        load = lambda part: np.load(options.dir / f"{name}_{part}.npy")
        x, y, test_x, test_y = map(load, ["train_x", "train_y", "test_x", "test_y"])
        x, test_x = x.astype(np.float32), test_x.astype(np.float32)
        y, test_y = y.astype(np.int64), test_y.astype(np.int64)
        known = sorted(np.argsort(-y.mean(axis=0))[:KNOWN].tolist())
        for seed in range(options.seeds):
            rows = np.random.default_rng(seed).permutation(len(y))[: len(y) * 4 // 5]
            for model in MODELS:
                key = f"{name} {model} {seed}"
                if key in table:
                    continue
                with tempfile.TemporaryDirectory() as work:
                    args = (x[rows], y[rows], test_x, test_y, known, seed, Path(work))
                    table[key] = measure(options.program, model, *args)
                print(key, {k: round(v, 4) for k, v in table[key].items()}, flush=True)
                if options.out:
                    options.out.write_text(json.dumps(table, indent=1))
        for model in MODELS:
            rows = [table[f"{name} {model} {seed}"] for seed in range(options.seeds)]
            cells = [(np.mean([r[k] for r in rows]), np.std([r[k] for r in rows], ddof=1)) for k in rows[0]]
            print(f"| {name} | {model} | " + " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in cells) + " |")


if __name__ == "__main__":
    main()
