"""What probabilities should be divided by before labels are judged by them.

    python3 benchmarks/self_confidence.py

Labels of small data sets are made wrong in five ways, two classifiers of scikit-learn give
cross-validated probabilities, and the posterior of docs/audit.md, written here in numpy, ranks the
labels by probabilities as they are and divided by t, where t of class k is the mean of p_k over

- label: the examples labelled k,
- predicted: the examples predicted as k,
- both: the examples labelled and predicted as k, which is what `aleator audit` does.

Printed are average precision of "this label is wrong" in each case, and summaries. Needs numpy and
scikit-learn; takes a few minutes.
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
NOISE = [("uniform", 0.1), ("uniform", 0.3), ("next", 0.2), ("first", 0.2), ("frequent", 0.1)]


def posterior(p, y, sharpness=2.0, power=0.5, passes=60):
    """P(true = c | x, label y), [N, K]."""
    classes, rows = p.shape[1], np.arange(len(y))
    p = np.clip(p, 1e-12, 1)
    prior = p**sharpness
    prior /= prior.sum(axis=1, keepdims=True)
    root = p**power
    confusion = np.full((classes, classes), 0.1 / classes) + 0.9 * np.eye(classes)
    for _ in range(passes):
        total = root @ confusion.T
        found = prior * confusion[:, y].T * root[rows, y][:, None] / total
        found /= found.sum(axis=1, keepdims=True)
        seen = np.zeros((classes, classes))
        np.add.at(seen.T, y, found)
        expected = ((found / total).T @ root) * confusion
        confusion = np.maximum(confusion * seen / np.maximum(expected, 1e-12), 1e-6)
        confusion /= confusion.sum(axis=1, keepdims=True)
    return found


def divided(p, chosen):
    """p over the mean of p_k where `chosen` [N, K]; classes without any get the mean of the others."""
    count = chosen.sum(axis=0)
    mean = np.where(chosen, p, 0).sum(axis=0) / np.maximum(count, 1)
    t = np.where((count > 0) & (mean > 0), mean, np.nan)
    t = np.where(np.isnan(t), np.nanmean(t), t)
    p = p / t
    return p / p.sum(axis=1, keepdims=True)


def wrong_labels(y, kind, rate, rng):
    y, chosen, classes = y.copy(), rng.random(len(y)) < rate, y.max() + 1
    y[chosen] = {
        "uniform": rng.integers(0, classes, len(y)),
        "next": (y + 1) % classes,
        "first": np.zeros_like(y),
        "frequent": rng.permutation(y),
    }[kind][chosen]
    return y


def imbalanced(x, y):
    """Each class has six tenths of the examples of the class before it."""
    kept = [np.flatnonzero(y == k)[: max(12, int((y == k).sum() * 0.6**k))] for k in np.unique(y)]
    kept = np.sort(np.concatenate(kept))
    return x[kept], y[kept]


def data_sets():
    x, y = load_digits(return_X_y=True)
    yield "digits", x / 16, y
    yield "digits, imbalanced", *imbalanced(x / 16, y)
    made = dict(n_samples=6000, n_features=20, flip_y=0, random_state=0)
    five = dict(n_informative=8, n_classes=5, weights=[0.7, 0.15, 0.1, 0.04, 0.01])
    yield "made, 5 classes", *make_classification(**made, **five)
    two = dict(n_informative=5, weights=[0.95, 0.05], class_sep=0.7)
    yield "made, 95 : 5", *make_classification(**made, **two)
    rare = dict(n_informative=2, n_redundant=0, n_classes=3, n_clusters_per_class=1)
    yield "made, rare and hard", *make_classification(
        **made, **rare, weights=[0.9, 0.08, 0.02], class_sep=0.2
    )
    x, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", StandardScaler().fit_transform(x), y


def main():
    rng = np.random.default_rng(0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    gains = {"label": [], "predicted": [], "both": []}
    print("| | as they are | label | predicted | both |\n|---|---|---|---|---|")
    for name, x, truth in data_sets():
        for kind, rate in NOISE:
            y = wrong_labels(truth, kind, rate, rng)
            if np.bincount(y).min() < 5:
                continue
            forest = RandomForestClassifier(100, random_state=0)
            for model in (LogisticRegression(max_iter=500), forest):
                p = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
                labelled, predicted = np.eye(p.shape[1], dtype=bool)[[y, p.argmax(axis=1)]]
                chosen = dict(label=labelled, predicted=predicted, both=labelled & predicted)

                def precision(p):
                    score = 1 - posterior(p, y)[np.arange(len(y)), y]
                    return average_precision_score(y != truth, score)

                plain = precision(p)
                found = {way: precision(divided(p, which)) for way, which in chosen.items()}
                for way, value in found.items():
                    gains[way].append(value - plain)
                cells = " | ".join(f"{value:.4f}" for value in (plain, *found.values()))
                print(f"| {name}, {kind} {rate}, {type(model).__name__} | {cells} |", flush=True)
    for way, gain in gains.items():
        gain = np.array(gain)
        print(
            f"{way}: better in {(gain > 0.0005).sum()}, worse in {(gain < -0.0005).sum()} of "
            f"{len(gain)}; change {gain.mean():+.4f} on average, {gain.min():+.4f} at worst"
        )


if __name__ == "__main__":
    main()
