"""The engine outside the cluster: the master of a job runs here, beside the driver of the job's Spark application."""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import json
import os
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.engines import PendingReason
from howdah.engines.detached_master import DetachedMasterEngine, control_directory
from howdah.engines.options import engine_options
from howdah.engines.spark.cluster import SparkCluster, find_cluster
from howdah.engines.spark.local_cluster import lacking_room
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.localfiles.own_directories import shared_directory
from howdah.spec import JobSpec, Plan, StagedJob, uris

_HOME_ON_YARN = "hdfs:///user/NAME/howdah"
_ELSEWHERE = ("192.0.2.1", 9)  # an address of nobody's: the way there is the way to other machines
CALL_LIMIT_S = 10.0


class SparkEngine(DetachedMasterEngine):
    """Runs jobs on the Spark of the setting `spark.master`, or of a sandbox."""

    name = "spark"

    @property
    def home(self) -> str:
        """Return the URI of the directory of jobs, which all executors see. Without a setting it is on this machine,
        where `plan` lets only jobs of a cluster on this machine be. No master decides it: the application that brought
        a job may alone know its master, and whoever looks for the job has to find the same directory."""
        home = self._settings.get("spark.home", "") or str(shared_directory(os.environ, self.name))
        return home if "://" in home else uris.of_local(home)

    @property
    def _cluster(self) -> SparkCluster:
        return find_cluster(self._settings, os.environ)

    @property
    def _is_here(self) -> bool:
        """Return whether all of the cluster is on this machine."""
        master = self._cluster.master
        host = urllib.parse.urlsplit(master).hostname or ""
        return master.startswith("local") or host == "localhost" or host.startswith("127.")

    @property
    def cluster(self) -> str:
        """Return what tells this cluster and its home from others."""
        return f"{self._cluster.master} {self.home}"

    def sees(self, path: str | Path) -> bool:
        scheme, _, home = uris.split(self.home)
        return self._is_here or (scheme == "file" and Path(path).absolute().is_relative_to(home))

    def plan(self, job: StagedJob) -> Plan:
        cluster, options = self._cluster, engine_options(job.job, self._settings, self.name)
        has_driver = bool(options["driver_socket"])
        problems = [*self.wrong_settings(has_driver), *_unsupported(job.job)]
        if not has_driver:
            problems += lacking_room(job.job, cluster.master, options["conf"])
        if problems:
            raise EngineRejected("; ".join(problems))
        if not has_driver:
            self.reach_master()
        staged = dataclasses.replace(job, user=job.user or getpass.getuser())
        request = {"master": cluster.master, "address": self._address(cluster), "conf": list(options["conf"])}
        return Plan(self.name, staged, request)

    def wrong_settings(self, has_driver: bool = False) -> Iterator[str]:
        """Yield what keeps jobs from running with these settings; one that `has_driver` brings its application."""
        cluster = self._cluster
        if has_driver:
            pass
        elif not cluster.master:
            yield "spark.master is not set: spark://HOST:PORT, yarn, k8s://URL or local-cluster[...]"
        elif cluster.master.startswith("local") and not cluster.master.startswith("local-cluster"):
            yield f"spark.master: {cluster.master} has no executors beside the driver: use `--on local`"
        if not has_driver and not (cluster.submit and Path(cluster.submit).exists()):
            yield "spark-submit is not here: set spark.install to the directory of Spark, or install pyspark"
        if not (self._settings.get("spark.home") or self._is_here):
            example = "`howdah config set spark.home /shared/DIRECTORY`"
            if cluster.master == "yarn":
                container = "for a driver in a container --conf spark.yarn.appMasterEnv.HOWDAH_SPARK_HOME=URI"
                example = f"`howdah config set spark.home {_HOME_ON_YARN}`, {container}"
            need = "a directory that all executors share, or a URI on HDFS or S3"
            yield f"spark.home is not set: {need}, as by {example}"

    def reach_master(self) -> None:
        """Return if a standalone master listens at the address; spark-submit alone would try for a minute.

        Raises:
            EngineUnavailable: none does.
        """
        cluster = self._cluster
        if not cluster.is_standalone:
            return
        problems = []
        for address in cluster.master.removeprefix("spark://").split(","):
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), CALL_LIMIT_S).close()
            except (OSError, ValueError) as error:
                problems.append(f"{address}: {error}")
            else:
                return
        raise EngineUnavailable(f"Spark's master does not answer: {'; '.join(problems)}")

    def _address(self, cluster: SparkCluster) -> str:
        """Return the address by which the executors reach this machine."""
        if given := self._settings.get("spark.address"):
            return given
        if cluster.is_standalone:
            host, _, port = cluster.master.removeprefix("spark://").split(",")[0].rpartition(":")
            target = (host, int(port))
        else:
            target = ("127.0.0.1", 9) if self._is_here else _ELSEWHERE
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])

    def master_environment(self, plan: Plan) -> Mapping[str, str]:
        address = plan.request["address"]
        return {"HOWDAH_HOST": address, "HOWDAH_LISTEN": address if address.startswith("127.") else "0.0.0.0"}  # noqa: S104

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        """Return what the job's allocator has heard from Spark: it alone speaks with the driver."""
        if not any(not report.state.ended for report in self.describe(job_id)):
            return []
        heard: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError):  # nothing, or on the machine that has submitted the job
            heard = json.loads((control_directory(self.name, job_id) / "waiting.json").read_text())
        return [PendingReason("said", {"text": heard[role]}) for role in ("", *missing) if role in heard]


def _unsupported(job: JobSpec) -> Iterator[str]:
    """Yield what Spark cannot give its tasks."""
    for name, role in job.roles.items():
        if role.resources.named:
            yield f"role {name!r} asks for {', '.join(role.resources.named)}: tasks of Spark get cores, memory and GPUs"
        if role.node_label or job.node_label:
            yield f"role {name!r} asks for a node label, which Spark's executors do not have"
