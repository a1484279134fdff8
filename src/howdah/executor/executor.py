"""The executor compares its own Status with the Orders of the master, and takes the next step towards them.

Every decision follows from these two values, never from a remembered sequence of commands: lost, repeated and late
messages change nothing. There is one thread and one event loop.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Callable, Mapping, Optional, Tuple

from howdah.executor import environment
from howdah.executor.diagnostics.monitor import ProgramMonitor
from howdah.executor.event_loop import Activity, EventLoop
from howdah.executor.gpu import claims, monitor
from howdah.executor.identity import Identity
from howdah.executor.image_check import find_image
from howdah.executor.io import input_uri_list
from howdah.executor.io.directory_sync import DirectorySyncs, LogSyncRunner
from howdah.executor.io.localise import Localisation
from howdah.executor.io.log_file import limit_from
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.io.snapshots import SnapshotProcesses
from howdah.executor.io.streams import ProgramStreams
from howdah.executor.io.task_output import TaskOutput
from howdah.executor.io.transfer import TransferProgress
from howdah.executor.io.uploads import Uploads
from howdah.executor.io.working_directory import WorkingDirectory
from howdah.executor.master_link.heartbeat import Heartbeat
from howdah.executor.own_log import log
from howdah.executor.ports import PortReservation
from howdah.executor.preflight.runner import PreflightRunner
from howdah.executor.process import default_python, orphan_killer, process_tree
from howdah.executor.process.exit_explanation import FILES_REMOVED, are_files_removed, explain, not_started
from howdah.executor.process.program import BY_ENGINE, Program
from howdah.executor.relay.relay_starter import RelayStarter
from howdah.spec import port_range
from howdah.spec.message import message
from howdah.spec.task import Exit
from howdah.spec.usage import Usage
from howdah.storage import object_stores
from howdah.wire.launch_messages import TERM_GRACE_S, TERM_TO_ALL
from howdah.wire.messages import NOT_HEARD, NOT_WANTED, Assignment, Goal, Orders, Phase, Status

if TYPE_CHECKING:
    from howdah.executor.task_image import TaskImage

LEFT, TERMINATED = 0, 143
"""Exit statuses: the master ordered LEAVE or REASSIGN; a signal ended the executor."""
_DOUBT_S, _LOST_GRACE_S = 1.0, 2.0  # Another attempt may begin three seconds after the lease.
_NOT_READY = ("image", "localise", "preflight")  # causes of an end before the program was started


class Executor:
    """Runs one attempt of one task."""

    def __init__(self, identity: Identity, container: Mapping[str, str]) -> None:
        self.identity, self.container = identity, container
        self.directory = os.getcwd()
        self.work = WorkingDirectory(self.directory, identity.container_directory(self.directory))
        self.loop = EventLoop()
        self.link = Heartbeat(self.loop, identity, self.status, self.obey, self._link_lost)
        self.program_api = ProgramApiDir(identity, self.directory)
        self.link.on_master_changed = self.program_api.set_master
        self.output = TaskOutput(identity.log_directory, limit_from(container))
        self.logs = self.output.logs
        self.orders = Orders(epoch=0, goal=Goal.JOIN)
        self.assignment: Optional[Assignment] = None
        self.epoch, self.phase = 0, Phase.HELLO
        self.exit: Optional[Exit] = None
        self.localisation: Optional[Localisation] = None
        self.image: Optional[TaskImage] = None
        self.ports: Optional[PortReservation] = None
        self.port_numbers: Mapping[str, int] = {}
        self.ip = self.program_python = self.reassigned_to = self.stopping = self.stream_problem = ""
        self.gpus = claims.GpuAssignment(container, log)
        self.preflight = PreflightRunner(self.loop, identity, container, self.gpus)
        self.program: Optional[Program] = None
        self.streams: Optional[ProgramStreams] = None
        self.program_gpus: Tuple[str, ...] = ()
        self.directory_syncs: Optional[DirectorySyncs] = None
        self.log_sync = LogSyncRunner.of_identity(self.loop, identity)
        self.uploads = Uploads(self.loop, self.work, self.output.warn)
        self.activity: Optional[Activity] = None
        self.snapshots = SnapshotProcesses(self.loop, self.directory, self.link.send_now)
        self.requested_snapshots = self._orphan_killer = 0
        self.monitor = ProgramMonitor(self.link, self.program_api, self.output, self.directory, container)
        self.relay = RelayStarter(self.loop, identity, self.program_api.path, container, log)
        self.exit_status: Optional[int] = None

    def run(self) -> int:
        """Run until the master orders LEAVE, or the link to it is lost, or a signal arrives; return the exit status."""
        self._set_up()
        self.link.start()
        while self.exit_status is None or self.activity is not None:
            self.loop.run_once()
        return self._leave()

    # The status that the master gets.

    def status(self) -> Status:
        """Return the whole status but the sequence number and log chunks, which `Heartbeat` adds."""
        fetched = self.localisation.progress if self.localisation else TransferProgress()
        usage = self.program.usage if self.program is not None else Usage()
        usage = self.streams.added_to(usage) if self.streams is not None else usage
        return Status(
            task=self.identity.task,
            attempt=self.identity.attempt,
            epoch=self.epoch,
            sequence=0,
            phase=self.phase,
            host=self.identity.host,
            pid=os.getpid(),
            python=f"{sys.executable} ({sys.version.split()[0]})",
            ports=self.port_numbers,
            ip=self.ip,
            data_files=fetched.files,
            data_bytes=fetched.bytes,
            data_seconds=self.localisation.seconds if self.localisation is not None else 0.0,
            data_total_bytes=fetched.wanted,
            data_cached_bytes=fetched.cached,
            program_pid=self.program.pid if self.program is not None else 0,
            program_python=self.program_python,
            program_gpus=self.program_gpus,
            log_offset=self.output.program_offset,
            usage=usage,
            idle_s=self.monitor.idle_s(usage),
            exit=self.exit,
            uploaded=self.uploads.done,
            kept=self.uploads.kept,
            yields=dict(self.program.yields.found) if self.program is not None else {},
            tracker_runs=self.program.tracker_runs if self.program is not None else (),
            snapshots=self.snapshots.reports,
            requested_snapshots=self.requested_snapshots,
            orders_digest=self.orders.digest,
            container=self.container.get("HOWDAH_CONTAINER", ""),
            pair_port=self.preflight.port,
            checks=self.preflight.reports if self.phase is Phase.JOINED else (),
            warnings=self.output.warnings,
        )

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.link.send_now()

    # The orders of the master.

    def obey(self, orders: Orders) -> None:
        """Take new orders and act on them; orders of an older epoch are ignored."""
        if orders.goal is Goal.REASSIGN and self.exit_status is None:
            self.reassigned_to = orders.reassign_to
            self._begin_to_leave(LEFT, "", orders.stop_s)
        if orders.epoch < self.orders.epoch or self.exit_status is not None:
            return
        self.orders = orders
        if self.assignment is None and orders.assignment is not None:
            self.assignment = orders.assignment
            secrets = {name: self.identity.secrets.get(name, "") for name in self.assignment.secrets}
            os.environ.update(object_stores.variables(self.assignment.environment, secrets))  # for helper processes
        self.link.answer_log_requests(orders.log_requests, self.output.readable)
        self.monitor.obey(orders)
        self.snapshots.obey(orders.snapshots)
        self.relay.obey(orders.relay, self.link.address)
        self._reconcile()

    def _reconcile(self) -> None:
        orders = self.orders
        if self.exit_status is not None:
            return
        if orders.goal is Goal.LEAVE:
            self._begin_to_leave(LEFT, "told to leave", orders.stop_s)
        elif orders.goal is Goal.STOP:
            self._stop()
        elif orders.epoch > self.epoch:
            self._move_to(orders.epoch)
        elif orders.goal is Goal.RUN and self.phase is Phase.JOINED and self.activity is None:
            self._prepare()
        elif self.phase is Phase.JOINED and self.activity is None and self.preflight.due(orders.pairs, self.epoch):
            self._check()

    def _move_to(self, epoch: int) -> None:
        if self.phase is Phase.HELLO and self.assignment is not None:
            self.epoch = epoch
            self._localise(self.assignment)
        elif self.phase is Phase.LOCALISING:
            self.epoch = epoch
        elif self.activity is not None:
            self._stop_activity(message("the tasks start again"), self.orders.stop_s)
        elif self.phase is not Phase.HELLO:
            self.epoch = epoch
            was_not_ready = self.exit is not None and self.exit.cause in _NOT_READY
            if self.assignment is not None and (self.work.is_used or was_not_ready):
                self._localise(self.assignment)
            else:
                self._join()

    def _stop(self) -> None:
        if self.activity is not None and not self.uploads.keeping:
            self._stop_activity(message("stopped as the master asked"), self.orders.stop_s)
        elif self.phase is not Phase.ENDED:
            self.epoch = self.orders.epoch
            self._end(Exit("stopped", detail=message("stopped before it began")))
        elif self.orders.keep and self.activity is None and not self.uploads.kept:
            self.activity = self.uploads
            self.uploads.keep(self.assignment, self._failed_outputs_kept)

    def _stop_activity(self, reason: str, grace: float) -> None:
        if self.activity is not None and not self.stopping:
            self.stopping = reason
            self.activity.stop(grace)

    # Before the program.

    def _localise(self, assignment: Assignment) -> None:
        self.exit, self.program, self.streams = None, None, None
        self._enter(Phase.LOCALISING)
        self.image, problem, remark = find_image(self.loop, self.identity, assignment, self.container, self.directory)
        if problem:
            self._end(Exit("image", detail=problem))
            return
        if remark:
            self.output.tell(remark)
        ended = partial(self._after_activity, then=self._check)
        self.localisation = Localisation(self.loop, assignment, self.work, ended, self.image, self.output.tell)
        self.activity = self.localisation
        self.localisation.begin()

    def _check(self) -> None:
        """Start pre-flight checks: of this container alone before it joins, with other tasks afterwards."""
        assert self.assignment is not None
        pairs = self.orders.pairs if self.phase is Phase.JOINED else None
        try:
            if self.preflight.begin(self.assignment, pairs, self._preflight_done):
                self.activity = self.preflight
                return
        except (claims.NotEnoughGpus, OSError) as error:
            self._end(Exit("preflight", detail=message("pre-flight: {reason}", reason=str(error))))
            return
        self._join()

    def _preflight_done(self, problem: str) -> None:
        self._after_activity(problem, self.link.send_now if self.phase is Phase.JOINED else self._join, "preflight")
        self._reconcile()

    def _after_activity(self, problem: str, then: Callable[[], None], cause: str = "localise") -> None:
        stopped = self._end_activity()
        if stopped:
            self._end(Exit("stopped", detail=stopped))
        elif problem:
            self._end(Exit(cause, detail=problem))
        else:
            then()

    def _end_activity(self) -> str:
        """Forget the activity that has ended; return the reason why it was stopped, "" if it was not."""
        self.activity, stopping, self.stopping = None, self.stopping, ""
        return stopping

    def _join(self) -> None:
        assert self.assignment is not None
        self.exit, self.program, self.streams = None, None, None
        self.uploads.reset()
        self._release_ports()
        try:
            among = port_range.ports(self.assignment.port_range)
            self.ports = PortReservation(self.identity.host, self.assignment.ports, among)
            self.preflight.listen(self.assignment)
        except OSError as error:
            reason = error.strerror or str(error)
            detail = message("no port on {node}: {reason}", node=self.identity.host, reason=reason)
            self._end(Exit("start", detail=detail))
            return
        self.port_numbers = self.ports.ports
        self.ip = self.identity.numeric(self.ports.address)
        self._enter(Phase.JOINED)

    def _release_ports(self) -> None:
        if self.ports is not None:
            self.ports.release()
            self.ports = None

    def _prepare(self) -> None:
        """Fetch checkpoints, then start the program: the checkpoint is known only when all tasks have joined."""
        assignment = self.assignment
        assert assignment is not None
        if self.directory_syncs is None and (assignment.checkpoint_sync or assignment.event_file_sync or self.log_sync):
            self.directory_syncs = DirectorySyncs(self.loop, assignment, self.directory, self.output, self.log_sync)
        if self.directory_syncs is None:
            self._start()
        else:
            self.activity = self.directory_syncs
            self.directory_syncs.fetch(self.orders, lambda problem: self._after_activity(problem, self._start))

    # The program.

    def _start(self) -> None:
        assignment = self.assignment
        assert assignment is not None
        try:
            variables = self._variables(assignment)
            environment.write_files(self.orders.files, self.directory)
        except (claims.NotEnoughGpus, OSError) as error:
            self._end(Exit("start", detail=str(error)))
            return
        if not assignment.hold_ports:
            self._release_ports()
        argv = environment.argv_of(assignment.command)
        gpus = (monitor.visible_devices(variables) or ()) if assignment.gpus else ()
        yields, api, grace_s = assignment.yields, self.program_api, self.orders.stop_s
        ended, save = self._program_ended, self._snapshot_requested
        program = Program(self.loop, self.logs, api, yields, ended, save, self.output.tell)
        try:
            self.streams = self._open_streams(assignment, environment.python_of(variables))
            self.work.program_starts(assignment.synced_directories())
            self.output.program_starts()
            run = self.image.program(assignment, variables, api, gpus, grace_s) if self.image is not None else None
            program.start(argv, variables, self.directory, self.streams.stdin, self.streams.stdout, run, grace_s)
        except OSError as error:
            self._close_streams(not_started(argv, variables, self.directory, error))
            return
        self.streams.handed_over()
        self.relay.program_starts(variables, self.directory, run)
        self.program = self.activity = program
        self.monitor.began(program)
        self.program_python = self.image.order.image if self.image else environment.python_of(variables)
        self.program_gpus = gpus
        if self.directory_syncs is not None:
            self.directory_syncs.begin()
        self._enter(Phase.RUNNING)

    def _snapshot_requested(self, count: int) -> None:
        self.requested_snapshots += count
        self.link.send_now()

    def _variables(self, assignment: Assignment) -> Mapping[str, str]:
        world = environment.with_log_directory(self.orders.environment, self.identity.log_directory)
        buckets = {**self.container, **assignment.environment}.get("AWS_ENDPOINT_URL", "")
        known = {**world, **input_uri_list.variables(assignment.placeholder_uris, self.directory, buckets)}
        container = self.container if self.image is None else self.image.variables(self.container)
        variables = environment.build(container, assignment, known, self.identity.secrets, self.directory)
        if self.directory_syncs is not None:
            variables = self.directory_syncs.local_variables(variables)
        variables = self.monitor.trainer_reports.variables(
            self.program_api.variables(variables, self.epoch), self.epoch
        )
        self.gpus.add_to(variables, assignment.gpus)
        if assignment.program_path or assignment.image is not None or not default_python.is_missing(variables):
            return variables
        if default_python.is_named_by(assignment.command):
            self.output.tell(default_python.explanation())
        return default_python.with_python(variables, self.program_api.path)

    def _open_streams(self, assignment: Assignment, python: str) -> ProgramStreams:
        self.stream_problem = ""
        if assignment.stdout_output is not None:
            self.logs["stdout"].write(f"[howdah: standard output goes to {assignment.stdout_output.output}]\n".encode())
        return ProgramStreams(self.loop, assignment, self.identity, self.directory, python, self._stream_failed)

    def _stream_failed(self, problem: str) -> None:
        """Stop the program: it must not mistake a failed input for the end of its input, nor lose its output."""
        if self.program is not None and self.program.running and not self.stopping:
            log(problem)
            self.stream_problem = problem
            self.program.stop(self.orders.stop_s)

    def _program_ended(self, exit: Exit, sure: bool = False) -> None:
        if exit.signal == signal.SIGTERM and not (sure or self.stopping):
            # Some engines signal all processes of a container: this executor may be next, and then nothing has failed.
            self.loop.call_later(_DOUBT_S, lambda: self._program_ended(exit, sure=True))
            return
        stopped = self._end_activity()
        self._release_ports()
        if self.stream_problem:
            exit = replace(exit, cause="stream", detail=self.stream_problem)
        elif stopped:
            exit = replace(exit, cause="withdrawn" if stopped is BY_ENGINE else "stopped", detail=stopped)
        end = self.program.output_end() if self.program is not None else None
        exit = self.monitor.explain(explain(exit, self.directory, self.identity.secrets.values(), end))
        if self.directory_syncs is None or self.exit_status in (NOT_HEARD, NOT_WANTED):
            self._close_streams(exit)  # when this attempt is not wanted, another one may write the directories now
        else:
            self.activity = self.directory_syncs
            self.directory_syncs.finish(lambda _: self._directories_stored(exit))

    def _directories_stored(self, exit: Exit) -> None:
        self._end_activity()
        self._close_streams(exit)

    def _close_streams(self, exit: Exit) -> None:
        """Complete the output that the program printed if the program ended well; otherwise throw it away."""
        if self.streams is None:
            self._end(exit)
            return
        self.activity = self.streams
        self.streams.finish(exit.ok, lambda problem: self._streams_closed(problem, exit))

    def _streams_closed(self, problem: str, exit: Exit) -> None:
        stopped = self._end_activity()
        assert self.assignment is not None
        assert self.streams is not None
        self.output.add_last(self.streams.lines[-5:])
        exit = replace(exit, lines=exit.lines or self.streams.lines)
        if exit.ok and stopped:
            self._end(Exit("stopped", detail=stopped, lines=exit.lines))
        elif problem and exit.cause not in ("stopped", "withdrawn", "stream"):
            # A program that can't print any more dies of SIGPIPE, which explains nothing.
            self._end(replace(exit, cause="stream", detail=problem))
        elif not exit.ok:
            self._end(exit)
        elif self.assignment.uploads:
            self._enter(Phase.UPLOADING)
            self.activity = self.uploads
            printed = self.streams.outputs
            self.uploads.upload(self.assignment, printed, lambda problem: self._on_uploaded(problem, exit))
        else:
            self.uploads.done = self.streams.outputs
            self._end(exit)

    def _on_uploaded(self, problem: str, exit: Exit) -> None:
        stopped, are_gone = self._end_activity(), are_files_removed(self.container, self.directory)
        if stopped:
            self._end(Exit("stopped", detail=stopped))
        elif problem or are_gone:
            if are_gone:  # some outputs may have been gone before they were uploaded
                self.uploads.reset()
            self._end(Exit("upload", detail=problem, lines=exit.lines))
        else:
            self._end(exit)

    def _failed_outputs_kept(self, problem: str) -> None:
        if problem:
            self.output.warn(message("what this task made could not be kept: {reason}", reason=problem))
        self._end_activity()
        self.link.send_now()

    def _end(self, exit: Exit) -> None:
        if not exit.ok and exit.cause != "stopped" and are_files_removed(self.container, self.directory):
            exit = replace(exit, cause="withdrawn", detail=FILES_REMOVED)
        self.output.warn_of_lost()
        self.exit = exit
        self._enter(Phase.ENDED)
        self._reconcile()

    # Start and end of the executor.

    def _set_up(self) -> None:
        if "HOWDAH_CONTAINER" in self.container and self.container.get("HOWDAH_ORPHAN_KILLER") != "0":
            self._orphan_killer = orphan_killer.watch(f"HOWDAH_CONTAINER={self.container['HOWDAH_CONTAINER']}")
        process_tree.adopt_orphans()
        self.loop.on_signal(signal.SIGCHLD, self.loop.reaper.reap)
        self.loop.on_signal(signal.SIGTERM, self._end_on_signal)
        self.loop.on_signal(signal.SIGINT, self._end_on_signal)

    def _link_lost(self, code: int, reason: str) -> None:
        """Leave because the link to the master is lost for good: `code` is NOT_HEARD or NOT_WANTED."""
        if self.exit_status == TERMINATED:  # it may not wait for the program any more
            self.exit_status, self.stopping = None, ""
        self._begin_to_leave(code, reason, min(self.orders.stop_s, _LOST_GRACE_S))

    def _begin_to_leave(self, code: int, reason: str, grace: float) -> None:
        if self.exit_status is None:
            self.exit_status = code
            if code != LEFT:
                log(reason)
            self._stop_activity(reason, grace)

    def _end_on_signal(self) -> None:
        """Let the program stop and its last copy end, if the engine waits; else end everything in a blocking call."""
        grace_s = min(float(self.container.get(TERM_GRACE_S, "0")), self.orders.stop_s)
        if grace_s and self.phase is Phase.RUNNING and self.activity is not None:
            self.exit_status = TERMINATED
            if isinstance(self.activity, Program):
                self.stopping = self.stopping or BY_ENGINE
                self.activity.stop(grace_s, TERM_TO_ALL in self.container or self.monitor.is_told_to_end)
            return
        if isinstance(self.activity, Program):
            log("terminated by a signal while the program ran")
            self.activity.end_now()
        self.loop.reaper.end_everything(0.1)
        if isinstance(self.activity, Program):
            self.activity.drain()
        self.exit_status, self.activity = TERMINATED, None

    def _leave(self) -> int:
        for pid in self.loop.reaper.end_everything(2.0):
            log(f"{process_tree.name(pid)} (pid {pid}) could not be killed")
        orphan_killer.dismiss(self._orphan_killer)
        self.link.close()
        self.monitor.trainer_reports.close()
        self.program_api.close()
        self.output.close()
        if self.log_sync is not None:
            self.log_sync.store_rest()
        self.work.close()
        assert self.exit_status is not None
        return self.exit_status
