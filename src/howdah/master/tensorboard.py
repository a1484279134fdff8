"""Runs the job's TensorBoard as a gang of one task, apart from the job's own gang: its failures do not touch the job.

It has a state of its own, which the same `step` changes, and a container of its own from the same allocator, which
knows the role by `with_tensorboard_role`. An executor in that container runs the command of
`howdah.wire.tensorboard_command`, which starts `python -m howdah.tensorboard`. The job's log has only its
`BoardChanged` events.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import howdah
from howdah.eventfiles import locations
from howdah.frameworks import find
from howdah.master.broadcast import Broadcast
from howdah.master.decisions import actions
from howdah.master.decisions.executor_orders import OrderBuilder, is_up_to_date
from howdah.master.decisions.step import step
from howdah.master.state import GangState
from howdah.spec import JobSpec, Outcome, Resources, Role, StagedFile, StagedJob, TaskId, Timeouts, events, uris
from howdah.spec.codec import decode
from howdah.spec.message import message
from howdah.spec.staged import IMPORT_PATH
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem
from howdah.wire import auth
from howdah.wire.credentials import SECRET_PREFIX
from howdah.wire.messages import Orders, Status
from howdah.wire.tensorboard_command import INSTALLED, READY, VARIABLE, argv, link

NAMES = ("tensorboard", "howdah-tensorboard")
IDLE_S, WAIT_S = 1800.0, 300.0
SIZE = Resources(1024)


def with_tensorboard_role(staged: StagedJob) -> StagedJob:
    """Return the job with the role of its TensorBoard, as the allocator must know it."""
    roles = {**staged.job.roles, name_of(staged.job): Role(resources=SIZE)}
    return replace(staged, job=replace(staged.job, roles=roles))


def resolve_event_dir(job: JobSpec, job_id: str, directory: str) -> JobSpec:
    """Return the job with the directory of its event files as a URI; copies of local event files are in the job's own
    directory by default."""
    board = job.board
    where = board.path.replace("{job}", job_id).replace("%7Bjob%7D", job_id)
    if board.local and not where:
        where = uris.join(directory, "board")
    return replace(job, board=replace(board, path=where))


def name_of(job: JobSpec) -> str:
    """Return the role's name, which no role of the job has."""
    return next(name for name in NAMES if name not in job.roles)


class TensorBoardTask:
    """Runs the TensorBoard of a job. `record` adds an event to the job's log, `perform` carries out actions. `state` is
    None while there is no TensorBoard."""

    def __init__(
        self,
        job_id: str,
        staged: StagedJob,
        key: bytes,
        record: Callable[[events.Event], None],
        perform: Callable[[Iterable[actions.Action]], None],
    ) -> None:
        self.id, self.staged, self.record, self.perform = job_id, staged, record, perform
        self.name = name_of(staged.job)
        self.task_name = str(self.task)
        self.token = auth.tensorboard_token(key)
        self.state: GangState | None = None
        self.order_builder: OrderBuilder | None = None
        self.files: tuple[StagedFile, ...] = ()
        self.last = events.BoardChanged(0.0, "")
        self._orders_changed = Broadcast()
        self._attempts, self._opening = 0, False

    @property
    def task(self) -> TaskId:
        """Return the only task."""
        return TaskId(self.name, 0)

    @property
    def secrets(self) -> dict[str, bytes]:
        """Return the secrets that only TensorBoard's container gets."""
        return {SECRET_PREFIX + VARIABLE: self.token.encode()}

    @property
    def containers(self) -> tuple[str, ...]:
        """Return the containers that it holds."""
        return tuple(self.state.containers) if self.state is not None else ()

    def owns_event(self, event: events.Event) -> bool:
        """Return whether the event is about TensorBoard's container, not about the job's."""
        if isinstance(event, events.Allocated):
            return event.container.role == self.name
        if isinstance(event, actions.StatusReceived):
            return event.status.task == self.task_name
        return (
            isinstance(event, events.ContainerEnded)
            and self.state is not None
            and event.container_id in self.state.containers
        )

    def apply(self, event: events.Event) -> None:
        """Let `step` decide, and drop the actions that would only write to this gang's own log."""
        if self.state is None:
            if isinstance(event, events.Allocated):
                self.perform([actions.ReleaseContainer(event.container.id)])
            return
        decided = step(self.state, event)
        own = (actions.RequestContainers, actions.LaunchTask, actions.ReleaseContainer)
        self.perform([action for action in decided if isinstance(action, own)])
        self._orders_changed.notify_all()
        for action in decided:
            if isinstance(action, actions.RecordEvent):
                self._observe(action.event)
            elif isinstance(action, actions.Finish):
                self._finish(action.outcome)

    async def heartbeat(self, status: Status, wait_s: float) -> Orders | None:
        """Return orders for its executor, once they have changed or after `wait_s`; None when it is not wanted."""
        until = asyncio.get_running_loop().time() + wait_s
        if self._is_wanted(status):
            self.apply(actions.StatusReceived(time.time(), status))
        while self._is_wanted(status):
            assert self.order_builder is not None
            assert self.state is not None
            orders = self.order_builder.orders(self.state, status)
            if not is_up_to_date(orders, status) or not await self._orders_changed.wait_until(until):
                return orders
        return None

    def _is_wanted(self, status: Status) -> bool:
        task = self.state.tasks[self.task] if self.state is not None else None
        if task is None or task.attempt != status.attempt or task.container is None:
            return False
        return status.container in ("", task.container.id)  # an earlier master counted its attempts, too

    async def open(self, view: JobView, idle_s: float = IDLE_S) -> None:
        """Start TensorBoard unless it runs; it ends when it got no request for `idle_s`.

        Raises:
            HowdahError: its environment cannot be searched.
        """
        if self.state is not None or self._opening:
            return
        self._opening = True
        try:
            self.files, path = await _environment(self.staged)
        finally:
            self._opening = False
        job = self._job(view, "python3" if path else sys.executable, idle_s)
        self.state = GangState.for_job(self.id, job)
        self.state.tasks[self.task].attempt = self._attempts
        framework = find(job.framework)
        staged = replace(self.staged, job=framework.expand(job), files=self.files, inputs=(), program_path=path)
        self.order_builder = OrderBuilder(self.id, staged, framework)
        self._record_change("starting")
        self.apply(
            events.JobStarted(
                time.time(), id=self.id, engine=view.engine, user=view.user, job=job, one_machine=view.one_machine
            )
        )

    def take_over(self, view: JobView) -> bool:
        """Record the end of an earlier master's TensorBoard: its container is not kept. Return whether it ran, and the
        job asks for another."""
        runs = view.tensorboard.state in ("starting", "open")
        if runs:
            self._record_change("ended", detail=message("another master took over"))
        return runs and self.staged.job.board.show

    def close(self, by: str) -> None:
        """End TensorBoard."""
        self.apply(events.CancelRequested(time.time(), by))

    @property
    def link(self) -> str:
        """Return its address with the access token; "" while it is not open."""
        last = self.last
        return link(last.host, last.port, self.token) if last.state == "open" else ""

    def _job(self, view: JobView, python: str, idle_s: float) -> JobSpec:
        request = {
            "places": dict(locations.event_file_locations(view)),
            "host": "0.0.0.0",  # noqa: S104 - the token admits users from anywhere
            "idle_s": idle_s,
            "title": view.job.name if view.job else self.id,
        }
        command = argv(python, (IMPORT_PATH, str(Path(howdah.__file__).parents[1])), request)
        port = self.staged.job.board.port
        role = Role(command, resources=SIZE, tracked=True, on_failure="fail", yields={"AT": READY})
        return JobSpec(
            {self.name: role},
            name=f"TensorBoard of {self.id}",
            secrets={VARIABLE: f"env:{VARIABLE}"},
            timeouts=Timeouts(gang_s=WAIT_S, hold_s=WAIT_S),
            environment=replace(self.staged.job.environment),
            node_label=self.staged.job.node_label,
            port_range=f"{port}-{port}" if port else self.staged.job.port_range,
        )

    def _observe(self, event: events.Event) -> None:
        if isinstance(event, events.Launched):
            self._attempts = event.attempt
        elif isinstance(event, events.WorldFormed):  # no event log records it, and it may start twice
            self.apply(actions.StartRecorded(event.time, event.epoch))
        elif isinstance(event, events.Yielded) and self.state is not None:
            task = self.state.tasks[self.task]
            self._record_change("open", task.host, task.ports["main"])

    def _record_change(self, state: str, host: str = "", port: int = 0, detail: str = "") -> None:
        self.last = events.BoardChanged(time.time(), state=state, host=host, port=port, detail=detail)
        self.record(self.last)

    def _finish(self, outcome: Outcome) -> None:
        exit = self.state.tasks[self.task].exit if self.state is not None else None
        last = exit.lines[-1] if exit is not None and exit.lines and exit.cause == "exit" and exit.code else ""
        held = self.containers
        self.state = self.order_builder = None
        self.perform([actions.ReleaseContainer(id_) for id_ in held])
        self._record_change("ended", detail=last or outcome.diagnostics or "no request for a while")


async def _environment(staged: StagedJob) -> tuple[tuple[StagedFile, ...], tuple[str, ...]]:
    """Return the files and the start of PATH: the environment that `howdah tensorboard` has installed, else the job's
    own."""
    installed = await asyncio.to_thread(_find_installed_environment, staged.home)
    if installed is None:
        tops = {path.split("/")[0] for path in staged.program_path}
        return tuple(file for file in staged.files if file.name.split("/")[0] in tops), staged.program_path
    if installed.kind == "directory":
        return (), (uris.path(installed.uri),)
    return (installed,), (f"{installed.name}/bin",)


def _find_installed_environment(home: str) -> StagedFile | None:
    files, uri = filesystem(home), uris.join(home, INSTALLED)
    if not files.exists(uri):
        return None
    try:
        installed = decode(StagedFile, json.loads(files.read_bytes(uri)))
    except (ValueError, TypeError, KeyError):
        return None
    found = filesystem(installed.uri).stat(installed.uri)
    return None if found is None else replace(installed, size=found.size, modified_ms=found.modified_ms)
