"""Uses tensorflowonspark as its users do, but for TensorFlow itself; run by spark-submit with a directory."""

import json
import os
import socket
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext
from tensorflowonspark import TFCluster, TFNode, TFParallel, TFSparkNode, dfutil


def describe(args, ctx):
    config = json.loads(os.environ["TF_CONFIG"]) if "TF_CONFIG" in os.environ else {"task": None}
    node = [ctx.job_name, ctx.task_index, ctx.executor_id]
    assert len(ctx.cluster_spec[ctx.job_name]) > ctx.task_index
    assert ctx.num_workers == 3
    while ctx.job_name != "ps" and not Path(args[2], "node-0").exists():  # a ps ends with the others
        time.sleep(0.1)
    found = {"node": node, "task": config["task"], "argv": sys.argv}
    Path(args[2], f"node-{ctx.executor_id}").write_text(json.dumps(found))


def add(args, ctx):
    feed, total = TFNode.DataFeed(ctx.mgr), 0
    while not feed.should_stop():
        total += sum(feed.next_batch(30))
    Path(args["directory"], f"sum-{ctx.executor_id}").write_text(str(total))


def take(args, ctx):
    feed, taken, queue = ctx.get_data_feed(), [], ctx.mgr.get_queue("input")
    while len(taken) < 100 and (row := queue.get()) is not None:
        taken.append(row)
        queue.task_done()
    feed.terminate()
    Path(args, f"taken-{ctx.executor_id}").write_text(str(len(taken)))


def place(args, ctx):
    while ctx.job_name == "ps":
        time.sleep(600)
    Path(args, "log").mkdir(exist_ok=True)
    while not Path(args, "seen").exists():  # TensorBoard starts meanwhile
        time.sleep(0.2)


def square(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_batch(7)
        if batch:
            feed.batch_results([number * number for number in batch])


def write(args, ctx):
    Path(args.directory, f"parallel-{ctx.executor_id}").write_text("here")


def fail(args, ctx):
    raise ValueError("broken on purpose")


class Arguments:
    def __init__(self, directory):
        self.directory = directory


def main(directory):
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext
    said = {}
    cluster = TFCluster.run(sc, describe, ["program", "--flag", directory], 4, 1, master_node="chief")
    assert len(cluster.cluster_info) == 4
    cluster.shutdown()
    found = [json.loads(path.read_text()) for path in sorted(Path(directory).glob("node-*"))]
    said["nodes"], said["tf_config"] = [each["node"] for each in found], found[1]["task"]
    said["argv"] = found[0]["argv"][:2]

    cluster = TFCluster.run(sc, add, {"directory": directory}, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(sc.parallelize(range(100), 4), 10)
    info, meta = cluster.cluster_info, cluster.cluster_meta
    sc.parallelize(range(10), 2).foreachPartition(TFSparkNode.train(info, meta))
    sc.parallelize(range(2), 2).foreachPartition(TFSparkNode.shutdown(info))
    cluster.shutdown(grace_secs=0)
    said["sums"] = [int(path.read_text()) for path in Path(directory).glob("sum-*")]

    cluster = TFCluster.run(sc, square, None, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    said["inferred"] = cluster.inference(sc.parallelize(range(100), 3)).collect()
    again = sc.parallelize(range(100), 3).mapPartitions(TFSparkNode.inference(cluster.cluster_info)).collect()
    assert again == said["inferred"], again
    cluster.shutdown()

    cluster = TFCluster.run(sc, take, directory, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    ssc = StreamingContext(sc, 1)
    cluster.train(ssc.queueStream([sc.parallelize(range(100), 4)] * 60))
    ssc.start()
    cluster.shutdown(ssc)
    said["taken"] = [int(path.read_text()) for path in Path(directory).glob("taken-*")]

    # The ps serves until the others have ended; nothing of it takes a slot.
    log_dir = f"{directory}/log"
    with socket.create_server(("127.0.0.1", 0)) as free:
        os.environ["TENSORBOARD_PORT"] = str(free.getsockname()[1])
    cluster = TFCluster.run(sc, place, directory, 3, 1, tensorboard=True, log_dir=log_dir, driver_ps_nodes=True)
    while not (said.get("tensorboard") or cluster.job.outcome):
        said["tensorboard"] = cluster.tensorboard_url()
        time.sleep(0.2)
    said["tensorboard port"] = f":{os.environ['TENSORBOARD_PORT']}/" in said["tensorboard"]
    Path(directory, "seen").touch()
    cluster.shutdown()
    nodes = [("ps", 0), ("worker", 0), ("worker", 1)]
    said["containers"] = [int(cluster.job.task(*node).container.rpartition("+")[2]) for node in nodes]

    TFParallel.run(sc, write, Arguments(directory), 2)
    said["parallel"] = [int(path.name.rpartition("-")[2]) for path in Path(directory).glob("parallel-*")]

    rows = [(1, 1.5, "a", [1, 2]), (2, 2.5, "b", [3, 4]), (None, None, "c", [5, 6])]
    frame = spark.createDataFrame(rows, "a long, b double, c string, d array<long>").coalesce(1)
    dfutil.saveAsTFRecords(frame, f"{directory}/records")
    loaded = dfutil.loadTFRecords(sc, f"{directory}/records")
    assert dfutil.isLoadedDF(loaded)
    said["loaded"] = [list(row) for row in loaded.collect()]

    try:
        cluster = TFCluster.run(sc, fail, None, 2, 0, input_mode=TFCluster.InputMode.SPARK)
        cluster.train(sc.parallelize(range(10), 2), 1)
        cluster.shutdown()
    except Exception as error:
        said["error"] = str(error)
    said["usable"] = sc.parallelize(range(10), 2).sum()
    print("SAID " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
