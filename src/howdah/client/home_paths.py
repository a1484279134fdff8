"""Replaces `~` by the user's home directory in the paths of a job file, as a shell does on a command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from howdah.errors import Mistake, SpecError
from howdah.spec import Environment, JobSpec

Change = Callable[[str, str], str]


def expand_home(job: JobSpec, one_machine: bool) -> JobSpec:
    """Return the job with its paths expanded; `one_machine` says that it runs here.

    Raises:
        SpecError: the path of data begins with `~` in a job for a cluster, whose file system has other homes.
    """
    mistakes: list[Mistake] = []

    def here(_: str, path: str) -> str:
        return str(Path(path).expanduser()) if path == "~" or path.startswith("~/") else path

    def anywhere(place: str, path: str) -> str:
        if not one_machine and here(place, path) != path:
            problem = f"is {path!r}: `~` is your home on this machine; write the path on the cluster's file system"
            mistakes.append(Mistake(place, problem))
        return here(place, path)

    inputs = [replace(each, path=_each(f"inputs.{n}.path", each.path, anywhere)) for n, each in enumerate(job.inputs)]
    outputs = [replace(each, path=anywhere(f"outputs.{n}.path", each.path)) for n, each in enumerate(job.outputs)]
    roles = {
        name: replace(role, files=_all("files", role.files, here), archives=_all("archives", role.archives, here))
        for name, role in job.roles.items()
    }
    expanded = replace(
        job,
        roles=roles,
        files=_all("files", job.files, here),
        archives=_all("archives", job.archives, here),
        environment=_environment(job.environment, here),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        checkpoint=replace(job.checkpoint, path=anywhere("checkpoint.path", job.checkpoint.path)),
        board=replace(job.board, path=anywhere("board.path", job.board.path)),
    )
    if mistakes:
        raise SpecError(mistakes)
    return expanded


def _all(place: str, paths: tuple[str, ...], change: Change) -> tuple[str, ...]:
    return tuple(change(place, path) for path in paths)


def _each(place: str, path: str | tuple[str, ...], change: Change) -> str | tuple[str, ...]:
    return change(place, path) if isinstance(path, str) else _all(place, path, change)


def _environment(environment: Environment, change: Change) -> Environment:
    return replace(
        environment,
        python=change("environment.python", environment.python),
        archive=change("environment.archive", environment.archive),
        requirements=change("environment.requirements", environment.requirements),
        conda=change("environment.conda", environment.conda),
    )
