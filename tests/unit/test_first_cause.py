"""Tests which of several failures is named: a connection that is lost may be the consequence of a peer's failure."""

from __future__ import annotations

import pytest

from howdah.spec import Exit, JobSpec, Role, State, TaskId
from howdah.spec.events import Noted
from howdah.testing import Gang
from howdah.wire.messages import Phase

RESET = Exit("exit", 1, detail="exit code 1: ConnectionResetError: gone", exception="ConnectionResetError: gone")
LOSS = Exit("exit", 1, detail="exit code 1: ValueError: loss is nan", exception="ValueError: loss is nan")
STOPPED = Exit("stopped", signal=15, detail="stopped as the master asked")
PRINTED = Exit("stopped", signal=15, detail="stopped; before, it had printed …", exception="ValueError: loss is nan")
NAMED = "ValueError: loss is nan; reported after the end of worker:0, which may be a consequence"


def formed(retries: int = 0) -> Gang:
    gang = Gang(JobSpec(roles={"worker": Role("train", replicas=2)}, retries=retries))
    gang.form()
    return gang


@pytest.mark.parametrize(
    ("second", "diagnostics"),
    [
        (LOSS, "worker:1 on node2: exit code 1: ValueError: loss is nan"),
        (PRINTED, f"worker:1 on node2: {NAMED}"),
        (STOPPED, f"worker:0 on node1: {RESET}"),
        (Exit("stopped", exception="BrokenPipeError: [Errno 32] Broken pipe"), f"worker:0 on node1: {RESET}"),
    ],
)
def test_after_a_lost_connection_a_peers_failure_is_named(second: Exit, diagnostics: str) -> None:
    gang = formed()
    gang.end("worker:0", RESET)
    gang.end("worker:1", second)
    assert gang.outcome is not None
    assert (gang.outcome.state, gang.outcome.diagnostics) == (State.FAILED, diagnostics)
    assert gang.outcome.first == TaskId("worker", int(diagnostics[7]))


def test_another_failure_is_not_replaced_by_what_a_stopped_peer_had_printed() -> None:
    gang = formed()
    gang.end("worker:0", LOSS)
    gang.end("worker:1", PRINTED)
    assert gang.outcome is not None
    assert gang.outcome.first == TaskId("worker", 0)


def test_an_abort_by_a_library_that_lost_its_peer_explains_nothing() -> None:
    gang = formed()
    gang.end("worker:0", Exit("signal", signal=6, lines=("  what():  NCCL error: remote process exited",)))
    gang.end("worker:1", LOSS)
    assert gang.outcome is not None
    assert gang.outcome.first == TaskId("worker", 1)


def test_what_a_peer_had_printed_is_noted_when_the_gang_starts_again() -> None:
    gang = formed(retries=1)
    gang.end("worker:0", RESET)
    gang.say("worker:1", Phase.ENDED, epoch=1, exit=PRINTED, ports={"main": 1})
    assert [note.text for note in gang.recorded(Noted)] == [f"worker:1 on node2: {NAMED}"]
