"""The executor: it holds one Status and moves towards the Orders it gets, whichever message brought them.

Level-triggered: what to do follows from where it is and where the master wants it, never from a remembered sequence of
commands; lost, repeated and late messages change nothing. One thread, one loop.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from howdah.executor import environment, gpus, processes, sweeper
from howdah.executor.identity import Identity
from howdah.executor.link import Link
from howdah.executor.logs import StreamLog, limit_from
from howdah.executor.loop import Loop
from howdah.executor.ports import Reservation
from howdah.executor.program import Program
from howdah.executor.transfer import Misplaced, Totals, Transfer, link_local, upload_items
from howdah.spec.world import Exit
from howdah.wire.messages import Assignment, Goal, Orders, Phase, Status, Usage

LEFT, NOT_HEARD, NOT_WANTED, TERMINATED = 0, 75, 76, 143
_TERM_GRACE_S = 0.1  # YARN kills 250 ms after it terminates.


class Executor:
    """One attempt of one task. `run` returns the exit status of this process."""

    def __init__(self, identity: Identity, container: Mapping[str, str]) -> None:
        self.identity, self.container = identity, container
        self.directory = os.getcwd()
        self.loop, self.reaper = Loop(), processes.Reaper()
        self.link = Link(self.loop, identity, self.status, self.obey, self._refused)
        limit = limit_from(container)
        self.logs = {
            name: StreamLog(os.path.join(identity.log_directory, name), limit) for name in ("stdout", "stderr")
        }
        self.orders = Orders(0, Goal.JOIN)
        self.assignment: Optional[Assignment] = None
        self.epoch, self.phase = 0, Phase.HELLO
        self.exit: Optional[Exit] = None
        self.uploaded: Tuple[str, ...] = ()
        self.totals, self.data_seconds = Totals(), 0.0
        self.ports: Optional[Reservation] = None
        self.port_numbers: Mapping[str, int] = {}
        self.claim: Optional[gpus.Claim] = None
        self.program: Optional[Program] = None
        self.program_python = ""
        self.activity: Union[Program, Transfer, None] = None
        self.stopping = ""
        self.leaving: Optional[int] = None
        self._sweeper = 0

    def run(self) -> int:
        """Until the master says LEAVE, or is silent for too long, or a signal ends us."""
        self._settle_in()
        self.link.start()
        while self.leaving is None or self.activity is not None:
            self.loop.turn()
        return self._leave()

    # Where we are.

    def status(self) -> Status:
        """Whole, but for the sequence number and log chunks, which the link adds."""
        meter = self.program.meter if self.program is not None else None
        return Status(
            self.identity.task,
            self.identity.attempt,
            self.epoch,
            0,
            self.phase,
            self.identity.host,
            os.getpid(),
            python=f"{sys.executable} ({sys.version.split()[0]})",
            ports=self.port_numbers,
            data_files=self.totals.files,
            data_bytes=self.totals.bytes,
            data_seconds=self.data_seconds,
            program_pid=self.program.pid if self.program is not None else 0,
            program_python=self.program_python,
            usage=meter.usage if meter is not None else Usage(),
            exit=self.exit,
            uploaded=self.uploaded,
            told=self.orders.mark,
        )

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.link.push()

    # Where the master wants us.

    def obey(self, orders: Orders) -> None:
        """Orders have come; those of an older epoch are not obeyed."""
        if orders.epoch < self.orders.epoch or self.leaving is not None:
            return
        self.orders = orders
        self.assignment = self.assignment or orders.assignment
        self.link.answer_log_requests(orders.log_requests, self.logs)
        self._reconcile()

    def _reconcile(self) -> None:
        orders = self.orders
        if self.leaving is not None:
            return
        if orders.goal is Goal.LEAVE:
            self._finish(LEFT, "told to leave", orders.stop_s)
        elif orders.goal is Goal.STOP:
            self._stop()
        elif orders.epoch > self.epoch:
            self._move_to(orders.epoch)
        elif orders.goal is Goal.RUN and self.phase is Phase.JOINED:
            self._start()

    def _move_to(self, epoch: int) -> None:
        if self.phase is Phase.HELLO and self.assignment is not None:
            self.epoch = epoch
            self._localise(self.assignment)
        elif self.phase is Phase.LOCALISING:
            self.epoch = epoch
        elif self.activity is not None:
            self._halt(f"epoch {epoch} begins", self.orders.stop_s)
        elif self.phase is Phase.ENDED and self.exit is not None and self.exit.cause == "localise":
            self.epoch, self.exit = epoch, None
            assert self.assignment is not None
            self._localise(self.assignment)
        elif self.phase is not Phase.HELLO:
            self.epoch = epoch
            self._join()

    def _stop(self) -> None:
        if self.activity is not None:
            self._halt("stopped as the master asked", self.orders.stop_s)
        elif self.phase is not Phase.ENDED:
            self.epoch = self.orders.epoch
            self._end(Exit("stopped", detail="stopped before it began"))

    def _halt(self, reason: str, grace: float) -> None:
        if self.activity is not None and not self.stopping:
            self.stopping = reason
            self.activity.stop(grace)

    # Getting ready.

    def _localise(self, assignment: Assignment) -> None:
        self._enter(Phase.LOCALISING)
        self.totals, started = Totals(), time.monotonic()
        try:
            remote = link_local(assignment.fetches, self.directory, self.totals)
            if remote:
                done = lambda problem: self._localised(problem, started)  # noqa: E731
                self.activity = Transfer(self.loop, self.reaper, "download", remote, assignment.localise_s, done)
                return
        except (Misplaced, OSError) as error:
            self._end(Exit("localise", detail=str(error)))
            return
        self._localised("", started)

    def _localised(self, problem: str, started: float) -> None:
        stopped = self._activity_over()
        self.data_seconds = time.monotonic() - started
        if stopped:
            self._end(Exit("stopped", detail=stopped))
        elif problem:
            self._end(Exit("localise", detail=problem))
        else:
            self._join()

    def _activity_over(self) -> str:
        """The reason why it was stopped, "" if it was not."""
        over = self.activity
        if isinstance(over, Transfer) and over.verb == "download":
            self.totals.files += over.files
            self.totals.bytes += over.bytes
        self.activity, stopping, self.stopping = None, self.stopping, ""
        return stopping

    def _join(self) -> None:
        assert self.assignment is not None
        self.exit, self.program, self.uploaded = None, None, ()
        self._release_ports()
        try:
            self.ports = Reservation(self.identity.host, self.assignment.ports)
        except OSError as error:
            self._end(Exit("start", detail=f"no port on {self.identity.host}: {error}"))
            return
        self.port_numbers = self.ports.ports
        self._enter(Phase.JOINED)

    def _release_ports(self) -> None:
        if self.ports is not None:
            self.ports.release()
            self.ports = None

    # Running.

    def _start(self) -> None:
        assignment = self.assignment
        assert assignment is not None
        try:
            variables = self._variables(assignment)
        except (gpus.TooFew, OSError) as error:
            self._end(Exit("start", detail=str(error)))
            return
        if not assignment.hold_ports:
            self._release_ports()
        argv = environment.argv_of(assignment.command)
        program = Program(self.loop, self.reaper, self.logs, self._program_ended, note)
        try:
            program.start(argv, variables, self.directory)
        except OSError as error:
            self._end(Exit("start", detail=_why_not_started(argv, variables, error)))
            return
        self.program = self.activity = program
        self.program_python = environment.python_of(variables)
        self._enter(Phase.RUNNING)

    def _variables(self, assignment: Assignment) -> Mapping[str, str]:
        secrets = self.identity.secrets
        variables = environment.build(self.container, assignment, self.orders.environment, secrets, self.directory)
        if not gpus.dealt(variables):
            total = gpus.count(self.container)
            if assignment.gpus and not total:
                note(f"{assignment.gpus} GPUs were asked for, but this node shows none; the program sees what there is")
                return variables
            if assignment.gpus and self.claim is None:
                self.claim = gpus.Claim(assignment.gpus, total)
            numbers = self.claim.numbers if self.claim is not None else []
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in numbers)
        return variables

    def _program_ended(self, exit: Exit) -> None:
        stopped = self._activity_over()
        self._release_ports()
        assert self.assignment is not None
        if stopped:
            self._end(Exit("stopped", exit.code, exit.signal, stopped, exit.lines))
        elif exit.ok and self.assignment.uploads:
            self._upload(exit)
        else:
            self._end(exit)

    def _upload(self, exit: Exit) -> None:
        assert self.assignment is not None
        self._enter(Phase.UPLOADING)
        try:
            items = upload_items(self.assignment.uploads, self.directory)
            if not items:
                self._end(exit)
                return
            done = lambda problem: self._uploaded(problem, exit, items)  # noqa: E731
            self.activity = Transfer(self.loop, self.reaper, "upload", items, self.assignment.localise_s, done)
        except (Misplaced, OSError) as error:
            self._end(Exit("upload", detail=str(error), lines=exit.lines))

    def _uploaded(self, problem: str, exit: Exit, items: List[Dict[str, Any]]) -> None:
        stopped = self._activity_over()
        if stopped:
            self._end(Exit("stopped", detail=stopped))
        elif problem:
            self._end(Exit("upload", detail=problem, lines=exit.lines))
        else:
            self.uploaded = tuple(str(item["uri"]) for item in items)
            self._end(exit)

    def _end(self, exit: Exit) -> None:
        self.exit = exit
        self._enter(Phase.ENDED)
        self._reconcile()

    # Coming and going.

    def _settle_in(self) -> None:
        if "HOWDAH_CONTAINER" in self.container and not self.identity.parent:
            self._sweeper = sweeper.watch(f"HOWDAH_CONTAINER={self.container['HOWDAH_CONTAINER']}")
        processes.adopt_orphans()
        self.loop.on_signal(signal.SIGCHLD, self.reaper.reap)
        self.loop.on_signal(signal.SIGTERM, self._terminated)
        self.loop.on_signal(signal.SIGINT, self._terminated)
        if self.identity.parent and not processes.end_with_parent(self.identity.parent):
            self._finish(TERMINATED, "who started this executor is gone", 0.0)

    def _refused(self, code: int, reason: str) -> None:
        """The link is lost for good: `code` is NOT_HEARD or NOT_WANTED."""
        self._finish(code, reason, self.assignment.stop_s if self.assignment else 0.0)

    def _finish(self, code: int, reason: str, grace: float) -> None:
        if self.leaving is None:
            self.leaving = code
            if code != LEFT:
                note(reason)
            self._halt(reason, grace)
            self.loop.later(0.0, lambda: None)

    def _terminated(self) -> None:
        """Blocking, and short: whoever sent the signal will not wait."""
        if isinstance(self.activity, Program):
            note("terminated by a signal while the program ran")
            processes.kill_group(self.activity.pid, signal.SIGTERM)
            deadline = time.monotonic() + _TERM_GRACE_S
            while not self.reaper.reap() and time.monotonic() < deadline:
                time.sleep(0.005)
        processes.end_everything(self.reaper, 0.1)
        if isinstance(self.activity, Program):
            self.activity.drain()
        self.leaving, self.activity = TERMINATED, None

    def _leave(self) -> int:
        for pid in processes.end_everything(self.reaper, 2.0):
            note(f"{processes.name(pid)} (pid {pid}) could not be killed")
        if self._sweeper:
            os.write(self._sweeper, b".")
        self.link.close()
        for log in self.logs.values():
            log.close()
        assert self.leaving is not None
        return self.leaving


def note(text: str) -> None:
    """A line in the executor's own log."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _why_not_started(argv: Tuple[str, ...], variables: Mapping[str, str], error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in argv[0]:
        return f"{argv[0]!r} is not found on PATH ({variables.get('PATH', '')})"
    return f"{argv[0]!r} cannot be run: {error.strerror or error}"
