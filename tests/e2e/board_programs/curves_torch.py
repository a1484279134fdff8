"""Trains with DistributedDataParallel until a given file appears; reports its loss and writes it as an event file."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from tensorboardX import SummaryWriter

from howdah import program

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
writer = SummaryWriter(os.environ["HOWDAH_BOARD_DIR"]) if dist.get_rank() == 0 else None
stop = torch.zeros(1)
step = 0
while not stop:
    x = torch.randn(64, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    if writer is not None:
        writer.add_scalar("train/loss", loss.item(), step)
        writer.flush()
    program.metric("own/loss", loss.item(), step=step)
    stop += Path(sys.argv[1]).exists()
    dist.all_reduce(stop)  # all end after the same step
    step += 1
    time.sleep(0.2)
dist.destroy_process_group()
