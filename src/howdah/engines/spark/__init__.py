"""Runs jobs on the executors of a Spark cluster (docs/engines.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from howdah.engines.info import EngineInfo
from howdah.localfiles.own_directories import shared_directory
from howdah.spec.setting import Setting


def is_configured(settings: Mapping[str, str]) -> bool:
    """Return whether a setting names a master of Spark; a sandbox that runs has its settings."""
    from howdah.engines.spark.cluster import find_cluster  # other engines' jobs do without

    return bool(find_cluster(settings, os.environ).master)


def may_have_jobs(settings: Mapping[str, str]) -> bool:
    """Return whether there is a directory of jobs. A Spark application knows its master, and no setting has to."""
    return bool(settings.get("spark.home")) or (shared_directory(os.environ, "spark") / "jobs").is_dir()


INFO = EngineInfo(
    engine="howdah.engines.spark.engine:SparkEngine",
    allocator="howdah.engines.spark.allocator:SparkAllocator",
    id_prefix="spark-",
    container_id=r"spark-(?P<job>[A-Za-z0-9_-]+)\.\d+\.\d+\+\d+",
    forgets_jobs=True,
    is_configured=is_configured,
    may_have_jobs=may_have_jobs,
    how_to_configure="`howdah config set spark.master spark://HOST:7077`, or `howdah sandbox up --spark` to try it",
    checks="howdah.cli.doctor_spark:checks",
    settings={
        "master": Setting("", "Master of Spark: spark://HOST:PORT, yarn, k8s://URL or local-cluster[...]."),
        "install": Setting("", "Directory with Spark (SPARK_HOME); else an installed pyspark is used.", "path"),
        "conf_dir": Setting("", "Directory with spark-defaults.conf (SPARK_CONF_DIR).", "path"),
        "home": Setting("", "Directory of jobs that all executors share, or the URI of one on HDFS or S3.", "path"),
        "address": Setting("", "Name or address by which executors reach this machine."),
    },
    options={
        "conf": Setting("", "Properties of the Spark application: NAME=VALUE,NAME=VALUE.", "list"),
        "feeding": Setting(
            "", "Roles whose slots are free, once their programs run, for tasks that feed them.", "list"
        ),
        "beside_driver": Setting("", "Roles whose tasks run beside the driver, in no slot of Spark.", "list"),
        "driver_socket": Setting("", "Socket of a driver that runs already (howdah.spark uses it).", "path"),
    },
)
