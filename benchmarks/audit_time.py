"""How long an audit of features takes: ours beside scikit-learn's five folds and cleanlab.

    cargo build --release
    python3 benchmarks/audit_time.py FEATURES.npy CIFAR10N_FOLDER [--labels aggre] [--pairs 3]

The two take turns, and each is a whole process that reads the same files from disk. The other one
predicts each label by a logistic regression (C = 1) in five folds, two at a time, and ranks labels
by cleanlab's filter. CPU is user and system time of a process and all its children. Needs numpy,
scikit-learn and cleanlab.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def labels_file(args):
    return args.folder / f"cifar10n_{args.labels}.npy"


def fold_and_filter(args):
    import numpy as np
    from cleanlab.filter import find_label_issues
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    features = np.load(args.features).astype(np.float32)
    features /= features.std()
    labels = np.load(labels_file(args)).astype(int)
    regression = LogisticRegression(max_iter=200)
    probs = cross_val_predict(regression, features, labels, cv=5, method="predict_proba", n_jobs=2)
    find_label_issues(labels, probs, return_indices_ranked_by="normalized_margin", n_jobs=1)


def audit_command(args, out):
    return [
        args.program, "audit", "features-audit", "-q", "--out", out,
        "--set", f"data.train.features={args.features}",
        "--set", f"data.train.labels={labels_file(args)}",
    ]


def measured(command):
    """Wall-clock and CPU seconds of a command."""

    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    started, before = time.time(), cpu()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.time() - started, cpu() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("features", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", default="aggre", choices=["aggre", "rand1", "worse"])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/aleator")
    parser.add_argument("--folds-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folds_only:
        fold_and_filter(args)
        return
    other = [sys.executable, __file__, args.features, args.folder, "--labels", args.labels, "--folds-only"]
    ratios = []
    for pair in range(args.pairs):
        theirs = measured(other)
        with tempfile.TemporaryDirectory() as folder:
            ours = measured(audit_command(args, Path(folder) / "audit"))
        ratios.append([mine / other for mine, other in zip(ours, theirs)])
        print(
            f"pair {pair + 1}: scikit-learn and cleanlab {theirs[0]:.1f} s ({theirs[1]:.1f} s of CPU), "
            f"aleator audit {ours[0]:.1f} s ({ours[1]:.1f} s of CPU): "
            f"{ratios[-1][0]:.2f} times the time, {ratios[-1][1]:.2f} times the CPU",
            flush=True,
        )
    wall, cpu = (statistics.median(column) for column in zip(*ratios))
    print(f"median: {wall:.2f} times the time, {cpu:.2f} times the CPU")


if __name__ == "__main__":
    main()
