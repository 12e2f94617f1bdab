"""Recorded allocations as tests/benchmarks/compare replays them."""

import lzma

import common

TRACES = ["mets-cnn", "mets-resnet", "mets-lstm", "mets-attention",
          "mets-embedding", "mets-autoencoder", "singa-resnet-cifar100-b128",
          "singa-vgg-cifar-access"]


def calls(name):
    """The lines "+ SLOT BYTES" and "- SLOT BYTES" of a trace, and the most bytes
    that live. A slot is used again after its block has been freed; what is left
    over is freed at the end."""
    path = common.ROOT / f"figures/traces/{name}.csv.xz"
    live_blocks, free, lines, now, most = {}, [], [], 0, 0
    with lzma.open(path, "rt") as file:
        for line in file:
            words = line.split(",")
            if len(words) < 4 or words[1] not in ("malloc", "free"):
                continue
            block, size = words[2], int(words[3])
            if words[1] == "malloc":
                slot = free.pop() if free else len(live_blocks)
                live_blocks[block] = slot, size
                lines.append(f"+ {slot} {size}")
                now += size
                most = max(most, now)
            else:
                slot, size = live_blocks.pop(block)
                free.append(slot)
                lines.append(f"- {slot} {size}")
                now -= size
    lines += [f"- {slot} {size}" for slot, size in live_blocks.values()]
    return "\n".join(lines) + "\n", most
