"""A user of a GPU, for measure.py's `stale`: stale_user.py BYTE.

Reads numbers: takes so many fresh buffers of 8 MiB, answers "BUFFERS BYTES OWN"
with the bytes among them that are neither zero nor BYTE, and those that are
BYTE: what it had before may come back to it. Then it fills all with BYTE, and
frees them.
"""

import sys

import mets.torch

mets.torch.enable(required=True)
import torch  # noqa: E402  (after METS, before anything is on the GPU)


def use(count):
    with mets.torch.step():
        buffers = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
                   for _ in range(count)]
        own = sum(int((buffer == VALUE).sum()) for buffer in buffers)
        found = sum(int(torch.count_nonzero(buffer)) for buffer in buffers)
        for buffer in buffers:
            buffer.fill_(VALUE)
        torch.cuda.synchronize()
        del buffers
    return found - own, own


VALUE = int(sys.argv[1])
for line in sys.stdin:
    wanted = int(line)
    print(wanted, *use(wanted), flush=True)
