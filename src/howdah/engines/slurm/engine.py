"""The engine outside the cluster: a job is one batch job of Slurm, whose batch step is the master."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import re
from collections.abc import Mapping
from pathlib import Path

from howdah.engines import MASTER_ATTEMPTS, AccountedTask, PendingReason
from howdah.engines.batch_job import BatchJob, BatchJobEngine
from howdah.engines.options import engine_options
from howdah.engines.slurm.batch_script import OUTPUT, WARNED_S, batch_script
from howdah.engines.slurm.commands import RUNNING, WAITING, SlurmCommands, SlurmJob, commands_of, find_conf
from howdah.engines.slurm.shapes import components, queue_options
from howdah.errors import EngineRejected, HowdahError
from howdah.spec import JobSpec, Plan, StagedJob, State, TaskId
from howdah.spec.message import message

EXPEDITES = (25, 11)
"""The version of Slurm from which a job with a failed node can get its other nodes back at once, before all other
jobs."""
_ENDS = {
    "TIMEOUT": "Slurm's time limit was reached",
    "NODE_FAIL": "the node of its master failed",
    "PREEMPTED": "preempted: Slurm gave the room to another job",
    "OUT_OF_MEMORY": "Slurm killed it for using too much memory",
    "DEADLINE": "Slurm ended it at its deadline",
    "BOOT_FAIL": "its nodes could not be booted",
}
_EXPECTED_START = re.compile(
    r"Job \d+ to start at (?P<time>\S+) using .* on (?:nodes )?(?P<nodes>\S+)(?: in partition \S+)?"
)
_NEVER_BEGUN = ("DEADLINE", "BOOT_FAIL")
"""The states of jobs that may have ended before a node has begun them."""


class SlurmEngine(BatchJobEngine):
    """Runs jobs on the cluster of a slurm.conf. Settings: those of `INFO`, `staging_dir`, `cache_days`."""

    name = "slurm"

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._conf = find_conf(settings)

    @functools.cached_property
    def _slurm(self) -> SlurmCommands:
        return commands_of(self._settings)

    @property
    def cluster(self) -> str:
        """Return the configuration file that names the controller, and the home."""
        return f"{self._conf} {self.home}".strip()

    def sees(self, path: str | Path) -> bool:
        # The sandbox's nodes are this machine.
        is_sandbox = bool(self._conf) and Path(self._conf).with_name("sandbox.json").exists()
        return is_sandbox or Path(path).is_relative_to(self._home.directory)

    def node_count(self) -> int:
        return len(self._slurm.nodes_up())

    def plan(self, job: StagedJob) -> Plan:
        options = self._options(job.job)
        try:
            expected = self._slurm.expected_start(_joined(options))
        except EngineRejected as error:
            named = ("--partition", "--account", "--qos", "--reservation", "--constraint")
            asked = [word for word in options[0] if word.startswith(named)]
            raise EngineRejected(f"{error}{f' ({chr(32).join(asked)})' if asked else ''}") from None
        staged = dataclasses.replace(job, user=job.user or getpass.getuser(), home=self.home)
        return Plan(self.name, staged, {"sbatch": options, "expected": explain_start(expected)})

    def _options(self, job: JobSpec) -> list[list[str]]:
        """Return sbatch's options of each component; those of the job as a whole are in the first."""
        options = engine_options(job, self._settings, self.name)
        limit_s = options["time"] or (job.timeouts.total_s + 60 if job.timeouts.total_s else 0)
        whole = [
            f"--job-name={job.name}",
            f"--comment={options['comment'] or 'howdah'}",
            "--no-kill",
            "--requeue=expedite" if self._slurm.version() >= EXPEDITES else "--requeue",
            f"--signal=B:USR1@{WARNED_S}",
            *([f"--time={-(-int(limit_s) // 60)}"] if limit_s else []),
        ]
        queue, parts = queue_options(job, options), components(job).items()
        near = [f"--{name}={options[name]}" for name in ("segment", "switches") if options[name]]
        found = [[*queue, *near, *shape.job_options(count, options["constraint"])] for shape, count in parts]
        return [[*whole, *found[0]], *found[1:]]

    def find_cluster_name(self) -> str:
        return self._slurm.cluster()

    def start_master(self, plan: Plan, placed: StagedJob, mark: str) -> str:
        output = self._home.directory / OUTPUT
        output.mkdir(mode=0o700, exist_ok=True)
        variables = self._home.master_variables(placed) | ({"SLURM_CONF": self._conf} if self._conf else {})
        command = [placed.python, "-m", "howdah.master", "--engine", self.name]
        attempts = plan.job.job.master.attempts or MASTER_ATTEMPTS
        script = batch_script(self._home.directory, mark, command, variables, attempts)
        first, *others = plan.request["sbatch"]
        first = [*first, "--open-mode=append", f"--output={output}/%j", "--chdir=/"]
        return self._slurm.submit(_joined([first, *others]), script)

    def query_jobs(self, number: str = "") -> Mapping[str, BatchJob]:
        return {job.number: _batch_job(job) for job in self._slurm.jobs(*filter(None, [number]))}

    def query_ended_job(self, number: str) -> BatchJob | None:
        rows = [row.state for row in self._slurm.accounted(number) if not row.task]
        states = [state for state in rows if state not in (*WAITING, *RUNNING)]
        return BatchJob(*_end(states[-1]), "", states[-1] not in _NEVER_BEGUN) if states else None

    def cancel_batch_jobs(self, *numbers: str) -> None:
        self._slurm.cancel(*numbers)

    def kill_wait_s(self) -> float:
        with contextlib.suppress(HowdahError):
            return self._slurm.kill_wait_s()
        return 0.0

    def remove_output(self, number: str) -> None:
        (self._home.directory / OUTPUT / number).unlink(missing_ok=True)

    def accounting(self, job_id: str) -> list[AccountedTask]:
        numbers = self.batch_jobs_of(job_id)
        extra = (row for row in self._slurm.accounted(*numbers[1:]) if row.task != "batch")  # which keeps a place
        rows = [*self._slurm.accounted(*numbers[:1]), *extra]
        return [dataclasses.replace(row, task=task) for row in rows if (task := _task_of_step(row.task))]

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        numbers = self.batch_jobs_of(job_id)
        waiting = [each for each in self._slurm.jobs(*numbers) if each.state in WAITING] if numbers else []
        return [PendingReason("said", {"text": explain_wait(each)}) for each in waiting]


def explain_start(said: str) -> str:
    """Return what `sbatch --test-only` says of a job's start as a sentence; anything else as Slurm says it."""
    found = _EXPECTED_START.fullmatch(said)
    if found is None:
        return said
    template = "Slurm would start it at {time} on {nodes}, if it were submitted now"
    return message(template, **found.groupdict())


def explain_wait(job: SlurmJob) -> str:
    """Return why a job waits, in Slurm's own word, and until when. The word is `None` before Slurm has considered the
    job."""
    if job.reason == "None":
        return message("Slurm has not looked at the job yet (partition {partition})", partition=job.partition)
    if job.start in ("", "N/A"):
        return message("Slurm: {reason} (partition {partition})", reason=job.reason, partition=job.partition)
    template = "Slurm: {reason} (partition {partition}); it expects to start the job at {time}"
    return message(template, reason=job.reason, partition=job.partition, time=job.start)


def _joined(components: list[list[str]]) -> list[str]:
    """Return the options of a heterogeneous job, whose components are told apart by colons."""
    return [word for options in components for word in (":", *options)][1:]


def _batch_job(job: SlurmJob) -> BatchJob:
    if job.state in WAITING:
        return BatchJob(State.PENDING, explain_wait(job), job.partition)
    if job.state in RUNNING:
        return BatchJob(State.RUNNING, "", job.partition)
    return BatchJob(*_end(job.state), job.partition, job.state not in _NEVER_BEGUN)


def _end(state: str) -> tuple[State, str]:
    """Return the end of a job in this state of Slurm whose event log does not say how it ended."""
    if state == "CANCELLED":
        return State.CANCELLED, "cancelled in Slurm"
    template = "Slurm: {state}, and the event log does not say why"
    return State.FAILED, _ENDS.get(state) or message(template, state=state.lower())


def _task_of_step(step: str) -> str:
    """Return the task that a step is named after; "" if the step belongs to no task."""
    role, _, index = step.rpartition("-")
    return str(TaskId(role, int(index))) if role and index.isdecimal() else "master" if step == "batch" else ""
