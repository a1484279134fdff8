"""Runs in Spark's driver: starts containers as tasks of Spark, and says what becomes of them.

The allocator connects to a Unix socket, which only the user may enter, and does so again after a restart. Both sides
write JSON objects, one a line. spark-submit runs this file as a program; in a driver that runs already,
`howdah.spark` serves the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, cloudpickle
from pyspark.accumulators import AccumulatorParam
from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests

from howdah.engines.detached_master import is_locked
from howdah.engines.spark import container_task
from howdah.engines.spark.socket_path import short_path

POLL_S = 0.5
SLOTS_WAIT_S, FIRST_SLOTS_WAIT_S = 10.0, 30.0
"""How long the number of slots stays the same, or 0, before it is told."""
FIRST_HERE = 10**12
"""The number of the first container beside the driver."""
ALONE_LIMIT_S = 120.0
"""A driver that no master has spoken to for so long ends: executors have given their master up by then."""


class ContainerEnds(AccumulatorParam[list[Any]]):  # type: ignore[misc]  # the library has no types here
    """Tells of each container's end when Spark brings the update of its task to the driver."""

    def __init__(self, tell: Any) -> None:
        self._tell = tell

    def __getstate__(self) -> dict[str, Any]:
        return {"_tell": None}  # executors add to a list

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        if self._tell is None:
            return value1 + value2
        for container, status, lines in value2:
            self._tell(ended=container, status=status, lines=lines)
        return []


class DriverServer:
    """Serves one allocator at a time. Events that nobody has read are kept for the next one.

    `masters` is the file that is locked as long as a master lives, or may be started again; None if that is not known.
    """

    def __init__(self, context: SparkContext, path: Path, masters: Path | None = None) -> None:
        self._context, self._path, self._masters = context, path, masters
        self._lock, self._changed = threading.RLock(), threading.Event()
        self._unread: list[dict[str, Any]] = []
        self._running: dict[str, dict[str, Any]] = {}
        self._peer: Any = None
        self._heard, self._is_over = time.monotonic(), False
        self._lost: dict[str, str] = {}
        self._there: dict[str, int] = {}
        self._here: dict[str, dict[str, str]] = {}
        for module in (container_task, sys.modules[__name__]):  # executors need not have howdah
            cloudpickle.register_pickle_by_value(module)

    def serve(self) -> None:
        """Serve until an allocator says that the job is over, none will come or has come for `ALONE_LIMIT_S`, or the
        JVM that has started this program has ended."""
        jvm = os.getppid()
        threading.Thread(target=self._watch_executors, daemon=True).start()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.settimeout(POLL_S)
            with short_path(self._path) as path:
                server.bind(path)
            self._path.chmod(0o600)
            server.listen()
            while not self._is_over and os.getppid() == jvm and self._may_be_needed():
                with contextlib.suppress(socket.timeout):
                    peer, _ = server.accept()
                    peer.settimeout(None)
                    with peer, contextlib.suppress(OSError):
                        self._converse(peer)
                    self._heard = time.monotonic()

    def _may_be_needed(self) -> bool:
        """Return whether a master may come, or containers run, which give their master up by themselves."""
        if time.monotonic() - self._heard > ALONE_LIMIT_S:
            return False
        has_master = self._masters is None or is_locked(self._masters) is not False
        return has_master or bool(self._here or self._there.get("busy"))

    def _converse(self, peer: socket.socket) -> None:
        with self._lock:
            self._peer = peer
            conf = self._context.getConf()
            self._tell(
                application=self._context.applicationId,
                page=self._context.uiWebUrl or "",
                version=self._context.version,
                asks=sorted(self._running),
                dynamic=conf.get("spark.dynamicAllocation.enabled", "false") == "true",
                speculation=conf.get("spark.speculation", "false") == "true",
            )
            for event in (*self._unread, *filter(None, [self._there])):
                self._tell(**event)
        try:
            with peer.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    self._obey(json.loads(line))
        finally:
            with self._lock:
                self._peer = None

    def _tell(self, **event: Any) -> None:
        with self._lock:
            if self._peer is not None:
                with contextlib.suppress(OSError):
                    self._peer.sendall(json.dumps(event).encode() + b"\n")
                    return
            if not event.keys() & {"application", "executors"}:  # which each allocator is told
                self._unread.append(event)

    def _obey(self, order: dict[str, Any]) -> None:
        if "heard" in order:  # the allocator has written down all that it was told before
            with self._lock:
                self._unread.clear()
        elif "start" in order:
            with self._lock:
                if order["start"] in self._running:
                    return
                self._running[order["start"]] = order
            threading.Thread(target=self._run_stage, args=(order,), daemon=True).start()
        elif "kill" in order:
            threading.Thread(target=self._kill, args=(order,), daemon=True).start()
        elif "cancel" in order:
            with contextlib.suppress(Exception):  # the program may have stopped the context when its cluster ended
                self._context.cancelJobGroup(_group(order["cancel"]))
            for container in [each for each in self._here if each.startswith(f"{order['cancel']}+")]:
                self._kill({"container": container})
        elif "stop" in order:
            self.stop()

    def stop(self) -> None:
        """Serve no more, and end all containers."""
        self._is_over = True
        for ask in list(self._running):
            with contextlib.suppress(Exception):  # the context may be stopped
                self._context.cancelJobGroup(_group(ask))
        for facts in self._here.values():
            with contextlib.suppress(KeyError, OSError):
                os.kill(int(facts["pid"]), signal.SIGTERM)

    def _kill(self, order: dict[str, Any]) -> None:
        """Kill a task of Spark, and tell of its container's end when Spark knows the task no more."""
        if order["container"] in self._here:
            with contextlib.suppress(KeyError, OSError):  # it has not begun, or has ended
                os.kill(int(self._here[order["container"]]["pid"]), signal.SIGTERM)
            return
        with contextlib.suppress(Exception):  # the context is being stopped
            while self._context._jsc.sc().killTaskAttempt(int(order["kill"]), True, order["why"]):
                time.sleep(POLL_S)
        self._tell(ended=order["container"], status=128 + signal.SIGTERM, lines="")

    def _run_stage(self, order: dict[str, Any]) -> None:
        ask, error = order["start"], ""
        try:
            profile = _resource_profile(order)
            if not order["beside_driver"]:
                threading.Thread(target=self._tell_slots, args=(ask, profile, int(order["count"])), daemon=True).start()
            self._context.setJobGroup(_group(ask), order["text"], interruptOnCancel=True)
            ends = self._context.accumulator([], ContainerEnds(self._tell))
            run = container_task.container_task(order["order"], ends)
            count = int(order["count"])
            if order["beside_driver"]:
                self._run_here(ask, order["order"], count)
                count = 0
            rdd = self._context.parallelize(list(range(count)), count)  # a range would be made by a Python of its own
            if profile is not None:
                rdd = rdd.withResources(profile)
            if count:
                rdd.mapPartitionsWithIndex(run).collect()
        except Exception as problem:  # whatever it is, the allocator has to know
            error = _first_line(problem)
        with self._lock:
            self._running.pop(ask, None)
            self._tell(over=ask, error=error)

    def _run_here(self, ask: str, order: dict[str, Any], count: int) -> None:
        """Run containers beside the driver, which end with it; return when they have ended."""

        def run(number: int) -> None:
            # Spark counts its tasks from 0: no number of theirs is so high.
            container = f"{ask}+{FIRST_HERE + number}"
            facts = dict.fromkeys(("application", "stage", "gpus"), "") | {"partition": str(number)}
            facts |= {"node": socket.gethostname(), "executor": "driver", "attempt": str(number)}
            self._here[container] = facts
            status, lines = container_task.run_beside_driver(container, order, facts)
            self._tell(ended=container, status=status, lines=lines)

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _tell_slots(self, ask: str, profile: Any, count: int) -> None:
        """Tell how many tasks can run at the same time until it is enough: executors register one by one, and the
        first of them on YARN and Kubernetes when their containers have come."""
        before, told, changed = -1, -1, time.monotonic()
        while ask in self._running and (slots := self._slots(profile)) in range(count):
            if slots != before:
                before, changed = slots, time.monotonic()
            wait_s = SLOTS_WAIT_S if slots else FIRST_SLOTS_WAIT_S
            if slots != told and time.monotonic() - changed > wait_s:
                told = slots
                self._tell(slots=slots, ask=ask)
            time.sleep(POLL_S)
        self._tell(slots=self._slots(profile), ask=ask)

    def _slots(self, profile: Any) -> int:
        """Return how many tasks of this profile Spark's executors can run at the same time; -1 if it does not say."""
        try:
            jvm = self._context._jsc.sc()
            found = profile._java_resource_profile if profile is not None else None
            return int(jvm.maxNumConcurrentTasks(found or jvm.resourceProfileManager().defaultResourceProfile()))
        except Exception:  # no part of Spark's public interface
            return -1

    def _watch_executors(self) -> None:
        """Tell of executors that Spark has lost, and why, and of how many there are."""
        while not self._is_over:
            with contextlib.suppress(Exception):  # the context is being stopped
                executors = self._context._jsc.sc().statusStore().executorList(False)
                there = {"executors": 0, "cores": 0, "busy": 0}
                for each in (executors.apply(number) for number in range(executors.size())):
                    if each.isActive() and each.id() != "driver":
                        there["executors"] += 1
                        there["cores"] += each.totalCores()
                        there["busy"] += each.activeTasks()
                    elif not each.isActive() and each.id() not in self._lost:
                        reason = each.removeReason()
                        self._lost[each.id()] = str(reason.get()) if reason.isDefined() else ""
                        self._tell(lost=each.id(), reason=self._lost[each.id()])
                if there != self._there:
                    self._there = there
                    self._tell(**there)
            time.sleep(POLL_S)


def _group(ask: str) -> str:
    return f"howdah {ask}"


def _resource_profile(order: dict[str, Any]) -> Any:
    """Return the profile for one container in each task; None where the application's own defaults do."""
    if not order.get("profile"):
        return None
    wanted = order["profile"]
    task = TaskResourceRequests().cpus(wanted["vcores"])
    builder = ResourceProfileBuilder()
    if wanted["gpus"]:
        task.resource("gpu", wanted["gpus"])
    if wanted["memory_mib"]:  # executors of their own
        executor = ExecutorResourceRequests().cores(wanted["vcores"]).memory(wanted["heap"])
        executor.memoryOverhead(f"{wanted['memory_mib']}m")
        if wanted["gpus"]:
            executor.resource("gpu", wanted["gpus"], wanted["gpu_script"], wanted["gpu_vendor"])
        builder.require(executor)
    return builder.require(task).build


def _first_line(problem: Exception) -> str:
    text = str(getattr(problem, "java_exception", "") or problem)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(problem).__name__)


def main() -> None:
    """Open a context as spark-submit's options say, and serve at the socket of the first argument; the second one is
    the file that masters lock, the third one a file with more properties."""
    os.setpgid(0, 0)  # a signal to the master's group is the allocator's to hand on
    conf = SparkConf()
    for name, value in json.loads(Path(sys.argv[3]).read_text() if sys.argv[3:] else "{}").items():
        conf.set(name, value)
    context = SparkContext(conf=conf)
    context.setLogLevel("WARN")
    try:
        DriverServer(context, *map(Path, sys.argv[1:3])).serve()
    finally:
        context.stop()


if __name__ == "__main__":
    main()
