"""Tests that results of functions that nobody has read stay, and are removed when they are old, and nothing else is."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailable, JobFailed, StagingError
from howdah.functions import kept_results
from howdah.functions.packed_function import pack_function
from howdah.functions.results import KEPT_S, Results, new_place
from howdah.program.run_function import ALL_TASKS, RESULT, call_each
from howdah.spec import Outcome, State, TaskId, uris
from howdah.storage.local import LocalFileSystem
from howdah.wire.program_protocol import FUNCTION_RESULTS


def aged(directory: Path, days: float, days_of_files: float) -> Path:
    """Make a directory of results whose last change was some days ago."""
    file = directory / "worker-0" / "result.pickle"
    file.parent.mkdir(parents=True)
    file.touch()
    for path, age in ((file, days_of_files), (file.parent, days), (directory, days)):
        os.utime(path, (time.time() - age * 86400,) * 2)
    return directory


def test_results_of_killed_clients_are_removed_after_a_week(tmp_path: Path) -> None:
    assert KEPT_S == 7 * 86400
    results = tmp_path / "results"
    old = [aged(results / f"{digit * 32}{end}", 8, 8) for digit, end in (("0", ""), ("1", ".failed"))]
    newer = [aged(results / ("2" * 32), 6, 6), aged(results / ("3" * 32), 8, 6)]
    running = aged(results / ".howdah-job_17-0", 30, 30)
    others = aged(results / "models", 30, 30)
    place = new_place(uris.of_local(tmp_path))
    Results(place, (), "").prepare()
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (*newer, running, others))


def test_old_results_with_a_link_that_leads_nowhere_are_removed(tmp_path: Path) -> None:
    old = aged(tmp_path / "results" / ("0" * 32), 8, 8)
    (old / "worker-0" / "result.pickle").unlink()
    (old / "worker-0" / "gone").symlink_to("nowhere")
    Results(new_place(uris.of_local(tmp_path)), (), "").prepare()
    assert not old.exists()


@pytest.fixture
def failed(tmp_path: Path) -> Results:
    """The results of a job of three tasks: the first has returned, the second raised, the third was stopped."""
    tasks = tuple(TaskId("worker", index) for index in range(3))
    results = Results(new_place(uris.of_local(tmp_path)), tasks, "")
    left = Path(f"{uris.path(results.place)}.failed")
    error = {"task": "worker:1", "error": pickle.dumps(ValueError("nan")), "text": "nan", "traceback": "Traceback\n"}
    for name, content in (("worker-0/result.pickle", [(0, 4), (3, 7)]), ("worker-1/error.pickle", error)):
        (left / name).parent.mkdir(parents=True)
        (left / name).write_bytes(pickle.dumps(content))
    return results


ENDED = Outcome(State.FAILED, "worker:1 failed", first=TaskId("worker", 1))


def test_what_others_have_returned_before_one_raised_is_kept(failed: Results) -> None:
    failure = failed.failure(JobFailed("failed"), ENDED, {"worker:1": "n1"})
    place = f"{failed.place}.failed"
    told = f"what 1 task returned stays for a week: howdah.kept_results('{place}') loads it"
    assert str(failure.__cause__) == f"\nin worker:1 on n1:\nTraceback\n{told}"
    assert (type(failure), str(failure)) == (ValueError, "nan")
    assert kept_results(place) == {"worker:0": [(0, 4), (3, 7)]}


def test_a_kept_result_that_cannot_be_read_here_is_named(failed: Results) -> None:
    place = f"{failed.place}.failed"
    Path(uris.path(place), "worker-0/result.pickle").write_bytes(b"cno_such_module\nf\n.")
    told = (
        f"what worker:0 returned can't be read here, and stays in {place}/worker-0/result.pickle: ModuleNotFoundError"
    )
    with pytest.raises(StagingError, match=re.escape(told)):
        kept_results(place)


def large_result(bytes_allowed: int) -> bytes:
    """Return what a disk that has room for some bytes cannot hold."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))
    return bytes(2 * bytes_allowed)


def test_a_result_that_was_not_written_whole_is_none(tmp_path: Path) -> None:
    pack_function(tmp_path, large_result, (1 << 20,), {}, ALL_TASKS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOWDAH_TASK": "worker:0"}
    command = [sys.executable, "-m", "howdah.program.run_function", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert "OSError: [Errno 27] File too large" in done.stderr
    assert not (tmp_path / FUNCTION_RESULTS / RESULT).exists()


def test_it_is_told_where_nothing_was_raised(failed: Results) -> None:
    left = Path(f"{uris.path(failed.place)}.failed")
    (left / "worker-1/error.pickle").unlink()
    failure = failed.failure(JobFailed("job_1 FAILED: killed"), ENDED, {})
    assert re.fullmatch(r"job_1 FAILED: killed\nwhat 1 task returned stays .*", str(failure))
    assert left.exists()


def test_what_was_read_is_removed(failed: Results) -> None:
    left = Path(f"{uris.path(failed.place)}.failed")
    (left / "worker-0/result.pickle").unlink()
    failure = failed.failure(JobFailed("failed"), ENDED, {})
    assert str(failure.__cause__) == "\nin worker:1:\nTraceback"
    assert not left.exists()


def test_what_could_not_be_read_stays(failed: Results) -> None:
    left = Path(f"{uris.path(failed.place)}.failed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.scandir", lambda path: (_ for _ in ()).throw(PermissionError(13, "Permission denied", path)))
        failure = failed.failure(JobFailed("failed"), ENDED, {})
    assert str(failure).startswith(
        f"failed\nnot all could be read of what the tasks have kept; it stays for a week in {failed.place}.failed: "
    )
    assert left.exists()


def test_it_is_told_where_results_are_that_could_not_be_read_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_files: object, _uri: str) -> bool:
        raise EngineUnavailable("the NameNode does not answer")

    results = Results(new_place(uris.of_local(tmp_path)), (TaskId("worker", 0), TaskId("worker", 1)), "")
    kept = Path(uris.path(results.place)) / "worker-1" / "result.pickle"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(pickle.dumps(3))
    loads = f"returned stays for a week: howdah.kept_results('{results.place}') loads it"
    with pytest.raises(
        JobFailed,
        match=re.escape(f"worker:0 returned nothing: its program ended before the function did; what others {loads}"),
    ):
        results.read(2)
    monkeypatch.setattr(LocalFileSystem, "exists", unavailable)
    with pytest.raises(EngineUnavailable, match=re.escape(f"the NameNode does not answer; what the tasks {loads}")):
        results.read(2)
    monkeypatch.undo()
    assert kept_results(results.place) == {"worker:1": 3}


def test_results_stay_until_they_are_joined(tmp_path: Path) -> None:
    results = Results(new_place(uris.of_local(tmp_path)), (TaskId("worker", 0),), "")
    kept = Path(uris.path(results.place)) / "worker-0" / "result.pickle"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(pickle.dumps([(0, 4)]))

    def fails(shares: list[object]) -> list[object]:
        raise TypeError(shares)

    with pytest.raises(TypeError):
        results.read(1, fails)
    assert kept.exists()
    assert results.read(1, lambda shares: shares[0]) == [(0, 4)]
    assert not kept.exists()


def test_an_item_that_ends_by_exit_is_none_and_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_INDEX", "0")
    monkeypatch.setenv("HOWDAH_REPLICAS", "2")

    def square(item: int) -> int:
        if item in (2, 4):
            sys.exit(0 if item == 2 else None)
        return item * item

    assert call_each(square, range(7)) == [(0, 0), (2, None), (4, None), (6, 36)]
    with pytest.raises(SystemExit):
        call_each(lambda item: sys.exit(3), range(1))
