"""Handwritten digits with one graph for all: the chief's client runs it, workers and ps lend it their devices.

Variables are on the ps; each worker has a copy of the model, and computes the gradients of its part of a batch;
the chief feeds all of them, and applies the mean. Nobody else has data or a session.
"""

import argparse
import json
import os
import sys
import traceback

import tensorflow.compat.v1 as tf
from dataDeal import Digits
from demo import CLASSES, HIDDEN, PIXELS, TIMEOUT_MS, layer, leave


def tower(pixels, labels):
    """Scores and loss of the model; the variables of all towers are the same."""
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        scores = layer(tf.nn.relu(layer(pixels, PIXELS, HIDDEN, "hidden")), HIDDEN, CLASSES, "output")
    return scores, tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))


def build(cluster, learning_rate):
    pixels = tf.placeholder(tf.float32, [None, PIXELS])
    labels = tf.placeholder(tf.int64, [None])
    workers = cluster.num_tasks("worker")
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    gradients = []
    for number, part in enumerate(zip(tf.split(pixels, workers), tf.split(labels, workers), strict=True)):
        place = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{number}", cluster=cluster)
        with tf.device(place):
            gradients.append(optimizer.compute_gradients(tower(*part)[1]))
    with tf.device("/job:ps/task:0"):
        means = [
            (tf.add_n([slope for slope, _ in same]) / workers, same[0][1]) for same in zip(*gradients, strict=True)
        ]
        train = optimizer.apply_gradients(means)
    with tf.device("/job:chief/task:0"):
        scores, loss = tower(pixels, labels)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), labels), tf.float32))
        saver = tf.train.Saver()
    return pixels, labels, train, loss, accuracy, saver


def work(options, cluster, server):
    digits = Digits(options.data, seed=0)
    workers = cluster.num_tasks("worker")
    pixels, labels, train, loss, accuracy, saver = build(cluster, options.learning_rate)
    session = tf.Session(server.target, config=tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS))
    session.run(tf.global_variables_initializer())
    for epoch in range(1, options.epochs + 1):
        for batch in digits.batches(options.batch):
            even = len(batch[1]) // workers * workers
            _, cost = session.run([train, loss], {pixels: batch[0][:even], labels: batch[1][:even]})
        reached = session.run(accuracy, {pixels: digits.test[0], labels: digits.test[1]})
        print(f"epoch {epoch}: loss {cost:.4f}, held-out accuracy {reached:.4f}", flush=True)
        print(f"reporter progress:{epoch / options.epochs:.2f}", file=sys.stderr, flush=True)
    print("model saved as", saver.save(session, f"{options.model}/model.ckpt"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="./data")
    parser.add_argument("--model", default="./model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.5)
    options = parser.parse_args()
    cluster = tf.train.ClusterSpec(json.loads(os.environ["TF_CLUSTER_DEF"]))
    role, index = os.environ["TF_ROLE"], int(os.environ["TF_INDEX"])
    threads = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
    server = tf.train.Server(cluster, job_name=role, task_index=index, config=threads)
    if role != "chief":
        print(f"{role} {index} serves at {server.target}", flush=True)
        server.join()
    tf.disable_eager_execution()
    try:
        work(options, cluster, server)
    except tf.errors.OpError:
        traceback.print_exc()
        leave(1)
    leave(0)


if __name__ == "__main__":
    main()
