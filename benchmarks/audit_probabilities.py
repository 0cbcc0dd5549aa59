"""Finding wrong labels by the probabilities of other models: `aleator audit --probabilities` and
cleanlab's scores on the same arrays.

    cargo build --release
    python3 benchmarks/audit_probabilities.py FOLDER

FOLDER holds, for each set of labels S, S_labels.npy, S_true.npy and for each model M the
out-of-sample probabilities S_M.npy, [N, K]. Needs numpy, scikit-learn and cleanlab.

AUROC and average precision are those of "this label is wrong". Of cleanlab's scores
(self-confidence and normalised margin, each with and without adjusted probabilities, and
confidence-weighted entropy) the best is taken for each number separately, with the truth at hand.
F1 is that of the labels that are called wrong: cleanlab's filter with its defaults, and `wrong = yes`.
The last columns are the estimate of `aleator audit` with its interval, and how many of its scores
above 0.99 and from 0.9 to 0.95 are of wrong labels.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

ROOT = Path(__file__).parent.parent
SCORES = [
    ("self_confidence", False),
    ("self_confidence", True),
    ("normalized_margin", False),
    ("normalized_margin", True),
    ("confidence_weighted_entropy", False),
]


def best_of_cleanlab(probabilities, labels, wrong):
    probabilities = probabilities.astype(float)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    scores = [
        -get_label_quality_scores(labels, probabilities, method=method, adjust_pred_probs=adjust)
        for method, adjust in SCORES
    ]
    measures = (roc_auc_score, average_precision_score)
    return [max(measure(wrong, score) for score in scores) for measure in measures]


def audit(probabilities, labels, truth, out):
    command = [
        ROOT / "target/release/aleator", "audit", "-q", "--out", out,
        "--probabilities", probabilities, "--labels", labels, "--clean", truth,
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((out / "audit.json").read_text())


def scores_of(out, examples):
    """The scores that the program wrote and the labels that it calls wrong, in the order of the data."""
    scores, called = np.empty(examples), np.zeros(examples, bool)
    with open(out / "issues.csv", newline="") as file:
        for row in csv.DictReader(file):
            scores[int(row["id"])] = float(row["score"])
            called[int(row["id"])] = row["wrong"] == "yes"
    return scores, called


def share(wrong, chosen):
    return f"{100 * wrong[chosen].mean():.1f} % of {chosen.sum()}" if chosen.any() else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print(
        "| | cleanlab: AUROC / AP, best score | F1 | `aleator audit`: AUROC / AP | F1 | wrong "
        "| estimated | above 0.99 | 0.9 to 0.95 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    better, rows = 0, 0
    for labels_file in sorted(folder.glob("*_labels.npy")):
        name = labels_file.name.removesuffix("_labels.npy")
        truth_file = folder / f"{name}_true.npy"
        labels, truth = np.load(labels_file).astype(int), np.load(truth_file).astype(int)
        wrong = labels != truth
        for file in sorted(folder.glob(f"{name}_*.npy")):
            if file in (labels_file, truth_file):
                continue
            probabilities = np.load(file)
            theirs = best_of_cleanlab(probabilities, labels, wrong)
            filtered = f1_score(wrong, find_label_issues(labels, probabilities, n_jobs=1))
            with tempfile.TemporaryDirectory() as place:
                out = Path(place) / "audit"
                summary = audit(file, labels_file, truth_file, out)
                scores, called = scores_of(out, len(labels))
            ours = [roc_auc_score(wrong, scores), average_precision_score(wrong, scores)]
            called = f1_score(wrong, called)
            estimate = summary["wrong"]
            rows += 1
            better += ours[0] >= theirs[0] and ours[1] >= theirs[1] and called >= filtered
            print(
                f"| {name}, {file.stem.removeprefix(name + '_')} | {theirs[0]:.4f} / {theirs[1]:.4f} "
                f"| {filtered:.3f} | {ours[0]:.4f} / {ours[1]:.4f} | {called:.3f} | {wrong.sum()} "
                f"| {estimate['count']:.0f}, {estimate['low']:.0f} to {estimate['high']:.0f} "
                f"| {share(wrong, scores > 0.99)} | {share(wrong, (scores > 0.9) & (scores < 0.95))} |",
                flush=True,
            )
    print(f"\n{better} of {rows}: at least as good in all three")


if __name__ == "__main__":
    main()
