"""Features of residual and Inception networks, by the implementations of timm.

    python published.py > published.json

Needs PyTorch, NumPy and timm (1.0). Weights and images come from formula.py.
"""

import json
from collections import OrderedDict
from functools import partial

import timm
import torch
from formula import images, weight
from timm.layers import BatchNormAct2d, create_conv2d
from timm.models.resnetv2 import ResNetV2


def small(depth, width):
    """The form for small images: timm's blocks after a 3 x 3 convolution to 16 channels."""
    network = ResNetV2(
        layers=[depth] * 3, channels=(width, 2 * width, 4 * width), num_classes=0, stem_chs=16,
        basic=True, bottle_ratio=1.0, conv_layer=create_conv2d,
        norm_layer=partial(BatchNormAct2d, eps=1e-5),
    )
    network.stem = torch.nn.Sequential(
        OrderedDict(conv=torch.nn.Conv2d(3, 16, 3, padding=1, bias=False))
    )
    return network


def fill(network):
    state = network.state_dict()
    for key, value in state.items():
        if key.endswith("num_batches_tracked"):
            continue
        # Ours, as the original, has no scale in the norms of Inception-ResNet-v2.
        if key.endswith("bn.weight"):
            state[key] = torch.ones_like(value)
        else:
            state[key] = torch.from_numpy(weight(key, tuple(value.shape)))
    network.load_state_dict(state)
    return network.double().eval()


def named(name):
    return timm.create_model(name, num_classes=0)


CASES = [  # our name, its epsilon, timm's network, height, width
    ("resnet-18", 1e-5, lambda: named("resnetv2_18"), 40, 33),
    ("resnet-50", 1e-5, lambda: named("resnetv2_50"), 64, 64),
    ("resnet-20", 1e-5, lambda: small(3, 16), 16, 13),
    ("wide-resnet-28-2", 1e-5, lambda: small(4, 32), 9, 12),
    ("inception-resnet-v2", 1e-3, lambda: named("inception_resnet_v2"), 90, 75),
]

if __name__ == "__main__":
    cases = []
    for name, epsilon, make, height, width in CASES:
        with torch.no_grad():
            found = fill(make())(torch.from_numpy(images(2, height, width)).double())
        every = [[round(value, 7) for value in row[::16].tolist()] for row in found]
        sizes = {"height": height, "width": width}
        cases.append({"network": name, "epsilon": epsilon, **sizes, "every_16th": every})
    print(json.dumps(cases))
