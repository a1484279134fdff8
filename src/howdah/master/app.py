"""The master's one loop: it takes events, lets `step` decide, and carries out the actions in order."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from howdah.api.async_tasks import cancel_all
from howdah.engines import Allocator, AttemptOver, Launch, MasterContext
from howdah.engines.pull_launch import LaunchOffers
from howdah.errors import HowdahError
from howdah.frameworks import find, key_variable
from howdah.inputs.streaming.split_assignment import hosts_with_data
from howdah.master import garbage_collection
from howdah.master.clock_monitor import ClockMonitor
from howdah.master.decisions import actions
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.master.decisions.heartbeat_timeouts import FENCE_S
from howdah.master.decisions.step import step
from howdah.master.end_notice import tell_end
from howdah.master.event_log import LAST_S, EventLog
from howdah.master.health import stack_dumps
from howdah.master.health.stragglers import Stragglers
from howdah.master.helper_process import COMMIT_AGAIN_S, BackgroundAction, commit, run_action
from howdah.master.job_directory import publish_master_address, remove_job_key
from howdah.master.owned_file import LogOwnerChanged
from howdah.master.recovery import replay
from howdah.master.server.listening import bind_with_retry
from howdah.master.server.resource_metrics import MetricsRecorder
from howdah.master.server.server import MasterServer
from howdah.master.state import GangState
from howdah.master.tensorboard import TensorBoardTask, resolve_event_dir, with_tensorboard_role
from howdah.master.waiting import record_waits
from howdah.spec import Exit, Outcome, StagedJob, State, TaskId, events, port_range
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.storage.retry import retry_until
from howdah.wire import auth
from howdah.wire.clock import since_boot
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX
from howdah.wire.launch_messages import executor_command
from howdah.wire.messages import Phase

PYTHON = f"{sys.version.split()[0]} {sys.executable}"
TICK_S = 0.5
"""Seconds between two checks of deadlines; a failure is noticed this much later at most."""
CONFIRM_EVERY_S, CONFIRMED_S = 1.0, 2.0
"""Seconds between two checks that the event log is still this master's own, and seconds for which such a check counts.
The sum is not more than TAKEOVER_S."""
ENGINE_SILENT_S = 3.0
"""Seconds without an answer of the engine after which the master checks whether the event log is still its own.
Engines answer every second."""
CLAIM_S = 0.5
"""If claiming the event log takes longer, the excess is added to all deadlines, as leases may have been renewed."""
HAND_OVER_S = 5.0
"""Limit in seconds for writing the files of a master that leaves the job to the next one."""
LINGER_S = 0.1
"""Seconds for which the API still answers after the end, so that a client that follows the job gets the last event."""
FOLLOWED_S, LAST_LINES_S = 3.0, 0.3
"""A client that has followed the job within FOLLOWED_S seconds gets LAST_LINES_S seconds to read the last lines."""


@dataclass(frozen=True)
class MasterIdentity:
    """What the master was started with."""

    job_id: str
    """The job's id."""
    engine: str
    """The name of the engine that runs the job."""
    directory: str
    """The URI of the job's directory."""
    host: str
    """The name or address by which others reach this master."""
    staged: StagedJob
    """The job with all of its staged files."""
    key: bytes
    """The job key, from which all signing keys are derived."""
    secrets: dict[str, bytes]
    """The values of the user's secret variables, by name."""
    listen: str = ""
    """The address at which this master listens; "" for `host`, which may be the name of something in front of it."""


class JobMaster:
    """Runs one job to its end."""

    def __init__(self, identity: MasterIdentity, allocator: type[Allocator], again_s: float = COMMIT_AGAIN_S) -> None:
        framework = find(identity.staged.job.framework)
        self.identity, self.allocator_class, self._commit_again_s = identity, allocator, again_s
        job = resolve_event_dir(framework.expand(identity.staged.job), identity.job_id, identity.directory)
        self.staged = replace(identity.staged, job=job)
        hosts, extra_s = hosts_with_data(self.staged), allocator.extra_start_s(job)
        self.state = GangState.for_staged_job(identity.job_id, self.staged, hosts, extra_s)
        image_check = allocator.image_check if allocator.runs_images else None
        self.order_builder = OrderBuilder(identity.job_id, self.staged, framework, image_check=image_check)
        self.log = EventLog(identity.directory)
        self.metrics_recorder = MetricsRecorder(identity.directory, self.state.tasks)
        self.tensorboard = TensorBoardTask(
            identity.job_id, self.staged, identity.key, self.log.append, self._perform_all
        )
        self.launches = LaunchOffers(identity.key, self.staged.files, self.staged.runtime)
        self.api = MasterServer(
            job_key=identity.key,
            directory=identity.directory,
            state=self.state,
            order_builder=self.order_builder,
            log=self.log,
            tensorboard=self.tensorboard,
            metrics_recorder=self.metrics_recorder,
            apply=self.apply,
            trusts_proxy_request=self._trusts_proxy_request,
            is_the_master=self._is_the_master,
            launches=self.launches,
        )
        self.stragglers = Stragglers(self.api.program_api.metrics.steps.get)
        self.clock = ClockMonitor(TICK_S)
        self.allocator: Allocator | None = None
        self.registered, self._confirmed_at = False, -math.inf
        self.context: MasterContext | None = None
        self._finished: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._committing: asyncio.Task[Any] | None = None

    async def run(self) -> Outcome:
        """Serve, register, form the gang, supervise it to the end, and unregister."""
        garbage_collection.tune(len(self.state.tasks))
        await self._serve()
        await self._register()
        self.registered = True
        waits = record_waits(self.state, self._opened_allocator, self.log.append, self.log.view.waiting)
        background = (self._poll(), self._tick(), self.log.flush_forever(), self._confirm_ownership(), waits)
        for work in (*background, self.api.program_api.expire_forever()):
            self._spawn(work)
        outcome = await self._end()
        await self._shut_down(outcome)
        return outcome

    async def _end(self) -> Outcome:
        """Return the job's outcome once it is decided.

        Raises:
            AttemptOver: the job is left to the next master.
        """
        try:
            return await self._finished
        except Exception as error:
            if self._has_no_files():
                self.apply(_files_removed())
            if not self.state.handed_over:
                raise
            await self._hand_over()
            raise AttemptOver(str(error)) from error

    @property
    def _opened_allocator(self) -> Allocator:
        assert self.allocator is not None  # `_register` has opened it
        return self.allocator

    def signalled(self, name: str) -> None:
        """Apply the engine's meaning of the signal `name`, which this process has received and has `registered`."""
        event, pause_s = self._opened_allocator.signalled(name), self._opened_allocator.signal_pause_s
        asyncio.get_running_loop().call_later(pause_s, self.apply, event)

    def _is_the_master(self) -> bool:
        """Return whether no other master can run the job: the engine has heard this master lately, or the event log was
        read lately and was still this master's own. Executors that get no orders end when their lease is over, and the
        next master waits for the end of the leases."""
        return not self._opened_allocator.may_be_replaced() or since_boot() - self._confirmed_at < CONFIRMED_S

    async def _confirm_ownership(self) -> None:
        """Check the owner of the event log while the engine does not answer, since the engine may have started another
        master, which makes the log its own.

        Raises:
            LogOwnerChanged: another master owns the log.
        """
        while not self._finished.done():
            asked = since_boot()
            unheard = self._opened_allocator.silent_s() > ENGINE_SILENT_S or self._opened_allocator.may_be_replaced()
            if unheard and await self.log.confirm():
                self._confirmed_at = asked
            await asyncio.sleep(CONFIRM_EVERY_S)

    def _has_no_files(self) -> bool:
        """Return whether the node has removed the files that this master runs from, because its engine has forgotten
        the container: then no other module can be imported, and no helper process starts."""
        return self.allocator is not None and self.allocator.restarts and not Path(__file__).exists()

    async def _hand_over(self) -> None:
        """Leave the job as it is to the next master: its containers and key stay, and the log is written as far as
        possible."""
        self._server.close()
        flushes = (self.log.flush(0.0), self.metrics_recorder.journal.flush(), self.api.program_api.journal.flush())
        with contextlib.suppress(HowdahError, asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*flushes), HAND_OVER_S)
        await self.close()

    def fail(self, error: Exception) -> Outcome:
        """Record that the master itself failed, as the end of the job, unless an end is recorded already."""
        if self.log.view.outcome is not None:
            return self.log.view.outcome
        reason = message("the master failed: {reason}", reason=str(error) or type(error).__name__)
        outcome = Outcome(State.FAILED, reason)
        self.log.append(events.JobFinished(time.time(), outcome))
        return outcome

    async def _serve(self) -> None:
        host, ports = self.identity.host, port_range.ports(self.staged.job.port_range)
        listen = self.identity.listen or host
        self._server = await bind_with_retry(self.api.handle, self.api.identify, listen, ports)
        port = self._server.sockets[0].getsockname()[1]
        self.api.hosts = {f"{name}:{port}" for name in (host, "127.0.0.1", "localhost")}
        staged, directory = with_tensorboard_role(self.staged), self.identity.directory
        self.context = MasterContext(self.identity.job_id, staged, directory, host, port, self.launches)

    async def _register(self) -> None:
        assert self.context is not None
        self.allocator = await self.allocator_class.open(self.context)
        self.api.hosts.update(self.allocator.page_hosts)
        if self.allocator.attempt > 1 and await self._take_over():
            return
        self.clock.begin()
        anew = self.allocator.attempt > 1
        if anew:  # without a log, the other files of an earlier master count for nothing
            for journal in (self.metrics_recorder.journal, self.api.program_api.journal):
                await asyncio.to_thread(journal.clear)
        identity, now = self.identity, time.time()
        self.metrics_recorder.begin(now, now)
        self.apply(
            events.JobStarted(
                now,
                id=identity.job_id,
                engine=identity.engine,
                user=self.staged.user,
                job=replace(self.staged.job, queue=self.staged.job.queue or self.allocator.queue),
                host=identity.host,
                python=PYTHON,
                submission=self.staged.submission,
                one_machine=self.allocator.one_machine,
                fenced_until=now + FENCE_S if anew else 0.0,
            )
        )
        if anew:
            template = (
                "attempt {number} of the master found no event log: the job begins anew, when what may still run has "
                "ended"
            )
            self.log.append(events.Noted(now, message(template, number=self.allocator.attempt)))
        if not identity.directory.startswith(("hdfs:", "viewfs:")):  # slow there, and the engine knows the address
            await asyncio.to_thread(retry_until, partial(publish_master_address, identity.directory, self.context.url))

    async def _take_over(self) -> bool:
        """Resume the job where an earlier master was killed; return False when that one had not begun the job."""
        assert self.context is not None
        attempt = self._opened_allocator.attempt

        def took_over() -> events.TookOver:
            self.clock.begin()  # no executor is silent before it can have heard of this master
            return events.TookOver(time.time(), attempt=attempt, host=self.identity.host, python=PYTHON)

        log = await self.log.take_over(took_over)
        if len(log) < 2:  # a log without a complete line says nothing
            await self._opened_allocator.adopt(())
            return False
        now = log.pop().time
        left = replay(self.state, log, now, fences=not self._opened_allocator.kills_what_is_gone)
        if (claiming := self.clock.since_begin()) > CLAIM_S:
            self.clock.begin()
            left += step(self.state, events.TimeLost(now, claiming))
        await asyncio.to_thread(retry_until, partial(self.metrics_recorder.begin, self.log.view.started, now, True))
        containers = [task.container for task in self.state.tasks.values() if task.container]
        ends = await self._opened_allocator.adopt(containers)
        for action in left:
            self._perform(action)
        for container_id, exit in ends.items() if not self._finished.done() else ():
            exit = exit if self.state.open else Exit("stopped", detail=exit.detail)
            certain = self._opened_allocator.kills_what_is_gone
            self.apply(events.ContainerEnded(now, container_id, exit, certain=certain))
        await self.api.program_api.restore(log)
        if self.tensorboard.take_over(self.log.view) and self.state.open:
            self._spawn(self._update_tensorboard())
        await asyncio.to_thread(retry_until, partial(publish_master_address, self.identity.directory, self.context.url))
        return True

    def _trusts_proxy_request(self, peer: str, proxy_user: str) -> bool:
        return self.allocator is not None and self.allocator.trusts_proxy_request(peer, proxy_user)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` beside the loop; an error in it ends the master instead of being lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None or self._finished.done():
            return
        if self._committing is not None and task is not self._committing and not isinstance(error, LogOwnerChanged):
            # The outcome is in the log, and outputs move: that is the job's end, whatever goes wrong elsewhere.
            print(f"while outputs were committed: {error}", file=sys.stderr, flush=True)
            return
        self._finished.set_exception(error)

    async def _poll(self) -> None:
        while not self._finished.done():
            for event in await self._opened_allocator.poll():
                if isinstance(event, events.ContainerEnded) and (task := self.api.task_logs.missing_last_lines(event)):
                    self._spawn(self._apply_container_end(task, event))
                else:
                    self.apply(event)

    async def _apply_container_end(self, task: TaskId, event: events.ContainerEnded) -> None:
        """Apply the end of a container with the program's last output, which its executor cannot send any more."""
        lines = await self.api.task_logs.last_lines(task)
        self.apply(replace(event, exit=replace(event.exit, lines=lines)))

    async def _tick(self) -> None:
        while not self._finished.done():
            await asyncio.sleep(TICK_S)
            now = time.time()
            self.apply(actions.Tick(now))
            for event in self.stragglers.check(self.state, now):
                if event is None:
                    await asyncio.sleep(0)
                else:
                    self.log.append(event)
            if self.metrics_recorder.tick(now):
                self._spawn(self.metrics_recorder.journal.flush())
            if self.allocator is not None:
                self.allocator.progress = self.log.view.progress

    def apply(self, event: events.Event) -> None:
        """Let `step` decide on `event`, and carry out the actions that it returns."""
        if lost := self.clock.elapsed_gap():
            gone = events.TimeLost(event.time, lost)
            self._perform_all(step(self.state, gone))
            self.tensorboard.apply(gone)
        if self.tensorboard.owns_event(event):
            return self.tensorboard.apply(event)
        if isinstance(event, actions.Tick):
            self.tensorboard.apply(event)
        if isinstance(event, actions.StatusReceived) and event.status.phase is Phase.RUNNING:
            self.metrics_recorder.add_sample(TaskId.parse(event.status.task), event.status.usage, event.time)
        self._perform_all(step(self.state, event))

    def _perform_all(self, decided: Iterable[actions.Action]) -> None:
        for action in decided:
            self._perform(action)

    def _perform(self, action: actions.Action) -> None:
        if isinstance(action, actions.RecordEvent):
            self.log.append(action.event)
            self.api.program_api.observe(action.event)
            if isinstance(action.event, events.WorldFormed):
                self._on_world_formed(action.event.epoch)
        elif isinstance(action, actions.NotifyExecutors):
            self.api.notify(action.tasks)
        elif isinstance(action, actions.RequestContainers):
            self._opened_allocator.request(action.role, action.count, action.preferences)
        elif isinstance(action, actions.ReleaseContainer):
            self._opened_allocator.release(action.container_id, action.cause)
        elif isinstance(action, actions.LaunchTask):
            self._spawn(self._launch(action))
        elif isinstance(action, actions.Commit):
            self._committing = self._spawn(self._commit_outputs(action.keep))
        elif isinstance(action, actions.CollectStacks):
            self._spawn(self._collect_stacks(action))
        elif isinstance(action, BackgroundAction):
            self._spawn(self._perform_in_background(action))
        elif isinstance(action, actions.HandOver):
            if not self._finished.done():
                self._finished.set_exception(AttemptOver(action.event.cause))
        elif isinstance(action, actions.Finish):
            if not self._finished.done():
                self._finished.set_result(action.outcome)
        else:
            raise TypeError(f"nothing carries out {action!r}")

    def _on_world_formed(self, epoch: int) -> None:
        if self.staged.job.board.show:
            self._spawn(self._update_tensorboard())
        if epoch in self.state.unrecorded:
            self._spawn(self._record_start(epoch))

    async def _launch(self, action: actions.LaunchTask) -> None:
        try:
            await self._opened_allocator.launch(action.container, self._executor(action))
        except (HowdahError, OSError) as error:
            self._opened_allocator.release(action.container.id, "start")
            exit = Exit("start", detail=message("its container could not be started: {reason}", reason=str(error)))
            self.apply(events.ContainerEnded(time.time(), action.container.id, exit))

    def _executor(self, action: actions.LaunchTask) -> Launch:
        assert self.context is not None
        key = auth.derive(self.identity.key, auth.executor_principal(str(action.task), action.attempt))
        environment = {
            "HOWDAH_MASTER": self.context.url,
            "HOWDAH_TASK": str(action.task),
            "HOWDAH_ATTEMPT": str(action.attempt),
            "HOWDAH_CONTAINER": action.container.id,
            "HOWDAH_JOB_ID": self.identity.job_id,
            "HOWDAH_DIRECTORY": self.identity.directory,
            "HOWDAH_LOG_LIMIT_MIB": self.staged.settings.get("log_limit_mib") or "1024",
            "HOWDAH_DATA_CACHE_MIB": self.staged.settings.get("data_cache_mib", ""),
            "HOWDAH_DATA_CACHE_DIR": self.staged.settings.get("data_cache_dir", ""),
        }
        if action.task == self.tensorboard.task:
            secrets, files = self.tensorboard.secrets, self.tensorboard.files
        else:
            files = self.staged.files_of(action.task.role)
            secrets = {SECRET_PREFIX + name: value for name, value in self.identity.secrets.items()}
            if variable := key_variable(self.order_builder.framework):
                secrets[SECRET_PREFIX + variable] = auth.gang_key(self.identity.key).encode()
        command = executor_command(self.staged.python)
        return Launch(action.task, action.attempt, command, environment, {**secrets, JOB_KEY: key}, files)

    async def _collect_stacks(self, action: actions.CollectStacks) -> None:
        log_of, directory = self.api.log_of, self.api.directory
        self.apply(await stack_dumps.investigate_stall(self.state, log_of, directory, action.tasks, action.stalled))

    async def _record_start(self, epoch: int) -> None:
        """Write the start of `epoch` to the log, within the limit for a gang; a full disk here holds nothing up."""
        limit_s = 0.0 if self.log.is_local else self.staged.job.timeouts.gang_s or math.inf
        written = await self.log.flush(limit_s) or self.log.is_local
        self.apply(actions.StartRecorded(time.time(), epoch, "" if written else self.log.problem))

    async def _update_tensorboard(self) -> None:
        """Start the TensorBoard that the job asks for; the job goes on without TensorBoard when this fails."""
        try:
            await self.tensorboard.open(self.log.view)
        except HowdahError as error:
            self.apply(events.Noted(time.time(), message("no TensorBoard: {reason}", reason=str(error))))

    async def _perform_in_background(self, action: BackgroundAction) -> None:
        event = await run_action(action, self.staged, self.identity.job_id)
        if event is not None:
            self.apply(event)

    async def _commit_outputs(self, keep: bool) -> None:
        await self._record_outcome()
        done = await commit(keep, self.state, self._commit_again_s)
        self.apply(_files_removed() if done.error and self._has_no_files() else done)

    async def _record_outcome(self) -> None:
        """Write the outcome to the event log before outputs move: the next master must not decide otherwise, and a
        master that was replaced must not decide at all. If the log cannot be written, try for a while, and for as long
        as another master may exist."""
        while not await self.log.confirm(LAST_S) and self._opened_allocator.may_be_replaced():
            continue

    async def _shut_down(self, outcome: Outcome) -> None:
        self.metrics_recorder.finish()
        written, _ = await asyncio.gather(self.log.flush(), self.metrics_recorder.journal.flush())
        if not written:
            lost = f"the end of its event log could not be written: {self.log.problem}"
            print(lost, file=sys.stderr, flush=True)
            outcome = replace(outcome, diagnostics="; ".join(filter(None, (outcome.diagnostics, lost))))
        told = tell_end(self.staged.job, self.identity.job_id, self.identity.secrets, outcome)
        await asyncio.gather(self.log.finish(), self.metrics_recorder.journal.finish(), told)
        if time.monotonic() - self.api.followed_at < FOLLOWED_S:
            await asyncio.sleep(LAST_LINES_S)
        for container_id in (*self.state.containers, *self.tensorboard.containers):
            self._opened_allocator.release(container_id)
        self.api.task_logs.stop_asking()
        if not self._opened_allocator.serves_after_end:
            await self.api.open_pages.wait_until_seen()
        try:
            await self._opened_allocator.unregister(outcome, self.log.view.progress)
        except HowdahError as error:  # the end is final: a further master reports it once more
            print(f"not unregistered: {error}", file=sys.stderr, flush=True)
        await asyncio.to_thread(self.api.program_api.discard)
        await asyncio.to_thread(remove_job_key, self.identity.directory)
        await asyncio.sleep(LINGER_S)
        if self._opened_allocator.serves_after_end:
            await self.api.open_pages.wait_until_closed()
        await self.close()

    async def close(self) -> None:
        """Close all files, connections and helper processes."""
        await cancel_all(lambda: self._tasks)
        self._server.close()
        await self.api.source.close()
        self.api.program_api.journal.close()
        self.metrics_recorder.journal.close()
        self.log.close()


def _files_removed() -> events.AllocationLost:
    return events.AllocationLost(time.time(), message("the node has removed the files that the master runs from"))
