"""A PyTorch training that shares its GPU through METS.

    metsd --device cuda:0 --swap-space 64GiB &
    metsctl run --job first -- python torch_training.py &
    metsctl run --job second -- python torch_training.py &
    metsctl jobs

Two lines make an ordinary program one that takes turns: `enable` before
anything is on the GPU, and `step` around what computes there. Without metsd, or with
METS_DISABLE=1, it is an ordinary program again.
"""

import argparse

import mets.torch
import torch
from torch import nn
from torch.nn import functional


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--width", type=int, default=8192)
    arguments = parser.parse_args()

    mets.torch.enable()
    torch.manual_seed(0)
    gpu = torch.device("cuda")
    width = arguments.width
    with mets.torch.step():
        model = nn.Sequential(nn.Linear(256, width), nn.GELU(),
                              nn.Linear(width, width), nn.GELU(),
                              nn.Linear(width, 10)).to(gpu)
        optimizer = torch.optim.AdamW(model.parameters())
    for i in range(arguments.steps):
        inputs = torch.randn(arguments.batch, 256)  # The CPU's work: no step.
        labels = (inputs.sum(dim=1) > 0).long()
        with mets.torch.step():
            loss = functional.cross_entropy(model(inputs.to(gpu)),
                                            labels.to(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 20 == 0:
                print(f"step {i}: loss {loss.item():.4f}", flush=True)
    print(mets.torch.stats())


if __name__ == "__main__":
    main()
