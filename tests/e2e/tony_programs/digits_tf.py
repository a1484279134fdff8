"""Trains the digits as TonY's TensorFlow example does: a graph per worker, parameter servers, CLUSTER_SPEC."""

import json
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
ROLE, INDEX = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
cluster = tf.train.ClusterSpec(json.loads(os.environ["CLUSTER_SPEC"]))
config = json.loads(os.environ["TF_CONFIG"])
assert config["task"] == {"type": ROLE, "index": INDEX}
assert set(config["cluster"]) == {"worker", "ps"}
server = tf.distribute.Server(cluster, job_name=ROLE, task_index=INDEX)
if ROLE == "ps":
    server.join()
rows = np.loadtxt("digits.csv", delimiter=",", dtype=np.float32)[INDEX :: int(os.environ["TASK_NUM"])]
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{INDEX}", cluster=cluster)):
    pixels, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    weights, bias = tf.get_variable("w", [64, 10]), tf.get_variable("b", [10])
    logits = tf.matmul(pixels, weights) + bias
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
batch = {pixels: rows[:, 1:] / 16.0, labels: rows[:, 0].astype(np.int64)}
# A session manager that looks every second: MonitoredTrainingSession's looks every 30 s whether the chief is ready.
manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=1)
# Without filters it waits for all others, too, and for good when one of them has done its part and gone.
config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{INDEX}"])
if os.environ.get("IS_CHIEF") == "true":
    session = manager.prepare_session(server.target, init_op=tf.global_variables_initializer(), config=config)
else:
    session = manager.wait_for_session(server.target, config=config, max_wait_secs=60)
for _ in range(int(sys.argv[sys.argv.index("--steps") + 1])):
    session.run(train, batch)
print(f"{ROLE}:{INDEX} accuracy {session.run(right, batch):.2f} TB_PORT {os.environ.get('TB_PORT')}")
