"""Images a second that become inputs of a network: ours beside torchvision, in one run.

    cargo build --release -p aleator-data --example decode
    python3 benchmarks/decode.py [--images FOLDER] [--out benchmarks/decode.md]

Needs torch, torchvision and Pillow. FOLDER holds a folder of JPEGs for each class; without it
400 images of 500 x 375 pixels are cut from the two photographs that scikit-learn ships, or, if it
is not installed, made of noise, and written with quality 90.

Training: decode, random rectangle to 224 x 224 (bilinear, antialiased), mirrored at random,
normalised floats, channel first. Evaluation: shorter side to 256, central 224 x 224. All take turns,
so that other load on the machine falls on all alike; the median of the rounds counts. Beside the
rate stands the processor time of an image, which other load hardly changes; that of ours has
opening and hashing the files in it.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

ROOT = Path(__file__).parent.parent
BATCH = 50
NORMAL = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def photographs():
    try:
        from sklearn.datasets import load_sample_images

        return [Image.fromarray(pixels) for pixels in load_sample_images().images]
    except ImportError:
        return [noise(seed) for seed in range(2)]


def noise(seed):
    """As much detail at each scale as photographs have: amplitude falls with frequency."""
    generator = np.random.default_rng(seed)
    size = (480, 640, 3)
    spectrum = np.fft.rfft2(generator.normal(size=size), axes=(0, 1))
    y, x = np.fft.fftfreq(size[0])[:, None], np.fft.rfftfreq(size[1])[None]
    spectrum /= np.maximum(np.hypot(x, y), 1 / size[1])[..., None]
    pixels = np.fft.irfft2(spectrum, size[:2], axes=(0, 1))
    pixels = 128 + 50 * pixels / pixels.std()
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def make_images(folder, count=400):
    generator = np.random.default_rng(0)
    sources = photographs()
    for index in range(count):
        source = sources[index % 2]
        width = int(generator.uniform(0.6, 1.0) * min(source.width, source.height * 4 / 3))
        height = width * 3 // 4
        left = int(generator.integers(0, source.width - width + 1))
        top = int(generator.integers(0, source.height - height + 1))
        box = (left, top, left + width, top + height)
        image = source.resize((500, 375), Image.BICUBIC, box=box)
        if generator.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        path = folder / "ab"[index % 2] / f"{index:03}.jpg"
        path.parent.mkdir(exist_ok=True)
        image.save(path, quality=90)


def pil_loader(mode):
    if mode == "train":
        first = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()]
    else:
        first = [transforms.Resize(256), transforms.CenterCrop(224)]
    last = [transforms.ToTensor(), transforms.Normalize(**NORMAL)]
    return {"transform": transforms.Compose(first + last)}


def tensor_loader(mode):
    if mode == "train":
        first = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    else:
        first = [v2.Resize(256, antialias=True), v2.CenterCrop(224)]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(**NORMAL)]
    load = lambda path: decode_image(read_file(path), ImageReadMode.RGB)
    return {"transform": v2.Compose(first + last), "loader": load}


class Torchvision:
    """A loader whose workers are started once, before anything is timed."""

    def __init__(self, folder, options, workers):
        data = ImageFolder(folder, **options)
        self.count = len(data)
        self.loader = DataLoader(
            data, BATCH, shuffle=True, num_workers=workers, persistent_workers=True
        )
        self.once()
        self.once()

    def once(self):
        """Images a second, and milliseconds of processor time for each."""
        before, start = self.processor_time(), time.perf_counter()
        for images, _ in self.loader:
            images[0, 0, 0, 0].item()
        seconds = time.perf_counter() - start
        return self.count / seconds, 1000 * (self.processor_time() - before) / self.count

    def processor_time(self):
        workers = getattr(self.loader._iterator, "_workers", [])
        ticks = 0
        for worker in workers:
            fields = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


class Ours:
    def __init__(self, folder, mode, workers):
        target = json.loads(
            subprocess.check_output(
                ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT
            )
        )["target_directory"]
        self.command = [f"{target}/release/examples/decode", folder, mode, str(workers), "1"]
        self.once()

    def once(self):
        def processor_time():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime

        before = processor_time()
        out = json.loads(subprocess.check_output([str(part) for part in self.command]))
        return out["images_per_second"], 1000 * (processor_time() - before) / out["images"]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "decode.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    temporary = tempfile.TemporaryDirectory()
    folder = options.images or temporary.name
    if not options.images:
        make_images(Path(folder))
    rows = []
    for mode in ("train", "eval"):
        for workers in (1, 2):
            rivals = {
                "torchvision, PIL": Torchvision(folder, pil_loader(mode), workers),
                "torchvision, tensors": Torchvision(folder, tensor_loader(mode), workers),
                "aleator": Ours(folder, mode, workers),
            }
            results = {name: [] for name in rivals}
            for _ in range(options.rounds):
                for name, rival in rivals.items():
                    results[name].append(rival.once())
            rows.append((mode, workers, results))
            print(mode, workers, {name: medians(of) for name, of in results.items()}, flush=True)
    Path(options.out).write_text(report(rows, folder, bool(options.images), options.rounds))


def medians(results):
    """Of images a second, and of milliseconds of processor time."""
    return tuple(statistics.median(column) for column in zip(*results))


def report(rows, folder, given, rounds):
    files = list(Path(folder).rglob("*.jpg"))
    size = sum(path.stat().st_size for path in files) / len(files) / 1000
    what = "given images" if given else "images of 500 × 375 pixels, quality 90"
    lines = [
        "# From image files to inputs",
        "",
        "Decoding, a crop of 224 × 224, mirroring (in training), normalised floats. Made by",
        "`python3 benchmarks/decode.py`, which says what is done; the goal is 1.5 times torchvision"
        " with PIL.",
        "",
        f"{len(files)} {what}, {size:.0f} kB each; batches of {BATCH}; the median of {rounds}"
        " rounds in turns.",
        f"{processor()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.0f} at the end"
        " of the run;",
        f"Python {platform.python_version()}, torch {torch.__version__}, torchvision"
        f" {torchvision.__version__}, Pillow {PIL.__version__} (libjpeg-turbo).",
    ]
    units = ["Images a second", "Milliseconds of processor time for an image"]
    for column, title in enumerate(units):
        lines += [
            "",
            f"## {title}",
            "",
            "| | workers | torchvision, PIL | torchvision, tensors | aleator | times PIL | times tensors |",
            "|---|---|---|---|---|---|---|",
        ]
        for mode, workers, results in rows:
            pil, tensors, ours = (medians(of)[column] for of in results.values())
            times = [ours / pil, ours / tensors] if column == 0 else [pil / ours, tensors / ours]
            name = "training" if mode == "train" else "evaluation"
            digits = 0 if column == 0 else 2
            values = [f"{value:.{digits}f}" for value in (pil, tensors, ours)]
            cells = [name, str(workers), *values, *(f"{value:.1f}" for value in times)]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Slowest and fastest round, images a second:", ""]
    for mode, workers, results in rows:
        spread = "; ".join(
            f"{name} {min(of)[0]:.0f} to {max(of)[0]:.0f}" for name, of in results.items()
        )
        lines.append(f"- {mode}, workers {workers}: {spread}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
