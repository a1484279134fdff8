"""From a checked job to a plan: settings, framework, environment, staging, engine. Nothing is changed on a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.provenance import Provenance
from howdah.config.settings import HISTORY_URL, Settings
from howdah.engines import Engine
from howdah.errors import Mistake, SpecError
from howdah.frameworks import find
from howdah.inputs.assignment import shortages
from howdah.localfiles import regular_file
from howdah.spec import Environment, JobSpec, Plan, StagedFile, StagedJob, exec_limits
from howdah.spec.values import dataclass
from howdah.staging.stage import ARCHIVES, archive_file, stage
from howdah.storage import object_stores
from howdah.storage.content_cache import location
from howdah.storage.filesystem import filesystem

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
    file: Path | None = None,
    text: str = "",
) -> Prepared:
    """Plan `job`, whose relative paths start at `base`; `file` is the job file that it was read from, `text` what is in
    that, or would be.

    `flags` are settings from the command line, `origins` what the user typed for places of the spec; `notice` is told
    of what takes time.

    Raises:
        SpecError, StagingError, EngineRejected, EngineUnavailable: why it cannot run.
    """
    with Provenance(job, base, file, text) as notes:
        return _prepare(job, base, flags, notice, overwrite, origins or {}, notes)


def _prepare(
    job: JobSpec,
    base: Path,
    flags: Mapping[str, str | None],
    notice: Notice,
    overwrite: bool,
    origins: Mapping[str, str],
    notes: Provenance,
) -> Prepared:
    settings = settings_for(flags)
    engine = engine_for(settings)
    queue, port_range = job.queue or settings["queue"], job.port_range or settings["port_range"]
    job = find(job.framework).expand(replace(job, queue=queue, port_range=port_range))
    secrets = read_secrets(job.secrets)
    environment = _environment(job, base, engine, settings, notice)
    conf_dir = settings["hadoop_conf_dir"]
    with _temporary_environ(object_stores.variables(job.env, secrets)):
        staged = stage(job, base, engine.home, overwrite=overwrite, conf_dir=conf_dir, origins=origins)
    for sentence in shortages(job, staged):
        notice(sentence)
    staged = replace(
        staged,
        files=(*staged.files, *environment.files),
        runtime=()
        if engine.name == "local"
        else (_runtime_archive(engine, staged), *environment.runtime, *_py_spy_files(engine, job)),
        page=() if engine.name == "local" else _page(engine),
        python=environment.python,
        program_path=environment.program_path,
        settings={**settings.values, HISTORY_URL: settings[HISTORY_URL].partition("#")[0].partition("?")[0]},
        sources={**settings.sources, **origins},
        submission=notes.submission(secrets.values()),
        strikes={} if engine.name == "local" else _strikes(engine),
    )
    return Prepared(engine, engine.plan(staged), secrets)


def _py_spy_files(engine: Engine, job: JobSpec) -> tuple[StagedFile, ...]:
    """What takes stacks, where somebody may want them and it is here."""
    if job.timeouts.stall_s <= 0 or all(role.on_stall == "ignore" for role in job.roles.values()):
        return ()
    from howdah.staging.runtime_archive import py_spy

    found = py_spy(engine.home)
    return (found,) if found is not None else ()


@contextlib.contextmanager
def _temporary_environ(variables: Mapping[str, str]) -> Iterator[None]:
    """Object stores are where the job says, and seen as whom it says, here too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _runtime_archive(engine: Engine, staged: StagedJob) -> StagedFile:
    from howdah.staging.runtime_archive import runtime  # 10 ms that a job on this machine does without

    return runtime(engine.home, clients=object_stores.clients(staged))


def _strikes(engine: Engine) -> dict[str, float]:
    from howdah.engines.node_penalties import known

    return known(engine.home, time.time())


def _page(engine: Engine) -> tuple[StagedFile, ...]:
    from howdah.staging.runtime_archive import page

    return page(engine.home)


def read_secrets(references: Mapping[str, str]) -> dict[str, str]:
    """The values behind `env:NAME` and `file:/path`.

    Raises:
        SpecError: one that is not there; its value is never part of the message.
    """
    values, mistakes = {}, []
    for name, reference in references.items():
        kind, _, where = reference.partition(":")
        try:
            values[name] = os.environ[where] if kind == "env" else _secret_in(where)
        except KeyError:
            mistakes.append(Mistake(f"secrets.{name}", f"the variable {where} is not set here"))
        except OSError as error:
            mistakes.append(Mistake(f"secrets.{name}", f"{where} can't be read: {error.strerror}"))
        except UnicodeDecodeError:
            mistakes.append(Mistake(f"secrets.{name}", f"{where} can't be read: it is not UTF-8"))
    if mistakes:
        raise SpecError(mistakes)
    return values


def _secret_in(path: str) -> str:
    """The content of a file, or of a pipe, without the line's end."""
    return regular_file.read(Path(path).expanduser(), exec_limits.LONGEST).decode("utf-8").rstrip("\n")


@dataclass(frozen=True)
class _Environment:
    python: str
    program_path: tuple[str, ...] = ()
    files: tuple[StagedFile, ...] = ()
    runtime: tuple[StagedFile, ...] = ()


def _environment(job: JobSpec, base: Path, engine: Engine, settings: Settings, notice: Notice) -> _Environment:
    """Which Python runs howdah on the nodes, what the programs' PATH begins with, and what is shipped for both."""
    ours = _our_python(engine, settings)
    given = job.environment.python or job.environment.archive or job.environment.requirements
    wanted = job.environment if given else _default_environment(settings["environment"])
    if wanted.python:
        if "/" not in wanted.python:
            where = "environment.python" if given else "environment (your setting)"
            raise SpecError.at(where, f"is {wanted.python!r}, must be a path such as /opt/env/bin/python")
        if is_seen(wanted.python, engine, settings) and not os.access(wanted.python, os.X_OK):
            raise SpecError.at("environment.python", f"{wanted.python!r}: no such interpreter")
        return replace(ours, program_path=(str(Path(wanted.python).parent),))
    if wanted.requirements:
        from howdah.staging.virtual_environments import place, ready

        if is_seen(place(base / wanted.requirements), engine, settings):
            return replace(ours, program_path=(str(ready(base / wanted.requirements, notice) / "bin"),))
        return _with_archive(ours, packed_environment(base / wanted.requirements, engine, settings, notice))
    if wanted.archive:
        archive = wanted.archive if "://" in wanted.archive else str(base / wanted.archive)
        return _shipped(ours, archive, engine)
    return ours


def is_seen(path: str | Path, engine: Engine, settings: Settings) -> bool:
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


def packed_environment(requirements: Path, engine: Engine, settings: Settings, notice: Notice) -> StagedFile:
    """The packed environment of a requirements file; on the cluster there is one for each content and Python, whoever
    of this user's machines made it, and what is there is not made again."""
    from howdah.staging import virtual_environments

    key = virtual_environments.key(requirements)
    uri = location(engine.home, key, "environment.tar.gz")
    there = filesystem(uri, settings["hadoop_conf_dir"]).stat(uri)
    if there is not None:
        return StagedFile(ENVIRONMENT_ARCHIVE, uri, "archive", "", key, there.size, there.modified_ms)
    archive = virtual_environments.pack(virtual_environments.ready(requirements, notice), notice)
    return StagedFile(ENVIRONMENT_ARCHIVE, uri, "archive", str(archive), key, archive.stat().st_size)


def _shipped(ours: _Environment, archive: str, engine: Engine) -> _Environment:
    return _with_archive(ours, archive_file(ENVIRONMENT_ARCHIVE, archive, engine.home))


def _with_archive(ours: _Environment, file: StagedFile) -> _Environment:
    return replace(ours, program_path=(f"{ENVIRONMENT_ARCHIVE}/bin",), files=(*ours.files, file))
