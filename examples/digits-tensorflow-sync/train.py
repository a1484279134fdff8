"""Handwritten digits with synchronous replicas: a graph per worker, and one step when every worker has had a batch.

SyncReplicasOptimizer collects the workers' gradients on the ps and hands out a token to each when they are applied. All
workers therefore make the same number of steps, whatever rows they have; worker 0 leads, and writes the model.
"""

import argparse
import json
import os
import sys
import time
import traceback

import tensorflow.compat.v1 as tf
from dataDeal import Digits
from demo import CLASSES, HIDDEN, PIXELS, TIMEOUT_MS, layer, leave


def endless(digits: Digits, size: int):
    while True:
        yield from digits.batches(size)


def work(options, cluster, server, index):
    digits = Digits(options.data, seed=index)
    workers = cluster.num_tasks("worker")
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
        pixels = tf.placeholder(tf.float32, [None, PIXELS])
        labels = tf.placeholder(tf.int64, [None])
        scores = layer(tf.nn.relu(layer(pixels, PIXELS, HIDDEN, "hidden")), HIDDEN, CLASSES, "output")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), labels), tf.float32))
        step = tf.train.get_or_create_global_step()
        plain = tf.train.GradientDescentOptimizer(options.learning_rate)
        together = tf.train.SyncReplicasOptimizer(plain, replicas_to_aggregate=workers, total_num_replicas=workers)
        train = together.minimize(loss, global_step=step)
        saver = tf.train.Saver()
        # Workers count themselves here when they are ready, and when they are done.
        ready, done = (tf.get_variable(name, [], tf.int32, tf.zeros_initializer()) for name in ("ready", "done"))
        am_ready, am_done = ready.assign_add(1), done.assign_add(1)
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS, device_filters=["/job:ps", f"/job:worker/task:{index}"])
    session = open_session(server.target, together, config, leads=index == 0)
    session.run(am_ready)
    wait_for(session, ready, workers)
    rows, batches, at = endless(digits, options.batch), 0, 0
    while at < options.steps:
        batch = next(rows)
        _, cost, at = session.run([train, loss, step], {pixels: batch[0], labels: batch[1]})
        batches += 1
        if batches % 100 == 0:
            print(f"worker {index}: {batches} batches, step {at}, loss {cost:.4f}", flush=True)
            print(f"reporter progress:{min(1.0, at / options.steps):.2f}", file=sys.stderr, flush=True)
    reached = session.run(accuracy, {pixels: digits.test[0], labels: digits.test[1]})
    print(f"worker {index}: {batches} batches for {at} steps, held-out accuracy {reached:.4f}", flush=True)
    session.run(am_done)
    if index == 0:
        print("model saved as", saver.save(session, f"{options.model}/model.ckpt", at), flush=True)
        wait_for(session, done, workers)  # its threads apply the gradients, and hand out the tokens


def open_session(master, together, config, leads):
    """Worker 0 sets the variables, applies what is collected and hands out the first tokens; the others wait."""
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=together.ready_for_local_init_op,
        local_init_op=together.chief_init_op if leads else together.local_step_init_op,
        recovery_wait_secs=1,
    )
    if not leads:
        return manager.wait_for_session(master, config=config, max_wait_secs=TIMEOUT_MS // 1000)
    tokens = together.get_init_tokens_op()
    session = manager.prepare_session(master, init_op=tf.global_variables_initializer(), config=config)
    together.get_chief_queue_runner().create_threads(session, daemon=True, start=True)
    session.run(tokens)
    return session


def wait_for(session, counter, workers):
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while session.run(counter) < workers and time.monotonic() < deadline:
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="./data")
    parser.add_argument("--model", default="./model")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    options = parser.parse_args()
    cluster = tf.train.ClusterSpec(json.loads(os.environ["TF_CLUSTER_DEF"]))
    role, index = os.environ["TF_ROLE"], int(os.environ["TF_INDEX"])
    threads = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
    server = tf.train.Server(cluster, job_name=role, task_index=index, config=threads)
    if role == "ps":
        print(f"ps {index} serves at {server.target}", flush=True)
        server.join()
    tf.disable_eager_execution()
    try:
        work(options, cluster, server, index)
    except tf.errors.OpError:
        traceback.print_exc()
        leave(1)
    leave(0)


if __name__ == "__main__":
    main()
