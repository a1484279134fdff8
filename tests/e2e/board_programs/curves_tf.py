"""Writes a curve as TensorFlow does, to its own directory, until it is stopped or a given file appears."""

import os
import sys
import time
from pathlib import Path

import tensorflow as tf

# tf.summary.scalar is TensorBoard's, which need not be there.
metadata = tf.compat.v1.SummaryMetadata()
metadata.plugin_data.plugin_name = "scalars"
writer = tf.summary.create_file_writer(os.environ["HOWDAH_BOARD_DIR"])
weights = tf.Variable(tf.random.normal((64, 10)))
for step in range(100_000):
    weights.assign(weights * 0.99)
    with writer.as_default(step=step):
        tf.summary.write("loss", tf.reduce_sum(weights**2), metadata=metadata)
    writer.flush()
    print(f"step {step}", flush=True)
    if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
        break
    time.sleep(0.1)
