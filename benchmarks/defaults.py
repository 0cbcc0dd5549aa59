"""The presets as they are beside scikit-learn's cross-validated logistic regression, on many kinds of data.

    cargo build --release
    python3 benchmarks/defaults.py [--data DIR] [--sets wine scene ...] [--seeds 5] [--models none full] [--out table.json]

Without --data only the sets inside scikit-learn and synthetic ones are measured. DIR may hold
features/cifar10_{train,test}.npy, cifar10n/cifar10n_*.npy, labelme-crowd/, multilabel/ and
embeddings/NAME/{x,y,test_x,test_y}.npy, and tables/NAME/{x,y}.npy, which are divided 60 : 40.
"NAME, 2,000" takes 2,000 training rows of an embedding, "NAME, 20 % wrong, 2,000" changes the
labels of a fifth of them, depending on the example; tests stay as they are.
Needs numpy and scikit-learn.

Every seed is another division (small sets) or another choice of training rows and of wrong labels,
and the seed of training. scikit-learn gets the same rows, scaled by one number or each feature by
its own, whichever has the lower cross-validated log loss, as ours choose for themselves; C by five
folds over ten values from small to large, until the loss has risen twice; of 5,000 rows where there
are more, or fewer where they are wide; of one fold where that takes hours. Nothing is chosen on test data. A cell is the
mean over seeds, accuracy in percent and negative log-likelihood; of multilabel sets the latter
alone, summed over labels. Results are written after every seed, and what is in the file already is
not measured again.
"""

import argparse
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.multioutput import MultiOutputClassifier

ROOT = Path(__file__).parent.parent
NOISES = ["none", "diagonal", "full", "shared"]
warnings.filterwarnings("ignore")


def toy(load):
    def split(seed):
        x, y = load(return_X_y=True)
        return train_test_split(x, y, test_size=0.4, random_state=seed, stratify=y)

    return lambda seed: (lambda a, b, c, d: (a, c, b, d))(*split(seed))


def rows_of(x, y, test_x, test_y, count=None):
    def pick(seed):
        if count is None or count >= len(y):
            return x, y, test_x, test_y
        rows = np.random.default_rng(seed).permutation(len(y))[:count]
        return x[rows], y[rows], test_x, test_y

    return pick


def logit(count, width=16, classes=5):
    """A logistic model that is true."""

    def draw(seed):
        random = np.random.default_rng(seed)
        weight = random.normal(size=(width, classes)) * 0.5
        x = random.normal(size=(count + 20_000, width))
        y = (x @ weight + random.gumbel(size=(len(x), classes))).argmax(1)
        return x[:count], y[:count], x[count:], y[count:]

    return draw


def units(seed):
    """Heavy tails, units from 1e-6 to 1e5, constant columns and columns of noise."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(4000, 6))
    y = (z @ (random.normal(size=(6, 4)) * 1.5) + random.gumbel(size=(4000, 4))).argmax(1)
    power = np.sign(z[:, 3]) * np.abs(z[:, 3]) ** 4
    columns = [np.exp(2.5 * z[:, 0]), 1e5 * z[:, 1], 1e-4 * z[:, 2], power, z[:, 4]]
    columns += [1e3 * np.exp(1.5 * z[:, 5])] + [np.full(4000, 7.0)] * 3
    columns += [1e-6 * random.normal(size=4000) for _ in range(30)]
    x = np.stack(columns, 1)
    return x[:2000], y[:2000], x[2000:], y[2000:]


def all_sets(data):
    sets = {
        "wine": toy(datasets.load_wine),
        "iris": toy(datasets.load_iris),
        "breast cancer": toy(datasets.load_breast_cancer),
        "digits": toy(datasets.load_digits),
        "units and tails": units,
        "logit 80,000 × 16": logit(80_000),
        "logit 1,000,000 × 16": logit(1_000_000),
    }
    if data is None:
        return sets
    load = lambda *parts: np.load(Path(data, *parts))
    for name in ["scene", "yeast"]:
        if Path(data, "multilabel").exists():
            parts = ["train_x", "train_y", "test_x", "test_y"]
            sets[name] = rows_of(*(load("multilabel", f"{name}_{part}.npy") for part in parts))
    if Path(data, "features").exists():
        x, test_x = load("features", "cifar10_train.npy"), load("features", "cifar10_test.npy")
        test_y = load("features", "cifar10_test_labels.npy")
        for name in ["aggre", "rand1", "worse"]:
            y = load("cifar10n", f"cifar10n_{name}.npy")
            sets[f"CIFAR-10N {name}"] = rows_of(x, y, test_x, test_y)
        for count in [200, 2_000]:
            sets[f"CIFAR-10N worse, {count:,}"] = rows_of(x, y, test_x, test_y, count)
    if Path(data, "labelme-crowd").exists():
        answers = load("labelme-crowd", "train_answers.npy")
        votes = [np.bincount(row[row >= 0], minlength=8).argmax() for row in answers]
        x, test_x, test_y = (load("labelme-crowd", f"{part}.npy") for part in ["train_x", "test_x", "test_y"])
        sets["LabelMe, majority"] = rows_of(x, np.array(votes), test_x, test_y)
    for folder in sorted(Path(data, "embeddings").glob("*")):
        for rate in [0, 10, 20, 40]:
            for count in [200, 2_000, None]:
                name = folder.name + (f", {rate} % wrong" if rate else "") + (f", {count:,}" if count else "")
                sets[name] = embedding(folder, count, rate / 100)
    for folder in sorted(Path(data, "tables").glob("*")):
        sets.setdefault(folder.name, toy(lambda return_X_y, folder=folder: table(folder)))
    return sets


def embedding(folder, count, rate):
    def pick(seed):
        parts = [np.load(folder / f"{part}.npy") for part in ["x", "y", "test_x", "test_y"]]
        x, y, test_x, test_y = rows_of(*parts, count)(seed)
        return x, wrong(x, y.astype(np.int64), rate, seed), test_x, test_y

    return pick


def wrong(x, y, rate, seed):
    """Wrong labels that depend on the example (Xia et al. 2020): an example's chance to have one is
    drawn around the rate, and classes by a random projection of its features for its true class."""
    if rate == 0:
        return y
    random = np.random.default_rng(1000 + seed)
    classes = y.max() + 1
    chance = np.clip(random.normal(rate, 0.1, len(y)), 0, 1)
    projections = random.normal(size=(classes, x.shape[1], classes)) / np.sqrt(x.shape[1])
    unit = (x - x.mean(0)) / np.sqrt(x.var(0).mean())
    drawn = y.copy()
    for row in np.flatnonzero(random.random(len(y)) < chance):
        logits = unit[row] @ projections[y[row]]
        logits[y[row]] = -np.inf
        drawn[row] = (logits + random.gumbel(size=classes)).argmax()
    return drawn


def table(folder):
    """All rows of classes that five folds can divide, classes numbered anew."""
    x, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    rows = np.bincount(y)[y] >= 10
    return x[rows], np.unique(y[rows], return_inverse=True)[1]


def ours(program, noise, folder, seed, multilabel):
    preset = f"{'multilabel' if multilabel else 'features'}-{noise}"
    run = folder / noise
    command = [program, "train", preset, "-q", "--out", run]
    command += ["--seed", str(seed), "--set", f"data.validation.seed={seed}"]
    for split, file in [("train", ""), ("test", "test_")]:
        command += ["--set", f"data.{split}.features={folder}/{file}x.npy"]
        command += ["--set", f"data.{split}.labels={folder}/{file}y.npy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    scores = json.loads((run / "evaluation.json").read_text())["test"]
    return np.nan if multilabel else 100 * scores["top1"], scores["nll"]


def scaled(x, test_x):
    mean, own = x.mean(0), x.std(0)
    for scale in [np.sqrt((own**2).mean()), np.where(own > 0, own, 1)]:
        yield (x - mean) / scale, (test_x - mean) / scale


def scores(probs, y):
    if probs.ndim == y.ndim == 2:
        picked = np.where(y == 1, probs, 1 - probs)
        return np.nan, -np.log(np.clip(picked, 1e-15, 1)).sum(1).mean()
    return 100 * (probs.argmax(1) == y).mean(), log_loss(y, probs, labels=np.arange(probs.shape[1]))


def regression(x, y, test_x, test_y):
    """Scale and C with the lowest cross-validated log loss, fitted to all rows."""
    multilabel = y.ndim == 2
    wrap = MultiOutputClassifier if multilabel else lambda model: model
    stack = lambda p: np.stack([q[:, 1] for q in p], 1) if multilabel else p
    best = None
    classes = int(y.max()) + 1
    count = max(10 * classes, min(5_000, 2_560_000 // x.shape[1]))
    few = np.random.default_rng(0).permutation(len(y))[:count] if len(y) > count else slice(None)
    alone = count * x.shape[1] * classes > 1e9
    for train, test in scaled(x, test_x):
        losses = []
        for c in np.logspace(-4, 4, 10):
            model = wrap(LogisticRegression(C=c, max_iter=1000))
            folds = (KFold if multilabel else StratifiedKFold)(5, shuffle=True, random_state=0)
            if alone:
                rest, held_out = next(folds.split(train[few], y[few]))
                probs = model.fit(train[few][rest], y[few][rest]).predict_proba(train[few][held_out])
                losses.append(scores(probs, y[few][held_out])[1])
            else:
                probs = stack(cross_val_predict(model, train[few], y[few], cv=folds, method="predict_proba"))
                losses.append(scores(probs, y[few])[1])
            if best is None or losses[-1] < best[0]:
                best = losses[-1], model, train, test
            if losses[-1] > sorted(losses)[0] and losses[-2] > sorted(losses)[0]:
                break
    _, model, train, test = best
    return scores(stack(model.fit(train, y).predict_proba(test)), test_y)


def measure(program, make, models, seed, last):
    """Scores of scikit-learn and of the four presets, [5, 2]; `last` are data and scores before."""
    x, y, test_x, test_y = make(seed)
    multilabel = y.ndim == 2
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, array in [("x", x), ("test_x", test_x)]:
            np.save(folder / f"{name}.npy", np.ascontiguousarray(array, dtype=np.float32))
        np.save(folder / "y.npy", y)
        np.save(folder / "test_y.npy", test_y)
        own = [
            ours(program, noise, folder, seed, multilabel) if noise in models else (np.nan, np.nan)
            for noise in NOISES
        ]
    if "scikit-learn" not in models:
        theirs = np.nan, np.nan
    elif last and np.array_equal(last[0], x) and np.array_equal(last[1], y):
        theirs = last[2]
    else:
        wide = x.astype(np.float64 if x.size < 10_000_000 else np.float32)
        theirs = regression(wide, y, test_x.astype(wide.dtype), test_y)
    return [theirs, *own], (x, y, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=["scikit-learn", *NOISES])
    parser.add_argument("--program", default=ROOT / "target/release/aleator")
    parser.add_argument("--out", type=Path, default=Path("defaults.json"))
    args = parser.parse_args()
    known = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name, make in all_sets(args.data).items():
        last = None
        for seed in range(len(known.get(name, [])), args.seeds) if not args.sets or name in args.sets else []:
            scores, last = measure(args.program, make, args.models, seed, last)
            known.setdefault(name, []).append(scores)
            args.out.write_text(json.dumps(known, indent=1))
    print("| data | seeds | scikit-learn | " + " | ".join(NOISES) + " |")
    print("|---" * (3 + len(NOISES)) + "|")
    for name, rows in known.items():
        mean, spread = np.array(rows).mean(0), np.array(rows).std(0, ddof=min(1, len(rows) - 1))
        cells = [
            "not measured"
            if np.isnan(m[1])
            else ("" if np.isnan(m[0]) else f"{m[0]:.2f} ± {s[0]:.2f} / ") + f"{m[1]:.4f} ± {s[1]:.4f}"
            for m, s in zip(mean, spread)
        ]
        print(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
