"""Calls Slurm's commands: their answers as values, and their refusals as errors of howdah."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from howdah.config.paths import running_sandbox
from howdah.engines import AccountedTask
from howdah.engines.slurm.batch_script import KEPT
from howdah.errors import EngineRejected, EngineUnavailable, SpecError
from howdah.localfiles.own_directories import state_directory
from howdah.spec.values import dataclass

LIMIT_S = 30.0
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED")
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING")
"""States of a job that has not ended; all other states are ends."""
NODE_UP = re.compile(r"(?i)(?:idle|mixed|allocated|completing|planned|reserved)$")
"""Matches the state of a node that works, including a node that is kept for a job or a reservation. A mark after the
state, such as `*`, says that the node does not answer."""
_CONF_FILES = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf")
_NO_ANSWER = re.compile(r"(?i)Unable to contact|Connection refused|timed out|Zero Bytes|establish a configuration")
_NOISE = re.compile(
    r"^\w+: (error|fatal): |^allocation failure: |(Batch job submission failed|Unable to allocate resources): "
)
_FIELDS = "%i|%A|%F|%K|%T|%r|%N|%S|%P"
_ACCOUNT_FIELDS = "JobID,State,ExitCode,ElapsedRaw,MaxRSS,NodeList,JobName"  # a name may have a | of its own
_OPTIONS = ("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SACCT_", "SCONTROL_")
"""The prefixes of variables that Slurm's commands read as options."""


def find_conf(settings: Mapping[str, str]) -> str:
    """Return the path of slurm.conf: the setting, SLURM_CONF, the usual places, a running sandbox; "" if none is
    there."""
    given = settings.get("slurm.conf") or os.environ.get("SLURM_CONF", "")
    if given:
        return given
    sandbox = running_sandbox(state_directory(os.environ) / "sandbox-slurm" / "sandbox.json")
    return next(filter(os.path.exists, _CONF_FILES), "") or str(sandbox.get("slurm_conf", ""))


def commands_of(settings: Mapping[str, str]) -> SlurmCommands:
    """Return the commands of the cluster that the settings lead to.

    Raises:
        SpecError: slurm.conf is not where the setting or SLURM_CONF says.
    """
    if (conf := find_conf(settings)) and not Path(conf).exists():
        raise SpecError.at("slurm.conf" if settings.get("slurm.conf") else "SLURM_CONF", f"{conf} does not exist")
    return SlurmCommands(conf)


@dataclass(frozen=True)
class SlurmJob:
    """The description of a job by squeue; of a heterogeneous job, that of its first component."""

    number: str
    """The job's own number; an element of an array gets it when the element starts."""
    array: str
    """The number of the array that the job belongs to; else the job's own."""
    index: str
    """The index in the array; `N/A` for a job that is no array."""
    state: str
    """Slurm's state, such as `RUNNING`."""
    reason: str
    """The reason, in Slurm's word, why the job waits."""
    nodes: str
    """The nodes in Slurm's short form: `n[1-3]`."""
    start: str
    """When Slurm expects to start it, or has started it."""
    partition: str
    """The partition that the job is in, or waits for."""

    @property
    def id(self) -> str:
        """Return the job's id in the form of `scancel`. The last element of an array to start has the array's own
        number, which would cancel the whole array."""
        return f"{self.array}_{self.index}" if self.index.isdecimal() else self.number


class SlurmCommands:
    """The commands of one cluster. Its slurm.conf is at `conf`, or else at SLURM_CONF."""

    def __init__(self, conf: str = "") -> None:
        conf = conf or os.environ.get("SLURM_CONF", "")
        # They belong to a user, or to another job if this process runs in its step.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OPTIONS)}
        self.environment = {**kept, **({"SLURM_CONF": conf} if conf else {})}

    def call(self, *argv: str, text: str = "", stream: str = "stdout", names: Collection[str] = ()) -> str:
        """Run a command with `text` as its input. Return its standard output, or its `stderr`. It gets only the
        variables in `names`, or all of them.

        Raises:
            EngineUnavailable: the controller does not answer, or the command is not installed.
            EngineRejected: Slurm refuses.
        """
        env = {name: value for name, value in self.environment.items() if name in names or not names}
        try:
            done = subprocess.run(
                argv,
                input=text,
                env=env,
                capture_output=True,
                encoding="utf-8",  # whatever the locale is, and what administrators have written about a node
                errors="replace",
                timeout=LIMIT_S,
            )
        except FileNotFoundError:
            raise EngineUnavailable(f"{argv[0]} is not installed here: Slurm's commands are needed") from None
        except OSError as error:  # this machine has no room for another process just now, say
            raise EngineUnavailable(f"{argv[0]} cannot be started: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"{argv[0]} has not answered for {LIMIT_S:.0f} s") from None
        if done.returncode == 0:
            return str(getattr(done, stream))
        lines = [_NOISE.sub("", _NOISE.sub("", line)).strip() for line in done.stderr.splitlines() if line.strip()]
        if any(map(_NO_ANSWER.search, lines)):
            who = "accounting" if argv[0] == "sacct" else "controller"
            raise EngineUnavailable(f"Slurm's {who} does not answer: {lines[-1]}")
        raise EngineRejected(f"Slurm: {lines[-1] if lines else f'{argv[0]} ended with {done.returncode}'}")

    def expected_start(self, options: list[str]) -> str:
        """Return the answer of `sbatch --test-only` about a job with these options. Raises as `call` does."""
        said = self.call("sbatch", "--test-only", *options, text="#!/bin/sh\n", stream="stderr")
        return said.strip().removeprefix("sbatch: ")

    def submit(self, options: list[str], script: str) -> str:
        """Submit a batch job; return its number. Raises as `call` does.

        The job gets only the few variables that `sbatch` gets here. With --export=NIL or NONE the node would first run
        the user's login shell to find others, which takes a second or more.
        """
        line = ("sbatch", "--parsable", "--export=ALL", *options)
        return self.call(*line, text=script, names=(*KEPT, "SLURM_CONF")).strip().partition(";")[0]

    def cancel(self, *numbers: str) -> None:
        """Cancel jobs; those that have ended are no error.

        Raises:
            EngineUnavailable: Slurm does not answer.
        """
        try:
            self.call("scancel", "--quiet", *numbers)
        except EngineRejected as error:
            if "Invalid job id" not in str(error) and "already completing" not in str(error):
                raise

    def jobs(self, *numbers: str) -> list[SlurmJob]:
        """Return the jobs with these numbers, or without any number all jobs of this user. Slurm forgets jobs minutes
        after their end. Raises as `call` does."""
        chosen = f"--jobs={','.join(numbers)}" if numbers else "--me"
        try:
            said = self.call("squeue", "--noheader", "--array", "--states=all", f"--format={_FIELDS}", chosen)
        except EngineRejected as error:
            if "Invalid job id" in str(error):
                return []
            raise
        fields = [[field.strip() for field in row.split("|")] for row in said.splitlines()]
        return [SlurmJob(*row[1:]) for row in fields if len(row) == 9 and row[0].partition("+")[2] in ("", "0")]

    def accounted(self, *numbers: str) -> list[AccountedTask]:
        """Return the records of Slurm's accounting about these jobs, for each run if they were requeued; [] if Slurm
        keeps no accounts. The `task` is the name of the step, "" for the job as a whole.

        Raises:
            EngineUnavailable: Slurm's database does not answer.
        """
        if not numbers:
            return []
        options = ["--noheader", "--parsable2", "--duplicates", "--units=M", f"--jobs={','.join(numbers)}"]
        try:
            rows = self.call("sacct", *options, f"--format={_ACCOUNT_FIELDS}").splitlines()
        except EngineRejected:
            return []
        return [_accounted(*row.split("|", 6)) for row in rows if row.count("|") >= 6]

    def _config(self) -> dict[str, str]:
        lines = (line.partition("=") for line in self.call("scontrol", "show", "config").splitlines())
        return {name.strip(): value.strip() for name, _, value in lines}

    def kill_wait_s(self) -> float:
        """Return the seconds between Slurm's TERM to all processes of a job that it ends, and its KILL; 0.0 if it
        signals only some processes. Raises as `call` does."""
        found = self._config()
        if found.get("ProctrackType") == "proctrack/pgid":
            return 0.0
        return float((found.get("KillWait") or "0").split()[0])

    def version(self) -> tuple[int, ...]:
        """Return the version of Slurm's commands, such as (22, 5). Raises as `call` does."""
        found = re.search(r"(\d+)\.(\d+)", self.call("sbatch", "--version"))
        return tuple(map(int, found.groups())) if found else ()

    def cluster(self) -> str:
        """Return the cluster's name and its controller, as the controller reports them. Raises as `call` does."""
        found = self._config()
        return f"the cluster {found['ClusterName']} of {found['SlurmctldHost[0]']}:{found['SlurmctldPort']}"

    def hosts(self, nodes: str) -> list[str]:
        """Return `n[1-3]` as a list of names."""
        return self.call("scontrol", "show", "hostnames", nodes).split() if nodes else []

    def facts(self, kind: str, names: str) -> dict[str, dict[str, str]]:
        """Return the properties that `scontrol show` prints, of nodes by their names or of jobs by their numbers.
        Raises as `call` does."""
        found = {}
        for line in self.call("scontrol", "show", kind, "--oneliner", names).splitlines():
            facts = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
            found[facts.get("NodeName") or facts.get("JobId", "")] = facts
        return found

    def nodes_up(self) -> set[str]:
        """Return the names of all nodes that work, as Slurm sees it."""
        rows = (line.split() for line in self.call("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines())
        return {row[0] for row in rows if len(row) == 2 and NODE_UP.match(row[1])}


def _accounted(id_: str, state: str, exit: str, elapsed: str, memory: str, node: str, name: str) -> AccountedTask:
    code, _, signal = exit.partition(":")
    numbers = int(code), int(signal or 0), float(elapsed or 0), float(memory.rstrip("M") or 0)
    return AccountedTask(name if "." in id_ else "", state.split(" ")[0], *numbers, node)


def tasks_per_node(text: str) -> list[int]:
    """Return the number of tasks of each node: [2, 2, 2, 1] for Slurm's `2(x3),1`."""
    parts = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(count) for count, nodes in parts for _ in range(int(nodes or 1))]
