"""Outliers and near duplicates that are planted into data, found by `aleator audit`.

    cargo build --release
    python3 benchmarks/planted_examples.py FOLDER

FOLDER holds features/cifar10_train.npy, cifar10n/cifar10n_clean.npy, multilabel/scene_train_x.npy
and multilabel/scene_train_y.npy; digits and breast cancer are those of scikit-learn. Needs numpy
and scikit-learn.

Outliers are appended: `noise` is Normal around the mean with twice the deviation of each feature,
`permuted` a row with its features in random order, `jitter` a row plus Normal noise of 1.5
deviations. Near duplicates are copies plus Normal noise of the given share of the deviation, with
random labels. Precision counts examples that were not planted as false, though real data have
outliers and duplicates of their own; the row `none` shows how many are listed there.
"""

import argparse
import csv
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

ROOT = Path(__file__).parent.parent
SHARES = (0.002, 0.01, 0.05)


def lists(x, y):
    """The rows of outliers.csv and near_duplicates.csv."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        np.save(place / "x.npy", x.astype(np.float32))
        np.save(place / "y.npy", y.astype(np.int64))
        sets = [f"data.train.features={place}/x.npy", f"data.train.labels={place}/y.npy"]
        command = [ROOT / "target/release/aleator", "audit", "features-none", "-q", "--folds", "2"]
        command += ["--set", sets[0], "--set", sets[1], "--out", place / "audit"]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        read = lambda name: {int(row["id"]) for row in csv.DictReader(open(place / "audit" / name))}
        return read("outliers.csv"), read("near_duplicates.csv")


def outliers(kind, x, count, random):
    rows = x[random.integers(len(x), size=count)]
    match kind:
        case "noise":
            return x.mean(0) + 2 * random.normal(size=rows.shape) * x.std(0)
        case "permuted":
            return np.array([row[random.permutation(len(row))] for row in rows])
        case "jitter":
            return rows + 1.5 * random.normal(size=rows.shape) * x.std(0)


def score(found, planted):
    right = len(found & planted)
    precision = f"{right / len(found):.2f}" if found else "–"
    return f"{precision} / {right / len(planted):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = parser.add_argument("folder", type=Path) and parser.parse_args().folder
    digits, cancer = load_digits(), load_breast_cancer()
    random = np.random.default_rng(0)
    centres = 1.3 * random.normal(size=(5, 10))
    clusters = np.arange(2000) % 5
    scene = np.load(folder / "multilabel/scene_train_y.npy").argmax(1)
    sets = {
        "digits": (digits.data, digits.target),
        "breast cancer": (cancer.data, cancer.target),
        "scene": (np.load(folder / "multilabel/scene_train_x.npy").astype(float), scene),
        "CIFAR-10 embeddings": (
            np.load(folder / "features/cifar10_train.npy")[:8000].astype(float),
            np.load(folder / "cifar10n/cifar10n_clean.npy")[:8000],
        ),
        "five Normal clusters": (centres[clusters] + random.normal(size=(2000, 10)), clusters),
    }
    print("| outliers: precision / recall | listed without any | " + " | ".join(f"{100 * s:g} %" for s in SHARES) + " |")
    print("|---|---|" + "---|" * len(SHARES))
    for name, (x, y) in sets.items():
        none = len(lists(x, y)[0])
        kinds = ["noise", "jitter"] + (["permuted"] if name == "digits" else [])
        for kind in kinds:
            cells = []
            for share in SHARES:
                count = max(3, int(share * len(x)))
                planted = outliers(kind, x, count, random)
                found, _ = lists(
                    np.concatenate([x, planted]),
                    np.concatenate([y, random.integers(y.max() + 1, size=count)]),
                )
                cells.append(score(found, set(range(len(x), len(x) + count))))
            print(f"| {name}, {kind} | {none} of {len(x)} | {' | '.join(cells)} |", flush=True)
    noises = (0.0, 0.02, 0.1, 0.3)
    print("\n| near duplicates of 5 %: precision / recall | listed without any | " + " | ".join(f"{noise:g}" for noise in noises) + " |")
    print("|---|---|" + "---|" * len(noises))
    for name, (x, y) in sets.items():
        none, cells = len(lists(x, y)[1]), []
        for noise in noises:
            rows = random.choice(len(x), len(x) // 40, replace=False)
            copies = x[rows] + noise * random.normal(size=x[rows].shape) * x.std(0)
            _, found = lists(
                np.concatenate([x, copies]),
                np.concatenate([y, random.integers(y.max() + 1, size=len(rows))]),
            )
            cells.append(score(found, set(rows.tolist()) | set(range(len(x), len(x) + len(rows)))))
        print(f"| {name} | {none} of {len(x)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
