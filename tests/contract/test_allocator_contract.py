"""Tests the allocators' contract itself: a plain allocator passes it, and each of its wrong variants is caught."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from reference_allocator import Held, ReferenceAllocator, reference_context

from howdah.engines import NO_PREFERENCES, ContainerPreferences, Launch, MasterContext
from howdah.spec import Container, Exit, Outcome, Resources, StagedFile
from howdah.spec.events import CancelRequested, ContainerEnded, Event
from howdah.testing import allocator_contract
from howdah.testing.allocator_contract import SECRET, AllocatorContract


@pytest.fixture
def context(tmp_path: Path) -> Iterator[MasterContext]:
    with reference_context(tmp_path) as found:
        yield found


class ReferenceContract(AllocatorContract):
    """The contract of an engine that knows nothing of its nodes, and takes each lost one to be lost for good."""

    def lost_node(self, node: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class TestReferenceAllocator(ReferenceContract):
    implementation = ReferenceAllocator


class IgnoresAvoid(ReferenceAllocator):
    def node_for(self, preferences: ContainerPreferences) -> str:
        return super().node_for(NO_PREFERENCES)


class IgnoresMemory(ReferenceAllocator):
    def resources(self, role: str, preferences: ContainerPreferences) -> Resources:
        return super().resources(role, NO_PREFERENCES)


class LeavesProgramsAtUnregister(ReferenceAllocator):
    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        return


class AdoptsNothing(ReferenceAllocator):
    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        return {container.id: Exit("withdrawn", detail="gone") for container in containers}


class AdoptsAll(ReferenceAllocator):
    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        await super().adopt(containers)
        return {}


class NeverReportsReleased(ReferenceAllocator):
    def release(self, container_id: str, cause: str = "") -> None:
        super().release(container_id)
        self.held.pop(container_id, None)


class ReportsEachEndTwice(ReferenceAllocator):
    def end(self, held: Held, exit: Exit) -> None:
        super().end(held, exit)
        self.events.append(ContainerEnded(time.time(), held.container.id, exit))


class PutsSecretsIntoTheEnvironment(ReferenceAllocator):
    def variables(self, held: Held, launch: Launch) -> dict[str, str]:
        return {**super().variables(held, launch), "TOKEN": b"".join(launch.secrets.values()).decode()}


class DropsArchives(ReferenceAllocator):
    def place(self, file: StagedFile, target: Path) -> None:
        if file.kind == "file":
            super().place(file, target)


class IgnoresFiles(ReferenceAllocator):
    def files(self, launch: Launch) -> tuple[StagedFile, ...]:
        return self.context.staged.files


class CallsEachKillALostNode(ReferenceAllocator):
    def exit_of(self, held: Held) -> Exit:
        found = super().exit_of(held)
        return Exit("lost") if found.cause == "signal" else found


class NeverKills(ReferenceAllocator):
    def release(self, container_id: str, cause: str = "") -> None:
        held = self.held.pop(container_id, None)
        if held is not None:
            self.events.append(ContainerEnded(time.time(), container_id, Exit("stopped")))


class TakesEachSignalForACancellation(ReferenceAllocator):
    def signalled(self, signal: str) -> Event:
        return CancelRequested(time.time(), f"signal {signal}")


class ForgetsWhichNodeWasLost(ReferenceAllocator):
    def release(self, container_id: str, cause: str = "") -> None:
        super().release(container_id)


class TakesSilenceForHealth(ReferenceAllocator):
    def release(self, container_id: str, cause: str = "") -> None:
        super().release(container_id, "" if cause == "silent" else cause)


WRONG = {
    IgnoresAvoid: ("test_an_avoided_host_is_not_granted", "ContainerPreferences.avoid names"),
    IgnoresMemory: ("test_preferred_memory_is_granted", "memory_mib replaces the role's memory"),
    LeavesProgramsAtUnregister: ("test_unregister_leaves_no_program", "the end of a program after unregister"),
    AdoptsNothing: (
        "test_a_master_that_takes_over_hears_what_became_of_every_container",
        "a container that runs was not adopted",
    ),
    AdoptsAll: (
        "test_a_master_that_takes_over_hears_what_became_of_every_container",
        "a container that the engine does not know was adopted",
    ),
    NeverReportsReleased: (
        "test_a_released_container_is_killed_and_its_end_is_reported_once",
        "the end of a released container",
    ),
    ReportsEachEndTwice: ("test_an_end_is_reported_once", "the end of a container was reported again"),
    PutsSecretsIntoTheEnvironment: (
        "test_a_launch_brings_variables_secrets_and_files",
        "a secret is in the environment",
    ),
    DropsArchives: ("test_a_launch_brings_variables_secrets_and_files", "a staged archive is not unpacked"),
    IgnoresFiles: ("test_a_launch_may_bring_other_files_than_the_job", "Launch.files replaces the files of the job"),
    CallsEachKillALostNode: ("test_a_killed_program_is_no_lost_node", "was reported as 'lost'"),
    NeverKills: (
        "test_a_released_container_is_killed_and_its_end_is_reported_once",
        "the end of the program in a released container",
    ),
    TakesEachSignalForACancellation: (
        "test_a_signal_is_no_cancellation_where_another_master_follows",
        "nobody has cancelled the job, and SIGTERM ended it",
    ),
    ForgetsWhichNodeWasLost: (
        "test_a_place_that_was_lost_is_not_granted_again",
        "was granted after a release as 'lost'",
    ),
    TakesSilenceForHealth: (
        "test_a_place_that_was_silent_is_not_granted_again",
        "was granted after a release as 'silent'",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_each_wrong_allocator_is_caught(
    wrong: type[ReferenceAllocator], context: MasterContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator_contract, "LIMIT_S", 3.0)  # what never comes need not be awaited for long

    class Contract(ReferenceContract):
        implementation = wrong

    test, words = WRONG[wrong]
    with pytest.raises(AssertionError) as caught:
        getattr(Contract(), test)(context)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
