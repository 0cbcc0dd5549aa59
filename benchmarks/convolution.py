"""Times the convolutions of ResNet-20 and ResNet-50, and training steps of a whole ResNet-20, in
Aleator and in PyTorch, interleaved.

    cargo build --release -p aleator-benchmarks && pip install torch
    python benchmarks/convolution.py [--rounds 3] [--processor] [--only text] [--out file]

Forward, input gradient and weight gradient of each shape, the shortest time of the rounds; then
steps with batch normalisation, loss and SGD. The two take turns, shape by shape, so that a slow
phase of the machine hits both. With --processor both have one thread, and processor time is
measured, which other programs on the machine change less.
"""
import argparse
import os
import platform
import subprocess
import time

import torch

from peers.resnet20_torch import Trainer

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target"))
PROCESSOR = 0
OURS = os.path.join(TARGET, "release", "aleator-bench")

# name, batch, inputs, outputs, height and width, kernel, stride, padding, groups
SHAPES = [
    ("ResNet-20 first 3×3", 128, 3, 16, 32, 3, 1, 1, 1),
    ("ResNet-20 3×3, 16", 128, 16, 16, 32, 3, 1, 1, 1),
    ("ResNet-20 3×3/2, 16→32", 128, 16, 32, 32, 3, 2, 1, 1),
    ("ResNet-20 1×1/2, 16→32", 128, 16, 32, 32, 1, 2, 0, 1),
    ("ResNet-20 3×3, 32", 128, 32, 32, 16, 3, 1, 1, 1),
    ("ResNet-20 3×3/2, 32→64", 128, 32, 64, 16, 3, 2, 1, 1),
    ("ResNet-20 3×3, 64", 128, 64, 64, 8, 3, 1, 1, 1),
    ("ResNet-20 3×3, 64, one image", 1, 64, 64, 8, 3, 1, 1, 1),
    ("ResNet-50 first 7×7/2", 16, 3, 64, 224, 7, 2, 3, 1),
    ("ResNet-50 1×1, 64→256", 16, 64, 256, 56, 1, 1, 0, 1),
    ("ResNet-50 1×1, 256→64", 16, 256, 64, 56, 1, 1, 0, 1),
    ("ResNet-50 3×3, 64", 16, 64, 64, 56, 3, 1, 1, 1),
    ("ResNet-50 3×3/2, 128", 16, 128, 128, 56, 3, 2, 1, 1),
    ("ResNet-50 1×1/2, 256→512", 16, 256, 512, 56, 1, 2, 0, 1),
    ("ResNet-50 3×3, 128", 16, 128, 128, 28, 3, 1, 1, 1),
    ("ResNet-50 1×1, 128→512", 16, 128, 512, 28, 1, 1, 0, 1),
    ("ResNet-50 3×3, 256", 16, 256, 256, 14, 3, 1, 1, 1),
    ("ResNet-50 1×1, 1024→256", 16, 1024, 256, 14, 1, 1, 0, 1),
    ("ResNet-50 3×3, 512", 16, 512, 512, 7, 3, 1, 1, 1),
    ("ResNet-50 1×1, 512→2048", 16, 512, 2048, 7, 1, 1, 0, 1),
    ("ResNet-50 3×3, 512, one image", 1, 512, 512, 7, 3, 1, 1, 1),
    ("ResNet-50 1×1, 64→256, one image", 1, 64, 256, 56, 1, 1, 0, 1),
    ("depthwise 3×3, 96", 16, 96, 96, 56, 3, 1, 1, 96),
    ("depthwise 3×3/2, 96", 16, 96, 96, 112, 3, 2, 1, 96),
]


def seconds(run):
    """The shortest time of calls for a tenth of a second, and their mean processor time."""
    run()
    times, begin, before = [], time.perf_counter(), time.process_time()
    while len(times) < 3 or time.perf_counter() - begin < 0.1:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times), (time.process_time() - before) / len(times)


def theirs(shape):
    _, batch, inputs, outputs, size, kernel, stride, padding, groups = shape
    x = torch.randn(batch, inputs, size, size)
    weight = torch.randn(outputs, inputs // groups, kernel, kernel)
    convolve = lambda: torch.conv2d(x, weight, None, stride, padding, 1, groups)
    grad = torch.randn_like(convolve())

    def backward(*wanted):
        return torch.ops.aten.convolution_backward(
            grad, x, weight, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
            [*wanted, False])

    with torch.no_grad():
        times = [seconds(convolve), seconds(lambda: backward(True, False)),
                 seconds(lambda: backward(False, True))]
    return [time[PROCESSOR] for time in times]


def start(name):
    return subprocess.Popen([OURS, name, "--threads", str(2 - PROCESSOR)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def ask(process, *words):
    process.stdin.write(" ".join(map(str, words)) + "\n")
    process.stdin.flush()
    return [float(word) for word in process.stdout.readline().split()]


def ours(process, shape):
    _, batch, inputs, outputs, size, kernel, stride, padding, groups = shape
    times = ask(process, batch, inputs, outputs, size, size, kernel, kernel, stride, padding, groups)
    return times[3 * PROCESSOR:][:3]


def steps(rounds):
    """Images a second of training a ResNet-20."""
    process, trainer, rows = start("resnet20"), Trainer(), []
    for batch in [128, 32, 8]:
        images, classes = torch.randn(batch, 3, 32, 32), torch.arange(batch) % 10
        times = [(seconds(lambda: trainer.step(images, classes))[PROCESSOR],
                  ask(process, batch)[PROCESSOR]) for _ in range(rounds)]
        theirs, mine = (batch / min(round[side] for round in times) for side in range(2))
        rows.append(f"| {batch} | {mine:.0f} | {theirs:.0f} | {mine / theirs:.2f} |")
        print(rows[-1], flush=True)
    process.stdin.close()
    process.wait()
    return rows


def gflop(shape):
    _, batch, inputs, outputs, size, kernel, stride, padding, groups = shape
    out = (size + 2 * padding - kernel) // stride + 1
    return 2e-9 * batch * outputs * out * out * (inputs // groups) * kernel * kernel


def row(shape, times):
    cells, total = [shape[0], str(shape[1])], [0, 0]
    for step in range(3):
        best = [min(round[side][step] for round in times) for side in range(2)]
        total = [total[0] + best[0], total[1] + best[1]]
        cells.append(f"{gflop(shape) / best[1]:.0f} / {gflop(shape) / best[0]:.0f}")
    cells += [f"{total[1] * 1e3:.2f} / {total[0] * 1e3:.2f}", f"{total[0] / total[1]:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    global PROCESSOR
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--processor", action="store_true")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--out")
    arguments = arguments.parse_args()
    PROCESSOR = int(arguments.processor)
    torch.set_num_threads(2 - PROCESSOR)
    how = "one thread, processor time" if PROCESSOR else "2 threads"
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.processor())
    lines = [
        "# Convolutions: forward, input gradient, weight gradient",
        "",
        f"{model}, 2 cores, PyTorch {torch.__version__}, {how}, f32; the best of "
        f"{arguments.rounds} rounds. GFLOP/s and milliseconds as Aleator / PyTorch.",
        "Made by `python benchmarks/convolution.py" + " --processor" * PROCESSOR + "`.",
        "PyTorch allocates its outputs anew; "
        "Aleator writes into memory that is used again, as its training does.",
        "",
        "| layer | batch | forward | input gradient | weight gradient | all three, ms | times faster |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    process = start("convolution")
    for shape in SHAPES:
        if arguments.only in shape[0]:
            times = [(theirs(shape), ours(process, shape)) for _ in range(arguments.rounds)]
            lines.append(row(shape, times))
            print(lines[-1], flush=True)
    process.stdin.close()
    process.wait()
    head = ["", "## Training steps of a ResNet-20, 3 × 32 × 32, images a second", "",
            "| batch | Aleator | PyTorch | times faster |", "|---|---|---|---|"]
    print("\n".join(head), flush=True)
    lines += head + steps(arguments.rounds)
    if arguments.out:
        open(arguments.out, "w").write("\n".join(lines) + "\n")


main()
