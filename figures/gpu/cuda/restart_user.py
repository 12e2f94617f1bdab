"""A user of a GPU, for measure.py's `restart`: restart_user.py NUMBER COUNT BYTES.

Takes COUNT tensors of BYTES each, fills them with values of its own and prints
"ready". For each line on stdin it prints how many 4-byte words are not what was
written.
"""

import sys

import mets.torch

mets.torch.enable(required=True)
import torch  # noqa: E402  (after METS, before anything is on the GPU)

number, count, size = map(int, sys.argv[1:])
with mets.torch.step():
    tensors = [torch.full((size // 4,), number * count + i, dtype=torch.int32,
                          device="cuda") for i in range(count)]
    torch.cuda.synchronize()
print("ready", flush=True)
for _ in sys.stdin:
    with mets.torch.step():
        wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        for i, tensor in enumerate(tensors):
            wrong += torch.count_nonzero(tensor != number * count + i)
        print(int(wrong), flush=True)
