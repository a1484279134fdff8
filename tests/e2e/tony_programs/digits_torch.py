"""Trains the digits as TonY's PyTorch example does: a process group from INIT_METHOD, RANK and WORLD."""

import gc
import os

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD"])
dist.init_process_group("gloo", init_method=os.environ["INIT_METHOD"], rank=rank, world_size=world)
rows = torch.from_numpy(np.loadtxt("digits.csv", delimiter=",", dtype=np.float32))[rank::world]
model = DistributedDataParallel(torch.nn.Linear(64, 10))
optimiser = torch.optim.Adam(model.parameters(), 0.05)
for _ in range(60):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(model(rows[:, 1:] / 16), rows[:, 0].long()).backward()
    optimiser.step()
right = (model(rows[:, 1:] / 16).argmax(1) == rows[:, 0]).float().mean()
dist.all_reduce(right)
print(f"rank {rank} of {world}: accuracy {right.item() / world:.2f}")
# The model holds the group, too: its threads must end before the interpreter does, or one of them may abort it.
del model
gc.collect()
dist.destroy_process_group()
