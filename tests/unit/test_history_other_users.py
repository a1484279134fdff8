"""Tests that a history server shows of other users' jobs no files but those of who wrote the job's log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from history_jobs import job_id, whole
from test_history_server import Caller, ask, options

from howdah.api.recorded_log import LogReplaced, RecordedLog
from howdah.errors import StagingError
from howdah.eventfiles.checkpoint_contents import CheckpointContents
from howdah.history.server import HistoryServer
from howdah.history.source import HistorySource
from howdah.spec import Checkpoint, uris
from howdah.spec.job import Board
from howdah.storage.files_of_owner import files_of
from howdah.storage.local import LocalFileSystem

ME, OTHER = os.getuid(), 54321


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Return a directory with a checkpoint of this user."""
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    np.savez(directory / "step-1.npz", own=np.arange(3))
    return directory


class TestFiles:
    def test_those_of_the_owner_are_read(self, checkpoint: Path) -> None:
        files, uri = files_of(str(ME), uris.of_local(checkpoint)), uris.of_local(checkpoint / "step-1.npz")
        assert [entry.uri for entry in files.walk(uris.of_local(checkpoint))] == [uri]
        assert files.read_bytes(uri) == b"".join(files.iter_chunks(uri)) == (checkpoint / "step-1.npz").read_bytes()

    def test_others_are_not(self, checkpoint: Path) -> None:
        files, uri = files_of(str(OTHER), uris.of_local(checkpoint)), uris.of_local(checkpoint / "step-1.npz")
        assert list(files.walk(uris.of_local(checkpoint))) == []
        for read in (files.stat, files.read_bytes, files.open_read, lambda uri: list(files.iter_chunks(uri))):
            with pytest.raises(StagingError, match="only files of 54321, who owns"):
                read(uri)

    def test_a_path_that_leads_elsewhere_once_it_was_looked_at(
        self, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files, uri = files_of(str(OTHER), uris.of_local(checkpoint)), uris.of_local(checkpoint / "step-1.npz")
        monkeypatch.setattr(LocalFileSystem, "stat", lambda *_: None)
        with pytest.raises(StagingError, match="is not shown"):
            files.open_read(uri)

    def test_nothing_is_written(self, checkpoint: Path) -> None:
        files = files_of(str(ME), uris.of_local(checkpoint))
        with pytest.raises(StagingError, match="only be read"):
            files.delete(uris.of_local(checkpoint))
        assert checkpoint.exists()

    def test_tensors_that_were_read_for_one_are_not_shown_to_another(self, checkpoint: Path) -> None:
        contents, directory = CheckpointContents(), uris.of_local(checkpoint)
        uri = uris.join(directory, "step-1.npz")
        assert contents.tensors([directory], uri)["tensors"][0]["name"] == "own"
        with pytest.raises(StagingError, match="is not shown"):
            contents.tensors([directory], uri, str(OTHER))
        assert contents.checkpoints([directory])["checkpoints"]
        answer = contents.checkpoints([directory], str(OTHER))
        assert (answer["checkpoints"], "1 files are not shown" in answer["errors"][0]["text"]) == ([], True)


def names(caller: Caller) -> tuple[set[str], str]:
    """Return the names of the tensors that the server shows of the job's checkpoints, and all that it answered."""
    status, answer = caller.get(f"jobs/{job_id(1)}/checkpoints")
    found, told = set(), json.dumps(answer)
    for row in answer["checkpoints"] if status == 200 else []:
        tensors: dict[str, Any] = caller.get(f"jobs/{job_id(1)}/checkpoints/tensors?uri={row['uri']}")[1]
        found |= {each["name"] for each in tensors.get("tensors", ())}
        told += json.dumps(tensors)
    return found, told


@pytest.mark.skipif(ME != 0, reason="another user's files can be made as root only")
@pytest.mark.parametrize("place", ["checkpoint", "board"])
def test_a_job_names_what_the_server_may_read_and_its_user_may_not(
    tmp_path: Path, checkpoint: Path, place: str
) -> None:
    secret = tmp_path / "private"
    secret.mkdir(mode=0o700)
    np.savez(secret / "step-2.npz", hidden=np.arange(3))
    (checkpoint / "link.npz").symlink_to(secret / "step-2.npz")
    os.chown(checkpoint / "step-1.npz", OTHER, -1)
    for named, shown in ((secret, set()), (checkpoint, {"own"})):
        at = uris.of_local(named)
        job: dict[str, Any] = {"checkpoint": Checkpoint(at)} if place == "checkpoint" else {"board": Board(at)}
        (tmp_path / "home" / "jobs" / job_id(1) / "events.jsonl").unlink(missing_ok=True)
        log = whole(tmp_path / "home", 1, **job)
        os.chown(log, OTHER, -1)
        found, told = ask(options(tmp_path), lambda _, caller: names(caller))
        assert (found, "hidden" in told) == (shown, False), told


def test_the_servers_own_user_sees_all_that_his_jobs_name(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole(tmp_path / "home", 1, checkpoint=Checkpoint(uris.of_local(checkpoint)))

    def questions(_: HistoryServer, caller: Caller) -> None:
        assert names(caller)[0] == {"own"}
        monkeypatch.setattr(HistorySource, "user_on", lambda *_: "somebody else")
        assert names(caller)[0] == {"own"}, "files of the log's owner are shown by every server"

    ask(options(tmp_path), questions)


@pytest.mark.skipif(ME != 0, reason="another user's files can be made as root only")
def test_a_log_that_another_users_takes_the_place_of_is_read_anew(tmp_path: Path) -> None:
    log = whole(tmp_path / "home", 1)
    os.chown(log, OTHER, -1)
    read = RecordedLog(job_id(1), uris.of_local(log.parent), LocalFileSystem())
    read.apply(read.read())
    longer = tmp_path / "longer"
    longer.write_bytes(log.read_bytes() * 2)
    log.unlink()
    log.symlink_to(longer)
    with pytest.raises(LogReplaced):
        read.read()
    assert read.owner == str(OTHER)
