"""Submits Slurm jobs for places that a job's own allocation lacks: a container in place of one on a lost node, a larger
one, more of an elastic role, TensorBoard, and the tasks of a job without a gang, which are one array.

Each of these jobs, or each element of an array, is a place for one container: its script only keeps the place.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import re
import shlex
import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from howdah.engines import ContainerPreferences
from howdah.engines.batch_job import EXTRA_JOBS, read_words
from howdah.engines.event_queue import EventQueue
from howdah.engines.slurm.batch_script import WARNED_S
from howdah.engines.slurm.commands import RUNNING, WAITING, SlurmCommands
from howdah.engines.slurm.engine import explain_wait
from howdah.engines.slurm.shapes import ContainerShape, SlurmPlace
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.spec.message import message

# A keeper ends with the master's run; Slurm, which thousands of keepers could keep busy, is asked every few minutes.
_KEEPER = """#!/bin/bash
export PATH={path}
[ {conf} ] && export SLURM_CONF={conf}
cd {keepers} || exit 1
trap 'exit 0' TERM
trap 'touch $SLURM_JOB_ID.ending' USR1
touch $SLURM_JOB_ID.started || exit 1
looks=0
until [ -e {mark} ]; do
    if [ $((looks = (looks + 1) % 20)) -eq 0 ]; then
        left=$(squeue --noheader --jobs={main} --states=RUNNING,SUSPENDED,STOPPED 2>&1) && [ -z "$left" ] && exit 0
        case "$left" in *"Invalid job id"*) exit 0 ;; esac
    fi
    sleep 15 & wait $!
done
"""


class ExtraJobs:
    """The extra jobs of one job, whose number is `main`; `queue` gets notes about places that are awaited."""

    def __init__(self, slurm: SlurmCommands, main: str, directory: Path, options: list[str], queue: EventQueue) -> None:
        self._slurm, self._main, self._options, self._queue = slurm, main, options, queue
        self._file, self._keepers = directory / EXTRA_JOBS, directory / "keepers"
        self._keepers.mkdir(exist_ok=True)
        self.mark = self._keepers / f"end-{os.environ.get('SLURM_RESTART_COUNT', '0')}"
        """The file whose appearance ends the extra jobs of this master's run."""
        self.waiting: dict[str, tuple[str, ContainerShape]] = {}
        """The role and the shape of each place that Slurm has not given yet, by the job's id as `scancel` takes it."""
        self.reasons: dict[str, str] = {}
        """Why each extra job waits, in Slurm's words."""
        self._unneeded: set[str] = set()
        self._is_unsure = False
        """Whether there may be jobs that no call has reported: a busy controller may accept a job and answer too
        late."""
        self._unknown: set[str] = set()

    def take_signs(self, kind: str) -> list[str]:
        """Return the numbers of the jobs whose scripts have left a sign since the last call: `started`, or `ending` if
        Slurm has announced that it ends the job."""
        found = list(self._keepers.glob(f"*.{kind}"))
        for path in found:
            path.unlink(missing_ok=True)
        return [path.stem for path in found]

    async def adjust(
        self, role: str, count: int, shape: ContainerShape, features: str, preferences: ContainerPreferences
    ) -> None:
        """Submit or cancel jobs until `count` places for `role` are awaited.

        Raises:
            EngineUnavailable, EngineRejected: Slurm does not answer, or refuses.
        """
        mine = [id_ for id_, (its_role, _) in self.waiting.items() if its_role == role]
        fitting = [id_ for id_ in mine if self.waiting[id_][1] == shape]
        needed = set(fitting[:count])
        if surplus := [id_ for id_ in mine if id_ not in needed]:
            await asyncio.to_thread(self._slurm.cancel, *surplus)  # also jobs that have just started: they are unused
            for id_ in surplus:
                del self.waiting[id_]
        if (missing := count - len(fitting)) > 0:
            asked = dataclasses.replace(shape, avoid=tuple(dict.fromkeys((*shape.avoid, *preferences.avoid))))
            await asyncio.to_thread(self._submit, role, missing, shape, asked.job_options(1, features))

    def _submit(self, role: str, missing: int, shape: ContainerShape, asked: list[str]) -> None:
        options = [*self._options, *asked, *self._limit_options(), f"--job-name=howdah-{self._main}-{role}"]
        options += ["--no-requeue", "--output=/dev/null", "--chdir=/", f"--comment=howdah {self._main}"]
        conf = self._slurm.environment.get("SLURM_CONF", "")
        values = {"path": os.environ.get("PATH", os.defpath), "conf": conf, "keepers": str(self._keepers)}
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        script = _KEEPER.format(**quoted, mark=self.mark.name, main=self._main)
        config = self._slurm.call("scontrol", "show", "config") if missing > 1 else ""
        found = re.search(r"^MaxArraySize\s*=\s*([1-9]\d*)", config, re.MULTILINE)
        limit = int(found[1]) if found else 1
        while missing > 0:
            size = min(missing, limit)
            try:
                number = self._slurm.submit([*options, *([f"--array=0-{size - 1}"] if size > 1 else [])], script)
            except EngineUnavailable:
                self._is_unsure = True
                raise
            ids = [f"{number}_{index}" for index in range(size)] if size > 1 else [number]
            self.waiting |= dict.fromkeys(ids, (role, shape))
            # A cancellation without a master reads the numbers.
            self._file.write_text(" ".join(dict.fromkeys((*read_words(self._file), number))), encoding="ascii")
            missing -= size

    def _limit_options(self) -> list[str]:
        """Return the options by which an extra job ends with the main one; its own limit would be the partition's."""
        job = self._slurm.facts("job", self._main).get(self._main, {})
        limit = job.get("TimeLimit", "UNLIMITED")
        with contextlib.suppress(KeyError, ValueError):
            if limit != "UNLIMITED":
                left_s = datetime.fromisoformat(job["EndTime"]).timestamp() - time.time()
                limit = str(max(1, math.ceil(left_s / 60)))
        return [f"--time={limit}", f"--signal=B:USR1@{WARNED_S}"]

    async def take_started(self) -> list[SlurmPlace]:
        """Return the places that Slurm has granted since the last call. Raises as `adjust` does."""
        numbers = {id_.partition("_")[0] for id_ in self.waiting}
        rows = {row.id: row for row in await asyncio.to_thread(self._slurm.jobs, *numbers)} if numbers else {}
        found = []
        self.reasons.clear()
        for id_, (role, shape) in list(self.waiting.items()):
            row = rows.get(id_)
            if row is not None and row.state in WAITING:
                self.reasons[id_] = explain_wait(row)
                text = message("waiting for a container of {role}: {reason}", role=role, reason=self.reasons[id_])
                self._queue.note(text, row.array)
            elif row is None or row.state not in ("SUSPENDED", "STOPPED"):
                del self.waiting[id_]
                if row is not None and row.state == "RUNNING":
                    found.append(SlurmPlace(row.number, row.nodes, shape, extra_id=id_, role=role))
                elif row is not None:
                    template = "Slurm has ended the job that was to bring a container of {role}: {state}"
                    text = message(template, role=role, state=row.state.lower())
                    self._queue.note(text, f"{role} {row.state}")
        return found

    async def give_up(self, *ids: str) -> None:
        """Cancel places that are not needed any more, including those of earlier calls to which Slurm did not
        answer."""
        self._unneeded.update(ids)
        unneeded = list(self._unneeded)
        try:
            if unneeded:
                await asyncio.to_thread(self._slurm.cancel, *unneeded)
                self._unneeded.difference_update(unneeded)
        except (EngineUnavailable, EngineRejected) as error:
            self._queue.note(str(error), "cancel")

    async def give_up_unknown(self, started: Collection[str]) -> None:
        """Cancel those of the jobs with these numbers that Slurm has accepted without a report: others were submitted
        in their place.

        Raises:
            EngineUnavailable, EngineRejected: Slurm does not say what they are; the next call asks again.
        """
        self._unknown.update(started if self._is_unsure else ())
        rows = await asyncio.to_thread(self._slurm.jobs, *self._unknown) if self._unknown else []
        self._unknown.clear()
        known = read_words(self._file)
        await self.give_up(*(row.id for row in rows if row.state in RUNNING and row.array not in known))

    async def give_up_all(self, but: set[str]) -> None:
        """Cancel all extra jobs of this job, including those of an earlier master, except `but`."""
        self._is_unsure = True  # the earlier master may have been killed before it wrote down a number
        known = ids = read_words(self._file)
        self.waiting.clear()
        if known and but:
            rows = await asyncio.to_thread(self._slurm.jobs, *known)
            ids = [row.id for row in rows if row.state in (*WAITING, *RUNNING) and row.id not in but]
        await self.give_up(*ids)
