"""A user of a GPU, for measure.py's `stale`.

Reads numbers: takes so many fresh buffers of 8 MiB, answers "BUFFERS BYTES" with
the bytes among them that are not zero, fills all, and frees them.
"""

import sys

import mets.torch

mets.torch.enable(required=True)
import torch  # noqa: E402  (after METS, before anything is on the GPU)


def use(count):
    with mets.torch.step():
        buffers = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
                   for _ in range(count)]
        found = sum(int(torch.count_nonzero(buffer)) for buffer in buffers)
        for buffer in buffers:
            buffer.fill_(0xA5)
        torch.cuda.synchronize()
        del buffers
    return found


for line in sys.stdin:
    wanted = int(line)
    print(wanted, use(wanted), flush=True)
