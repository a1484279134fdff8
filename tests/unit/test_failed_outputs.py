"""Tests that a failed job waits for its tasks' uploads while their executors answer, and keeps them aside if asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.master.decisions.actions import CommitDone
from howdah.master.decisions.failed_outputs import MAX_KEEPING_S
from howdah.master.decisions.outputs import commit_request
from howdah.master.state import Stage
from howdah.outputs.commit import CommitReply, CommitRequest, OutputCommit, commit_outputs, discard_outputs
from howdah.spec import Exit, Output, Role, State, uris
from howdah.spec.events import CancelRequested, ContainerEnded, Noted
from howdah.storage.local import LocalFileSystem
from howdah.storage.published import complete_mark
from howdah.testing import Gang, job
from howdah.wire.messages import Phase

FAILED, STOPPED = Exit("exit", 3), Exit("stopped", signal=15)
ROLES = {"worker": Role("train", 2, tracked=True)}


def failing(**changes: Any) -> Gang:
    """Two workers, of which the second fails and the first is then stopped."""
    output = Output("hdfs://n/out", keep_failed=True)
    gang = Gang(job(roles=ROLES, **{"outputs": (output,), **changes}))
    gang.form()
    gang.end("worker:1", FAILED)
    gang.end("worker:0", STOPPED)
    return gang


def stage(gang: Gang) -> Stage:
    return gang.state.stage


def outputs(gang: Gang) -> list[OutputCommit]:
    return list(commit_request(gang.state).outputs)


def keep(gang: Gang, task: str, exit: Exit) -> None:
    gang.say(task, Phase.ENDED, exit=exit, kept=True, uploaded=(f"hdfs://n/{task}",))


def test_the_end_waits_for_the_uploads_and_takes_them_all() -> None:
    gang = failing()
    keep(gang, "worker:1", FAILED)
    assert stage(gang) is Stage.STOPPING
    keep(gang, "worker:0", STOPPED)
    assert stage(gang) is Stage.COMMITTING
    (output,) = outputs(gang)
    assert output.failed == "hdfs://n/out.failed"
    assert [to for _, to in output.parts] == ["worker-0", "worker-1"]
    gang.feed(CommitDone(gang.now, (), "", ("hdfs://n/out.failed",)))
    assert gang.outcome is not None
    assert gang.outcome.state is State.FAILED
    assert gang.recorded(Noted)[-1].text == "what the tasks made is kept in hdfs://n/out.failed"


def test_a_failed_job_does_not_wait_for_silent_executors_or_lost_containers() -> None:
    gang = failing()
    gang.wait(40)
    assert stage(gang) is Stage.COMMITTING
    gang = failing()
    for container in list(gang.state.containers):
        gang.feed(ContainerEnded(gang.now, container, Exit("exit", 0)))
    assert stage(gang) is Stage.COMMITTING


def test_waiting_for_a_failed_executor_ends() -> None:
    gang = failing()
    waited = 0.0
    while stage(gang) is Stage.STOPPING:
        for task in ("worker:0", "worker:1"):
            gang.say(task, Phase.ENDED, exit=FAILED)
        gang.wait(5)
        waited += 5
    assert MAX_KEEPING_S < waited < MAX_KEEPING_S + 60


@pytest.mark.parametrize("output", [Output("x"), Output("x", strategy="stream", keep_failed=True)])
def test_nothing_is_kept_unless_the_output_says_so(output: Output) -> None:
    gang = failing(outputs=(output,))
    assert stage(gang) is Stage.COMMITTING
    (told,) = outputs(gang)
    assert told.failed == ""


def test_a_cancelled_job_keeps_nothing() -> None:
    gang = Gang(job(roles=ROLES, outputs=(Output("x", keep_failed=True),)))
    gang.form()
    gang.feed(CancelRequested(gang.now, "me"))
    for task in ("worker:0", "worker:1"):
        gang.end(task, STOPPED)
    assert stage(gang) is Stage.COMMITTING


def test_set_aside_replaces_an_earlier_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    for name in ("temporary/worker-0.1/a", "temporary/worker-1.2/b", "out.failed/old"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    at = {name: uris.of_local(tmp_path / name) for name in ("temporary", "out", "out.failed")}
    complete_mark(LocalFileSystem(), at["out.failed"], "_FAILED")
    parts = tuple((f"worker-{n}.{n + 1}", f"worker-{n}") for n in (0, 1, 2))
    output = OutputCommit(at["temporary"], at["out"], parts=parts, failed=at["out.failed"])
    output = dataclasses.replace(output, uploaded=tuple(source for source, _ in parts))  # one is out of sight
    request = CommitRequest((output,))
    assert discard_outputs(request) == CommitReply(kept=(at["out.failed"],))
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["out.failed/_FAILED", "out.failed/worker-0/a", "out.failed/worker-1/b"]
    assert discard_outputs(request) == CommitReply()
    assert (tmp_path / "out.failed/worker-0/a").exists()


def test_set_aside_keeps_what_no_job_has_left(tmp_path: Path) -> None:
    for name in (".howdah-j-0/worker-0.1/a", "out.failed/precious"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    at = [uris.of_local(tmp_path / name) for name in (".howdah-j-0", "out", "out.failed", "out.replaced-j-0")]
    output = OutputCommit(at[0], at[1], parts=(("worker-0.1", "worker-0"),), failed=at[2])
    assert discard_outputs(CommitRequest((output,))) == CommitReply(kept=(at[2],), replaced=(at[3],))
    assert (tmp_path / "out.replaced-j-0/precious").exists()
    assert (tmp_path / "out.failed/worker-0/a").exists()


def test_what_cannot_be_set_aside_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / ".howdah-j-0/worker-0.1").mkdir(parents=True)
    (tmp_path / ".howdah-j-0/worker-0.1/a").touch()
    failed = uris.of_local(tmp_path / "missing/out.failed")
    output = OutputCommit(
        uris.of_local(tmp_path / ".howdah-j-0"),
        uris.of_local(tmp_path / "out"),
        parts=(("worker-0.1", ""),),
        failed=failed,
    )
    reply = discard_outputs(CommitRequest((output,)))
    assert reply.kept == ()
    assert reply.error.endswith(f"; what the tasks made is in {output.gathered}")
    assert (tmp_path / ".howdah-j-0/_commit/a").exists()


@pytest.mark.parametrize("tasks", ["", "worker:1"])
def test_what_the_master_does_not_see_is_no_success(tmp_path: Path, tasks: str) -> None:
    """The nodes have a directory of this name each: worker:1 has stored its files in that of its own node."""
    gang = Gang(job(roles=ROLES, outputs=(Output(uris.of_local(tmp_path / "out"), tasks=tasks),)))
    gang.form()
    gang.end("worker:0", made=() if tasks else (0,))
    gang.end("worker:1", made=(0,))
    request = commit_request(gang.state)
    seen, unseen = (Path(uris.path(request.outputs[0].temporary), f"worker-{n}.1") for n in (0, 1))
    seen.mkdir(parents=True)
    reply = commit_outputs(request)
    assert reply.committed == ()
    assert reply.error.startswith(f"{unseen.as_uri()}: a task has stored its files there, and this machine,")
    assert not (tmp_path / "out").exists()
    unseen.mkdir()
    assert commit_outputs(request).committed == (request.outputs[0].final,)
    assert commit_outputs(request).committed == (request.outputs[0].final,)
