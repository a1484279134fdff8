"""Handwritten digits with PyTorch's DistributedDataParallel over gloo: gradients are averaged.

Every rank holds the model; MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE say who a process is. Each rank reads the CSV
files in its own --data directory; ranks may have different numbers of rows. Rank 0 tests after each epoch, and saves
the model.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from tensorboardX import SummaryWriter
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def read(directory: str) -> TensorDataset:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return TensorDataset(torch.tensor(rows[:, 1:] / 16, dtype=torch.float32), torch.tensor(rows[:, 0]).long())


def classifier() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train_epoch(model: DistributedDataParallel, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    """One pass over this rank's rows; returns the mean loss.

    Join lets a rank that is through answer for the others' gradients until the last one is: without it, a rank with
    fewer rows would leave the rest waiting.
    """
    total = 0.0
    with Join([model]):
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pixels), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
    return total / len(loader.dataset)


def accuracy(model: nn.Module, test: TensorDataset) -> float:
    pixels, labels = test.tensors
    with torch.no_grad():
        return (model(pixels).argmax(dim=1) == labels).float().mean().item()


def told(board: SummaryWriter, epoch: int, model: nn.Module, scalars: dict[str, float]) -> None:
    """Writes what the job's page and TensorBoard draw."""
    for tag, value in scalars.items():
        board.add_scalar(tag, value, epoch)
    for name, weights in model.named_parameters():
        board.add_histogram(name, weights.detach().numpy(), epoch)
    board.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this rank trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that rank 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument(
        "--board", default=os.environ.get("HOWDAH_BOARD_DIR", "board"), help="directory for event files"
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="rows per rank and step")
    parser.add_argument("--learning-rate", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo")  # env:// is the default: the four variables above
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = read(options.data)
    print(f"rank {rank} of {world}: {len(mine)} rows", flush=True)
    loader = DataLoader(mine, batch_size=options.batch, shuffle=True)
    model = DistributedDataParallel(classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    test = read(options.test) if rank == 0 else None
    board = SummaryWriter(options.board) if rank == 0 else None
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, loader, optimizer)
        tested = accuracy(model.module, test) if test else 0.0
        print(f"epoch {epoch}: loss {loss:.4f}" + (f", test accuracy {tested:.4f}" if test else ""), flush=True)
        if board:
            told(board, epoch, model.module, {"loss": loss, "test_accuracy": tested})
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    if rank == 0:
        Path(options.model).mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), Path(options.model) / "model.pt")
        print(f"model saved in {options.model}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
