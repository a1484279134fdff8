"""Tests that the terminal, the list of events and the page say the same of an event."""

from __future__ import annotations

import pytest

from howdah.cli.progress_lines import event_line
from howdah.locale.messages import render
from howdah.spec import JobSpec, Role, TaskId, events
from howdah.spec.event_sentences import _DETAILS, _SENTENCES, detailed_sentence, sentence
from howdah.spec.fold import fold

TASKS = tuple(TaskId("worker", index) for index in range(7))
STARTED = events.JobStarted(0.0, "job_1", "local", "me", JobSpec({"worker": Role("true", replicas=7)}), "3.11", "n0")
FIVE = "worker:0, worker:1, worker:2, worker:3, worker:4…"
MARKED = [
    (events.PreflightPassed(1.0, 1, 1, 1, 2.0), "pre-flight passed on 1 node in 2.0 s"),
    (
        events.PreflightPassed(1.0, 1, 4, 2, 2.0, TASKS[3], "n3", ("no GPU", "no pairs")),
        "pre-flight passed on 2 nodes in 2.0 s; slowest worker:3 on n3; left out: no GPU; no pairs",
    ),
    (events.GangReleased(1.0, "no room", 30.2), "no room; asking again in 30 s"),
    (events.TookOver(1.0, 2, "n1"), "attempt 2 of the master took over on n1"),
    (events.MasterEnded(1.0, 1, "SIGTERM"), "attempt 1 of the master ended: SIGTERM"),
    (events.TimeLost(1.0, -7.0), "the master's clock was set back by 7 s"),
    (events.Stalled(1.0, TASKS, 61.4), f"{FIVE} showed no sign of progress for 61 s"),
    (events.StacksTaken(1.0, problem="no room"), "no stacks: no room"),
    (events.StacksTaken(1.0, uri="file:///s"), "suspected: no particular task; stacks: file:///s"),
    (
        events.StacksTaken(1.0, uri="file:///s", suspects=TASKS, reason="they wait"),
        f"suspected: {FIVE} (they wait); stacks: file:///s",
    ),
    (events.Straggling(1.0, TASKS[2], "CPU (cores)", 0.1, 3.0), None),
    (events.TaskEntered(1.0, TASKS[0], "me", "10.0.0.1", "shell"), "me at 10.0.0.1 entered worker:0: shell"),
    (events.TaskEntered(1.0, TASKS[0], "me", "10.0.0.1", "port", "80"), "me at 10.0.0.1 entered worker:0: port 80"),
    (events.BoardChanged(1.0, "ended", detail="it failed"), "TensorBoard has ended: it failed"),
    (events.Noted(1.0, "a note"), "a note"),
]


@pytest.mark.parametrize(("event", "expected"), MARKED)
def test_the_page_shows_the_sentence_of_the_event(event: events.Event, expected: str | None) -> None:
    mark = fold([STARTED, event]).marks[-1]
    assert mark.text == detailed_sentence(event)
    assert mark.text == (expected or "worker:2 is out of line: CPU (cores) 0.1, its role's median 3")


def test_a_skipped_checkpoint_is_called_the_same_on_the_page() -> None:
    found = events.CheckpointFound(1.0, (1,), "file:///c/epoch-2", skipped=("epoch-3: it is cut",))
    assert fold([STARTED, found]).marks[-1].text == "skipped checkpoint: epoch-3: it is cut"
    assert event_line(found) == "skipped checkpoint: epoch-3: it is cut; going on from file:///c/epoch-2"


@pytest.mark.parametrize("event", [event for event, _ in MARKED if not isinstance(event, events.Noted)])
def test_each_sentence_has_its_chinese(event: events.Event) -> None:
    assert not render(detailed_sentence(event), "zh").isascii()


def test_a_kind_of_event_has_one_sentence() -> None:
    assert _SENTENCES.keys() & _DETAILS.keys() == set()


def test_samples_have_no_sentence() -> None:
    assert sentence(events.Measured(1.0, TASKS[0], "loss", 0.5, 1)) == ""
    assert detailed_sentence(events.Measured(1.0, TASKS[0], "loss", 0.5, 1)) == ""
