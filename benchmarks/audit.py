"""Finding the wrong labels of CIFAR-10N: ours beside cleanlab, on the same features and folds.

    cargo build --release
    python3 benchmarks/audit.py FEATURES.npy CIFAR10N_FOLDER [--sets aggre rand1 worse] [--seeds 0 1 2]

FEATURES is [50000, D] in the order of CIFAR-10; the folder holds cifar10n_{aggre,...,clean}.npy.
Needs numpy, scikit-learn, cleanlab and safetensors.

`aleator audit` makes the folds and judges them. A logistic regression (scikit-learn, features
divided by one number so that their standard deviation is 1, C = 1) is fitted to the same folds, and
its probabilities are given to cleanlab. AUROC and average precision are those of the score
for "this label is wrong". Confident learning gives a set, ranked by its own order
(normalised margin within the set, everything else after it).
"""

import argparse
import csv
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_normalized_margin_for_each_label, get_self_confidence_for_each_label
from safetensors import safe_open
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

ROOT = Path(__file__).parent.parent
warnings.filterwarnings("ignore")


def audit(features, folder, labels, seed, out, noise):
    command = [
        ROOT / "target/release/aleator", "audit", f"features-{noise}", "-q", "--out", out,
        "--seed", str(seed), "--set", f"data.train.features={features}",
        "--set", f"data.train.labels={folder}/cifar10n_{labels}.npy",
        "--set", f"data.train.clean_labels={folder}/cifar10n_clean.npy",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    scores = np.zeros(50000)
    suggested = np.zeros(50000, int)
    with open(out / "issues.csv") as file:
        for row in csv.DictReader(file):
            scores[int(row["id"])] = float(row["score"])
            suggested[int(row["id"])] = int(row["suggested"])
    return scores, suggested, json.loads((out / "audit.json").read_text())


def folds_of(out):
    """The fold of each example, and softmax of the mean of the utilities."""
    fold_of, mean = np.full(50000, -1), np.zeros((50000, 10))
    for fold in sorted(out.glob("fold-*")):
        with open(fold / "examples.csv") as file:
            ids = [int(row["id"]) for row in csv.DictReader(file) if row["split"] == "test"]
        fold_of[ids] = int(fold.name.split("-")[1])
        with safe_open(fold / "predictions/test.safetensors", "np") as tensors:
            mean[ids] = tensors.get_tensor("mean")
    mean = np.exp(mean - mean.max(1, keepdims=True))
    return fold_of, mean / mean.sum(1, keepdims=True)


def regression(features, labels, fold_of):
    probs = np.zeros((len(labels), 10))
    for fold in range(fold_of.max() + 1):
        train = fold_of != fold
        scale = features[train].std()
        model = LogisticRegression(max_iter=200).fit(features[train] / scale, labels[train])
        probs[~train] = model.predict_proba(features[~train] / scale)
    return probs


def confident_learning(labels, probs):
    order = find_label_issues(labels, probs, return_indices_ranked_by="normalized_margin", n_jobs=1)
    score = -get_normalized_margin_for_each_label(labels, probs)
    score = (score - score.min()) / (score.max() - score.min())
    inside = np.zeros(len(labels), bool)
    inside[order] = True
    return score + 2.0 * inside, inside


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("features", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=["aggre", "rand1", "worse"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    features = np.load(args.features).astype(np.float32)
    clean = np.load(args.folder / "cifar10n_clean.npy").astype(int)
    for name in args.sets:
        labels = np.load(args.folder / f"cifar10n_{name}.npy").astype(int)
        wrong = labels != clean
        print(f"\n{name}: {100 * wrong.mean():.2f} % wrong")

        def show(method, scores):
            pairs = [(roc_auc_score(wrong, it), average_precision_score(wrong, it)) for it in scores]
            mean, spread = np.mean(pairs, 0), np.std(pairs, 0, ddof=1 if len(pairs) > 1 else 0)
            print(f"| {method} | {mean[0]:.4f} ± {spread[0]:.4f} | {mean[1]:.4f} ± {spread[1]:.4f} |", flush=True)

        ours, plain, counts, right = [], [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for seed in args.seeds:
                out = Path(folder) / f"seed-{seed}"
                scores, suggested, summary = audit(args.features, args.folder, name, seed, out, "full")
                fold_of, mean = folds_of(out)
                ours.append(scores)
                plain.append(1 - mean[np.arange(len(labels)), labels])
                counts.append(100 * summary["wrong"]["count"] / len(labels))
                right.append(100 * summary["known"]["suggestions_right"])
        probs = regression(features, labels, fold_of)
        show("cleanlab: self-confidence", [1 - get_self_confidence_for_each_label(labels, probs)])
        show("cleanlab: normalised margin", [-get_normalized_margin_for_each_label(labels, probs)])
        score, inside = confident_learning(labels, probs)
        show("cleanlab: confident learning", [score])
        precision, recall = wrong[inside].mean(), inside[wrong].mean()
        print(f"  its set: {100 * inside.mean():.2f} % of the labels, precision {precision:.3f}, recall {recall:.3f}")
        show("full head: 1 − softmax(μ) of the label", plain)
        show("**full head: posterior** (`aleator audit`)", ours)
        print(f"  estimated wrong: {np.mean(counts):.2f} % (± {np.std(counts):.2f}); suggestion right: {np.mean(right):.1f} %")


if __name__ == "__main__":
    main()
