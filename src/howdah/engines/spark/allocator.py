"""The allocator beside Spark's driver: a container is a task of Spark, and each ask is a stage of its own.

A stage is plain, not a barrier one: when an executor is lost, Spark runs its task again, and the others run on.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
import os
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from howdah.engines import GONE, NO_PREFERENCES, ContainerPreferences, MasterContext, PendingReason
from howdah.engines.detached_master import DetachedMasterAllocator
from howdah.engines.event_queue import EventQueue
from howdah.engines.exit_status import exit_of_status
from howdah.engines.options import engine_options
from howdah.engines.spark.cluster import find_cluster
from howdah.engines.spark.driver_link import DriverLink
from howdah.engines.spark.properties import application_properties, resource_profile
from howdah.errors import HowdahError
from howdah.hadoop import conf as hadoop_conf
from howdah.hadoop.identity import is_secure
from howdah.spec import Container, Exit, JobSpec, Outcome
from howdah.spec.events import Allocated, AllocationLost, ContainerEnded, Event, Noted
from howdah.spec.message import message
from howdah.staging.bootstrap_archive import bootstrap_archive
from howdah.wire.launch_messages import STORES_LOGS, Greeting

POLL_S, END_S = 1.0, 10.0
KILL_AFTER_S = 1.0
"""How long an executor may take to leave by itself."""
IDLE_LIMIT_S = 5.0
"""How long a task that nobody has asked for is kept."""
_PLACE = ("application", "stage", "partition", "executor")
_TOO_MUCH_MEMORY = re.compile("exceeding (physical|virtual) memory limits|OOMKilled")
"""What Spark says of executors that YARN or Kubernetes has killed for it."""
MAX_ERRORS = 3
"""Stages in turn that end with an error before any of their tasks has started."""


@dataclasses.dataclass(eq=False)
class Ask:
    """Containers that Spark was asked for together: a stage."""

    id: str
    role: str
    count: int
    memory_mib: int
    """The memory of each container in MiB."""
    is_fed: bool = False
    """Whether its tasks of Spark end as soon as their containers run something."""
    started: set[str] = dataclasses.field(default_factory=set)
    """The partitions of which a task has started."""


@dataclasses.dataclass(eq=False)
class SparkTask:
    """A container that has started, and the task of Spark that it is."""

    container: Container
    ask: str
    partition: str
    executor: str
    """The number of Spark's executor."""
    is_fed: bool = False
    """Whether the task of Spark is over while the container runs."""
    is_released: bool = False


@dataclasses.dataclass(eq=False)
class IdleTask:
    """A task of Spark that has started, and that the master has not been granted."""

    ask: Ask
    facts: Mapping[str, str]
    since: float
    """When it started, on the monotonic clock."""


def place_in_spark(facts: Mapping[str, str]) -> dict[str, str]:
    """Return where in Spark a container is; beside the driver there is no stage."""
    return {name: facts[name] for name in _PLACE if facts.get(name)}


def _believes_names(conf_dir: str) -> bool:
    """Return whether programs shall tell Hadoop their user's name. A configuration that cannot be read is none: a job
    without files of Hadoop does without, and another one has been told at its submission."""
    with contextlib.suppress(HowdahError):
        return bool(conf_dir) and not is_secure(hadoop_conf.load(conf_dir))
    return False


class SparkAllocator(DetachedMasterAllocator):
    """Grants the tasks that Spark has started."""

    engine = "spark"

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context)
        staged = context.staged
        self._job, self._queue = staged.job, EventQueue()
        self._options = engine_options(staged.job, staged.settings, "spark")
        self._cluster = find_cluster(staged.settings, os.environ)
        self._names_user = _believes_names(staged.settings.get("hadoop_conf_dir", ""))
        self._properties = application_properties(staged.job, self._options, context)
        given = self._options["driver_socket"]
        self._is_own_driver = not given
        path = given or self._control / "driver.sock"
        self._driver = DriverLink(Path(path), self._control / "driver.log")
        self._asks: dict[str, Ask] = {}
        self._tasks: dict[str, SparkTask] = {}
        self._idle: dict[str, IdleTask] = {}
        self._wanted: dict[str, tuple[int, ContainerPreferences]] = {}
        self._number = self._errors = 0
        self._is_ending = False
        self._known, self._has_room = asyncio.Event(), False
        self._running: set[str] = set()
        self._seen: set[str] = set()
        # What was heard of containers that an earlier master had, before this one adopts them.
        self._ends: dict[str, Exit] = {}
        self._lost: dict[str, str] = {}
        self._waiting: dict[str, str] = {}
        """What keeps roles from getting their containers."""

    @classmethod
    async def open(cls, context: MasterContext) -> SparkAllocator:
        allocator = cls(context)
        if allocator._is_own_driver and allocator.attempt == 1:
            await allocator._driver.start(allocator._cluster, allocator._properties, allocator._control / "lock")
        await allocator._driver.connect()
        allocator.in_background(allocator._listen())
        await asyncio.wait_for(allocator._known.wait(), END_S)
        return allocator

    # What Spark tells

    async def _listen(self) -> None:
        async for event in self._driver.events():
            self._hear(event)
            self._driver.send(heard=True)
            self._queue.wake()
        if not self._is_ending:
            why = message("Spark's driver has ended: {reason}", reason=self._driver.last_words())
            self._queue.put(AllocationLost(time.time(), why, comes_back=False))

    def _hear(self, event: Mapping[str, Any]) -> None:
        if "application" in event:
            self._running = set(event["asks"])
            if event["speculation"]:
                why = message("spark.speculation must be false: Spark would start tasks of the job twice")
                self._queue.put(AllocationLost(time.time(), why, comes_back=False))
            text = message("Spark application {id}: {page}", id=event["application"], page=event["page"] or "-")
            self._queue.put(Noted(time.time(), text))
            self._has_room = bool(event["dynamic"])
            self._known.set()
        elif "ended" in event:
            task = self._tasks.get(event["ended"])
            exit = Exit("stopped") if task and task.is_released else exit_of_status(int(event["status"]))
            if task is None:
                self._ends[event["ended"]] = exit
                self._never_greeted(event["ended"], str(exit), event["lines"])
            self._end(event["ended"], exit)
        elif "lost" in event:
            self._lost[event["lost"]] = event["reason"]
            for task in [each for each in self._tasks.values() if each.executor == event["lost"]]:
                if task.ask in self._asks and not (task.is_released or task.is_fed):
                    self._asks[task.ask].started.discard(task.partition)  # Spark will start it again
                self._end(task.container.id, self._executor_lost(task, event["reason"]))
        elif "executors" in event:
            template = "Spark has {executors} executors with {cores} cores for this application; they run {busy} tasks"
            self._waiting[""] = message(template, **event)
            self._write("waiting.json", self._waiting)
        elif "slots" in event:
            self._check_room(event["ask"], int(event["slots"]))
        elif "over" in event:
            self._stage_over(event["over"], event["error"])

    def _never_greeted(self, container_id: str, exit: str, lines: str) -> None:
        """Ask for another task in place of one that has ended before its container spoke to the master."""
        ask = self._asks.get(container_id.rpartition("+")[0])
        if self._idle.pop(container_id, None) or ask is None or container_id in self._seen:
            return
        ask.count -= 1
        template = "a container ended before it had reached the master: {exit}: {lines}"
        self._failed(message(template, exit=exit, lines=lines or "it said nothing"))

    def _failed(self, why: str) -> None:
        """Tell what went wrong; the job's allocation is lost if nothing has started meanwhile."""
        self._errors += 1
        self._queue.note(why, why)
        if self._errors >= MAX_ERRORS:
            self._queue.put(AllocationLost(time.time(), why, comes_back=False))

    def _executor_lost(self, task: SparkTask, reason: str) -> Exit:
        template = "Spark's executor {executor} on {host} was lost: {reason}"
        why = " ".join(reason.split()) or "Spark does not say why"  # YARN's diagnostics have several lines
        facts = {"executor": task.executor, "host": task.container.node, "reason": why}
        cause = "memory" if _TOO_MUCH_MEMORY.search(reason) else "lost"
        return Exit("stopped") if task.is_released else Exit(cause, detail=message(template, **facts))

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        return [
            PendingReason("said", {"text": self._waiting[role]}) for role in ("", *missing) if role in self._waiting
        ]

    def _check_room(self, ask_id: str, slots: int) -> None:
        """Tell when Spark's executors have too few slots for what was asked for. The driver says how many there are,
        within half a minute, when their number has stayed the same."""
        ask = self._asks.get(ask_id)
        if ask is None or self._has_room or slots < 0:
            return
        if slots >= ask.count:
            if self._waiting.pop(ask.role, ""):
                self._write("waiting.json", self._waiting)
            return
        template = "{role}: {count} tasks of {vcores} cores are to run at the same time, and Spark's executors have room for {slots}"  # noqa: E501 - one sentence
        vcores = self._job.roles[ask.role].resources.vcores
        text = message(template, role=ask.role, count=ask.count, vcores=vcores, slots=slots)
        self._queue.note(text, f"{ask.role} {slots}")
        self._waiting[ask.role] = text
        self._write("waiting.json", self._waiting)

    def _stage_over(self, ask_id: str, error: str) -> None:
        ask = self._asks.pop(ask_id, None)
        for task in [each for each in self._tasks.values() if each.ask == ask_id and not each.is_fed]:
            exit = Exit("lost", detail=message("its stage in Spark ended: {reason}", reason=error or "no reason given"))
            self._end(task.container.id, Exit("stopped") if task.is_released or not error else exit)
        if ask is None or not error:
            return
        if ask.started:
            self._errors = 0
        self._failed(message("Spark: {reason}", reason=error))

    def _end(self, container_id: str, exit: Exit) -> None:
        if self._tasks.pop(container_id, None):
            self._queue.put(ContainerEnded(time.time(), container_id, exit))
            self._write_tasks()

    def greeted(self, container_id: str, greeting: Greeting) -> None:
        super().greeted(container_id, greeting)
        ask = self._asks.get(container_id.rpartition("+")[0])
        if container_id in self._tasks or container_id in self._idle:
            return
        if ask is None:  # of an earlier master, or over
            self.launches.withdraw(container_id)
            return
        partition = greeting.facts["partition"]
        for task in [each for each in self._tasks.values() if (each.ask, each.partition) == (ask.id, partition)]:
            self._end(task.container.id, self._executor_lost(task, ""))  # Spark does its work again
        ask.started.add(partition)
        self._seen.add(container_id)
        self._errors = 0
        self._idle[container_id] = IdleTask(ask, greeting.facts, time.monotonic())
        self._queue.wake()

    def _grant(self) -> None:
        """Grant the tasks that have started, or let them end: Spark may have started one again whose end the master
        has not heard yet, and a task on a host to avoid keeps Spark from offering its slot once more."""
        for container_id, idle in list(self._idle.items()):
            role, node = idle.ask.role, idle.facts["node"]
            count, preferences = self._wanted.get(role, (0, NO_PREFERENCES))
            fits = idle.ask.memory_mib == self._memory_of(role)
            if count > 0 and fits and node not in preferences.avoid:
                del self._idle[container_id]
                resources = dataclasses.replace(self._job.roles[role].resources, memory_mib=idle.ask.memory_mib)
                facts = idle.facts
                container = Container(container_id, node, role, resources, engine_facts=place_in_spark(facts))
                self._tasks[container_id] = SparkTask(
                    container, idle.ask.id, facts["partition"], facts["executor"], idle.ask.is_fed
                )
                self._wanted[role] = (count - 1, preferences)
                if count == 1 and self._waiting.pop(role, ""):
                    self._write("waiting.json", self._waiting)
                self._write_tasks()
                self._queue.put(Allocated(time.time(), container))
            elif not fits or (count <= 0 and time.monotonic() - idle.since > IDLE_LIMIT_S):
                del self._idle[container_id]
                self.launches.withdraw(container_id)

    def _memory_of(self, role: str) -> int:
        _, preferences = self._wanted.get(role, (0, NO_PREFERENCES))
        return preferences.memory_mib or self._job.roles[role].resources.memory_mib

    # Takeover

    def _write_tasks(self) -> None:
        """Write down what the next master has to know of the containers."""
        known = {id_: [task.ask, task.partition, task.executor, task.is_fed] for id_, task in self._tasks.items()}
        self._write("tasks.json", known)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        fresh = self._control / f"{name}.new"
        fresh.write_text(json.dumps(content))
        fresh.replace(self._control / name)

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        known: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError):
            known = json.loads((self._control / "tasks.json").read_text())
        gone = {}
        for container in containers:
            ask, partition, executor, is_fed = known.get(container.id, ("", "", "", False))
            task = SparkTask(container, ask, partition, executor, is_fed)
            if container.id in self._ends:
                gone[container.id] = self._ends[container.id]
            elif executor in self._lost:
                gone[container.id] = self._executor_lost(task, self._lost[executor])
            elif is_fed or ask in self._running:
                self._tasks[container.id] = task
            else:
                gone[container.id] = Exit("withdrawn", detail=GONE)
        for ask in self._running - {task.ask for task in self._tasks.values()}:
            self._driver.send(cancel=ask)
        return gone

    # Requests

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        self._wanted[role] = (count, preferences)
        self._queue.wake()

    async def poll(self) -> list[Event]:
        return await self._queue.next_events(self._advance, POLL_S)

    async def _advance(self) -> float:
        self._grant()
        for role, (count, _) in self._wanted.items():
            memory = self._memory_of(role)
            mine = [ask for ask in self._asks.values() if ask.role == role and len(ask.started) < ask.count]
            fitting = [ask for ask in mine if ask.memory_mib == memory]
            waiting = sum(ask.count - len(ask.started) for ask in fitting)
            for ask in mine:
                if (ask not in fitting or count <= 0) and not ask.started:
                    self._driver.send(cancel=ask.id)
                    del self._asks[ask.id]
            if count > waiting:
                self._ask(role, count - waiting, memory)
        return POLL_S

    def _ask(self, role: str, count: int, memory_mib: int) -> None:
        self._number += 1
        is_fed = role in self._options["feeding"]
        ask = Ask(f"{self._context.job_id}.{self.attempt}.{self._number}", role, count, memory_mib, is_fed)
        self._asks[ask.id] = ask
        order = {
            "ask": ask.id,
            "key": self.launches.key_of(ask.id).hex(),
            "variables": {name: value for name, value in self.bootstrap_environment("").items() if value},
            "archive": base64.b64encode(bootstrap_archive()).decode(),
            "python": self._context.staged.settings.get("python", ""),
            "background": is_fed,
            "names_user": self._names_user,
        }
        text = f"howdah {self._context.job_id}: {count} × {role}"
        profile = resource_profile(self._job.roles[role].resources, memory_mib, self._properties)
        beside = role in self._options["beside_driver"]
        self._driver.send(start=ask.id, count=count, order=order, text=text, profile=profile, beside_driver=beside)

    def bootstrap_environment(self, container_id: str) -> Mapping[str, str]:
        # The directory of a Spark task goes with it, wherever the home is.
        return {**super().bootstrap_environment(container_id), STORES_LOGS: "1"}

    def release(self, container_id: str, cause: str = "") -> None:
        task = self._tasks.get(container_id)
        self.launches.withdraw(container_id)
        if task is not None and not task.is_released:
            task.is_released = True
            asyncio.get_running_loop().call_later(0.0 if cause else KILL_AFTER_S, self._kill, container_id)

    def _kill(self, container_id: str) -> None:
        task = self._tasks.get(container_id)
        if task is not None and task.is_fed:  # its executor has heard of it from the master
            self._end(container_id, Exit("stopped"))
        elif task is not None:
            self._driver.send(kill=container_id.rpartition("+")[2], container=container_id, why="howdah released it")

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        self._wanted.clear()
        for container_id in list(self._tasks):
            self.release(container_id)
        await self._queue.wait_while(lambda: self._tasks, END_S, END_S)
        self._is_ending = True
        for ask in self._asks:
            self._driver.send(cancel=ask)
        await self._driver.close(self._is_own_driver, END_S)
        self.remove_secrets()
