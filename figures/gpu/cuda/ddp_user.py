"""One of two processes that train together, each on a GPU of its own, for
measure.py's `together`: ddp_user.py RANK STEPS PORT.

Prints JSON in the end: `losses`, `digest` of the parameters, `step_ms` (the
median).
"""

import hashlib
import json
import os
import statistics
import sys
import time

rank, steps, port = map(int, sys.argv[1:])
os.environ.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=str(port))

import torch  # noqa: E402
import torch.distributed  # noqa: E402

import mets.torch  # noqa: E402

mets.torch.enable(rank)
torch.use_deterministic_algorithms(True)
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Linear(4096, 8192), torch.nn.ReLU(), torch.nn.Linear(8192, 8192),
    torch.nn.ReLU(), torch.nn.Linear(8192, 10)).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
torch.manual_seed(2 + rank)
losses, seconds = [], []
for _ in range(steps):
    begin = time.monotonic()
    with mets.torch.step():
        x = torch.randn(8192, 4096, device="cuda")
        y = torch.randint(10, (8192,), device="cuda")
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds.append(time.monotonic() - begin)
sha = hashlib.sha256()
for parameter in model.parameters():
    sha.update(parameter.detach().cpu().numpy().tobytes())
torch.distributed.destroy_process_group()
print(json.dumps({"losses": losses, "digest": sha.hexdigest(),
                  "step_ms": 1e3 * statistics.median(seconds)}), flush=True)
