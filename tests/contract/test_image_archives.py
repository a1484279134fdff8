"""Tests which images an executor runs: archives of each kind, a directory, and a name that the tool knows already."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest
from conductor import Conductor
from image_tools import NO_PODMAN, RELEASE, Tool, has_podman, podman
from test_executor_image import Start, archive, conduct, started, tool

from howdah.wire.messages import Phase

__all__ = ["archive", "conduct", "tool"]
SAYS = "cat /etc/os-release"


@pytest.fixture(autouse=True)
def images_of_one_test(tool: Tool) -> None:
    """Let no test find what another has loaded."""
    tool("image", "prune", "-f")
    for name in images(tool):
        tool("rmi", "-f", name)


def images(tool: Tool) -> list[str]:
    return [name for name in tool("images", "--format", "{{.Repository}}:{{.Tag}}").split() if "<none>" not in name]


def own_images(tool: Tool) -> list[str]:
    return [name for name in images(tool) if name.startswith("localhost/howdah:")]


def check(master: Conductor) -> None:
    """Check that the program has run in the image."""
    started(master)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output() == RELEASE.encode()


def problem(master: Conductor) -> str:
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.cause == "localise"
    return str(ended.exit)


def test_copies_of_an_archive_are_loaded_once(conduct: Start, tool: Tool, archive: Path, tmp_path: Path) -> None:
    for number in range(2):
        copy = tmp_path / f"copy{number}.tar"
        shutil.copyfile(archive, copy)
        os.utime(copy, (number, number))
        check(conduct(SAYS, str(copy)))
    assert len(own_images(tool)) == 1


def test_a_name_that_the_tool_knows_is_not_fetched(conduct: Start, tool: Tool, archive: Path) -> None:
    tool("import", str(archive), "localhost/here:1")
    check(conduct(SAYS, "localhost/here:1"))


def test_a_saved_archive_with_two_names(conduct: Start, tool: Tool, archive: Path, tmp_path: Path) -> None:
    tool("import", str(archive), "localhost/here:1")
    tool("tag", "localhost/here:1", "localhost/here:2")
    saved = tmp_path / "saved.tar"
    tool("save", "-o", str(saved), "localhost/here:1", "localhost/here:2")
    tool("rmi", "localhost/here:1", "localhost/here:2")
    check(conduct(SAYS, str(saved)))
    assert len(own_images(tool)) == 1


def test_half_of_a_saved_archive_is_not_kept_as_an_image(
    conduct: Start, tool: Tool, archive: Path, tmp_path: Path
) -> None:
    tool("import", str(archive), "localhost/here:1")
    saved = tmp_path / "saved.tar"
    tool("save", "-o", str(saved), "localhost/here:1")
    os.truncate(saved, saved.stat().st_size // 2)
    assert "cannot be fetched: the archive is damaged" in problem(conduct(SAYS, str(saved)))
    assert own_images(tool) == []


def test_an_oci_archive(conduct: Start, tool: Tool, archive: Path, tmp_path: Path) -> None:
    if not has_podman():
        pytest.skip(NO_PODMAN)
    saved, own = tmp_path / "oci.tar", tmp_path / "podman"
    own.mkdir()
    with podman(own) as maker:
        maker("import", str(archive), "localhost/there:1")
        maker("save", "--format", "oci-archive", "-o", str(saved), "localhost/there:1")
    master = conduct(SAYS, str(saved))
    if tool.name == "docker" and int(tool("version", "--format", "{{.Server.Version}}").split(".")[0]) < 25:
        assert "only Docker 25 and later load an OCI archive" in problem(master)
        assert own_images(tool) == []
    else:
        check(master)


def test_a_root_directory(conduct: Start, tool: Tool, archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="tar")
    master = conduct(f"{SAYS}; echo changed > /etc/os-release", str(root))
    if tool.name == "docker":
        assert "docker runs no directory" in problem(master)
    else:
        check(master)
        assert (root / "etc/os-release").read_text() == RELEASE
