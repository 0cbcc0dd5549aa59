"""Finding wrong entries of multilabel data: `aleator audit` and cleanlab's multilabel scores.

    cargo build --release
    python3 benchmarks/audit_multilabel.py FOLDER

FOLDER holds, for each data set S, S_train_x.npy, [N, D], and S_train_y.npy, [N, K] zeros and ones.
Needs numpy, scikit-learn and cleanlab.

A share of all entries is flipped at random, three times with other seeds. AUROC and average
precision are those of "this entry was flipped", over all entries, and of "an entry of this example
was flipped", over all examples.

cleanlab gets five-fold out-of-sample probabilities of a logistic regression for each class on
standardised features. Of four strengths of its penalty the best is taken for each number
separately, with the truth at hand. Its scores are those of get_label_quality_scores_per_class and
get_label_quality_scores with their defaults.

`aleator audit` trains its own models, or, in the last column, judges by the probabilities of the
logistic regression with the lowest out-of-sample loss on the flipped labels. The score of an example
is the probability that any of its entries is wrong.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from cleanlab.multilabel_classification import get_label_quality_scores
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).parent.parent
PENALTIES = (0.001, 0.01, 0.1, 1.0)
RATES = (0.01, 0.03, 0.08)
SEEDS = (0, 1, 2)


def out_of_sample(x, y, c):
    """The probabilities of each class to be on, [N, K]."""
    p = np.zeros(y.shape)
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        scaler = StandardScaler().fit(x[train])
        for k in range(y.shape[1]):
            if len(set(y[train, k])) < 2:
                p[test, k] = y[train, k].mean()
                continue
            model = LogisticRegression(C=c, max_iter=2000).fit(scaler.transform(x[train]), y[train, k])
            p[test, k] = model.predict_proba(scaler.transform(x[test]))[:, 1]
    return p


def measured(wrong, entries, examples):
    """AUROC and AP over entries, then over examples; scores are high where labels are wrong."""
    any_wrong = wrong.any(axis=1)
    return np.array([
        roc_auc_score(wrong.ravel(), entries.ravel()),
        average_precision_score(wrong.ravel(), entries.ravel()),
        roc_auc_score(any_wrong, examples),
        average_precision_score(any_wrong, examples),
    ])


def cleanlab_scores(p, y):
    labels = [list(np.flatnonzero(row)) for row in y]
    entries = get_label_quality_scores_per_class(labels, p)
    return -entries, -get_label_quality_scores(labels, p)


def audit(arguments, y, place):
    out = Path(place) / "audit"
    command = [ROOT / "target/release/aleator", "audit", "-q", *arguments, "--out", out]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    scores = np.full(y.shape, np.nan)
    with open(out / "issues.csv", newline="") as file:
        for row in csv.DictReader(file):
            scores[int(row["id"]), int(row["class"])] = float(row["score"])
    assert not np.isnan(scores).any()
    estimated = json.loads((out / "audit.json").read_text())["wrong"]["count"]
    return scores, 1 - np.prod(1 - scores, axis=1), estimated


def with_own_models(x, y):
    with tempfile.TemporaryDirectory() as place:
        files = Path(place) / "x.npy", Path(place) / "y.npy"
        np.save(files[0], x.astype(np.float32))
        np.save(files[1], y)
        sets = [f"data.train.features={files[0]}", f"data.train.labels={files[1]}"]
        return audit(["multilabel-full", "--set", sets[0], "--set", sets[1]], y, place)


def with_probabilities(p, y):
    with tempfile.TemporaryDirectory() as place:
        files = Path(place) / "p.npy", Path(place) / "y.npy"
        np.save(files[0], p)
        np.save(files[1], y)
        return audit(["--multilabel", "--probabilities", files[0], "--labels", files[1]], y, place)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only-probabilities", action="store_true", help="train no models of ours")
    arguments = parser.parse_args()
    print("| AUROC / AP of entries; of examples | cleanlab | `aleator audit` | on the same probabilities | flipped | estimated |")
    print("|---|---|---|---|---|---|")
    for file in sorted(arguments.folder.glob("*_train_x.npy")):
        name = file.name.removesuffix("_train_x.npy")
        x = np.load(file).astype(float)
        truth = np.load(arguments.folder / f"{name}_train_y.npy").astype(np.int64)
        for rate in RATES:
            rows, estimates, flipped = [], [], []
            for seed in SEEDS:
                wrong = np.random.default_rng(seed).random(truth.shape) < rate
                y = np.where(wrong, 1 - truth, truth)
                outputs = [out_of_sample(x, y, c) for c in PENALTIES]
                theirs = np.max([measured(wrong, *cleanlab_scores(p, y)) for p in outputs], axis=0)
                best = min(outputs, key=lambda p: log_loss(y.ravel(), p.ravel()))
                entries, examples, same = with_probabilities(best, y)
                on_same, ours, own = measured(wrong, entries, examples), np.full(4, np.nan), np.nan
                if not arguments.only_probabilities:
                    entries, examples, own = with_own_models(x, y)
                    ours = measured(wrong, entries, examples)
                rows.append([theirs, ours, on_same])
                estimates.append([own, same])
                flipped.append(wrong.sum())
            cells = [
                "{:.3f} / {:.3f}; {:.3f} / {:.3f}".format(*numbers) for numbers in np.mean(rows, axis=0)
            ]
            own, same = np.mean(estimates, axis=0)
            print(
                f"| {name}, {100 * rate:.0f} % | {' | '.join(cells)} | {np.mean(flipped):.0f} "
                f"| {own:.0f}; {same:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
