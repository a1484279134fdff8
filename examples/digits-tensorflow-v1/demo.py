"""Handwritten digits the TensorFlow 1 way: one graph per worker, variables on the ps, asynchronous SGD.

Who a process is comes from the environment: TF_CLUSTER_DEF is a JSON map of role to addresses, TF_ROLE and TF_INDEX
pick one of them. Each worker trains on the CSV files in its own --data_path; worker 0 writes the model (a checkpoint)
and the summaries.
"""

import argparse
import json
import os
import sys
import traceback

import tensorflow.compat.v1 as tf
from dataDeal import Digits

PIXELS, CLASSES, HIDDEN = 64, 10, 64
# A step takes milliseconds. Without a limit a worker would wait for ever for a ps that is gone.
TIMEOUT_MS = 60_000


def build(learning_rate):
    """The graph: inputs, loss, accuracy and one training operation."""
    pixels = tf.placeholder(tf.float32, [None, PIXELS], name="pixels")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    hidden = tf.nn.relu(layer(pixels, PIXELS, HIDDEN, "hidden"))
    scores = layer(hidden, HIDDEN, CLASSES, "output")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), labels), tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)
    return pixels, labels, loss, accuracy, train, step


def layer(inputs, width_in, width_out, name):
    start = tf.truncated_normal_initializer(stddev=width_in**-0.5, seed=1)
    weights = tf.get_variable(f"{name}/weights", [width_in, width_out], initializer=start)
    bias = tf.get_variable(f"{name}/bias", [width_out], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, weights) + bias


def work(options, cluster, server, index):
    """Trains `training_epochs` times over this worker's rows."""
    digits = Digits(options.data_path, seed=index)
    print(f"worker {index}: {len(digits.train[1])} rows to train on, {len(digits.test[1])} held out", flush=True)
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
        pixels, labels, loss, accuracy, train, step = build(options.learning_rate)
        saver = tf.train.Saver()  # made here, it writes on this worker; made outside, it would write on the ps
    session = open_session(server.target, index)
    writer = tf.summary.FileWriter(options.log_dir, session.graph) if index == 0 else None
    for epoch in range(1, options.training_epochs + 1):
        for some_pixels, some_labels in digits.batches(options.batch_size):
            _, cost, steps = session.run([train, loss, step], {pixels: some_pixels, labels: some_labels})
        held_out = session.run(accuracy, {pixels: digits.test[0], labels: digits.test[1]})
        print(f"epoch {epoch}: step {steps}, loss {cost:.4f}, held-out accuracy {held_out:.4f}", flush=True)
        print(f"reporter progress:{epoch / options.training_epochs:.2f}", file=sys.stderr, flush=True)
        if writer:
            summarise(writer, steps, loss=cost, held_out_accuracy=held_out)
    if writer:
        writer.close()
        print("model saved as", saver.save(session, f"{options.save_path}/model.ckpt", steps), flush=True)


def open_session(master, index):
    """A session on the whole cluster; worker 0 sets the variables, the others wait until it has."""
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS, device_filters=["/job:ps", f"/job:worker/task:{index}"])
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=1)
    if index == 0:
        return manager.prepare_session(master, init_op=tf.global_variables_initializer(), config=config)
    return manager.wait_for_session(master, config=config, max_wait_secs=TIMEOUT_MS // 1000)


def summarise(writer, step, **values):
    summary = tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
    writer.add_summary(summary, step)


def leave(status):
    """Ends without closing the session: that asks every ps, and waits for ever for one that is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_path", default="./data")
    parser.add_argument("--save_path", default="./model")
    parser.add_argument("--log_dir", default="./eventLog")
    parser.add_argument("--training_epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    options = parser.parse_args()
    cluster = tf.train.ClusterSpec(json.loads(os.environ["TF_CLUSTER_DEF"]))
    role, index = os.environ["TF_ROLE"], int(os.environ["TF_INDEX"])
    threads = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    server = tf.train.Server(cluster, job_name=role, task_index=index, config=threads)
    if role == "ps":
        print(f"ps {index} serves at {server.target}", flush=True)
        server.join()
    else:
        tf.disable_eager_execution()
        try:
            work(options, cluster, server, index)
        except tf.errors.OpError:
            traceback.print_exc()
            leave(1)
        leave(0)


if __name__ == "__main__":
    main()
