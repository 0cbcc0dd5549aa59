"""Times one training step of the head in Aleator and in PyTorch or JAX, interleaved, in one run.

    cargo build --release -p aleator-benchmarks && pip install torch jax numpy
    python benchmarks/compare.py [--rounds 3] [--only "a;b"] [--out benchmarks/head.md]

Each measurement is a process of its own (see `aleator-bench head --help` and peers/README.md); the
two programs take turns, so that a slow phase of the machine hits both. The table has the fastest
median of each, because slower ones are due to other programs on the machine, and the ratio of the two.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec as is_installed

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target"))
OURS = os.path.join(TARGET, "release", "aleator-bench")
PEERS = {"jit": "bench_jax_xl.py"}  # of a variant; the others are PyTorch

A = dict(B=64, D=2048, K=1000, R=15, S=1000)
B = dict(B=128, D=64, K=10, R=6, S=1000)
# name, what it is, model, shape, [(peer's variant, what the ratio must be)], rounds at most
SETTINGS = [
    ("a", "full covariance, ILSVRC12 head", "softmax_full", A, [("eager", 6), ("stream", 4)], 9),
    ("a, S=100", "few samples", "softmax_full", A | dict(S=100), [("eager", 2), ("stream", 2)], 9),
    ("a, S=10,000", "the paper's samples", "softmax_full", A | dict(S=10000), [("eager", 20)], 1),
    ("a, diagonal", "no correlations", "softmax_diag", A, [("eager", 10)], 9),
    ("b", "few classes", "softmax_full", B, [("eager", 8)], 9),
    ("b, K=100 R=10", "a hundred classes", "softmax_full", B | dict(K=100, R=10), [("eager", 10)], 9),
    ("c", "ImageNet-21k multilabel head", "sigmoid_pe", dict(B=8, D=2048, K=21843, R=50, S=1000),
     [("eager", 25), ("exact", 1)], 2),
    ("xl", "noise on the features", "softmax_xl", A | dict(S=10), [("jit", 1)], 9),
    ("xl, S=100", "noise on the features", "softmax_xl", A | dict(S=100), [("jit", 1)], 3),
]


def run(command):
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{out.stderr}{out.stdout}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def ours(model, shape, threads):
    names = dict(B="batch", D="features", K="classes", R="rank", S="samples")
    flags = [word for key, value in shape.items() for word in (f"--{names[key]}", str(value))]
    return run([OURS, "head", "--model", model, "--threads", str(threads), "--json"] + flags)


def peer(model, variant, shape, threads):
    flags = [word for key, value in shape.items() for word in (f"--{key}", str(value))]
    program = os.path.join(HERE, "peers", PEERS.get(variant, "bench_torch.py"))
    return run([sys.executable, program, "--model", model, "--variant", variant, "--reps", "3",
                "--threads", str(threads)] + flags)


def measure(model, shape, variants, rounds, threads):
    """The fastest median of each program, and its memory."""
    best = {}
    for _ in range(rounds):
        results = [("aleator", ours(model, shape, threads))]
        results += [(variant, peer(model, variant, shape, threads)) for variant, _ in variants]
        for name, result in results:
            print(json.dumps(result), flush=True)
            if name not in best or result["median_ms"] < best[name]["median_ms"]:
                best[name] = result
    return best


def machine():
    cpu = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                    if line.startswith("model name")), cpu)
    versions = [f"{name} {version(name)}" for name in ("torch", "jax") if is_installed(name)]
    return ", ".join([f"{cpu}, {os.cpu_count()} cores", *versions])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="names of settings, separated by semicolons")
    parser.add_argument("--out", help="file for the table, Markdown")
    args = parser.parse_args()
    if not os.path.exists(OURS):
        sys.exit("build first: cargo build --release -p aleator-benchmarks")
    wanted = args.only.split(";") if args.only else None
    unknown = set(wanted or []) - {setting[0] for setting in SETTINGS}
    if unknown:
        sys.exit(f"no such setting: {', '.join(sorted(unknown))}")
    rows = []
    for name, what, model, shape, variants, most in SETTINGS:
        if wanted and name not in wanted:
            continue
        best = measure(model, shape, variants, min(args.rounds, most), args.threads)
        mine = best["aleator"]
        for variant, target in variants:
            other = best[variant]
            ratio = other["median_ms"] / mine["median_ms"]
            rows.append((name, what, variant, other, mine, ratio, target))
    lines = [
        "# One training step of the head: forward, loss, all parameter gradients",
        "",
        f"{machine()}, {args.threads} threads, at most {args.rounds} rounds (S=10,000: one); milliseconds (peak MiB).",
        "Made by `python benchmarks/compare.py`.",
        "",
        "| setting | | peer | Aleator | times faster | goal |",
        "|---|---|---|---|---|---|",
    ]
    for name, what, variant, other, mine, ratio, target in rows:
        lines.append(
            f"| {name} | {what} | {variant}: {other['median_ms']:.1f} ({other['peak_rss_mib']}) "
            f"| {mine['median_ms']:.1f} ({mine['peak_rss_mib']}) | {ratio:.1f} | {target} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if args.out:
        with open(args.out, "w") as file:
            file.write(table)


if __name__ == "__main__":
    main()
