"""Trains the digits as TonY's Keras example does: MultiWorkerMirroredStrategy reads TonY's TF_CONFIG."""

import argparse
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--working-dir", required=True)
options = parser.parse_args()
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rows = np.loadtxt("digits.csv", delimiter=",", dtype=np.float32)
data = tf.data.Dataset.from_tensor_slices((rows[:, 1:] / 16, rows[:, 0].astype(np.int64))).repeat().batch(64)
with strategy.scope():
    weights, bias = tf.Variable(tf.zeros([64, 10])), tf.Variable(tf.zeros([10]))


@tf.function
def step(pixels, labels):
    def on_replica(pixels, labels):
        with tf.GradientTape() as tape:
            logits = tf.matmul(pixels, weights) + bias
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))
        context = tf.distribute.get_replica_context()
        gradients = tape.gradient(loss, [weights, bias])
        for variable, gradient in zip([weights, bias], context.all_reduce("MEAN", gradients), strict=True):
            variable.assign_sub(0.5 * gradient)
        return loss

    return strategy.reduce("MEAN", strategy.run(on_replica, args=(pixels, labels)), axis=None)


for pixels, labels in data.take(60):
    loss = step(pixels, labels)
print(f"{strategy.num_replicas_in_sync} replicas, loss {float(loss):.2f}", flush=True)
if os.environ.get("IS_CHIEF") == "true":
    Path(options.working_dir).mkdir()
    np.save(Path(options.working_dir) / "weights.npy", weights.numpy())
