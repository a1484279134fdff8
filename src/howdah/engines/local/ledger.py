"""Who uses how much of this machine: one file that all masters of this user share, under one lock.

A gang is granted whole or not at all, in the order of asking; so two jobs never wait for each other's half. A job that
holds containers already comes first: it only replaces one. What a master that died held is free again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.engines.local.cgroup import MemoryGroup
from howdah.engines.local.machine import Machine, gib, total
from howdah.engines.local.processes import alive, guardian, kill_marked, start_of
from howdah.spec import Resources
from howdah.spec.values import dataclass

Book = dict[str, Any]


@dataclass(frozen=True)
class Waiting:
    """Not granted yet, because of `reason`."""

    reason: str


class Ledger:
    """The file `ledger.json` in `directory`; `job_id` is the job whose master this process is."""

    def __init__(self, directory: Path, machine: Machine, job_id: str) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path, self._lock = directory / "ledger.json", directory / "ledger.lock"
        self.machine, self.job_id = machine, job_id

    def reserve(self, wanted: Mapping[str, Resources]) -> dict[str, tuple[str, ...]] | Waiting:
        """All of `wanted` (by container id) or nothing; the GPUs of each. While it waits the job keeps its turn."""
        with self._open() as jobs:
            own = self._own(jobs)
            own["ticket"] = own["ticket"] or 1 + max((entry["ticket"] for entry in jobs.values()), default=0)
            first = None if own["held"] else _before(jobs, own)
            if first is not None:
                return Waiting(f"waiting behind {first}, which came first")
            problem = self._shortage(jobs, total(list(wanted.values())))
            if problem:
                return Waiting(problem)
            own["ticket"] = 0
            return {name: self._grant(jobs, own, name, resources) for name, resources in wanted.items()}

    def shortage(self, wanted: Resources) -> str:
        """Why there is no room for `wanted` now, of which another job may have come first; "" when there is."""
        with self._open() as jobs:
            return self._shortage(jobs, wanted)

    def withdraw(self) -> None:
        """Nothing is waited for any more."""
        with self._open() as jobs:
            self._own(jobs)["ticket"] = 0

    def note(self, container_id: str, **facts: str | int) -> None:
        """For whoever comes after us: the `group` (directory) of a container; `pid`, `start` and `directory` of its
        executor."""
        with self._open() as jobs:
            held = self._own(jobs)["held"].get(container_id)
            if held is not None:
                held.update(facts)

    def held(self) -> dict[str, dict[str, Any]]:
        """The job's containers by id, with what was noted of them."""
        with self._open() as jobs:
            return {name: dict(facts) for name, facts in self._own(jobs)["held"].items()}

    def free(self, container_id: str) -> None:
        """The container has ended."""
        with self._open() as jobs:
            self._own(jobs)["held"].pop(container_id, None)

    def sweep(self) -> None:
        """Clean up after masters that died."""
        with self._open():
            return

    def leave(self) -> None:
        """The job has ended."""
        with self._open() as jobs:
            jobs.pop(self.job_id, None)

    def _own(self, jobs: Book) -> Book:
        pid = guardian(os.environ)
        fresh = {"pid": pid, "start": start_of(pid), "ticket": 0, "since": time.time(), "held": {}}
        entry: Book = jobs.setdefault(self.job_id, fresh)
        return entry

    def _grant(self, jobs: Book, own: Book, name: str, resources: Resources) -> tuple[str, ...]:
        taken = {gpu for entry in jobs.values() for held in entry["held"].values() for gpu in held["gpus"]}
        gpus = [gpu for gpu in self.machine.gpus if gpu not in taken][: resources.gpus]
        room = {"memory_mib": resources.memory_mib, "vcores": resources.vcores, "gpus": gpus}
        own["held"][name] = {**room, "group": "", "pid": 0, "start": 0}
        return tuple(gpus)

    def _shortage(self, jobs: Book, wanted: Resources) -> str:
        """What there is too little of, and who has it; "" when there is enough."""
        held = [one for entry in jobs.values() for one in entry["held"].values()]
        holders = ", ".join(job_id for job_id, entry in jobs.items() if entry["held"]) or "nobody"
        memory, vcores, gpus = self.machine.memory_mib, self.machine.vcores, len(self.machine.gpus)
        used = sum(one["memory_mib"] for one in held)
        if used + wanted.memory_mib > memory:
            return f"waiting for {gib(wanted.memory_mib)}: {gib(used)} of {gib(memory)} are used by {holders}"
        used = sum(one["vcores"] for one in held)
        if used + wanted.vcores > vcores:
            return f"waiting for {wanted.vcores} vcores: {used} of {vcores} are used by {holders}"
        used = sum(len(one["gpus"]) for one in held)
        if used + wanted.gpus > gpus:
            return f"waiting for {wanted.gpus} GPUs: {used} of {gpus} are used by {holders}"
        return ""

    @contextlib.contextmanager
    def _open(self) -> Iterator[Book]:
        """The entries by job, alone and alive; what is changed in them is written back."""
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._path.read_text(encoding="utf-8") if self._path.exists() else "{}"
            jobs: Book = json.loads(before or "{}")
            for job_id in [name for name, entry in jobs.items() if not alive(entry["pid"], entry["start"])]:
                clear(job_id, [held["group"] for held in jobs.pop(job_id)["held"].values()])
            yield jobs
            after = json.dumps(jobs)
            if after != before:
                temporary = self._path.with_suffix(".tmp")
                temporary.write_text(after, encoding="utf-8")
                temporary.replace(self._path)


def clear(job_id: str, groups: list[str], whole: bool = False) -> None:
    """End and remove whatever a dead master's containers left; `whole`: `job_id` is that of one of its containers."""
    for directory in filter(None, groups):
        group = MemoryGroup.at(directory)
        group.kill()
        group.remove()
    kill_marked(f"{job_id}\0" if whole else f"{job_id}.")


def _before(jobs: Book, own: Book) -> str | None:
    """A job that has waited longer for its first containers."""
    waiting = [(entry["ticket"], name) for name, entry in jobs.items() if entry["ticket"] and not entry["held"]]
    earlier = [one for one in waiting if one[0] < own["ticket"]]
    return min(earlier)[1] if earlier else None
