"""Handwritten digits by a Python function that several tasks call: `python train.py [ENGINE]`.

Each task trains on its share of the files, with PyTorch's DistributedDataParallel; what the first one returns comes
back to this program. PyTorch is in the tasks' environment alone, so the function imports it itself.
"""

import os
import sys
from pathlib import Path

import howdah

EXAMPLES = Path(__file__).resolve().parents[1]
DATA = os.environ.get("DIGITS_DATA") or EXAMPLES / "data" / "digits"  # on a cluster hdfs:///data/digits
LEAST = 0.9


def train(epochs, learning_rate):
    import numpy
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel

    def read(directory):
        rows = numpy.concatenate(
            [numpy.loadtxt(path, delimiter=",", ndmin=2) for path in Path(directory).glob("*.csv")]
        )
        return torch.tensor(rows[:, 1:] / 16, dtype=torch.float32), torch.tensor(rows[:, 0]).long()

    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    pixels, labels = read("data")
    for epoch in range(epochs):
        with Join([model]):  # tasks may have different numbers of rows
            for rows in torch.randperm(len(labels)).split(32):
                loss = nn.functional.cross_entropy(model(pixels[rows]), labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()
    pixels, labels = read("test")
    return (model.module(pixels).argmax(1) == labels).float().mean().item()


def main(engine=""):
    reached = howdah.run(
        train,
        10,
        0.005,
        on=engine,
        replicas=2,
        memory="2GiB",
        framework="pytorch",
        environment={"requirements": str(EXAMPLES / "digits-pytorch" / "requirements.lock")},
        inputs=[{"path": f"{DATA}/train", "to": "data"}, {"path": f"{DATA}/test", "to": "test", "share": "all"}],
    )
    print(f"test accuracy {reached:.4f}")
    return 0 if reached >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
