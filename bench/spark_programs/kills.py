"""Run by spark-submit: kills a random process of one cluster after the other while it is fed; prints each outcome."""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

from howdah.spark import Cluster, ClusterError

LIMIT_S = 120.0
VICTIMS = {
    "Spark's executor": "CoarseGrainedExecutorBackend",
    "Spark's Python": "pyspark.daemon",
    "howdah's executor": "howdah.executor",
    "program": "howdah.spark.run_function",
    "master": "howdah.master",
}


def consume(context):
    feed = context.feed()
    while feed.next_table(100) is not None:
        time.sleep(0.01)


def processes(words, application, job_id):
    """Return the processes with these words that belong to the application or the job."""
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mine = (entry / "environ").read_bytes().decode(errors="replace") + line
        except OSError:
            continue
        if entry.name.isdigit() and words in line and (application in mine or job_id in mine):
            yield int(entry.name)


def kill(application, job_id, victim, said):
    found = sorted(processes(VICTIMS[victim], application, job_id))
    if found:
        os.kill(random.choice(found), signal.SIGKILL)  # noqa: S311
    said["killed"] = len(found) > 0 and "rows" not in said


def run_round(spark, rdd, number, said):
    began, victim = time.monotonic(), random.choice(list(VICTIMS))  # noqa: S311
    said |= {"victim": victim, "retries": number % 2, "outcome": "hung"}
    try:
        cluster = Cluster.run(spark, consume, roles=2, retries=number % 2, say=lambda _text: None)
        said["job"] = cluster.job_id
        application = spark.sparkContext.applicationId
        timer = threading.Timer(random.uniform(0, 3), kill, (application, cluster.job_id, victim, said))  # noqa: S311
        timer.start()
        said["rows"] = cluster.train(rdd, epochs=8)
        cluster.shutdown(LIMIT_S)
        timer.join()
        said["outcome"] = "succeeded"
    except ClusterError as error:
        said |= {"outcome": "failed", "why": str(error)[:300]}
    except Exception as error:
        said |= {"outcome": "another error", "why": f"{type(error).__name__}: {error}"[:300]}
    said["seconds"] = time.monotonic() - began


def main(rounds, seed):
    random.seed(seed)
    spark = SparkSession.builder.getOrCreate()
    rdd = spark.sparkContext.parallelize(range(20_000), 8)
    for number in range(rounds):
        said = {}
        thread = threading.Thread(target=run_round, args=(spark, rdd, number, said), daemon=True)
        thread.start()
        thread.join(2 * LIMIT_S)
        print("ROUND " + json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
