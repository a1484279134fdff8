"""Tests that `howdah doctor --run` ends where there is no room for its job."""

from __future__ import annotations

from pathlib import Path

import pytest

import howdah
from howdah.cli.doctor import trial
from howdah.spec import JobSpec, Resources, Role, State


def test_a_job_that_finds_no_room_is_cancelled(howdah_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HOME", howdah_home), ("LANGUAGE", "en"), ("LOCAL_MEMORY_MIB", "600")):
        monkeypatch.setenv(f"HOWDAH_{name}", str(value))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    client = howdah.Client(engine="local")
    before = client.submit(JobSpec(roles={"worker": Role("sleep 1000", resources=Resources(memory_mib=512))}))
    (finding,) = trial("local", "", limit_s=0.0)
    job = next(each for each in client.jobs() if each.id != before)
    assert (finding.state, finding.name, job.state) == ("fail", "job on local", State.CANCELLED)
    assert finding.text.startswith(f"{job.id} had not ended after 0 s, and is cancelled: ")
    assert before in finding.text
    assert client.job(before).state is not State.CANCELLED
