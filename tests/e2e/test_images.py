"""Tests that a job which asks for an image never succeeds outside of it, on nodes without containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine
from test_tony_commands import configuration

from howdah.sandbox import Sandbox

VARIABLES = {"YARN_CONTAINER_RUNTIME_TYPE": "docker", "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": "tf:1"}
XLEARNING = ("--worker-num", "1", "--worker-memory", "128M", "--container-type", "docker", "--docker-image", "tf:1")


@pytest.fixture
def line(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.chdir(tmp_path)
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def words(line: CommandLine, way: str) -> tuple[str, ...]:
    """A command that asks for image `tf:1`."""
    if way == "job file":
        return ("run", "--on", "yarn", line.job_file("true", environment={"image": "tf:1"}))
    if way == "variables":
        return ("run", "--on", "yarn", line.job_file("true", env=VARIABLES))
    if way == "tony":
        (line.directory / "src").mkdir()
        conf = configuration(
            line.directory, worker__instances="1", worker__memory="128m", docker__enabled="true"
        )  # fmt: skip
        image = "tony.docker.containers.image=tf:1"
        return ("tony", f"--src_dir={line.directory}/src", "--executes=true", f"--conf_file={conf}", f"--conf={image}")
    if way == "submarine":
        size = ("--worker_resources", "memory=128M", "--worker_launch_cmd", "true", "--wait_job_finish")
        return ("submarine", "job", "run", "--name", "a", *size, "--worker_docker_image", "tf:1")
    return (way, *XLEARNING, "--launch-cmd" if way == "xl-submit" else "--hbox-cmd", "true")


@pytest.mark.parametrize("way", ["job file", "variables", "tony", "submarine", "xl-submit", "hbox-submit"])
def test_an_image_that_the_nodes_do_not_use_fails_the_job(way: str, line: CommandLine) -> None:
    done = line(*words(line, way))
    assert done.code not in (0, 64, 77), done.text[-3000:]
    told = "image 'tf:1' is not used: the NodeManager of 127.0.0.1"
    assert f"{done.job} FAILED" in done.text
    assert told in done.text
    assert "docker in yarn.nodemanager.runtime.linux.allowed-runtimes" in done.text
    assert json.loads(line("explain", "--json", done.job).out)["failure"]["exit"]["cause"] == "image"


def test_an_unused_image_is_reported_in_chinese(line: CommandLine) -> None:
    done = line(*words(line, "job file"), HOWDAH_LANGUAGE="zh")
    assert "没有使用镜像 'tf:1'：127.0.0.1" in done.text
