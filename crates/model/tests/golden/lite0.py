"""Features of EfficientNet-Lite0, by an implementation that shares no line with ours.

    python lite0.py > lite0.json

Needs PyTorch and NumPy. Weights and images come from formula.py.
"""

import json

import torch
import torch.nn.functional as F
from formula import images, weight

STAGES = [  # blocks, expansion, kernel, stride, channels
    (1, 1, 3, 1, 16),
    (2, 6, 3, 2, 24),
    (2, 6, 5, 2, 40),
    (3, 6, 3, 2, 80),
    (3, 6, 5, 1, 112),
    (4, 6, 5, 2, 192),
    (1, 6, 3, 1, 320),
]


def tensor(key, *shape):
    return torch.from_numpy(weight(key, shape)).double()


def convolution(x, key, to, kernel, stride=1, groups=1):
    """TensorFlow's "same" padding: the odd row and column at the end."""
    padding = []
    for size in (x.shape[3], x.shape[2]):
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        padding += [total // 2, total - total // 2]
    filters = tensor(key + ".weight", to, x.shape[1] // groups, kernel, kernel)
    return F.conv2d(F.pad(x, padding), filters, stride=stride, groups=groups)


def norm(x, key):
    fields = ["running_mean", "running_var", "weight", "bias"]
    mean, var, scale, shift = (tensor(f"{key}.{field}", x.shape[1]) for field in fields)
    return F.batch_norm(x, mean, var, scale, shift, training=False, eps=1e-3)


def features(x):
    x = F.relu6(norm(convolution(x, "_conv_stem", 32, 3, stride=2), "_bn0"))
    index = 0
    for count, expansion, kernel, stride, to in STAGES:
        for at in range(count):
            key = f"_blocks.{index}."
            out, width, step = x, x.shape[1] * expansion, stride if at == 0 else 1
            if expansion > 1:
                out = F.relu6(norm(convolution(out, key + "_expand_conv", width, 1), key + "_bn0"))
            out = convolution(out, key + "_depthwise_conv", width, kernel, step, groups=width)
            out = F.relu6(norm(out, key + "_bn1"))
            out = norm(convolution(out, key + "_project_conv", to, 1), key + "_bn2")
            x = out + x if step == 1 and x.shape[1] == to else out
            index += 1
    x = F.relu6(norm(convolution(x, "_conv_head", 1280, 1), "_bn1"))
    return x.mean((2, 3))


if __name__ == "__main__":
    # 64 halves evenly all the way down, 45 x 38 does not.
    cases = []
    for height, width in [(64, 64), (45, 38)]:
        found = features(torch.from_numpy(images(2, height, width)).double())
        every = [[round(value, 7) for value in row[::16].tolist()] for row in found]
        cases.append({"height": height, "width": width, "every_16th": every})
    print(json.dumps(cases))
