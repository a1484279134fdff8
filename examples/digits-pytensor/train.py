"""Handwritten digits with PyTensor, as which Theano lives on: a small network, trained by several tasks together.

There is no framework between them: who the others are is in HOWDAH_RANK, HOWDAH_PORT and HOWDAH_WORLD, which every task
gets. Each works out the gradients of its own rows; worker 0 adds them up and tells everybody.
"""

import argparse
import json
import os
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt

HIDDEN, RATE, LIMIT_S = 32, 1.0, 120


def read(directory: str) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return rows[:, 1:] / 16, rows[:, 0].astype("int64")


class Peers:
    """The others: worker 0 has a connection to each, each of them one to worker 0."""

    def __init__(self) -> None:
        workers = json.loads(os.environ["HOWDAH_WORLD"])["roles"]["worker"]
        self.rank, first = int(os.environ["HOWDAH_RANK"]), (workers[0]["host"], workers[0]["ports"]["main"])
        if self.rank == 0:
            with socket.create_server(("", int(os.environ["HOWDAH_PORT"]))) as listener:
                listener.settimeout(LIMIT_S)
                self.others = [listener.accept()[0] for _ in workers[1:]]
        else:
            self.others = [_called(first)]
        for other in self.others:
            other.settimeout(LIMIT_S)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Of everybody's values, the same for all."""
        if self.rank:
            self.others[0].sendall(values.tobytes())
            return _received(self.others[0], values)
        total = values + sum(_received(other, values) for other in self.others)
        for other in self.others:
            other.sendall(total.tobytes())
        return total


def _called(address: tuple[str, int]) -> socket.socket:
    """All are started together, but worker 0 may not listen yet."""
    for _ in range(LIMIT_S * 5):
        try:
            return socket.create_connection(address, timeout=LIMIT_S)
        except ConnectionRefusedError:
            time.sleep(0.2)
    raise TimeoutError(f"worker 0 does not listen at {address}")


def _received(other: socket.socket, like: np.ndarray) -> np.ndarray:
    data = b""
    while len(data) < like.nbytes:
        piece = other.recv(like.nbytes - len(data))
        if not piece:
            raise ConnectionError("a peer is gone")
        data += piece
    return np.frombuffer(data, like.dtype)


def network() -> tuple[list, "pytensor.compile.function.types.Function"]:
    """Its weights, and what works out loss and gradients."""
    chance = np.random.default_rng(1)  # everybody begins with the same
    shapes = [(64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
    weights = [pytensor.shared(chance.normal(0, 0.1, shape) if len(shape) > 1 else np.zeros(shape)) for shape in shapes]
    pixels, labels = pt.dmatrix("pixels"), pt.lvector("labels")
    hidden = pt.tanh(pixels @ weights[0] + weights[1])
    chances = pt.special.log_softmax(hidden @ weights[2] + weights[3], axis=1)
    loss = -chances[pt.arange(labels.shape[0]), labels].mean()
    return weights, pytensor.function([pixels, labels], [loss, *pytensor.grad(loss, weights)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=200)
    options = parser.parse_args()
    peers, (weights, gradients) = Peers(), network()
    pixels, labels = read("data")
    count = peers.sum(np.array([float(len(labels))]))[0]
    for epoch in range(1, options.epochs + 1):
        found = gradients(pixels, labels)
        flat = np.concatenate([np.ravel(each) for each in found]) * len(labels) / count
        loss, *steps = np.split(peers.sum(flat), np.cumsum([np.size(each) for each in found])[:-1])
        for weight, step in zip(weights, steps, strict=True):
            before = weight.get_value()
            weight.set_value(before - RATE * step.reshape(before.shape))
        if epoch % 20 == 0:
            print(f"epoch {epoch}: loss {loss[0]:.4f}", flush=True)
            print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    if peers.rank == 0:
        Path("model").mkdir()
        np.savez("model/model.npz", *[weight.get_value() for weight in weights])


if __name__ == "__main__":
    main()
