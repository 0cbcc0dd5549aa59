"""Annotators: their error rates and the consensus of `aleator audit`, beside the truth.

    cargo build --release
    python3 benchmarks/audit_annotators.py FOLDER [RECIPE]

FOLDER holds train_x.npy, [N, D]; train_answers.npy, [N, A] classes, -1 where an annotator did not
answer; and train_y.npy, the true classes. Needs numpy and scikit-learn.

The bound: the same error rates by a classifier that was fitted to the true classes of all other
examples, alone and together with the answers.
"""

import argparse
import csv
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).parent.parent


def shares(answers, wrong):
    """The mean of `wrong` over the answers of each annotator."""
    given = answers >= 0
    return np.where(given, wrong, 0).sum(axis=0) / np.maximum(given.sum(axis=0), 1)


def doubt(answers, probabilities):
    """How probable each answer is to be wrong, [N, A]."""
    rows = np.arange(len(answers))[:, None]
    return 1 - probabilities[rows, np.maximum(answers, 0)]


def described(name, found, answers, truth, consensus=None, held=None):
    counts = (answers >= 0).sum(axis=0)
    known = shares(answers, answers != truth[:, None])
    many = counts >= 20
    error = np.sqrt(np.average((found - known) ** 2, weights=counts))
    cells = [
        f"{np.corrcoef(found, known)[0, 1]:.3f}",
        f"{np.corrcoef(found[many], known[many])[0, 1]:.3f}",
        f"{error:.3f}",
        f"{np.average(found, weights=counts):.3f}",
        "" if consensus is None else f"{100 * np.mean(consensus == truth):.1f} %",
        "" if held is None else f"{100 * np.mean(held):.0f} %",
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def audited(x, answers, recipe):
    with tempfile.TemporaryDirectory() as place:
        files = Path(place) / "x.npy", Path(place) / "train_answers.npy"
        np.save(files[0], x.astype(np.float32))
        np.save(files[1], answers)
        out = Path(place) / "audit"
        sets = [f"data.train.features={files[0]}", f"data.train.labels={files[1]}"]
        command = [ROOT / "target/release/aleator", "audit", "-q", recipe, "--out", out]
        command += [word for one in sets for word in ("--set", one)]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        rates, labels = np.zeros((3, answers.shape[1])), np.zeros(len(x), dtype=int)
        columns = "error_rate", "error_rate_low", "error_rate_high"
        with open(out / "annotators.csv", newline="") as file:
            for row in csv.DictReader(file):
                rates[:, int(row["annotator"])] = [float(row[column]) for column in columns]
        with open(out / "consensus.csv", newline="") as file:
            for row in csv.DictReader(file):
                labels[int(row["id"])] = int(row["label"])
        return rates, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("recipe", nargs="?", default="features-audit")
    arguments = parser.parse_args()
    x, answers, truth = (
        np.load(arguments.folder / f"train_{what}.npy") for what in ("x", "answers", "y")
    )
    x, answers, truth = x.astype(float), answers.astype(int), truth.astype(int)
    classes = int(truth.max()) + 1
    counts = (answers[:, :, None] == np.arange(classes)).sum(axis=1)
    known = shares(answers, answers != truth[:, None])
    sizes = (answers >= 0).sum(axis=0)
    print(
        "| | correlation, all | at least 20 answers | error | mean rate | consensus right "
        "| intervals that hold |"
    )
    print("|---|---|---|---|---|---|---|")
    print(f"| truth | | | | {np.average(known, weights=sizes):.3f} | | |")
    majority = counts.argmax(axis=1)
    described("majority", shares(answers, answers != majority[:, None]), answers, truth, majority)
    rates, labels = audited(x, answers, arguments.recipe)
    held = (rates[1] <= known + 1e-6) & (known <= rates[2] + 1e-6)
    described(f"`aleator audit {arguments.recipe}`", rates[0], answers, truth, labels, held)
    best = None
    for c in (0.001, 0.003, 0.01, 0.03):
        model = LogisticRegression(C=c, max_iter=3000)
        scaled = StandardScaler().fit_transform(x)
        p = cross_val_predict(model, scaled, truth, cv=20, method="predict_proba")
        loss = -np.log(p[np.arange(len(p)), truth]).mean()
        best = (loss, p) if best is None or loss < best[0] else best
    p = best[1]
    described("fitted to the truth", shares(answers, doubt(answers, p)), answers, truth, p.argmax(axis=1))
    # The answers by the one confusion of all annotators that the truth shows.
    confusion = np.ones((classes, classes))
    for a in range(answers.shape[1]):
        given = answers[:, a] >= 0
        np.add.at(confusion, (truth[given], answers[given, a]), 1)
    logs = np.log(p) + counts @ np.log(confusion / confusion.sum(axis=1, keepdims=True)).T
    both = np.exp(logs - logs.max(axis=1, keepdims=True))
    both /= both.sum(axis=1, keepdims=True)
    described(
        "fitted to the truth, and the answers by the true confusion",
        shares(answers, doubt(answers, both)),
        answers,
        truth,
        both.argmax(axis=1),
    )


if __name__ == "__main__":
    main()
