"""The resource ledger as a job's master uses it: it records how much of this machine each job holds
(howdah.supervisor.state).

A gang is granted as a whole or not at all, in the order of submission, so two jobs never wait for each other's half. A
job that already holds containers is served first, because it only replaces one. The containers of a killed master stay
reserved for the next attempt, until the supervisor finds that the job has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from howdah.engines.local.machine import Machine
from howdah.spec import Resources
from howdah.spec.message import message
from howdah.spec.units import format_memory
from howdah.spec.values import dataclass
from howdah.supervisor import launcher
from howdah.supervisor.state import MachineResources, MachineState, find_shortage, new_entry

if TYPE_CHECKING:
    from howdah.supervisor.state import Entry


@dataclass(frozen=True)
class NotGranted:
    """The answer that containers are not granted yet."""

    reason: str
    """Why the job must wait."""


class Ledger:
    """The ledger, changed for the job `job_id`, whose master this process is."""

    def __init__(self, state: MachineState, machine: Machine, job_id: str) -> None:
        self.state, self.machine, self.job_id = state, machine, job_id

    def reserve(self, wanted: Mapping[str, Resources]) -> dict[str, tuple[str, ...]] | NotGranted:
        """Reserve all of `wanted` (by container id) or nothing; return the GPUs of each container. While the job waits,
        it keeps its turn."""
        with self.state.change() as change:
            if self.job_id not in change.entries:
                change.entries[self.job_id] = new_entry(change.next_ticket())
            own = change.entries[self.job_id]
            own["waiting"] = True
            first = None if own["held"] else _first_before(change.entries, own)
            if first is not None:
                return NotGranted(message("waiting behind {job}, which came first", job=first))
            problem = explain_shortage(change.entries, total(wanted.values()), self.machine)
            if problem:
                return NotGranted(problem)
            own["waiting"], own["promised"] = False, None
            return {name: self._grant(change.entries, own, name, resources) for name, resources in wanted.items()}

    def withdraw(self) -> None:
        """Note that the job waits for no container any more."""
        self._update(waiting=False, promised=None)
        launcher.wake(self.state)

    def note(self, container_id: str, **facts: str | int) -> None:
        """Note facts of a container for a later master or the supervisor: its control `group`, and `pid`, `start` and
        `directory` of its executor."""
        with self.state.change() as change:
            held = change.entries.get(self.job_id, {}).get("held", {}).get(container_id)
            if held is not None:
                held.update(facts)

    def held(self) -> dict[str, dict[str, Any]]:
        """Return the job's containers by id, with the facts that were noted about them."""
        entry = self.state.entries().get(self.job_id)
        return {name: dict(facts) for name, facts in entry["held"].items()} if entry else {}

    def free(self, container_id: str) -> None:
        """Remove a container that has ended."""
        with self.state.change() as change:
            change.entries.get(self.job_id, {}).get("held", {}).pop(container_id, None)
        launcher.wake(self.state)

    def leave(self) -> None:
        """Note that the job has ended, and that its master has completed it."""
        self._update(held={}, waiting=False, promised=None, left=True)

    def cancelled_by(self) -> str:
        """Return the user who asked the engine to cancel the job by force; "" if no user did."""
        entry = self.state.entries().get(self.job_id)
        return str(entry.get("cancel", "")) if entry else ""

    def _update(self, **facts: object) -> None:
        with self.state.change() as change:
            if self.job_id in change.entries:
                change.entries[self.job_id].update(facts)

    def _grant(self, entries: Mapping[str, Entry], own: Entry, name: str, resources: Resources) -> tuple[str, ...]:
        taken = {gpu for entry in entries.values() for held in entry["held"].values() for gpu in held["gpus"]}
        gpus = [gpu for gpu in self.machine.gpus if gpu not in taken][: resources.gpus]
        room = {"memory_mib": resources.memory_mib, "vcores": resources.vcores, "gpus": gpus}
        own["held"][name] = {**room, "group": "", "pid": 0, "start": 0}
        return tuple(gpus)


def total(wanted: Iterable[Resources]) -> tuple[int, int, int]:
    """Return the sum of resources, in the order in which howdah.supervisor.state counts them."""
    listed = list(wanted)
    return (
        sum(each.memory_mib for each in listed),
        sum(each.vcores for each in listed),
        sum(each.gpus for each in listed),
    )


def explain_shortage(
    entries: Mapping[str, Entry],
    wanted: Sequence[int],
    machine: Machine | MachineResources,
    with_promised: bool = False,
) -> str:
    """Return which resource is too scarce for `wanted`, and which jobs use it; "" if there is enough."""
    found = find_shortage(entries, wanted, machine, with_promised)
    if found is None:
        return ""
    kind, used = found
    uses = (job_id for job_id, entry in entries.items() if entry["held"] or (with_promised and entry["promised"]))
    holders = ", ".join(uses) or "no job"
    of = (machine.memory_mib, machine.vcores, len(machine.gpus))[kind]
    if kind == 0:
        template = "waiting for {amount}: {used} of {limit} are used by {holders}"
        return message(
            template,
            amount=format_memory(wanted[kind]),
            used=format_memory(used),
            limit=format_memory(of),
            holders=holders,
        )
    amount = f"{wanted[kind]} {('vcores', 'GPUs')[kind - 1]}"
    template = "waiting for {amount}: {used} of {limit} are used by {holders}"
    return message(template, amount=amount, used=used, limit=of, holders=holders)


def _first_before(entries: Mapping[str, Entry], own: Entry) -> str | None:
    """Return the job that was submitted before this one and still waits for its first containers."""
    waiting = [id_ for id_, entry in entries.items() if (entry["waiting"] or entry["promised"]) and not entry["held"]]
    earlier = [job_id for job_id in waiting if entries[job_id]["ticket"] < own["ticket"]]
    return min(earlier, key=lambda job_id: entries[job_id]["ticket"], default=None)
