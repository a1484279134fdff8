"""The allocator that runs inside the batch step: it distributes the places of its allocation, and starts a step
(`srun`) in a place for each container. The step runs the bootstrap, which asks this master what to run (docs/adr/0017).

The gang's allocation was granted as a whole before the master began. Missing places come from extra jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import shlex
import shutil
import signal
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import howdah
from howdah.engines import GONE, NO_PREFERENCES, ContainerPreferences, Launch, MasterContext, PendingReason
from howdah.engines.batch_job import CANCELLED_BY, read_words
from howdah.engines.batch_places import free_places, read_records, write_record
from howdah.engines.event_queue import EventQueue
from howdah.engines.job_directory import JobDirectory
from howdah.engines.kept_process import KeptProcess
from howdah.engines.options import engine_options
from howdah.engines.pull_launch import PullAllocator
from howdah.engines.shared_home import CONTAINERS, container_directory, make_container
from howdah.engines.slurm.batch_script import GUARD, OUTPUT, REQUEUE, WARNED_S
from howdah.engines.slurm.commands import RUNNING, SlurmCommands
from howdah.engines.slurm.extra_jobs import ExtraJobs
from howdah.engines.slurm.shapes import SlurmContainer, SlurmPlace, components, own_places, queue_options, shape_of
from howdah.engines.slurm.step_end import ALLOCATION_ENDS, JOB_GONE, LOST, PREEMPTED, TIME_LIMIT, end_of_step, find_end
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError
from howdah.localfiles.open_files import raise_open_files_limit
from howdah.spec import Container, Exit, JobSpec, Outcome, uris
from howdah.spec.events import Allocated, AllocationLost, CancelRequested, ContainerEnded, Event, LossAnnounced
from howdah.spec.message import message
from howdah.storage.retry import retry_until
from howdah.wire.launch_messages import TERM_GRACE_S, TERM_TO_ALL, Greeting, bootstrap_command

LOOK_S, MAX_CHECK_S, SUSPECTS_S = 1.0, 30.0, 10.0
PROBE_LIMIT_S, CONTROLLER_LIMIT_S, KILL_WAIT_S = 10.0, 600.0, 30.0
SIGNAL_PAUSE_S = 1.0
"""Seconds that Slurm may take, after it has signalled the batch step, to signal the steps of an allocation."""
Words = tuple[str, ...]
BESIDE = ("--overlap", "--mem=0")
"""Options of a step that takes no resources from the steps of the tasks."""
UNREGISTER_LIMIT_S = 8.0
EXECUTOR_EXIT_WAIT_S = 1.0
"""Seconds within which an executor may exit by itself: Slurm's accounting calls a step CANCELLED if Slurm has to end
it."""
LEAVE_S = 3.0
"""Seconds that an executor has between the end of its program and Slurm's KILL."""
JOB_END_WAIT_S = 1.0
"""Seconds that Slurm may take to report the end of the whole job to the batch step; it ends the job's steps first."""
AT_ONCE = 8 + 4 * len(os.sched_getaffinity(0))
"""The most steps that start at the same time: each costs this host a process with several threads, and this master must
answer those that have started."""
STARTING_S = 10.0
"""Seconds for which a starting step that does not report may delay the start of others."""
_MODULES = str(Path(howdah.__file__).parents[1])
"""The directory in the home from which this master and its executors run."""
# Programs that know Slurm would take the step, of one task, for the whole of their world.
_HIDE = (
    'for name in $(env | sed -n "s/^\\(SLURM_[A-Z0-9_]*\\|SLURMD_[A-Z0-9_]*\\|PMI[A-Z0-9_]*\\)=.*/\\1/p"); do '
    "[ $name = SLURM_CONF ] || unset $name; done; "
)


class SlurmAllocator(PullAllocator):
    """Finds its allocation in the batch step's environment."""

    restarts = True
    signal_pause_s = SIGNAL_PAUSE_S

    def __init__(self, context: MasterContext, look_s: float = LOOK_S, job_end_wait_s: float = JOB_END_WAIT_S) -> None:
        super().__init__(context)
        self._look_s, self._job_end_wait_s = look_s, job_end_wait_s
        self._job, self._directory = context.staged.job, Path(uris.path(context.directory))
        self._home = Path(uris.path(context.staged.home))
        self._number = os.environ["SLURM_JOB_ID"]
        self._suffix = secrets.token_hex(2)  # no container's id is an earlier master's
        self._run = os.environ.get("SLURM_RESTART_COUNT", "0")
        self._slurm, self._queue = SlurmCommands(), EventQueue()
        self._options = engine_options(self._job, context.staged.settings, "slurm")
        partition = [f"--partition={os.environ['SLURM_JOB_PARTITION']}"] if "SLURM_JOB_PARTITION" in os.environ else []
        options = [*queue_options(self._job, self._options), *partition]
        self._extra = ExtraJobs(self._slurm, self._number, self._directory, options, self._queue)
        submitted = JobDirectory(self._directory).staged()  # without roles that the master adds
        self._places = own_places(self._slurm, components(submitted.job if submitted else self._job))
        self._nodes = self._slurm.facts("node", ",".join(sorted({place.node for place in self._places})))
        self._output = self._home / OUTPUT / self._number
        self._output_start = self._output.stat().st_size if self._output.exists() else 0
        self._wanted: dict[str, int] = {}
        self._preferences: dict[str, ContainerPreferences] = {}
        self._held: dict[str, SlurmContainer] = {}
        self._numbers = itertools.count(1)
        self._turns, self._starting = asyncio.Semaphore(AT_ONCE), dict[str, asyncio.Event]()
        self._checked_at = self._extra_checked_at = self._suspects_checked_at = 0.0
        self._extra_pause_s = look_s
        self._check: asyncio.Task[None] | None = None
        self._guard: KeptProcess | None = None
        self._is_leaving = False
        self._term_grace_s = self._slurm.kill_wait_s() - LEAVE_S
        self._open_files = raise_open_files_limit()  # one for each step's process, one for its executor's connection

    @classmethod
    def extra_start_s(cls, job: JobSpec) -> float:
        tasks = sum(role.replicas + role.spares for role in job.roles.values())
        return super().extra_start_s(job) + tasks // AT_ONCE * STARTING_S

    @classmethod
    async def open(cls, context: MasterContext) -> SlurmAllocator:
        if "SLURM_JOB_ID" not in os.environ:
            raise EngineRejected("SLURM_JOB_ID is not set: the master is not run by Slurm")
        # The controller may restart just now.
        limits_s: Mapping[type[Exception], float] = {EngineUnavailable: CONTROLLER_LIMIT_S}
        allocator = await asyncio.to_thread(retry_until, lambda: cls(context), limits_s, SUSPECTS_S, SUSPECTS_S)
        allocator.attempt = int(os.environ.get("HOWDAH_MASTER_ATTEMPT", "1"))
        loop, number = asyncio.get_running_loop(), allocator._number
        loop.add_signal_handler(signal.SIGUSR1, lambda: allocator.in_background(allocator._announce_end(number)))
        with contextlib.suppress(OSError):  # it is tried again
            await allocator._start_guard()
        return allocator

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        ends = {container.id: Exit("withdrawn", detail=GONE) for container in containers}
        known = {container.id: container for container in containers}
        for id_, step in read_records(self._directory / CONTAINERS):
            process, directory = KeptProcess.from_json(step["process"]), Path(step["directory"])
            # A step that has no working directory yet does not know what to run, and asks the master before this one.
            has_begun = (container_directory(self._directory, id_) / "work").is_dir()
            is_alive = step["run"] == self._run and process.lives
            if is_alive and id_ in known and has_begun and (place := self._place_of(step)) is not None:
                place.container = id_
                self._held[id_] = SlurmContainer(known[id_], place, process, directory)
                self.in_background(self._watch(self._held[id_], process))
                del ends[id_]
            elif is_alive:
                process.signal(signal.SIGTERM)
            else:
                if id_ in known and step["run"] == self._run:
                    ends[id_] = end_of_step(directory, process.status(), released=False)
                self._remove_directory(id_)
        with contextlib.suppress(HowdahError):
            await self._extra.give_up_all({held.place.extra_id for held in self._held.values() if held.place.role})
        return ends

    def _place_of(self, step: Mapping[str, Any]) -> SlurmPlace | None:
        """Return the free place in which a recorded step runs."""
        where = (step["number"], step["node"])
        free = [place for place in self._places if not place.container and (place.number, place.node) == where]
        if not free and step["number"] != self._number and step["role"] in self._job.roles:
            free = [SlurmPlace(*where, shape_of(self._job, step["role"]), extra_id=step["extra_id"], role=step["role"])]
            self._places += free
        return free[0] if free else None

    def signalled(self, name: str) -> Event:
        """Return the event that says why Slurm ends the batch step: SIGTERM comes for every reason, after a line that
        names the reason."""
        now, end = time.time(), find_end(self._last_words(), ALLOCATION_ENDS)
        if end is None:
            return CancelRequested(now, " ".join(read_words(self._directory / CANCELLED_BY)) or "Slurm (scancel)")
        if end is not TIME_LIMIT:
            self._leave()
        return AllocationLost(now, end.detail, self._is_leaving, within_s=KILL_WAIT_S)

    def _leave(self) -> None:
        """Report no more ends of containers, because the job comes back and everything begins again."""
        self._is_leaving = True
        with contextlib.suppress(OSError):
            self._extra.mark.touch()

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            return self._output.read_bytes()[self._output_start :].decode("utf-8", "replace")
        return ""

    async def _announce_end(self, number: str) -> None:
        """Announce that Slurm will take back a job soon (`--signal=B:USR1`): all containers end with the main one."""
        left_s, now = await self._preempted_in(number), time.time()
        text = message("Slurm's time limit is reached in about {seconds} s", seconds=WARNED_S)
        if left_s:
            text = message("Slurm gives the room to another job in about {seconds} s", seconds=round(left_s))
        for id_, held in self._held.items():
            if number in (self._number, held.place.number):
                self._queue.put(LossAnnounced(now, id_, "preemption", left_s or WARNED_S, text))

    async def _preempted_in(self, number: str) -> float:
        """Return the seconds after which Slurm gives a job's room to another job; 0.0 if it does not."""
        with contextlib.suppress(HowdahError, ValueError):
            job = (await asyncio.to_thread(self._slurm.facts, "job", number)).get(number, {})
            if job.get("PreemptTime", "None") != "None":
                return max(1.0, datetime.fromisoformat(job["EndTime"]).timestamp() - time.time())
        return 0.0

    # Requests

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        if (self._wanted.get(role, 0), self._preferences.get(role)) != (count, preferences):
            self._extra_pause_s, self._extra_checked_at = self._look_s, 0.0
        self._wanted[role], self._preferences[role] = count, preferences
        self._queue.wake()

    async def poll(self) -> list[Event]:
        return await self._queue.next_events(self._advance, self._look_s)

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        roles = {id_: role for id_, (role, _) in self._extra.waiting.items()}
        said = [(roles[id_], text) for id_, text in self._extra.reasons.items() if roles.get(id_) in missing]
        return [PendingReason("said", {"text": f"{role}: {text}"}) for role, text in dict.fromkeys(said)]

    def _grant(self) -> None:
        for role, count in self._wanted.items():
            preferences = self._preferences[role]
            wanted = shape_of(self._job, role, preferences.memory_mib)
            for place in free_places(self._places, role, wanted, preferences)[:count]:
                id_ = f"{self._context.job_id}.{self._suffix}.{next(self._numbers)}"
                container = Container(id_, place.node, role, preferences.resources_for(self._job.roles[role]))
                place.container = id_
                self._held[id_] = SlurmContainer(container, place)
                self._wanted[role] -= 1
                self._queue.put(Allocated(time.time(), container))

    async def _advance(self) -> float:
        """Grant places. The other regular work runs beside that, because Slurm may not answer for long."""
        self._grant()
        now = time.monotonic()
        if now - self._checked_at >= self._look_s and (self._check is None or self._check.done()):
            if self._check is not None:
                self._check.result()
            self._checked_at = now
            self._check = self.in_background(self._check_all(now))
        return self._look_s

    async def _check_all(self, now: float) -> None:
        """Look for signs of extra jobs. Ask Slurm about them, about suspects and the guard, less and less often."""
        try:
            for number in await asyncio.to_thread(self._extra.take_signs, "ending"):
                await self._announce_end(number)
            started = await asyncio.to_thread(self._extra.take_signs, "started")
            await self._extra.give_up_unknown(started)
            is_wanted = any(self._wanted.values()) or self._extra.waiting
            if is_wanted and (started or now - self._extra_checked_at >= self._extra_pause_s):
                self._extra_checked_at, self._extra_pause_s = now, min(2 * self._extra_pause_s, MAX_CHECK_S)
                await self._check_extra_jobs()
            if now - self._suspects_checked_at >= SUSPECTS_S:
                self._suspects_checked_at = now
                await self._extra.give_up()
                await self._check_suspects()
                await self._start_guard()
        except (EngineUnavailable, OSError) as error:  # the disk may be full, too
            self._queue.note(message("{reason}; trying again", reason=error), "unavailable")
        except EngineRejected as error:
            self._queue.note(str(error), str(error))

    async def _check_extra_jobs(self) -> None:
        started = await self._extra.take_started()
        with contextlib.suppress(HowdahError):  # a launch can do without these facts
            names = ",".join({place.node for place in started})
            self._nodes |= await asyncio.to_thread(self._slurm.facts, "node", names) if started else {}
        self._places += started
        self._grant()
        unused = [each for each in self._places if each.role and not each.container]
        self._places = [each for each in self._places if each not in unused]
        await self._extra.give_up(*(place.extra_id for place in unused))
        for role, preferences in list(self._preferences.items()):
            shape, count = shape_of(self._job, role, preferences.memory_mib), self._wanted.get(role, 0)
            try:
                await self._extra.adjust(role, count, shape, self._options["constraint"], preferences)
            except EngineRejected as error:  # other roles may be luckier
                self._queue.note(str(error), str(error))
                self._extra_pause_s = MAX_CHECK_S

    async def _check_suspects(self) -> None:
        """Use a suspected place again when Slurm says that its node is up and a test step with all resources of a
        container runs there: Slurm may count the earlier processes there as running for ever. A node that Slurm has
        taken out of the allocation does not come back."""
        suspects = [each for each in self._places if each.is_suspect and not each.container]
        up = await asyncio.to_thread(self._slurm.nodes_up) if suspects else set()
        for place in (each for each in suspects if each.node in up):
            jobs = await asyncio.to_thread(self._slurm.jobs, place.number)
            allocated = [await asyncio.to_thread(self._slurm.hosts, job.nodes) for job in jobs]
            if not place.group and place.node not in itertools.chain(*allocated):
                self._places = [each for each in self._places if each is not place]
            elif await self._answers(place, "--exact", *place.shape.step_options()):
                place.is_suspect = False
                self._queue.wake()

    async def _answers(self, place: SlurmPlace, *takes: str) -> bool:
        probe = await self._start_step(place, "probe", ("true",), takes or BESIDE)
        try:
            return await asyncio.wait_for(probe.wait(), PROBE_LIMIT_S) == 0
        except asyncio.TimeoutError:
            await probe.end()
            return False

    async def _start_guard(self) -> None:
        """Start the step that detects the loss of the batch host, if there is another node."""
        host = os.environ.get("SLURMD_NODENAME", "")
        other = next((p for p in self._places if p.node != host and not p.role and not p.is_suspect), None)
        if host and other is not None and not (self._guard is not None and self._guard.lives):
            script = GUARD.format(number=self._number, host=host, mark=shlex.quote(str(self._extra.mark)))
            self._guard = await self._start_step(other, "guard", ("/bin/sh", "-c", script), BESIDE)

    async def _start_step(self, place: SlurmPlace, name: str, command: Words, takes: Words) -> KeptProcess:
        options = [*self._step_options(place), *takes, f"--job-name={name}"]
        return await self._srun(options, list(command), self._directory / f"{name}.log")

    def _step_options(self, place: SlurmPlace) -> list[str]:
        return [
            f"--jobid={place.number}",
            *([f"--het-group={place.group}"] if place.group else []),
            *(f"--nodelist={place.node}", "--nodes=1", "--ntasks=1", "--input=none", "--mpi=none"),
        ]

    async def _srun(self, options: list[str], command: list[str], log: Path, **more: str) -> KeptProcess:
        # Not by `srun --async` of newer versions: the step's end would be known from the accounting alone.
        kept = self._slurm.environment.items()
        environment = {name: value for name, value in kept if not name.startswith(("SBATCH_", "HOWDAH_"))} | more
        # Slurm hands the limits of srun on to the step.
        limited = ("/bin/sh", "-c", f'ulimit -S -n {self._open_files}; exec "$@"', "sh")
        return await KeptProcess.run([*limited, "srun", *options, *command], environment, log)

    # A container's life

    async def launch(self, container: Container, launch: Launch) -> None:
        held = self._held.get(container.id)
        if held is None:
            raise EngineRejected(f"container {container.id} is not ours any more")
        held.directory = self._directory / "tasks" / launch.task.slug / str(launch.attempt)
        try:
            await super().launch(container, launch)
            held.directory.mkdir(parents=True, exist_ok=True)
            key = self.launches.key_of(container.id)
            paths = await asyncio.to_thread(make_container, self._directory, self._home, container.id, key)
            await self._take_turn(container.id)
            if held.released or self._is_leaving:
                self._end_turn(container.id)
            else:
                await self._start(held, launch, paths)
        except BaseException:
            if held.step is not None:  # its place is free only then
                await held.step.end()
            self._forget(held)
            raise

    async def _start(self, held: SlurmContainer, launch: Launch, paths: Mapping[str, str]) -> None:
        place, directory = held.place, container_directory(self._directory, held.container.id)
        node = self._nodes.get(place.node, {})
        variables = {**self.bootstrap_environment(held.container.id), **paths}
        variables["HOWDAH_HOST"] = node.get("NodeAddr", place.node)
        if self._term_grace_s > 0:
            variables |= {TERM_GRACE_S: f"{self._term_grace_s:g}", TERM_TO_ALL: "1"}
        has_gpus = ",gpu:" in f",{node.get('Gres')}"
        hide = _HIDE + ("export CUDA_VISIBLE_DEVICES=; " if has_gpus and not place.shape.gpus else "")
        options = [
            *(*self._step_options(place), "--exact", *place.shape.step_options()),
            *(f"--job-name={launch.task.slug}", f"--chdir={directory}", "--kill-on-bad-exit=0"),
            *(f"--output={held.directory}/executor.log", "--open-mode=append"),
        ]
        bootstrap = bootstrap_command(self._context.staged.python, _MODULES)
        command = ["/bin/sh", "-c", f'{hide}exec "$@"', "sh", *bootstrap]
        held.step = await self._srun(options, command, held.directory / "srun.log", **variables)
        write_record(directory, held, self._run)
        self.in_background(self._watch(held, held.step))
        if held.released:
            held.step.signal(signal.SIGTERM)

    def greeted(self, container_id: str, greeting: Greeting) -> None:
        super().greeted(container_id, greeting)
        self._end_turn(container_id)

    async def _take_turn(self, container_id: str) -> None:
        """Wait until a further step may start; its turn ends by `_end_turn`, or after a while."""
        await self._turns.acquire()
        self._starting[container_id] = begun = asyncio.Event()
        self.in_background(self._limit_turn(begun))

    async def _limit_turn(self, begun: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(begun.wait(), STARTING_S)
        except asyncio.TimeoutError:
            pass
        finally:
            self._turns.release()

    def _end_turn(self, container_id: str) -> None:
        if begun := self._starting.pop(container_id, None):
            begun.set()

    async def _watch(self, held: SlurmContainer, process: KeptProcess) -> None:
        status = await process.wait()
        self._end_turn(held.container.id)
        is_killed = status in (128 + signal.SIGKILL, 128 + signal.SIGTERM) and not held.released
        if is_killed:
            await asyncio.sleep(self._job_end_wait_s)
        exit = end_of_step(held.directory, status, held.released)
        if is_killed and not self._is_leaving:
            with contextlib.suppress(OSError):  # no room for a further step: reported without the cause
                exit = await self._explain_kill(held.place, exit)
        if self._is_leaving:
            return
        for place in self._places:
            place.is_suspect |= exit.cause == "lost" and place.node == held.place.node
        self._forget(held)
        self._queue.put(ContainerEnded(time.time(), held.container.id, exit))

    async def _explain_kill(self, place: SlurmPlace, exit: Exit) -> Exit:
        """Return the end of a step that a signal has ended: srun alone does not tell who has sent the signal."""
        if await self._preempted_in(place.number):  # the partition's GraceTime is for steps to end
            if not (place.role or self._is_leaving):
                self._leave()
                (self._directory / REQUEUE).touch()
                self._queue.put(AllocationLost(time.time(), PREEMPTED.detail))
            return PREEMPTED
        if exit.cause != "signal" or await self._answers(place):
            return exit
        try:  # A node that goes down ends its steps long before Slurm counts it as lost.
            jobs = await asyncio.to_thread(self._slurm.jobs, place.number)
        except HowdahError:
            return exit  # without the controller no step starts anywhere
        return LOST if any(job.state in RUNNING for job in jobs) else JOB_GONE

    def release(self, container_id: str, cause: str = "") -> None:
        held = self._held.get(container_id)
        if held is None or held.released:
            return
        held.released = True
        held.place.is_suspect |= cause in ("lost", "silent")
        self.launches.withdraw(container_id)
        if held.step is not None:
            wait_s = 0.0 if cause else EXECUTOR_EXIT_WAIT_S
            asyncio.get_running_loop().call_later(wait_s, held.step.signal, signal.SIGTERM)
        else:
            self._forget(held)

    def _forget(self, held: SlurmContainer) -> None:
        self._end_turn(held.container.id)
        if self._held.pop(held.container.id, None) is None:
            return
        held.place.container = ""
        self._remove_directory(held.container.id)
        if held.place.role:  # other users must not wait for the resources that an extra job holds
            self._places = [each for each in self._places if each is not held.place]
            self.in_background(self._extra.give_up(held.place.extra_id))
        self._queue.wake()

    def _remove_directory(self, container_id: str) -> None:
        directory = container_directory(self._directory, container_id)
        self.in_background(asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True))

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        self._wanted.clear()
        for container_id in list(self._held):
            self.release(container_id)
        if self._check is not None:  # it may submit an extra job, or start the guard, just now
            await asyncio.wait([self._check], timeout=UNREGISTER_LIMIT_S)
            self._check.cancel()
        if self._guard is not None:
            await self._guard.end()
        await self._queue.wait_while(lambda: self._held, UNREGISTER_LIMIT_S, UNREGISTER_LIMIT_S)
        left = [held.step.end() for held in self._held.values() if held.step is not None]
        await asyncio.gather(*left)  # Slurm ends what is left of their steps with the job
        with contextlib.suppress(HowdahError):
            await self._extra.give_up_all(set())
        self._extra.mark.touch()
        (self._directory / "outcome").write_text(outcome.state.value)
        (self._directory / "credentials").unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, self._directory / CONTAINERS, ignore_errors=True)
