"""From a checked job to a plan: settings, framework, environment, staging, engine. Nothing is changed on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from howdah.client.config import Settings
from howdah.client.engines import engine as engine_for
from howdah.client.engines import settings_for
from howdah.data.stage import ARCHIVES, archive_file, stage
from howdah.engines import Engine
from howdah.errors import Mistake, SpecError
from howdah.frameworks import find
from howdah.spec import Environment, JobSpec, Plan, StagedFile

PYTHON_ARCHIVE = "howdah-python"
ENVIRONMENT_ARCHIVE = "howdah-environment"
Notice = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A plan, the engine to submit it to, and the values of the job's secret variables, which no plan shows."""

    engine: Engine
    plan: Plan
    secrets: Mapping[str, str]


def prepare(
    job: JobSpec,
    base: Path,
    flags: Mapping[str, str | None],
    notice: Notice,
    *,
    overwrite: bool = False,
    origins: Mapping[str, str] | None = None,
) -> Prepared:
    """Plan `job`, whose relative paths start at `base`.

    `flags` are settings from the command line, `origins` what the user typed for places of the spec; `notice` is told
    of what takes time.

    Raises:
        SpecError, StagingError, EngineRejected, EngineUnavailable: why it cannot run.
    """
    settings = settings_for(flags)
    engine = engine_for(settings)
    job = find(job.framework).expand(replace(job, queue=job.queue or settings["queue"]))
    secrets = read_secrets(job.secrets)
    environment = _environment(job, base, engine, settings, notice)
    conf_dir = settings["hadoop_conf_dir"]
    staged = stage(job, base, engine.home, overwrite=overwrite, conf_dir=conf_dir, origins=origins)
    staged = replace(
        staged,
        files=(*staged.files, *environment.files),
        runtime=() if engine.name == "local" else (_ours(engine), *environment.runtime),
        python=environment.python,
        program_path=environment.program_path,
        settings=settings.values,
        sources={**settings.sources, **(origins or {})},
    )
    return Prepared(engine, engine.plan(staged), secrets)


def _ours(engine: Engine) -> StagedFile:
    from howdah.data.runtime import runtime  # 10 ms that a job on this machine does without

    return runtime(engine.home)


def read_secrets(references: Mapping[str, str]) -> dict[str, str]:
    """The values behind `env:NAME` and `file:/path`.

    Raises:
        SpecError: one that is not there; its value is never part of the message.
    """
    values, mistakes = {}, []
    for name, reference in references.items():
        kind, _, where = reference.partition(":")
        try:
            values[name] = os.environ[where] if kind == "env" else Path(where).expanduser().read_text().rstrip("\n")
        except KeyError:
            mistakes.append(Mistake(f"secrets.{name}", f"the variable {where} is not set here"))
        except (OSError, UnicodeDecodeError) as error:
            mistakes.append(Mistake(f"secrets.{name}", f"{where} can't be read: {error}"))
    if mistakes:
        raise SpecError(mistakes)
    return values


@dataclass(frozen=True)
class _Environment:
    python: str
    program_path: tuple[str, ...] = ()
    files: tuple[StagedFile, ...] = ()
    runtime: tuple[StagedFile, ...] = ()


def _environment(job: JobSpec, base: Path, engine: Engine, settings: Settings, notice: Notice) -> _Environment:
    """Which Python runs howdah on the nodes, what the programs' PATH begins with, and what is shipped for both."""
    ours = _our_python(engine, settings)
    wanted = job.environment if job.environment != Environment() else _default_environment(settings["environment"])
    if wanted.python:
        if "/" not in wanted.python:
            return ours
        if _is_seen(wanted.python, engine, settings) and not os.access(wanted.python, os.X_OK):
            raise SpecError.at("environment.python", f"{wanted.python!r}: no such interpreter")
        return replace(ours, program_path=(str(Path(wanted.python).parent),))
    if wanted.requirements:
        from howdah.client.environments import build

        venv = build(base / wanted.requirements, notice)
        if _is_seen(venv, engine, settings):
            return replace(ours, program_path=(str(venv / "bin"),))
        return _shipped(ours, _packed(venv, notice), engine)
    if wanted.archive:
        archive = wanted.archive if "://" in wanted.archive else str(base / wanted.archive)
        return _shipped(ours, archive, engine)
    return ours


def _is_seen(path: str | Path, engine: Engine, settings: Settings) -> bool:
    """Whether the nodes have at `path` what this machine has there."""
    return engine.name == "local" or any(Path(path).is_relative_to(shared) for shared in settings.shared_paths)


def _default_environment(path: str) -> Environment:
    """The environment that the setting of this name means, by what the file's name ends in."""
    if path.endswith((".txt", ".lock")):
        return Environment(requirements=path)
    return Environment(archive=path) if path.endswith((*ARCHIVES, ".pex")) else Environment(python=path)


def _our_python(engine: Engine, settings: Settings) -> _Environment:
    """`python_archive` may say where in it the `bin` is: `cpython-3.12.tar.gz#python`."""
    archive, _, inside = settings["python_archive"].partition("#")
    if not archive or engine.name == "local":
        return _Environment(settings["python"] or "python3")
    file = archive_file(PYTHON_ARCHIVE, archive, engine.home, "python_archive", settings["hadoop_conf_dir"])
    root = "/".join(filter(None, (".", PYTHON_ARCHIVE, inside.strip("/"))))
    return _Environment(f"{root}/bin/python3", runtime=(file,))


def _packed(venv: Path, notice: Notice) -> str:
    from howdah.client.environments import pack

    return str(pack(venv, notice))


def _shipped(ours: _Environment, archive: str, engine: Engine) -> _Environment:
    file = archive_file(ENVIRONMENT_ARCHIVE, archive, engine.home)
    return replace(ours, program_path=(f"{ENVIRONMENT_ARCHIVE}/bin",), files=(*ours.files, file))
