"""Tests the state of a task that was told to stop: only a user's cancel makes it CANCELLED."""

from __future__ import annotations

from howdah.api import serializers
from howdah.api.serializers import job as described
from howdah.api.timeline import timeline
from howdah.spec import Container, Exit, JobSpec, Outcome, Role, State, TaskId
from howdah.spec.attempt import MAX_TRIES
from howdah.spec.events import (
    Allocated,
    CancelRequested,
    Ended,
    Event,
    GangRestarted,
    JobFinished,
    JobStarted,
    Joined,
    Launched,
    Started,
    Stopping,
)
from howdah.spec.fold import fold
from howdah.spec.view import JobView

CHIEF, WORKER = TaskId("chief", 0), TaskId("worker", 0)
STOPPED = Exit("stopped", signal=15)


def view(*after: Event) -> JobView:
    """Of a job whose two tasks run, and of what happened then."""
    spec = JobSpec({"chief": Role("a"), "worker": Role("b")}, success="chief")
    events: list[Event] = [JobStarted(1.0, "job-1", "local", "me", spec)]
    for number, task in enumerate((CHIEF, WORKER)):
        container = Container(f"c{number}", "node", task.role)
        events += [Allocated(2.0, container), Launched(2.0, task, 1, container)]
        events.append(Started(3.0, task, 1, 1, 4, "python3"))
    return fold([*events, *after])


def ended(task: TaskId, exit: Exit, counts: bool) -> Ended:
    return Ended(6.0, task, 1, 1, exit, "node", counts)


def test_the_chief_was_done() -> None:
    found = view(
        ended(CHIEF, Exit("exit", 0), True),
        Stopping(5.0, "chief:0 is done"),
        ended(WORKER, STOPPED, False),
        JobFinished(7.0, Outcome(State.SUCCEEDED)),
    )
    assert [task.state for task in found.tasks.values()] == [State.SUCCEEDED, State.STOPPED]
    assert [(row["task"], row["state"]) for row in timeline(found)["tasks"]] == [
        ("chief:0", "SUCCEEDED"),
        ("worker:0", "STOPPED"),
    ]
    assert [(row["stopped"], row["cancelled"]) for row in described(found, {}, 8.0)["roles"]] == [(0, 0), (1, 0)]


def test_tasks_stopped_after_a_failure_are_shown_as_stopped() -> None:
    found = view(
        ended(CHIEF, Exit("exit", 1), True),
        Stopping(5.0, "chief:0 failed"),
        ended(WORKER, STOPPED, False),
        JobFinished(7.0, Outcome(State.FAILED, "chief:0 failed")),
    )
    assert [task.state for task in found.tasks.values()] == [State.FAILED, State.STOPPED]


def test_tasks_of_a_cancelled_job_are_shown_as_cancelled() -> None:
    found = view(
        CancelRequested(5.0, "me"),
        Stopping(5.0, "cancelled by me"),
        ended(CHIEF, STOPPED, False),
        JobFinished(7.0, Outcome(State.CANCELLED, "cancelled by me")),
    )
    assert [task.state for task in found.tasks.values()] == [State.CANCELLED, State.CANCELLED]


def test_a_cancel_that_came_too_late() -> None:
    found = view(
        ended(CHIEF, Exit("exit", 0), True),
        Stopping(5.0, "chief:0 is done"),
        CancelRequested(5.5, "me"),
        ended(WORKER, STOPPED, False),
        JobFinished(7.0, Outcome(State.SUCCEEDED)),
    )
    assert found.tasks[WORKER].state is State.STOPPED


def test_a_task_without_a_reported_end_ends_with_the_job() -> None:
    assert view(JobFinished(7.0, Outcome(State.FAILED, "killed"))).tasks[WORKER].state is State.STOPPED


def test_an_earlier_attempt_that_was_stopped_did_not_fail() -> None:
    found = view(
        ended(CHIEF, Exit("exit", 1), True),
        ended(WORKER, STOPPED, False),
        GangRestarted(6.5, 2, "chief:0: exit code 1"),
        Launched(7.0, WORKER, 2, Container("c3", "node", "worker")),
    )
    states = {(row["task"], row["attempt"]): row["state"] for row in timeline(found)["tasks"]}
    assert states["worker:0", 1] == "STOPPED"
    assert states["chief:0", 1] == "FAILED"


def test_each_try_in_one_container_is_kept_with_its_end() -> None:
    bad, again = Exit("exit", 1), (CHIEF,)
    found = view(
        ended(CHIEF, bad, True),
        GangRestarted(6.5, 2, "chief:0: exit code 1", again),
        Joined(7.0, CHIEF, 1, 2, host="here"),
        Started(8.0, CHIEF, 1, 2, 5, "python3", log_offset=700),
        Ended(9.0, CHIEF, 1, 2, bad, "node"),
        GangRestarted(9.5, 3, "chief:0: exit code 1", again),
        Joined(10.0, CHIEF, 1, 3, host="here"),
        Started(11.0, CHIEF, 1, 3, 6, "python3", log_offset=900),
        Ended(12.0, CHIEF, 1, 3, Exit("exit", 0), "node"),
    )
    task = found.tasks[CHIEF]
    tries = [(each.try_number, each.attempt, each.pid, each.running, each.finished) for each in task.attempts]
    assert tries == [(1, 1, 4, 3.0, 6.0), (2, 1, 5, 8.0, 9.0), (3, 1, 6, 11.0, 12.0)]
    assert [each.exit and each.exit.code for each in task.attempts] == [1, 1, 0]
    assert (task.tries, task.attempt, task.exit and task.exit.ok) == (3, 1, True)
    rows = [row for row in timeline(found)["tasks"] if row["task"] == "chief:0"]
    assert [(row["try_number"], row["state"]) for row in rows] == [(1, "FAILED"), (2, "FAILED"), (3, "SUCCEEDED")]
    assert [span["phase"] for span in rows[1]["spans"]] == ["joined", "running"]
    shown = next(task for task in serializers.tasks(found) if task["task"] == "chief:0")["attempts"]
    assert [each["state"] for each in shown] == ["FAILED", "FAILED", "SUCCEEDED"]
    assert [each["log_offset"] for each in shown] == [row["log_offset"] for row in rows] == [None, 700, 900]


def test_the_first_failure_and_the_one_that_ended_the_job() -> None:
    first, last = Exit("exit", 3), Exit("exit", 5)
    restart = (ended(CHIEF, first, True), GangRestarted(6.5, 2, "chief:0: exit code 3", (CHIEF,)))
    started = (Joined(7.0, CHIEF, 1, 2, host="here"), Started(8.0, CHIEF, 1, 2, 5, "python3"))
    bad = (Ended(9.0, CHIEF, 1, 2, last, "node"), JobFinished(9.5, Outcome(State.FAILED, "bad", CHIEF, last)))
    found = timeline(view(*restart, *started, *bad))
    assert found["first_failure"] == {"task": "chief:0", "try_number": 1, "time": 6.0, "text": "exit code 3"}
    assert found["last_failure"] == {"task": "chief:0", "try_number": 2, "time": 9.0, "text": "exit code 5"}
    good = (Ended(9.0, CHIEF, 1, 2, Exit("exit", 0), "node"), JobFinished(9.5, Outcome(State.SUCCEEDED)))
    mended = timeline(view(*restart, *started, *good))
    assert (mended["first_failure"], mended["last_failure"]) == (found["first_failure"], None)
    once = timeline(view(ended(CHIEF, last, True), JobFinished(9.5, Outcome(State.FAILED, "bad", CHIEF, last))))
    assert (once["first_failure"], once["last_failure"]) == (
        {"task": "chief:0", "try_number": 1, "time": 6.0, "text": "exit code 5"},
        None,
    )


def test_the_failure_names_the_start_that_failed_though_another_came_after_it() -> None:
    bad, again = Exit("exit", 3, lines=("ValueError: bad",)), (CHIEF,)
    end = JobFinished(9.5, Outcome(State.FAILED, "bad", CHIEF, bad))
    in_its_container = view(
        ended(CHIEF, bad, True),
        GangRestarted(6.5, 2, "chief:0: exit code 3", again),
        Joined(7.0, CHIEF, 1, 2, host="here"),
        Started(8.0, CHIEF, 1, 2, 5, "python3", log_offset=700),
        end,
    )
    in_another = view(
        ended(CHIEF, bad, True),
        GangRestarted(6.5, 2, "chief:0: exit code 3", again),
        Launched(7.0, CHIEF, 2, Container("c3", "other", "chief")),
        Started(8.0, CHIEF, 2, 2, 5, "python3", log_offset=0),
        end,
    )
    last = view(ended(CHIEF, bad, True), end)
    found = [serializers.failure(each) for each in (in_its_container, in_another, last)]
    places = [(each["try_number"], each["attempt"], each["log_end"], each["node"]) for each in found if each]
    assert places == [(1, 1, 700, "node"), (1, 1, None, "node"), (1, 1, None, "node")]


def test_the_failure_of_a_task_that_never_began_names_no_start() -> None:
    spec = JobSpec({"chief": Role("a")})
    end = JobFinished(2.0, Outcome(State.FAILED, "late", CHIEF))
    found = serializers.failure(fold([JobStarted(1.0, "job-1", "local", "me", spec), end]))
    assert found is not None
    assert (found["task"], found["try_number"], found["attempt"], found["log_end"]) == ("chief:0", 0, 0, None)


def test_a_try_that_did_not_start_has_a_number_too() -> None:
    missing, again = Exit("start"), (CHIEF,)
    found = view(
        ended(CHIEF, Exit("exit", 1), True),
        GangRestarted(6.5, 2, "chief:0: exit code 1", again),
        Joined(7.0, CHIEF, 1, 2, host="here"),
        Ended(9.0, CHIEF, 1, 2, missing, "node"),
        GangRestarted(9.5, 3, "chief:0: start", again),
        Joined(10.0, CHIEF, 1, 3, host="here"),
        Started(11.0, CHIEF, 1, 3, 6, "python3"),
    )
    assert [each.try_number for each in found.tasks[CHIEF].attempts] == [1, 2, 3]
    assert found.tasks[CHIEF].tries == 3


def test_many_tries_in_one_container_hide_no_earlier_container() -> None:
    events: list[Event] = [ended(CHIEF, Exit("lost"), True), Launched(6.0, CHIEF, 2, Container("c9", "node", "chief"))]
    for epoch in range(2, 80):
        events += [Joined(epoch, CHIEF, 2, epoch, host="here"), Started(epoch, CHIEF, 2, epoch, 5, "python3")]
        events.append(Ended(epoch, CHIEF, 2, epoch, Exit("exit", 1), "node"))
    attempts = view(*events).tasks[CHIEF].attempts
    assert [each.attempt for each in attempts] == [1] + [2] * MAX_TRIES
    assert attempts[-1].try_number == view(*events).tasks[CHIEF].tries == 79
