"""Handwritten digits with PyTorch's DistributedDataParallel, going on after a failure from where it was.

HOWDAH_CHECKPOINT_DIR is a directory that outlives the job; HOWDAH_RESUME_FROM is the newest whole checkpoint in it, and
is not set when there is none yet. Rank 0 writes one after each epoch; all ranks read it.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def read(directory: str) -> TensorDataset:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return TensorDataset(torch.tensor(rows[:, 1:] / 16, dtype=torch.float32), torch.tensor(rows[:, 0]).long())


def classifier() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy(model: nn.Module, test: TensorDataset) -> float:
    pixels, labels = test.tensors
    with torch.no_grad():
        return (model(pixels).argmax(dim=1) == labels).float().mean().item()


def train_epoch(model: DistributedDataParallel, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    total = 0.0
    with Join([model]):  # ranks may have different numbers of rows
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pixels), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
    return total / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this rank trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--fail-after", type=int, default=0, help="end with an error after this epoch, the first time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, model = dist.get_rank(), classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    done = 0
    if "HOWDAH_RESUME_FROM" in os.environ:
        state = torch.load(os.environ["HOWDAH_RESUME_FROM"], weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epoch"]
        print(f"rank {rank} goes on after epoch {done}", flush=True)
    loader = DataLoader(read(options.data), batch_size=32, shuffle=True)
    replica = DistributedDataParallel(model)
    test = read(options.test) if rank == 0 else None
    for epoch in range(done + 1, options.epochs + 1):
        loss = train_epoch(replica, loader, optimizer)
        if test:
            print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracy(model, test):.4f}", flush=True)
            print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, Path(os.environ["HOWDAH_CHECKPOINT_DIR"]) / f"epoch-{epoch}.pt")
            Path(options.model).mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), Path(options.model) / "model.pt")
        if epoch == options.fail_after and os.environ["HOWDAH_EPOCH"] == "1":
            dist.barrier()  # rank 0 has written its checkpoint
            sys.exit(f"rank {rank} fails after epoch {epoch}, as it was asked to")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
