"""Finding the wrong labels of CIFAR-10N: ours beside cleanlab, on the same features.

    cargo build --release
    python3 benchmarks/audit.py FEATURES.npy CIFAR10N_FOLDER [--sets aggre rand1 worse] [--seeds 0 1 2]

FEATURES is [50000, D] in the order of CIFAR-10; the folder holds cifar10n_{aggre,...,clean}.npy.
Needs numpy, scikit-learn and cleanlab.

cleanlab judges the probabilities of a logistic regression (scikit-learn, features divided by one
number so that their standard deviation is 1, C = 1, five folds). AUROC and average precision are
those of the score for "this label is wrong". Confident learning gives a set, ranked by its own order
(normalised margin within the set, everything else after it). Times are of whole processes, one after
the other.
"""

import argparse
import csv
import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_normalized_margin_for_each_label, get_self_confidence_for_each_label
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import cross_val_predict

ROOT = Path(__file__).parent.parent
warnings.filterwarnings("ignore")


def audit(features, folder, labels, seed, out):
    command = [
        ROOT / "target/release/aleator", "audit", "features-audit", "-q", "--out", out,
        "--seed", str(seed), "--set", f"data.train.features={features}",
        "--set", f"data.train.labels={folder}/cifar10n_{labels}.npy",
        "--set", f"data.train.clean_labels={folder}/cifar10n_clean.npy",
    ]
    started = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.time() - started
    scores = np.zeros(50000)
    with open(out / "issues.csv") as file:
        for row in csv.DictReader(file):
            scores[int(row["id"])] = float(row["score"])
    return scores, json.loads((out / "audit.json").read_text()), seconds


def confident_learning(labels, probs):
    order = find_label_issues(labels, probs, return_indices_ranked_by="normalized_margin", n_jobs=1)
    score = -get_normalized_margin_for_each_label(labels, probs)
    score = (score - score.min()) / (score.max() - score.min())
    inside = np.zeros(len(labels), bool)
    inside[order] = True
    return score + 2.0 * inside, inside


def share(wrong, chosen):
    return f"{100 * wrong[chosen].mean():.1f} % of {chosen.sum()}" if chosen.any() else "none"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("features", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=["aggre", "rand1", "worse"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    features = np.load(args.features).astype(np.float32)
    features /= features.std()
    clean = np.load(args.folder / "cifar10n_clean.npy").astype(int)
    for name in args.sets:
        labels = np.load(args.folder / f"cifar10n_{name}.npy").astype(int)
        wrong = labels != clean
        print(f"\n{name}: {wrong.sum()} wrong, {100 * wrong.mean():.2f} %")

        def show(method, scores):
            pairs = [(roc_auc_score(wrong, it), average_precision_score(wrong, it)) for it in scores]
            mean, spread = np.mean(pairs, 0), np.std(pairs, 0, ddof=1 if len(pairs) > 1 else 0)
            print(f"| {method} | {mean[0]:.4f} ± {spread[0]:.4f} | {mean[1]:.4f} ± {spread[1]:.4f} |", flush=True)

        started = time.time()
        regression = LogisticRegression(max_iter=200)
        probs = cross_val_predict(regression, features, labels, cv=5, method="predict_proba")
        score, inside = confident_learning(labels, probs)
        print(f"  folds and cleanlab: {time.time() - started:.1f} s")
        show("cleanlab: self-confidence", [1 - get_self_confidence_for_each_label(labels, probs)])
        show("cleanlab: normalised margin", [-get_normalized_margin_for_each_label(labels, probs)])
        show("cleanlab: confident learning", [score])
        precision, recall = wrong[inside].mean(), inside[wrong].mean()
        print(f"  its set: {100 * inside.mean():.2f} % of the labels, precision {precision:.3f}, recall {recall:.3f}")
        ours = []
        with tempfile.TemporaryDirectory() as folder:
            for seed in args.seeds:
                out = Path(folder) / f"seed-{seed}"
                scores, summary, seconds = audit(args.features, args.folder, name, seed, out)
                ours.append(scores)
                estimate, right = summary["wrong"], 100 * summary["known"]["suggestions_right"]
                print(
                    f"  seed {seed}: {estimate['count']:.0f} ({estimate['low']:.0f} to "
                    f"{estimate['high']:.0f}); of scores above 0.99 {share(wrong, scores > 0.99)}, from "
                    f"0.9 to 0.95 {share(wrong, (scores > 0.9) & (scores < 0.95))} wrong; suggestion "
                    f"right {right:.1f} %; {seconds:.1f} s"
                )
        show("**`aleator audit`**", ours)


if __name__ == "__main__":
    main()
