"""The driver's side: starts a job on the executors of a Spark that runs already, feeds it, and waits for its end."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.local_jobs import LocalJobs
from howdah.client.page_links import page_link, tensorboard_url
from howdah.client.sdk import changes
from howdah.client.submission import submit
from howdah.client.submit import prepare
from howdah.engines import Engine
from howdah.engines.spark.driver import DriverServer
from howdah.errors import HowdahError, SpecError
from howdah.frameworks.group import HOLD_NO_DATA
from howdah.functions.packed_function import check_callable
from howdah.functions.results import nodes_by_task
from howdah.jupyter.live_table import LiveTable, in_notebook
from howdah.spark.application_job import Function, for_spark, function_job, keep_state_in_container, with_command
from howdah.spark.feed_messages import FeedError
from howdah.spark.feeding import SparkFeeder, check_epochs, have_begun_again
from howdah.spark.feeding_task import Programs, end_feed
from howdah.spark.node_context import FEED_PORT
from howdah.spec import JobReport, JobSpec, Outcome, Role, State, TaskId
from howdah.spec.message import message
from howdah.spec.view import JobView

_LOG = logging.getLogger("howdah")
START_LIMIT_S = 600.0
"""How long a cluster may take until all of its programs run, unless `run` is told otherwise."""
POLL_S = 0.2
END_FEED_S = 10.0


class ClusterError(HowdahError):
    """The job of a cluster has failed; the message says which task, where, and what it printed last."""

    def __init__(self, text: str, outcome: Outcome | None = None, nodes: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.outcome = outcome
        """How the job ended; None while it runs."""
        self.nodes = nodes or {}
        """The nodes of the tasks, by their names, when the job has ended."""


class Cluster:
    """A job on Spark's executors. It is a context manager, which shuts the cluster down, or cancels it after an
    error."""

    def __init__(
        self,
        context: SparkContext,
        job_id: str,
        engine: Engine,
        programs: Programs,
        fed: Sequence[str],
        say: Callable[[str], None] | None = None,
        profile: str = "",
    ) -> None:
        self._context, self._engine, self._programs, self._fed = context, engine, programs, tuple(fed)
        self._say = say or (lambda text: print(text, file=sys.stderr, flush=True))
        self.job_id = job_id
        """The id of the job, by which `howdah` finds it."""
        # By the settings of this application, which may have another master than the configuration.
        self._jobs = LocalJobs("spark", profile, engine)
        self._view: JobView | None = None
        self._changed = threading.Condition()
        self._problem: Exception | None = None
        self._notes = 0
        self._streams: list[Any] = []
        self._table: LiveTable | None = None

    @classmethod
    def run(
        cls,
        spark: Any,
        job: Function | JobSpec,
        arguments: Sequence[Any] = (),
        *,
        roles: Mapping[str, int | Role] | int = 1,
        framework: str = "generic",
        fed: Sequence[str] | None = None,
        beside_driver: Sequence[str] = (),
        name: str = "",
        profile: str = "",
        base_directory: Path | str = ".",
        start_limit_s: float = START_LIMIT_S,
        say: Callable[[str], None] | None = None,
        **fields: Any,
    ) -> Cluster:
        """Start a job on the executors of `spark`, a SparkSession or SparkContext; return when all programs run.

        `job` is a function, which is called on each node with a NodeContext and `arguments`, or a JobSpec. Relative
        paths start at `base_directory`. A function has `roles`: numbers of tasks by role, or Roles with their
        resources, or the number of workers; and the variables of `framework`. `fields` are more of JobSpec's. Roles
        that are `fed` (all that hold data, unless given) leave their slots of Spark to the tasks that feed them; () if
        nothing will be fed. Roles that are `beside_driver` run there, in no slot. `profile` is one of your
        configuration. `say` gets a sentence for what people should know; without it they go to standard error.

        Raises:
            ClusterError: the job has ended, or not all programs run within `start_limit_s` seconds.
            SpecError, StagingError, EngineRejected, EngineUnavailable: the job cannot run; the message says why.
        """
        context = context_of(spark)
        keep_state_in_container(context, os.environ)
        if not isinstance(job, JobSpec):
            check_callable(job)
        flags = flags_of(context, profile)
        settings = settings_for(flags)
        # A program may end before `_follow` has: then the directory is removed as the interpreter exits.
        directory = tempfile.TemporaryDirectory(prefix="howdah-spark-", ignore_cleanup_errors=True)
        files, socket = Path(directory.name), Path(directory.name, "driver.sock")
        server = DriverServer(context, socket)
        threading.Thread(target=server.serve, daemon=True).start()
        try:
            programs = Programs(secrets.token_hex(8), secrets.token_bytes(32))
            spec = job if isinstance(job, JobSpec) else function_job(context, job, arguments, roles, programs, files)
            fields["files"] = (*spec.files, *fields.get("files", ()))
            spec = replace(spec, framework=framework if spec.framework == "generic" else spec.framework, **fields)
            spec = replace(spec, name=name or getattr(job, "__name__", spec.name))
            if not isinstance(job, JobSpec):
                spec = with_command(spec, context)
            names = [role for role in spec.roles if role not in HOLD_NO_DATA] if fed is None else fed
            if spec.engines.get("spark"):
                _LOG.warning(message("the application runs already: engines.spark of the job does not count"))
            made = for_spark(context, spec, names, beside_driver, socket)
            engine = engine_for(settings)
            job_id = submit(prepare(made, Path(base_directory), flags, _LOG.warning), _LOG.warning)
        except BaseException:
            server.stop()
            directory.cleanup()
            raise
        cluster = cls(context, job_id, engine, programs, names, say, profile)
        cluster._table = LiveTable(job_id) if in_notebook() else None
        threading.Thread(target=cluster._follow, args=(server, directory), daemon=True).start()
        atexit.register(cluster._cancel_quietly)
        try:
            cluster._wait_started(start_limit_s)
        except BaseException:
            cluster._cancel_quietly()
            raise
        return cluster

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, _error: object, _traceback: object) -> None:
        if kind is None:
            self.shutdown()
        else:
            self._cancel_quietly()

    # What becomes of the job

    def _follow(self, server: DriverServer, directory: tempfile.TemporaryDirectory[str]) -> None:
        try:
            for view in changes(self._jobs.views(self.job_id), interval_s=POLL_S):
                with self._changed:
                    self._view = view
                    new, self._notes = view.notes[self._notes :], len(view.notes)
                    self._changed.notify_all()
                # A terminal that is closed, or a `say` that fails, is no reason to end the job.
                with contextlib.suppress(Exception):
                    for note in new:
                        self._say(f"{self.job_id}: {note}")
                    if self._table is not None:
                        self._table.show(view, self._link)
        except Exception as problem:  # whoever waits has to know
            with self._changed:
                self._problem = problem
                self._changed.notify_all()
        finally:
            server.stop()
            directory.cleanup()

    @property
    def outcome(self) -> Outcome | None:
        """Return how the job ended; None while it runs."""
        return self._view.outcome if self._view is not None else None

    @property
    def report(self) -> JobReport:
        """Return the job as its engine describes it."""
        return self._engine.describe(self.job_id)[0]

    def _link(self) -> str:
        """Return the link to the job's page; "" while it has none."""
        with contextlib.suppress(HowdahError):
            report = self.report
            return page_link(self._engine, report) if report.master else ""
        return ""

    @property
    def page(self) -> str:
        """Return a link to the job's page, which everybody who has it can open."""
        return page_link(self._engine, self.report)

    @property
    def tensorboard(self) -> str:
        """Return a link to the job's TensorBoard; "" while it has none."""
        return tensorboard_url(self._engine, self.report, self._view) if self._view is not None else ""

    def _wait_started(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not self.is_running:
            self.check()
            if time.monotonic() > deadline:
                missing = [f"{task.id} ({task.phase})" for task in self._tasks if task.state is not State.RUNNING]
                raise ClusterError(f"{self.job_id} has not started within {limit_s:g} s: {', '.join(missing)}")
            with self._changed:
                self._changed.wait(POLL_S)

    @property
    def _tasks(self) -> list[Any]:
        # Of a copy: the thread that follows the job may add tasks just now.
        tasks = list(self._view.tasks.values()) if self._view is not None else []
        return [task for task in tasks if self._view is not None and self._view.takes_part(task.id)]

    def takes_part(self, task: TaskId) -> bool:
        """Return whether the task is one of the job's tasks now: an elastic gang may have shrunk."""
        return self._view is None or self._view.takes_part(task)

    def task(self, role: str, index: int) -> Any:
        """Return the view of a task."""
        return next(task for task in self._tasks if (task.id.role, task.id.index) == (role, index))

    @property
    def is_running(self) -> bool:
        """Return whether the programs of all tasks run, or have ended well."""
        return bool(self._tasks) and all(task.state in (State.RUNNING, State.SUCCEEDED) for task in self._tasks)

    def check(self) -> None:
        """Return if the job runs, or has ended well.

        Raises:
            ClusterError: it has failed, or was cancelled.
        """
        if self._problem is not None:
            raise ClusterError(f"{self.job_id}: {self._problem}") from self._problem
        outcome = self.outcome
        if outcome is not None and outcome.state is not State.SUCCEEDED:
            lines = "\n".join(outcome.exit.lines) if outcome.exit is not None else ""
            said = f"{self.job_id} {outcome.state.value}: {outcome.diagnostics}\n{lines}".rstrip()
            raise ClusterError(said, outcome, nodes_by_task(self._view) if self._view is not None else {})

    # Data

    @property
    def programs(self) -> Programs:
        """Return the programs that are fed, as tasks of Spark reach them."""
        return self._programs._replace(ports=[(task.host, task.ports[FEED_PORT]) for task in self._fed_tasks])

    def _feeder(self, silence_s: float | None, queue: str) -> SparkFeeder:
        if not self._fed:
            raise SpecError.at("fed", "no role of this cluster is fed")

        def programs() -> Programs:
            return self.programs.of_queue(queue, silence_s)

        return SparkFeeder(
            self._context, programs, self.job_id, self._goes_on, self.await_programs, lambda: self.starts
        )

    @property
    def starts(self) -> dict[Any, int]:
        """Return how often the program of each task that is fed was started."""
        return {task.id: task.tries for task in self._fed_tasks}

    @property
    def _fed_tasks(self) -> list[Any]:
        return [task for task in self._tasks if task.id.role in self._fed and FEED_PORT in task.ports]

    def _goes_on(self) -> bool:
        """Return whether the job goes on; raise what has failed."""
        self.check()
        return self.outcome is None

    def await_programs(self) -> bool:
        """Return whether the job goes on, when no program of it is being restarted; raise what ended it."""
        deadline = time.monotonic() + START_LIMIT_S
        while self.outcome is None and not self.is_running and time.monotonic() < deadline:
            with self._changed:
                self._changed.wait(POLL_S)
        return self._goes_on()

    def train(
        self,
        data: Any,
        epochs: int = 1,
        *,
        silence_s: float | None = None,
        queue: str = "",
        starts: Mapping[Any, int] | None = None,
    ) -> Any:
        """Bring data to the programs, as often as `epochs` says; return when they have taken it, or want no more.

        `data` is a DataFrame, or an RDD of tuples, dicts, bytes, numbers or arrays. A stream (a streaming DataFrame, or
        a DStream) is fed in the background; for a DataFrame its StreamingQuery is returned, which `shutdown` stops,
        else the number of rows that were taken. A program that takes nothing for `silence_s` seconds is an error;
        `queue` is the name of the feed, for programs with several. With `starts`, what `Cluster.starts` was before,
        no more is fed when all programs have begun again since.

        Raises:
            ClusterError: the job has failed.
            FeedError: a program takes nothing for so long, or none can be reached.
            Exception: what Spark raises, if the data cannot be read.
        """
        check_epochs(epochs)
        feeder = self._feeder(silence_s, queue)
        if getattr(data, "isStreaming", False):
            return self.feed_stream(data, feeder.train)
        if hasattr(data, "foreachRDD"):
            data.foreachRDD(lambda rdd: feeder.train(rdd) and None)
            return None
        with self.cancelled_by_interrupt():
            return sum(feeder.train(data, starts) for _ in range(epochs))

    def feed_stream(self, frame: Any, feed: Callable[[Any], Any]) -> Any:
        """Start a query that calls `feed` with each batch of a streaming DataFrame, and return it. It is stopped when
        the feed ends. What an earlier one has failed with by now is told no more: the program goes on from there."""
        others = [each for each in self._streams if _failure_of(each) is None]
        query = frame.writeStream.foreachBatch(lambda batch, _number: feed(batch) and None).start()
        self._streams = [*others, query]
        return query

    def _stop_streams(self) -> None:
        for query in self._streams:
            with contextlib.suppress(Exception):  # Spark itself may have ended; why a query failed, the query tells
                query.stop()  # returns when the batch that is on its way has come

    def inference(self, data: Any, schema: str = "", *, silence_s: float | None = None, queue: str = "") -> Any:
        """Return the programs' results, one for each row, in the order of the rows of a partition: an RDD for an RDD,
        and for a DataFrame one with the columns of `schema` ("prediction long"). Nothing is read before Spark needs
        it. `silence_s` and `queue` are as in `train`."""
        return self._feeder(silence_s, queue).inference(data, schema)

    def end_feed(self) -> None:
        """Stop the streams, when the batch that is on its way has come. Then tell the programs that no more data will
        come, also those that do not listen yet, and that start again."""
        threading.Thread(target=self._end_feeds, daemon=True).start()

    def _end_feeds(self) -> None:
        self._stop_streams()
        told = set[tuple[Any, int]]()
        while self.outcome is None and self._problem is None:
            self._tell_end(told)
            time.sleep(POLL_S)

    def end_feed_of(self, starts: Mapping[Any, int]) -> None:
        """Tell programs that no more data will come; return when the job has ended, or all of them were started again.

        Raises:
            ClusterError: the job has failed.
        """
        told = set[tuple[Any, int]]()
        while self._goes_on() and not have_begun_again(starts, self.starts):
            self._tell_end(told)
            with self._changed:
                self._changed.wait(POLL_S)

    def _tell_end(self, told: set[tuple[Any, int]]) -> None:
        for task in self._fed_tasks:
            run = (task.id, task.tries)
            if task.state is State.RUNNING and run not in told:
                with contextlib.suppress(OSError, FeedError):  # it does not listen yet, or has ended
                    end_feed(task.host, task.ports[FEED_PORT], self._programs.key, END_FEED_S)
                    told.add(run)

    # The end

    def wait(self, timeout_s: float | None = None) -> Outcome:
        """Return how the job ended.

        Raises:
            ClusterError: it has failed.
            TimeoutError: it goes on after `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self.cancelled_by_interrupt():
            while self.outcome is None:
                self.check()
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"{self.job_id} goes on after {timeout_s:g} s")
                with self._changed:
                    self._changed.wait(POLL_S)
        self.check()
        return self.outcome

    def shutdown(self, timeout_s: float | None = None) -> Outcome:
        """End the feed, and return how the job ended. After `timeout_s` seconds the job is cancelled.

        Raises:
            ClusterError: it has failed. TimeoutError: it was cancelled.
            Exception: what a streaming DataFrame has failed with that fed it, and after which no other one was started:
                the programs did not get all data.
        """
        self.end_feed()
        try:
            outcome = self.wait(timeout_s)
        except BaseException:
            self._cancel_quietly()
            raise
        self._stop_streams()  # of programs that wanted no more
        for failure in filter(None, map(_failure_of, self._streams)):  # also of a last batch
            raise failure
        return outcome

    def cancel(self) -> None:
        """End the job now."""
        self._jobs.cancel(self.job_id)

    @contextlib.contextmanager
    def cancelled_by_interrupt(self) -> Iterator[None]:
        """Cancel the job if the user interrupts what the block does (Ctrl-C, or a notebook's stop button)."""
        try:
            yield
        except KeyboardInterrupt:
            self._cancel_quietly()
            raise

    def _cancel_quietly(self) -> None:
        atexit.unregister(self._cancel_quietly)
        if self.outcome is None:
            with contextlib.suppress(HowdahError):
                self.cancel()


def _failure_of(query: Any) -> Exception | None:
    """Return what a query of Spark has failed with; None if it goes on, or was stopped."""
    with contextlib.suppress(Exception):  # Spark itself may have ended
        return None if query.isActive else query.exception()
    return None


def context_of(spark: Any) -> SparkContext:
    """Return the SparkContext of a session, or the context itself.

    Raises:
        SpecError: the session is one of Spark Connect, which has none.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SpecError.at(
            "spark",
            "is a session of Spark Connect, whose driver, beside which the master runs, is not in this program: run the"
            " program by spark-submit, or start the tasks by howdah.run(…, on='spark')",
        )
    return spark if isinstance(spark, SparkContext) else spark.sparkContext


def flags_of(context: SparkContext, profile: str) -> dict[str, str]:
    """Return the flags of the settings for jobs in this application: its master reaches the driver, and executors the
    master, by the driver's own address."""
    address = context.getConf().get("spark.driver.host") or ""
    return {"engine": "spark", "profile": profile, "spark.master": context.master, "spark.address": address}
