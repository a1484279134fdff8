"""Tests what an executor does when the tool that runs images hangs, is killed, or is not the usual one.

The tools that misbehave are scripts, because no real one hangs when a test wants it to.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conductor import Conductor
from image_tools import needs_podman, podman, root_archive
from test_executor_image import started, wait_until

from howdah.wire.messages import Assignment, Goal, ImageOrder, Phase

NEVER_BEGINS = "exec sleep 1000"
HANGS_AFTERWARDS = """
while [ "$1" != --pidfile ]; do shift; done
setsid sh -c 'echo $$ > "$0"; exec sleep 1000' "$2"
exec sleep 1000"""


class Script:
    """A tool of this name that writes what it is asked to do to a file; `run` is what it does for `run`."""

    def __init__(self, directory: Path, name: str, run: str) -> None:
        self.directory, self.name, self._said = directory / "bin", name, directory / "said"
        self.directory.mkdir()
        tool = self.directory / name
        tool.write_text(
            f'#!/bin/sh\necho "$@" >> {self._said}\ncase $1 in info) echo \'["name=rootless"]\';; run) {run};; esac\n'
        )
        tool.chmod(0o755)

    @property
    def said(self) -> str:
        return self._said.read_text() if self._said.exists() else ""

    def start(self, master: Conductor) -> None:
        master.start({"PATH": f"{self.directory}:{os.environ['PATH']}", "HOWDAH_CONTAINER": "c-1"})


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Script:
    return Script(tmp_path, *request.param)


@pytest.fixture
def master(script: Script, tmp_path: Path) -> Iterator[Conductor]:
    made = Conductor(tmp_path, Assignment("true", image=ImageOrder("image:1", (), script.name)))
    yield made
    made.close()


@pytest.mark.parametrize("script", [("docker", NEVER_BEGINS)], indirect=True)
def test_a_container_that_docker_was_about_to_start_is_removed(script: Script, master: Conductor) -> None:
    script.start(master)
    started(master)
    wait_until(lambda: "run " in script.said)
    master.set_orders(Goal.STOP, stop_s=60.0)
    ended = master.phase(Phase.ENDED, limit=30)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    wait_until(lambda: "rm -f howdah-c-1-1-" in script.said)


@pytest.mark.parametrize("script", [("podman", HANGS_AFTERWARDS)], indirect=True)
def test_a_tool_that_hangs_after_the_program_is_killed(script: Script, master: Conductor) -> None:
    script.start(master)
    started(master)
    wait_until(lambda: list(master.directory.glob("*/pid")))
    master.set_orders(Goal.STOP, stop_s=0.5)
    ended = master.phase(Phase.ENDED, limit=30)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    wait_until(lambda: "rm -f -t 0 howdah-c-1-1-" in script.said)


@pytest.mark.parametrize("script", [("docker", "exit 0")], indirect=True)
def test_this_user_is_root_in_containers_of_a_docker_without_root_rights(script: Script, master: Conductor) -> None:
    script.start(master)
    started(master)
    master.phase(Phase.ENDED)
    assert " --user 0:0 " in script.said


@needs_podman()
def test_a_container_is_removed_although_podman_was_killed_while_it_did_so(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    slow, go = tmp_path / "bin/runc", tmp_path / "go"
    wait = f'case " $* " in *" delete "*) touch {tmp_path}/waits; until [ -e {go} ]; do sleep 0.1; done;; esac'
    slow.write_text(f'#!/bin/sh\n{wait}\nexec {shutil.which("runc")} "$@"\n')
    slow.chmod(0o755)
    with podman(tmp_path, str(slow)) as tool:
        order = ImageOrder(str(root_archive(tmp_path)), (), "podman")
        master = Conductor(tmp_path, Assignment("echo ready; sleep 1000", image=order))
        master.start({**tool.environment, "HOWDAH_CONTAINER": "c-1"})
        try:
            started(master)
            wait_until(lambda: b"ready" in master.output())
            assert master.executor is not None
            master.executor.send_signal(signal.SIGTERM)
            assert master.exit_status() == 143
            assert (tmp_path / "waits").exists()
        finally:
            go.touch()
            master.close()
        wait_until(lambda: not tool.containers())
