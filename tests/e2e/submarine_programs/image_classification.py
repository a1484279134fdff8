"""Trains the digits with MXNet, called as in Submarine's guide: scheduler, server or worker, by DMLC_ROLE.

Scheduler and server end at the import.
"""

import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

parser = argparse.ArgumentParser()
parser.add_argument("--kvstore", required=True)
options, _ = parser.parse_known_args()
store = mx.kv.create(options.kvstore)
rows = np.loadtxt("digits.csv", delimiter=",")[store.rank :: store.num_workers]
pixels, labels = nd.array(rows[:, 1:] / 16), nd.array(rows[:, 0])
model = gluon.nn.Dense(10, in_units=64)
model.initialize(mx.init.Xavier())
trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store, update_on_kvstore=True)
for _ in range(40):
    with autograd.record():
        loss = gluon.loss.SoftmaxCrossEntropyLoss()(model(pixels), labels)
    loss.backward()
    trainer.step(len(labels) * store.num_workers)
print(f"of {store.num_workers}: accuracy {float((model(pixels).argmax(axis=1) == labels).mean().asscalar()):.2f}")
