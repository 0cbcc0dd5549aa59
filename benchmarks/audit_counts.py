"""How many labels are wrong, and how probable: `aleator audit` on many kinds of data with known errors.

    cargo build --release
    python3 benchmarks/audit_counts.py [DIR] [--sets digits "CIFAR-10N worse" ...] [--other] [--seed 0]

Without DIR only the sets inside scikit-learn are measured. DIR may hold features/cifar10_train.npy
and cifar10n/cifar10n_*.npy, labelme-crowd/train_{x,y,answers}.npy, embeddings/fashion/{x,y}.npy and
fashion-mnist/train-{images-idx3,labels-idx1}-ubyte.gz. --sets takes those whose names start so, and
--other the sets on which no setting of the audit was chosen. Needs numpy and scikit-learn.

"Moved" labels are replaced by another class, examples and classes drawn alike; "between pairs" only
classes 0 and 1, 2 and 3, … are confused; "by shape" is `aleator noise --kind instance`. The last columns
say how many of the labels with these scores are wrong, and whether the interval holds the truth.
"""

import argparse
import csv
import gzip
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.metrics import average_precision_score, roc_auc_score

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "target/release/aleator"


def moved(x, truth, rate, seed):
    """Labels of which a share is another class."""
    random = np.random.default_rng(seed)
    labels, classes = truth.astype(np.int64), int(truth.max()) + 1
    rows = random.choice(len(labels), round(rate * len(labels)), replace=False)
    labels[rows] = (labels[rows] + random.integers(1, classes, len(rows))) % classes
    return x, labels, truth


def between_pairs(x, truth, rate, seed):
    """Labels of which a share is the other class of a pair."""
    random = np.random.default_rng(seed)
    labels = truth.astype(np.int64)
    rows = random.choice(len(labels), round(rate * len(labels)), replace=False)
    labels[rows] = np.minimum(labels[rows] ^ 1, truth.max())
    return x, labels, truth


def with_errors(sets, name, load, rates, make=moved, how="moved"):
    for rate in rates:
        title = f"{name}, {100 * rate:.0f} % {how}" if rate else f"{name}, as it is"
        sets[title] = lambda seed, rate=rate: make(*load(), rate, seed)


def from_scikit_learn(sets):
    loads = {"digits": datasets.load_digits, "wine": datasets.load_wine}
    loads |= {"breast cancer": datasets.load_breast_cancer, "iris": datasets.load_iris}
    for name, load in loads.items():
        rates = [0, 0.1, 0.3] if name == "digits" else [0, 0.1]
        with_errors(sets, name, lambda load=load: load(return_X_y=True), rates)
    for seed in range(3):
        sets[f"digits, 30 % by shape, seed {seed}"] = lambda _, seed=seed: by_shape(seed)


def by_shape(seed):
    """Errors that depend on the example, as the demonstration has them."""
    with tempfile.TemporaryDirectory() as place:
        x, truth = datasets.load_digits(return_X_y=True)
        np.save(f"{place}/x.npy", x.astype(np.float32))
        np.save(f"{place}/y.npy", truth.astype(np.int64))
        command = [PROGRAM, "noise", "--kind", "instance", "--rate", "0.3", "--seed", str(seed)]
        files = ["--features", f"{place}/x.npy", "--labels", f"{place}/y.npy", "--out", f"{place}/noisy.npy"]
        subprocess.run([*command, *files], check=True, stdout=subprocess.DEVNULL)
        return x, np.load(f"{place}/noisy.npy").astype(np.int64), truth


def cifar(sets, folder):
    if not (folder / "features/cifar10_train.npy").exists():
        return

    def rows(name, count):
        truth, labels = (np.load(folder / f"cifar10n/cifar10n_{it}.npy") for it in ["clean", name])
        x = np.load(folder / "features/cifar10_train.npy")
        if count == len(x):
            return x, labels, truth
        some = np.random.default_rng(0).permutation(len(x))[:count]
        return x[some], labels[some], truth[some]

    for name in ["aggre", "rand1", "worse"]:
        for count in [2_000, 10_000, 50_000]:
            title = f"CIFAR-10N {name}, {count:,} examples"
            sets[title] = lambda _, name=name, count=count: rows(name, count)


def labelme(sets, folder):
    if not (folder / "labelme-crowd").exists():
        return
    x, truth, answers = (
        np.load(folder / f"labelme-crowd/train_{it}.npy") for it in ["x", "y", "answers"]
    )
    majority = [np.bincount(row[row >= 0], minlength=8).argmax() for row in answers]
    sets["LabelMe, majority of the annotators"] = lambda _: (x, np.array(majority), truth)

    def one_each(seed):
        random = np.random.default_rng(seed)
        return x, np.array([random.choice(row[row >= 0]) for row in answers]), truth

    sets["LabelMe, one annotator each"] = one_each


def fashion(sets, folder, count=6_000):
    def embeddings():
        x, y = (np.load(folder / f"embeddings/fashion/{it}.npy", mmap_mode="r") for it in "xy")
        return np.array(x[:count], np.float32), np.array(y[:count], np.int64)

    def pixels():
        read = lambda name, skip: np.frombuffer(
            gzip.open(folder / f"fashion-mnist/train-{name}-ubyte.gz").read(), np.uint8, offset=skip
        )
        x, y = read("images-idx3", 16).reshape(-1, 784), read("labels-idx1", 8)
        return x[:count].astype(np.float32), y[:count].astype(np.int64)

    rates = [0, 0.02, 0.1, 0.3]
    if (folder / "embeddings/fashion").exists():
        with_errors(sets, "Fashion-MNIST, embeddings", embeddings, rates)
    if (folder / "fashion-mnist").exists():
        with_errors(sets, "Fashion-MNIST, pixels", pixels, rates)


def clusters(count, classes, width, seed=5, weights=None, separation=1.0):
    """Points around corners of a cube, two groups of them for each class."""
    return lambda: datasets.make_classification(
        count, width, n_informative=width // 2, n_redundant=width // 8, n_classes=classes,
        n_clusters_per_class=2, weights=weights, class_sep=separation, flip_y=0, random_state=seed,
    )


def other_sets():
    sets = {}
    tables = {
        "20 classes": clusters(8_000, 20, 48, separation=2.0),
        "100 classes": clusters(10_000, 100, 64, separation=3.0),
        "95 : 5": clusters(4_000, 2, 20, weights=[0.95], separation=1.5),
        "7 unequal classes": clusters(
            12_000, 7, 32, weights=[0.36, 0.49, 0.06, 0.02, 0.02, 0.02], separation=1.5
        ),
    }
    for name, load in tables.items():
        with_errors(sets, name, load, [0, 0.05, 0.2])
        with_errors(sets, name, load, [0.1], between_pairs, "between pairs")
    return sets


def audit(x, labels, truth):
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        files = {"features": x.astype(np.float32), "labels": labels.astype(np.int64)}
        files["clean_labels"] = truth.astype(np.int64)
        command = [PROGRAM, "audit", "features-audit", "-q", "--out", place / "audit"]
        for name, values in files.items():
            np.save(place / f"{name}.npy", values)
            command += ["--set", f"data.train.{name}={place}/{name}.npy"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        scores = np.zeros(len(labels))
        with open(place / "audit/issues.csv", newline="") as file:
            for row in csv.DictReader(file):
                scores[int(row["id"])] = float(row["score"])
        return scores, json.loads((place / "audit/audit.json").read_text())


def line(name, scores, summary, wrong):
    ranking = "–"
    if wrong.any():
        ranking = f"{roc_auc_score(wrong, scores):.4f} / {average_precision_score(wrong, scores):.4f}"
    estimate = summary["wrong"]
    among = lambda chosen: f"{wrong[chosen].sum()} of {chosen.sum()}"
    # The program rounds what it prints; so does the comparison.
    holds = round(estimate["low"]) <= wrong.sum() <= round(estimate["high"])
    return holds, (
        f"| {name} | {ranking} | {wrong.sum():,} | {estimate['count']:,.0f} "
        f"| {estimate['low']:,.0f} – {estimate['high']:,.0f} | {among(scores > 0.99)} "
        f"| {among((scores > 0.9) & (scores < 0.95))} | {'yes' if holds else '**no**'} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=[""])
    parser.add_argument("--other", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sets = other_sets() if args.other else {}
    if not args.other:
        if args.folder:
            cifar(sets, args.folder)
            labelme(sets, args.folder)
            fashion(sets, args.folder)
        from_scikit_learn(sets)
    print(
        "| data | AUROC / average precision | wrong | count | interval | score > 0.99 | 0.9 to 0.95 "
        "| interval holds |\n|---|---|---|---|---|---|---|---|"
    )
    held, all = 0, 0
    for name, load in sets.items():
        if not any(name.startswith(start) for start in args.sets):
            continue
        x, labels, truth = load(args.seed)
        holds, row = line(name, *audit(x, labels, truth), labels != truth)
        print(row, flush=True)
        held, all = held + holds, all + 1
    print(f"\nThe interval holds the truth in {held} of {all}.")


if __name__ == "__main__":
    main()
