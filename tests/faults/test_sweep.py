"""A master that is killed leaves what it could not remove; the next submission removes it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from test_local import kill_for_good

from howdah.client.follow import Follower
from howdah.engines.local.engine import LocalEngine
from howdah.spec import JobSpec, Output, Resources, Role, StagedJob, State, TaskId
from howdah.spec.events import Started


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalEngine:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    return LocalEngine({})


def submit(engine: LocalEngine, command: str, *outputs: Output) -> str:
    job = JobSpec({"worker": Role(command, resources=Resources(64))}, outputs=outputs)
    return engine.submit(engine.plan(StagedJob(job, engine.home)), {})


def test_outputs_key_and_credentials_of_a_killed_master_are_removed(engine: LocalEngine, tmp_path: Path) -> None:
    killed = submit(engine, "sleep 60", Output((tmp_path / "out").as_uri()))
    with contextlib.closing(Follower(engine, killed).updates()) as updates:
        next(update for update in updates if any(isinstance(event, Started) for event in update.events))
    directory = tmp_path / "home/state/jobs" / killed
    kill_for_good(directory)
    until = time.monotonic() + 60
    while not engine.describe(killed)[0].state.ended:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert list(tmp_path.glob(".howdah-*"))

    *_, last = Follower(engine, submit(engine, "true")).updates()
    assert last.view.state is State.SUCCEEDED
    assert not list(tmp_path.glob(".howdah-*"))
    assert not {"key", "credentials"} & {path.name for path in directory.iterdir()}
    *_, last = Follower(engine, killed).updates()
    assert last.view.state is State.FAILED
    assert "the master was killed" in last.view.outcome.diagnostics
    assert last.view.tasks[TaskId("worker", 0)].state is State.CANCELLED
