"""Starts a job's processes without howdah: the same programs, files and variables, for comparison."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.temp_home import LIMIT_S
from howdah.frameworks import find
from howdah.spec import JobSpec, Member, TaskId, World


def by_hand(
    job: JobSpec, python: Path, directory: Path, files: Sequence[Path], data: Mapping[str, Sequence[Path]]
) -> str:
    """What worker 0 printed. `data` are the files of each input by its directory: `data` is dealt, others go to all."""
    expanded = find(job.framework).expand(job)
    world = _world(expanded)
    running = []
    try:
        for member in world.members:
            here = _prepared(directory / member.task.slug, files, _dealt(data, world, member.task))
            running.append(_start(expanded, world, member, python, here))
        if any(process.wait(LIMIT_S) for process in running):
            raise SystemExit(f"{job.name} by hand failed:\n{(directory / 'worker-0' / 'output').read_text()}")
    finally:
        for process in running:
            process.kill()
    return (directory / "worker-0" / "output").read_text()


def _world(job: JobSpec) -> World:
    tasks = [TaskId(name, index) for name, role in job.roles.items() for index in range(role.replicas)]
    held = [socket.create_server(("127.0.0.1", 0)) for _ in tasks]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return World(1, tuple(Member(task, "127.0.0.1", {"main": port}) for task, port in zip(tasks, ports, strict=True)))


def _dealt(data: Mapping[str, Sequence[Path]], world: World, task: TaskId) -> Mapping[str, Sequence[Path]]:
    """Split the input files between the workers as howdah does."""
    if task.role != "worker":
        return {}
    replicas = len(world.members_of("worker"))
    return {name: some[task.index :: replicas] if name == "data" else some for name, some in data.items()}


def _prepared(directory: Path, files: Sequence[Path], data: Mapping[str, Sequence[Path]]) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in files:
        shutil.copy(file, directory)
    for name, some in data.items():
        (directory / name).mkdir()
        for file in some:
            (directory / name / file.name).symlink_to(file)
    return directory


def _start(job: JobSpec, world: World, member: Member, python: Path, directory: Path) -> subprocess.Popen[bytes]:
    role = job.roles[member.task.role]
    assert not isinstance(role.command, str)
    variables = {
        **os.environ,
        **job.env,
        **role.env,
        **find(job.framework).environment(world, member.task),
        "HOWDAH_PORT": str(member.ports["main"]),
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }
    with (directory / "output").open("wb") as output:
        return subprocess.Popen(role.command, cwd=directory, env=variables, stdout=output, stderr=output)
