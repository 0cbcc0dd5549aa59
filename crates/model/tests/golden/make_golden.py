"""Losses and gradients of the head for fixed noise, computed independently in numpy (float64).

Run here: python make_golden.py > golden.json
Only the noise comes from the Rust code (noise.json, by the example `noise` of the kernels). The
losses are the paper's formulas; gradients are differences of the losses, so that no chain rule is
shared with the code under test.
"""
import json
import numpy as np

rng = np.random.default_rng(20260)
B, D, K, R, S = 3, 5, 4, 2, 7


def r(*shape):
    return np.round(rng.standard_normal(shape), 3)


features, labels = r(B, D), np.array([2, 0, 3])
drawn = json.load(open("noise.json"))  # what the kernels draw for seed 7, step 3, ids 11, 5, 8
eps_k = np.array(drawn["eps_k"]).reshape(B, S, K)
eps_r = np.array(drawn["eps_r"]).reshape(B, S, R)
multi_hot = np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]], float)


def softplus(x):
    return np.logaddexp(0, x)


def logsumexp(x, axis, keepdims=False):
    m = x.max(axis, keepdims=True)
    out = m + np.log(np.exp(x - m).sum(axis, keepdims=True))
    return out if keepdims else np.squeeze(out, axis)


def latent(p, kind):
    mean = features @ p["mean_w"] + p["mean_b"]
    diag = softplus(features @ p["diag_w"] + p["diag_b"]) + 1e-3
    if kind == "low_rank":
        loadings = (features @ p["load_w"] + p["load_b"]).reshape(B, K, R)
    elif kind == "shared":
        loadings = (features @ p["scale_w"] + p["scale_b"])[:, :, None] * p["shared"][None]
    else:
        loadings = np.zeros((B, K, R))
    return mean, diag, loadings


def softmax_loss(p, kind):
    mean, diag, loadings = latent(p, kind)
    u = mean[:, None] + diag[:, None] * eps_k + np.einsum("bkr,bsr->bsk", loadings, eps_r)
    z = u / p["tau"][0]
    log_p = z - logsumexp(z, 2, True)
    return -np.mean([logsumexp(log_p[b, :, labels[b]], 0) - np.log(S) for b in range(B)])


def sigmoid_loss(p, kind):
    """Exact marginals by 400-node Gauss-Legendre quadrature over +-12 standard deviations."""
    mean, diag, loadings = latent(p, kind)
    sd = np.sqrt(diag**2 + (loadings**2).sum(2)) / p["tau"][0]
    m = mean / p["tau"][0]
    nodes, weights = np.polynomial.legendre.leggauss(400)
    t = 12 * nodes
    density = 12 * weights * np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi)
    u = m[..., None] + sd[..., None] * t
    on = (density / (1 + np.exp(-u))).sum(-1)
    off = (density / (1 + np.exp(u))).sum(-1)
    return -np.mean((multi_hot * np.log(on) + (1 - multi_hot) * np.log(off)).sum(1))


def gradient(loss, p, kind):
    """Central differences with Richardson extrapolation: error about 1e-11 in float64."""
    out = {}
    for name, value in p.items():
        grad = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            def moved(h):
                q = {k: v.copy() for k, v in p.items()}
                q[name][index] += h
                return loss(q, kind)
            def central(h):
                return (moved(h) - moved(-h)) / (2 * h)
            h = 1e-3
            grad[index] = (4 * central(h / 2) - central(h)) / 3
        out[name] = grad
    return out


cases = []
for kind in ("diagonal", "low_rank", "shared"):
    p = {"mean_w": r(D, K), "mean_b": r(K), "diag_w": r(D, K), "diag_b": r(K), "tau": np.array([0.8])}
    if kind == "low_rank":
        p |= {"load_w": r(D, K * R), "load_b": r(K * R)}
    if kind == "shared":
        p |= {"scale_w": r(D, K), "scale_b": r(K), "shared": r(K, R)}
    case = {"kind": kind, "params": {k: v.tolist() for k, v in p.items()}}
    for link, loss in (("softmax", softmax_loss), ("sigmoid", sigmoid_loss)):
        grads = gradient(loss, p, kind)
        case[link] = {"loss": loss(p, kind), "grads": {k: v.tolist() for k, v in grads.items()}}
    cases.append(case)

print(json.dumps({
    "features": features.tolist(), "labels": labels.tolist(), "multi_hot": multi_hot.tolist(),
    "cases": cases,
}))
