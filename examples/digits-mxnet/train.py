"""Handwritten digits with MXNet and a parameter server: gradients are summed there, and the weights kept.

Scheduler, server and workers are told by DMLC_ROLE who they are; a server serves as soon as MXNet is imported, and goes
no further. Each worker reads the CSV files in its own --data directory. Worker 0, by DMLC_WORKER_ID, tests after each
epoch and saves the model: MXNet's own ranks are dealt out in another order with each run.
"""

import argparse
import os
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd


def read(directory: str) -> tuple[nd.NDArray, nd.NDArray]:
    rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path(directory).glob("*.csv"))])
    return nd.array(rows[:, 1:] / 16), nd.array(rows[:, 0])


def classifier() -> gluon.nn.HybridSequential:
    model = gluon.nn.HybridSequential(prefix="digits_")
    model.add(gluon.nn.Dense(64, in_units=64, activation="relu"), gluon.nn.Dense(10, in_units=64))
    return model


def accuracy(model: gluon.nn.HybridSequential, pixels: nd.NDArray, labels: nd.NDArray) -> float:
    return float((model(pixels).argmax(axis=1) == labels).mean().asscalar())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="directory with the CSV files this worker trains on")
    parser.add_argument("--test", default="test", help="directory with the CSV files that worker 0 tests on")
    parser.add_argument("--model", default="model", help="directory for the saved model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16, help="rows per worker and step")
    parser.add_argument("--steps", type=int, default=45, help="steps per epoch, the same on each worker")
    parser.add_argument("--learning-rate", type=float, default=0.2)
    options = parser.parse_args()
    store = mx.kv.create("dist_sync")
    pixels, labels = read(options.data)
    worker = int(os.environ["DMLC_WORKER_ID"])
    print(f"worker {worker} of {store.num_workers}: {len(labels)} rows", flush=True)
    model, loss = classifier(), gluon.loss.SoftmaxCrossEntropyLoss()
    mx.random.seed(1)
    model.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(
        model.collect_params(), "sgd", {"learning_rate": options.learning_rate}, kvstore=store, update_on_kvstore=True
    )
    test = read(options.test) if worker == 0 else None
    order = np.random.default_rng(worker)
    for epoch in range(1, options.epochs + 1):
        for _ in range(options.steps):  # a worker short of rows takes some twice: the others wait for its gradient
            mine = nd.array(order.choice(len(labels), options.batch, replace=False))
            with autograd.record():
                value = loss(model(pixels[mine]), labels[mine])
            value.backward()
            trainer.step(options.batch * store.num_workers)
        tested = f", test accuracy {accuracy(model, *test):.4f}" if test else ""
        print(f"epoch {epoch}: loss {value.mean().asscalar():.4f}{tested}", flush=True)
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    if worker == 0:
        Path(options.model).mkdir(parents=True, exist_ok=True)
        model.save_parameters(str(Path(options.model) / "model.params"))
        print(f"model saved in {options.model}", flush=True)


if __name__ == "__main__":
    main()
