"""The model and its training on one node; train.py and pipeline.py bring it along (`--py-files digits.py`)."""

import numpy as np

PIXELS, CLASSES = 64, 10
ROWS, BATCH = 1437, 32


def parse(line):
    """Return the pixels, from 0 to 1, and the label of a line of CSV, which begins with the label."""
    numbers = [float(word) for word in line.split(",")]
    return [value / 16 for value in numbers[1:]], int(numbers[0])


def steps(epochs, workers):
    """Return how many steps each worker makes. Workers train in step, and Spark gives one more rows than another: all
    stop when nine tenths of the rows are used."""
    return int(ROWS * epochs * 0.9 / workers / BATCH)


def train(batches, count):
    """Train `count` steps with the other workers, each on the batches of its own; return the model."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.InputLayer((PIXELS,), name="pixels"),
                tf.keras.layers.Dense(64, activation="relu"),
                tf.keras.layers.Dense(CLASSES),
            ]
        )
        model.compile(optimizer=tf.keras.optimizers.Adam(0.01))
        if hasattr(model.optimizer, "build"):  # those of TensorFlow 2.10 are ready
            model.optimizer.build(model.trainable_variables)

    def on_replica(pixels, labels):
        with tf.GradientTape() as tape:
            scores = model(pixels, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
            loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905 - not in 2.10's graphs
        return loss

    @tf.function(reduce_retracing=True)
    def step(pixels, labels):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(on_replica, args=(pixels, labels)), axis=None)

    for number in range(count):
        pixels, labels = next(batches)
        loss = step(tf.constant(np.asarray(pixels, np.float32)), tf.constant(np.asarray(labels, np.int64)))
        if number % 20 == 0:
            print(f"step {number} of {count}: loss {float(loss):.4f}", flush=True)
    return model


def export(model, directory):
    """Write a SavedModel whose signature takes `pixels` and gives `scores`."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, PIXELS), tf.float32, name="pixels")])
    def predict(pixels):
        return {"scores": model(pixels, training=False)}

    tf.saved_model.save(model, directory, signatures={"serving_default": predict})


def accuracy(pairs):
    """Print how many of the pairs of a label and a guess agree, and return 0 if they are nine tenths, else 1."""
    pairs = list(pairs)
    reached = sum(label == guess for label, guess in pairs) / len(pairs)
    print(f"test accuracy {reached:.4f} on {len(pairs)} images", flush=True)
    return 0 if reached >= 0.9 else 1
