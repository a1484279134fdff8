"""Calls functions on executors by Distributor; run by `spark-submit distributor.py`."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from howdah.spark import Distributor, TorchDistributor, distributed, get_spark_partition_batches


def add(number, more=0):
    from howdah import here

    return number + more + here.rank


def fail():
    from howdah import here

    if here.rank == 1:
        raise ValueError("this is what is wrong")
    here.barrier("never")


def fail_at_once():
    raise KeyError("at once")


def sums(columns):
    from howdah import here

    own = [value for batch in get_spark_partition_batches(columns) for value in batch.column(0).to_pylist()]
    here.put(f"sum/{here.rank}", json.dumps([len(own), sum(own)]))
    return [json.loads(here.get(f"sum/{rank}", wait=60)) for rank in range(here.size)]


@distributed(num_processes=2, framework="generic")
def decorated(number):
    return 2 * number


def refusal(distributor, function):
    try:
        distributor.run(function)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main():
    spark = SparkSession.builder.getOrCreate()
    frame, two, said = spark.range(1000).repartition(7), Distributor(2, framework="generic"), {}

    def count():
        return frame.count()

    said["run"], said["all"] = two.run(add, 5, more=1), two.run_all(add, 5)
    began = time.monotonic()
    try:
        two.run(fail)
    except ValueError as error:
        said["error"], said["traceback"] = str(error), str(error.__cause__)
    said["seconds until the error"] = time.monotonic() - began
    said["error at once"] = refusal(two, fail_at_once)
    said["sums"] = two.train_on_dataframe(sums, frame, ["id"])
    said["of an empty frame"] = two.train_on_dataframe(sums, frame.where("id < 0"), ["id"])
    said["decorated"] = [decorated(2), decorated.distributed(4)]
    said["beside the driver"] = TorchDistributor(2, local_mode=True, use_gpu=False).run(add, 7)
    said["no GPUs"] = refusal(TorchDistributor(2, local_mode=False, use_gpu=True), add)
    said["closes over a frame"] = refusal(two, count)
    program = Path(sys.argv[1], "program.py")
    program.write_text("import sys\nfrom pathlib import Path\nPath(sys.argv[1]).write_text('ran')\n")
    said["program"] = two.run(str(program), f"{sys.argv[1]}/done")
    said["ran"] = Path(sys.argv[1], "done").read_text()
    said["usable"] = spark.range(10).selectExpr("sum(id)").first()[0]
    print(f"SAID {json.dumps(said)}")
    spark.stop()


if __name__ == "__main__":
    main()
