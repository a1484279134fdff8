"""Handwritten digits with PyTorch's FSDP over gloo: each rank holds a part of every parameter, and its own rows.

Started by torchrun, which tells each process its rank and starts all of them again when one has failed: then they go on
after the last epoch whose checkpoint every rank has written. A step uses as many rows as the rank with the fewest has.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard


def read(directory: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return torch.tensor(rows[:, 1:] / 16, dtype=torch.float32), torch.tensor(rows[:, 0]).long()


def classifier() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def sharded(model: nn.Sequential) -> nn.Sequential:
    """Each layer is gathered when it is used and let go afterwards."""
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer)
    return fully_shard(model)


def accuracy(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return (model(pixels).argmax(dim=1) == labels).float().mean().item()


def agreed(number: int, smallest: dist.ReduceOp.RedOpType) -> int:
    """The smallest number of all ranks'."""
    told = torch.tensor(number)
    dist.all_reduce(told, smallest)
    return int(told)


def epoch_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.rpartition("-")[2])


def keep(epoch: int, parts: dict) -> None:
    """In the working directory, which torchrun finds as it was: this rank's part of the last two epochs. No rank is
    further ahead of another than one epoch."""
    torch.save(parts, "checkpoint.new")
    Path("checkpoint.new").replace(f"checkpoint-{epoch}.pt")
    Path(f"checkpoint-{epoch - 2}.pt").unlink(missing_ok=True)


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, rows: tuple, steps: int, batch: int) -> float:
    """`steps` batches of this rank's rows, in a new order; returns the mean loss."""
    pixels, labels = rows
    order, total = torch.randperm(len(labels)), 0.0
    for step in range(steps):
        mine = order[step * batch : (step + 1) * batch]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pixels[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this rank trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="rows per rank and step")
    parser.add_argument("--learning-rate", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rows, test = read(options.data), read(options.test)
    model = sharded(classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    steps = agreed(len(rows[1]) // options.batch, dist.ReduceOp.MIN)
    last = agreed(max(map(epoch_of, Path().glob("checkpoint-*.pt")), default=0), dist.ReduceOp.MIN)
    if last:
        saved = torch.load(f"checkpoint-{last}.pt", weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    start = os.environ["TORCHELASTIC_RESTART_COUNT"]
    print(f"rank {rank} of {world}, start {start}: {len(rows[1])} rows, from epoch {last + 1}", flush=True)
    for epoch in range(last + 1, options.epochs + 1):
        loss = train_epoch(model, optimizer, rows, steps, options.batch)
        reached = accuracy(model, *test)  # all ranks: it takes every part of the model
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {reached:.4f}", flush=True)
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
        keep(epoch, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    # torchrun deals the ranks, so that the first task need not have rank 0; it is that task whose model is kept.
    if os.environ.get("HOWDAH_RANK", "0") == "0" and os.environ["LOCAL_RANK"] == "0":
        Path(options.model).mkdir(parents=True, exist_ok=True)
        torch.save(whole, Path(options.model) / "model.pt")
        print(f"model saved in {options.model}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
