"""Tests that files of two saves never count as one checkpoint, wherever a helper is killed that replaces one."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_checkpoint_discovery import Directory, tensorflow
from test_directory_sync import Task

from howdah.checkpoints import discovery
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.local import LocalFileSystem


class Killed(BaseException):
    """A helper is killed."""


def write_save(chief: Task, name: str, size: int) -> None:
    if name.endswith("/"):
        for each in ("shard-1", "shard-2", "DONE"):
            chief.write(name + each, bytes(size))
    else:
        tensorflow(Directory(chief.path), name, size)
        for path in sorted(chief.path.glob(f"{name}.*")):
            chief.write(path.name, path.read_bytes())


@pytest.mark.parametrize("name", ["weights", "z/"])
@pytest.mark.parametrize("is_same_task", [True, False])
def test_files_of_two_saves_are_no_checkpoint_wherever_their_replacement_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_same_task: bool
) -> None:
    def find() -> tuple[str, int]:
        uri = uris.of_local(chief.shared)
        found = discovery.find(filesystem(uri), uri).checkpoint
        assert found is not None
        return found.name, max((chief.shared / each).stat().st_size for each in found.files)

    rename, earlier, last = LocalFileSystem.rename, "a/" if name == "z/" else "a", name.rstrip("/")
    for life in range(10):
        (tmp_path / str(life)).mkdir()
        chief, left = Task(tmp_path / str(life), "chief"), [life]

        def rename_while_it_lives(
            fs: LocalFileSystem, old: str, new: str, overwrite: bool = False, left: list[int] = left
        ) -> None:
            if not left[0]:
                raise Killed
            left[0] -= 1
            rename(fs, old, new, overwrite)

        write_save(chief, earlier, 1500)
        chief.up()
        write_save(chief, name, 1000)
        chief.up()
        write_save(chief, name, 500)
        is_killed = False
        with monkeypatch.context() as killing:
            killing.setattr(LocalFileSystem, "rename", rename_while_it_lives)
            try:
                chief.up()
            except Killed:
                is_killed = True
        assert find() == ((earlier.rstrip("/"), 1500) if is_killed and life else (last, 1000 if is_killed else 500))
        if not is_same_task:
            chief.path = chief.path.with_name("next")
            chief.down()
            write_save(chief, name, 500)
        chief.up()
        assert find() == (last, 500)
        if not is_killed:
            assert life > 1
            assert ".howdah-replacing" not in chief.there
            return
    raise AssertionError("it never ended")
