"""Tests reading job histories that TonY 0.4.7's own classes wrote, and files that are none."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.compat.tony.history import avro_records, find_histories, read_history, write_history
from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.jobs import JobPositions, job_report
from howdah.errors import StagingError
from howdah.spec import State, TaskId, uris
from howdah.spec.fold import fold
from howdah.supervisor.state import MachineState

GOLDEN = Path(__file__).parents[1] / "golden" / "tony"
NAME = "application_1541469337545_0031-1542325695566-1542325733766-user1-{}.jhist"
WHOLE = base64.b64decode((GOLDEN / "history.base64").read_text())
CONFIGURATION = """<configuration>
<property><name>tony.worker.instances</name><value>2</value></property>
<property><name>tony.ps.instances</name><value>1</value></property>
<property><name>tony.application.name</name><value>mnist</value></property>
</configuration>"""


def history(directory: Path, data: bytes = WHOLE, state: str = "SUCCEEDED") -> str:
    directory.mkdir(exist_ok=True)
    path = directory / NAME.format(state)
    path.write_bytes(data)
    return uris.of_local(path)


class TestImported:
    def test_shows_what_tony_knew(self, tmp_path: Path) -> None:
        path = history(tmp_path)
        (tmp_path / "tony-final.xml").write_text(CONFIGURATION)
        job = read_history(path)
        view = fold(job.events)
        assert (view.id, view.user, view.host, view.state) == (job.id, "user1", "node1", State.SUCCEEDED)
        assert (view.started, view.running, view.finished) == (1542325695.566, 1542325695.566, 1542325733.766)
        assert job.staged.job.name == "mnist"
        tasks = {
            str(task): (one.state, one.node, str(one.exit), one.usage.peak_mib) for task, one in view.tasks.items()
        }
        assert tasks == {
            "worker:0": (State.SUCCEEDED, "node2", "exit code 0", 2048.0),
            "worker:1": (State.FAILED, "node3", "exit code 3", 2048.0),
            "ps:0": (State.STOPPED, "node2", "stopped", 0.0),
        }
        assert view.tasks[TaskId("worker", 1)].container == "container_1541469337545_0031_01_000003"

    def test_deflated_and_without_its_configuration(self, tmp_path: Path) -> None:
        deflated = base64.b64decode((GOLDEN / "history-deflated.base64").read_text())
        job = read_history(history(tmp_path, deflated, "FAILED"))
        assert {name: role.replicas for name, role in job.staged.job.roles.items()} == {"worker": 2, "ps": 1}
        outcome = fold(job.events).outcome
        assert outcome is not None
        assert (outcome.state, outcome.diagnostics) == (State.FAILED, "worker:1: exit code 3")

    def test_as_json_lines(self, tmp_path: Path) -> None:
        lines = []
        for event in avro_records(WHOLE):
            kind = event["type"].title().replace("_", "")
            lines.append(json.dumps({**event, "event": {f"com.linkedin.tony.events.{kind}": event["event"]}}))
        job = read_history(history(tmp_path, "\n".join(lines).encode()))
        assert fold(job.events).tasks == fold(read_history(history(tmp_path / "a")).events).tasks

    def test_is_a_job_of_this_machine(self, tmp_path: Path) -> None:
        where = write_history(read_history(history(tmp_path)), uris.of_local(tmp_path / "home"))
        places = JobPositions(MachineState.for_home(str(tmp_path / "home")))
        report = job_report(JobDirectory(Path(uris.path(where))), places)
        assert (report.id, report.user, report.state) == (
            "local-application_1541469337545_0031",
            "user1",
            State.SUCCEEDED,
        )
        assert report.submitted == 1542325695.566
        write_history(read_history(history(tmp_path)), uris.of_local(tmp_path / "home"))

    def test_of_several_attempts_the_last(self, tmp_path: Path) -> None:
        directory = tmp_path / "intermediate" / "a"
        directory.mkdir(parents=True)
        first = directory / NAME.format("FAILED").replace("1542325695566", "1542325600000")
        first.write_bytes(WHOLE)
        last = history(directory)
        (directory / "application_1_1-5-user1.jhist.inprogress").write_bytes(b"")
        assert list(find_histories([str(tmp_path)])) == [last]


class TestBad:
    @pytest.mark.parametrize(
        "name", ["job.jhist", "application_1_2-3-user1.jhist.inprogress", "application_1_2-3-user1-FAILED.jhist"]
    )
    def test_names(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(WHOLE)
        with pytest.raises(StagingError, match="is not imported"):
            read_history(uris.of_local(tmp_path / name))

    @pytest.mark.parametrize("data", [b"", b"Obj", b"<html>", b"Obj\x01\xff\xff\xff\xff\xff", b"{not json}", b"{}"])
    def test_content(self, tmp_path: Path, data: bytes) -> None:
        with pytest.raises(StagingError, match="no history of TonY"):
            read_history(history(tmp_path, data))

    @settings(max_examples=150)
    @given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
    def test_cut_and_garbled(self, cut: int, place: int, byte: int) -> None:
        for data in (WHOLE[:cut], WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]):
            with contextlib.suppress(ValueError):
                list(avro_records(data))

    def test_no_such_place(self, tmp_path: Path) -> None:
        with pytest.raises(StagingError, match="no such file or directory"):
            list(find_histories([str(tmp_path / "none")]))

    def test_nothing_to_import(self, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        (empty / "application_1_1-5-user1.jhist.inprogress").write_bytes(b"")
        with pytest.raises(StagingError, match=r"no \.jhist file of a job that has ended is in it"):
            list(find_histories([str(empty)]))
        howdah = Path(sys.executable).with_name("howdah")
        home = {**os.environ, "HOWDAH_HOME": str(tmp_path / "home")}
        command = [howdah, "import-history", empty, history(tmp_path / "a")]
        done = subprocess.run(command, env=home, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, "SUCCEEDED, 3 tasks" in done.stdout) == (66, True), "the others are imported"

    def test_without_fastavro(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fastavro", None)
        with pytest.raises(StagingError, match=r"\.jhist files are read by fastavro.*pip install '\.\[records\]'"):
            read_history(history(tmp_path))

    def test_unknown_codec(self) -> None:
        with pytest.raises(ValueError, match="header"):
            list(avro_records(WHOLE[:40]))
