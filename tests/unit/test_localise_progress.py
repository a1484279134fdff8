"""Tests that the progress of localising a task's input is recorded, and then how the input arrived."""

from __future__ import annotations

from howdah.cli.progress_lines import event_line
from howdah.cli.terminal import phase
from howdah.spec import Role, TaskId
from howdah.spec.events import Greeted, JobStarted, Joined, Launched, Used
from howdah.spec.fold import fold
from howdah.testing import Gang, job
from howdah.wire.messages import Phase

TASK = TaskId("worker", 0)


def test_samples_are_taken_while_files_come() -> None:
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.grant("worker")
    for second in range(7):
        gang.say("worker:0", Phase.LOCALISING, data_bytes=second << 20, data_total_bytes=40 << 20)
        gang.now += 1
    samples = gang.recorded(Used)
    assert [sample.data_bytes >> 20 for sample in samples] == [0, 2, 4, 6]
    task = fold([*gang.recorded(JobStarted), *gang.recorded(Launched), *gang.recorded(Greeted), *samples]).tasks[TASK]
    assert phase(task) == "localising 6.0/40 MiB"
    gang.say(
        "worker:0",
        Phase.JOINED,
        ports={"main": 1},
        data_files=3,
        data_bytes=40 << 20,
        data_seconds=2.0,
        data_cached_bytes=9 << 20,
    )
    (joined,) = gang.recorded(Joined)
    assert event_line(joined).endswith(": 3 files, 40 MiB in 2.0 s, 9.0 MiB of them kept on the node")


def test_a_task_without_input_says_nothing_of_it() -> None:
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.grant("worker")
    gang.say("worker:0", Phase.LOCALISING)
    gang.join("worker:0")
    assert gang.recorded(Used) == []
    assert event_line(gang.recorded(Joined)[0]) == "worker:0 joined on host-worker:0"
