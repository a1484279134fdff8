"""Trains the digits with parameter servers, as Submarine's users did: the `master` of TF_CONFIG is the chief."""

import json
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
CONFIG = json.loads(os.environ["TF_CONFIG"])
ROLE, INDEX = CONFIG["task"]["type"], CONFIG["task"]["index"]
assert set(CONFIG["cluster"]) == {"master", "worker", "ps"}
assert CONFIG["environment"] == "cloud"
KINDS = {"master": "PRIMARY_WORKER", "worker": "WORKER", "ps": "PS"}
assert (os.environ["_TASK_TYPE"], os.environ["_TASK_INDEX"]) == (KINDS[ROLE], str(INDEX))
cluster = tf.train.ClusterSpec(CONFIG["cluster"])
server = tf.distribute.Server(cluster, job_name=ROLE, task_index=INDEX)
if ROLE == "ps":
    server.join()
rows = np.loadtxt(sys.argv[1], delimiter=",", dtype=np.float32)[("master", "worker").index(ROLE) :: 2]
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:{ROLE}/task:{INDEX}", cluster=cluster)):
    pixels, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    weights, bias = tf.get_variable("w", [64, 10]), tf.get_variable("b", [10])
    logits = tf.matmul(pixels, weights) + bias
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
batch = {pixels: rows[:, 1:] / 16.0, labels: rows[:, 0].astype(np.int64)}
manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=1)
# Without filters it waits for all others, too, and for good when one of them has done its part and gone.
config = tf.ConfigProto(device_filters=["/job:ps", f"/job:{ROLE}/task:{INDEX}"])
if ROLE == "master":
    session = manager.prepare_session(server.target, init_op=tf.global_variables_initializer(), config=config)
else:
    session = manager.wait_for_session(server.target, config=config, max_wait_secs=60)
for _ in range(150):
    session.run(train, batch)
print(f"{ROLE}:{INDEX} accuracy {session.run(right, batch):.2f}, checkpoints in {sys.argv[2]}")
