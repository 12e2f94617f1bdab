"""One ResNet-50 training on synthetic images, with and without METS.

Writes a JSON object to --out: `losses` and `step_seconds` of the measured
steps, `seconds` of all of them, `begin` and `end` (seconds since 1970),
`sha256` of all parameters and buffers of the model afterwards, `peak_bytes` and
`persistent_bytes` (live between steps) and, with --mets, `mets`, what
mets.torch.stats() says at the end, and `mets_steps`, how much of some counters
each step added. Equal arguments give equal bits.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # Deterministic.

import torch
from torch import nn
from torch.nn import functional

CLASSES = 1000
SMALL_BATCH = 8
COUNTERS = ("allocations_total", "cache_hits_total", "acquires_total",
            "waits_total", "wait_ns_total", "evicted_bytes_total",
            "restored_bytes_total")  # Of mets.torch.Stats.


def conv_norm(inputs, outputs, size, stride=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
            nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *conv_norm(inputs, width, 1), nn.ReLU(inplace=True),
            *conv_norm(width, width, 3, stride), nn.ReLU(inplace=True),
            *conv_norm(width, outputs, 1))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                *conv_norm(inputs, outputs, 1, stride))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet50():
    layers = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2),
                                  (512, 3, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(inputs, CLASSES))


class Training:
    """Model, optimizer and one batch on the GPU."""

    def __init__(self, arguments):
        torch.manual_seed(arguments.seed)
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        gpu = torch.device("cuda")
        layout = torch.channels_last
        self.bf16 = arguments.dtype == "bf16"
        self.model = resnet50().to(gpu, memory_format=layout)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01,
                                         momentum=0.9)
        self.images = torch.randn(arguments.batch, 3, 224, 224,
                                  device=gpu).to(memory_format=layout)
        self.labels = torch.randint(0, CLASSES, (arguments.batch,), device=gpu)
        self.ballast = [torch.ones(1 << 27, device=gpu)  # 0.5 GiB
                        for _ in range(round(arguments.ballast * 2))]

    def step(self, count=None):
        """Trains with the first `count` images; returns the loss on the GPU."""
        with torch.autocast("cuda", torch.bfloat16, enabled=self.bf16):
            loss = functional.cross_entropy(self.model(self.images[:count]),
                                            self.labels[:count])
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for tensor in self.ballast:
            tensor.mul_(1 + 1e-3 * loss.detach())
        return loss.detach()

    def sha256(self):
        digest = hashlib.sha256()
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            digest.update(tensor.detach().cpu().contiguous().view(-1)
                          .view(torch.uint8).numpy().tobytes())
        for tensor in self.ballast:
            bits = tensor.view(torch.int32).sum(dtype=torch.int64)
            digest.update(str(bits.item()).encode())
        return digest.hexdigest()


def meet(folder, name, parties, step, seconds=120):
    """Waits until `parties` processes have come to the point of this name.

    It waits at the gate again and again: what a process holds that waits
    elsewhere does not leave, and the others may need it to get here.
    """
    pathlib.Path(folder, f"{name}-{os.getpid()}").touch()
    end = time.monotonic() + seconds
    while len(list(pathlib.Path(folder).glob(f"{name}-*"))) < parties:
        if time.monotonic() > end:
            sys.exit(f"the others did not come within {seconds} s")
        with step():
            pass
        time.sleep(0.02)


def memory(mets_torch):
    """(peak, persistent) bytes, between two steps."""
    if mets_torch is None:
        return torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    stats = mets_torch.stats()
    return stats.peak_live_bytes, stats.live_bytes


def train(arguments, mets_torch):
    step = mets_torch.step if mets_torch else contextlib.nullcontext
    with step():
        training = Training(arguments)
        training.step(SMALL_BATCH)  # Now there is the optimizer's state.
    computing = []
    for _ in range(arguments.warmup):
        with step():
            begin = time.monotonic()
            training.step().item()
            computing.append(time.monotonic() - begin)
    input_seconds = arguments.input_seconds
    if arguments.input_work:
        part = arguments.input_work
        input_seconds = min(computing) * part / (1 - part)
    if arguments.meet:
        meet(arguments.meet, "ready", arguments.parties, step)

    losses, step_seconds, counts = [], [], []
    begin, start = time.time(), time.monotonic()
    before = start
    for i in range(arguments.steps):
        time.sleep(input_seconds)
        with step():
            loss = training.step()
        losses.append(loss.item())
        now = time.monotonic()
        step_seconds.append(now - before)
        before = now
        if mets_torch:
            counts.append(mets_torch.stats())
        print(f"step {i} {step_seconds[-1]:.3f} s loss {losses[-1]:.6f}",
              flush=True)
    result = {"begin": begin, "end": time.time(),
              "seconds": time.monotonic() - start, "losses": losses,
              "step_seconds": step_seconds, "computing_seconds": min(computing),
              "input_seconds": input_seconds}
    del loss
    result["peak_bytes"], result["persistent_bytes"] = memory(mets_torch)
    if arguments.meet_again:  # Nobody is to end while another one is timed.
        meet(arguments.meet, "done", arguments.parties, step)
    with step():
        result["sha256"] = training.sha256()
    if mets_torch:
        result["mets"] = dataclasses.asdict(mets_torch.stats())
        result["mets_steps"] = {
            name: [getattr(b, name) - getattr(a, name)
                   for a, b in zip(counts, counts[1:])] for name in COUNTERS}
    return result


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=1200)
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20, help="measured ones")
    parser.add_argument("--warmup", type=int, default=3,
                        help="steps before, at least one")
    parser.add_argument("--ballast", type=float, default=0, metavar="GIB",
                        help="parameters that each step updates, beside the "
                        "model's")
    parser.add_argument("--input-work", type=float, default=0, metavar="PART",
                        help="part of the time, as a step takes it alone, that "
                        "passes asleep before each step")
    parser.add_argument("--input-seconds", type=float, default=0,
                        help="the same in seconds a step")
    parser.add_argument("--meet", metavar="DIR",
                        help="begin to measure when --parties are there")
    parser.add_argument("--meet-again", action="store_true",
                        help="and again behind what is measured: not where "
                        "quanta are given, which this would keep alive")
    parser.add_argument("--parties", type=int, default=1)
    parser.add_argument("--mets", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = parse()
    mets_torch = None
    if arguments.mets:
        import mets.torch as mets_torch
        mets_torch.enable(required=True)
    result = json.dumps(train(arguments, mets_torch))
    if arguments.out:
        arguments.out.write_text(result + "\n", encoding="utf-8")
    else:
        print(result)


if __name__ == "__main__":
    main()
