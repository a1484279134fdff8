"""Trains a function on Spark's executors, called as pyspark's own TorchDistributor is."""

from __future__ import annotations

import itertools
import logging
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.errors import SpecError
from howdah.frameworks.group import HOLD_NO_DATA
from howdah.functions import Distributed
from howdah.functions.function_job import DIRECTORY, ROLE, FunctionCall, read_job, run_job, run_program
from howdah.functions.packed_function import pack_function
from howdah.functions.results import Results, new_place, tasks_by_rank
from howdah.program.run_function import ALL_TASKS, FIRST_TASK
from howdah.spark.application_job import keep_state_in_container
from howdah.spark.cluster import Cluster, ClusterError, context_of, flags_of
from howdah.spark.feeding import check_epochs, have_begun_again
from howdah.spark.partition_data import call_with_data
from howdah.spec import JobSpec, Output, Role
from howdah.wire.program_protocol import FUNCTION_RESULTS

_LOG = logging.getLogger("howdah")
_GPUS_OF_TASK = "spark.task.resource.gpu.amount"
_OWN = ("name", "framework", "roles")
_GIVEN = (("replicas", "num_processes"), ("gpus", "use_gpu"), ("conf", "the application (SparkSession.builder.config)"))
"""Keys that a Distributor does not take, and what gives them."""


class Distributor:
    """Calls a function in `num_processes` tasks that find each other by the variables of `framework`.

    With `local_mode` they run beside the driver, else each in a task of Spark; with `use_gpu` each has the GPUs that
    Spark gives to a task (`spark.task.resource.gpu.amount`), or one beside the driver. On Spark `roles` may take the
    place of `num_processes`: numbers of tasks by role, or Roles with their resources. `epochs` is how often
    `train_on_dataframe` brings the data; None: until no program wants more. `profile` is one of your configuration.
    `keys` are those of a job file: `retries=2`, `checkpoint={"path": …}`, `environment=…`, `env=…`.
    """

    def __init__(
        self,
        num_processes: int = 1,
        local_mode: bool = False,
        use_gpu: bool = False,
        *,
        framework: str = "pytorch",
        roles: Mapping[str, int | Role] | None = None,
        epochs: int | None = 1,
        name: str = "",
        profile: str = "",
        spark: SparkSession | None = None,
        **keys: Any,
    ) -> None:
        if num_processes < 1:
            raise ValueError(f"num_processes is {num_processes}, must be at least 1")
        if roles and local_mode:
            raise ValueError("roles are for Spark's executors: local_mode=False")
        if epochs is not None:
            check_epochs(epochs)
        if local_mode and "conf" in keys:
            raise SpecError.at("conf", "means nothing beside the driver (local_mode=True)")
        for key, given_by in _GIVEN:
            if key in keys:
                raise SpecError.at(key, f"is given by {given_by}")
        self.num_processes, self.local_mode, self.use_gpu = num_processes, local_mode, use_gpu
        self._framework, self._roles, self._epochs, self._name = framework, roles, epochs, name
        self._profile, self._session, self._keys = profile, spark, keys

    def run(self, train_object: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> Any:
        """Call `train_object` in each task, and return what it returns in the first one (rank 0). A path is that of a
        program of Python, of which `args` are the arguments; it returns None.

        Raises:
            Exception: what the function has raised first, in whichever task; RemoteTraceback is its cause.
            ClusterError, JobFailed: the job has ended without it.
            ValueError: a program is to have named arguments.
        """
        if isinstance(train_object, str):
            if kwargs:
                raise ValueError(f"a program has no named arguments: {', '.join(kwargs)}")
            return self._run_program(Path(train_object), tuple(map(str, args)))
        return self._call(train_object, args, kwargs, FIRST_TASK)[0]

    def run_all(self, train_object: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Call `train_object` as `run` does, and return what it returns in each task, by rank."""
        return self._call(train_object, args, kwargs, ALL_TASKS)

    def train_on_dataframe(
        self, train_function: Callable[..., Any], dataframe: DataFrame, *args: Any, **kwargs: Any
    ) -> Any:
        """Call `train_function` in each task as `run` does, and bring it the rows of `dataframe`, which it finds by
        `get_spark_partition_data_loader` and the others of `howdah.spark.partition_data`. Partitions may be uneven or
        empty, and need not be as many as tasks."""
        if self.local_mode:
            raise ValueError("train_on_dataframe needs Spark's executors: local_mode=False")
        return self._call(train_function, args, kwargs, FIRST_TASK, dataframe)[0]

    def _call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        whose: str,
        data: DataFrame | None = None,
    ) -> list[Any]:
        call = FunctionCall(function, args, kwargs, whose)
        if self.local_mode:
            return run_job(call, "local", self._profile, {"name": self._name or call.name, **self._local_keys()})
        spark = self._context()
        keep_state_in_container(spark, os.environ)
        settings = settings_for(flags_of(spark, self._profile))
        place = new_place(engine_for(settings).home)
        roles, more = self._roles_on_spark(spark), self._fields()
        results = Results(place, tasks_by_rank(JobSpec(roles, framework=self._framework)), settings["hadoop_conf_dir"])
        results.prepare()
        more["outputs"] = (*more.get("outputs", ()), Output(place, source=FUNCTION_RESULTS, keep_failed=True))
        with tempfile.TemporaryDirectory(prefix="howdah-") as temporary:
            directory = Path(temporary, DIRECTORY)
            directory.mkdir()
            pack_function(directory, function, args, kwargs, whose)
            more["files"] = (*more.get("files", ()), str(directory))
            problem = None
            try:
                with Cluster.run(
                    spark,
                    call_with_data,
                    (DIRECTORY, data is not None and self._epochs is None),
                    roles=roles,
                    framework=self._framework,
                    fed=() if data is None else [name for name in roles if name not in HOLD_NO_DATA],
                    name=self._name or call.name,
                    profile=self._profile,
                    **more,
                ) as cluster:
                    if data is not None:
                        self._feed(cluster, data)
            except ClusterError as error:
                problem = error
        if problem is not None:
            raise problem if problem.outcome is None else results.failure(problem, problem.outcome, problem.nodes)
        results = results.of_tasks(cluster.takes_part)
        return results.read(len(results.tasks) if whose == ALL_TASKS else 1)

    def _feed(self, cluster: Cluster, data: DataFrame) -> None:
        """Bring the data, and return when the job has ended. Where all tasks are started again, the function begins
        anew, and so does its data: the rest alone would make another model, and say nothing of it."""
        while cluster.await_programs():
            starts = cluster.starts
            passes = itertools.repeat(0) if self._epochs is None else range(self._epochs)
            for _ in passes:
                rows = cluster.train(data, starts=starts)
                has_ended = cluster.outcome is not None or (self._epochs is None and not rows)
                if has_ended or have_begun_again(starts, cluster.starts):
                    break
            if not have_begun_again(starts, cluster.starts):
                cluster.end_feed_of(starts)

    def _context(self) -> SparkContext:
        found = self._session or SparkSession.getActiveSession()
        if found is None:
            raise RuntimeError("there is no SparkSession in this program: make one, or give it as spark=")
        return context_of(found)

    def _fields(self) -> dict[str, Any]:
        """Return the fields of JobSpec that the keys set."""
        read, plain = read_job(self._keys, ("true",)), JobSpec({})
        names = [field.name for field in fields(JobSpec) if field.name not in _OWN]
        return {name: getattr(read, name) for name in names if getattr(read, name) != getattr(plain, name)}

    def _local_keys(self) -> dict[str, Any]:
        processes, gpus = self.num_processes, None
        if self.use_gpu:
            gpus = self._context().resources.get("gpu")
            here = len(gpus.addresses) if gpus is not None else 0
            if not here:
                raise RuntimeError("GPU resources were not configured properly on the driver.")
            if here < processes:
                _LOG.warning("the driver has %d GPUs, so %d processes run instead of %d", here, here, processes)
            processes = min(processes, here)
        return {"replicas": processes, "gpus": int(self.use_gpu), "framework": self._framework, **self._keys}

    def _roles_on_spark(self, spark: SparkContext) -> dict[str, Role]:
        conf = spark.getConf()
        gpus = math.ceil(float(conf.get(_GPUS_OF_TASK) or 0))
        if self.use_gpu and gpus < 1:
            raise RuntimeError(f"'{_GPUS_OF_TASK}' was unset, so gpu usage is unavailable.")
        vcores = int(self._keys.get("vcores") or conf.get("spark.task.cpus") or 1)
        plain = read_job(self._keys, ("true",)).roles[ROLE]
        resources = replace(plain.resources, vcores=vcores, gpus=gpus if self.use_gpu else 0)
        return {
            name: role if isinstance(role, Role) else replace(plain, command="", replicas=role, resources=resources)
            for name, role in (self._roles or {ROLE: self.num_processes}).items()
        }

    def _run_program(self, path: Path, args: tuple[str, ...]) -> None:
        if not path.is_file():
            raise SpecError.at("train_object", f"{str(path)!r}: no such file")
        if self.local_mode:
            run_program(path, args, "local", self._profile, {"name": self._name or path.stem, **self._local_keys()})
            return
        spark = self._context()
        python = "python" if self._keys.get("environment") else spark.pythonExec
        command = (python, path.name, *args)
        roles = {name: replace(role, command=command) for name, role in self._roles_on_spark(spark).items()}
        job = JobSpec(roles, framework=self._framework, files=(str(path.resolve()),))
        name = self._name or path.stem
        Cluster.run(spark, job, fed=(), name=name, profile=self._profile, **self._fields()).shutdown()


class TorchDistributor(Distributor):
    """Takes the place of `pyspark.ml.torch.distributor.TorchDistributor`: the same arguments, the same results."""

    def __init__(self, num_processes: int = 1, local_mode: bool = True, use_gpu: bool = True, **more: Any) -> None:
        super().__init__(num_processes, local_mode, use_gpu, **{"framework": "pytorch", "epochs": None, **more})

    def _train_on_dataframe(
        self, train_function: Callable[..., Any], spark_dataframe: DataFrame, *args: Any, **kwargs: Any
    ) -> Any:
        return self.train_on_dataframe(train_function, spark_dataframe, *args, **kwargs)


def distributed(num_processes: Any = 1, **more: Any) -> Any:
    """Give a function a method `distributed`, which calls it in `num_processes` tasks on Spark's executors; `more` is
    Distributor's."""
    if callable(num_processes):  # without brackets
        return distributed()(num_processes)

    def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return Distributor(num_processes, **more).run(function, *args, **kwargs)

    return lambda function: Distributed(function, call)
