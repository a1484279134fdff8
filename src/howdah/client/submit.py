"""Makes the plan of a checked job: settings, framework, environment, staging, engine. Nothing changes on a cluster."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from howdah.client.command_scripts import launches_of_job
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import hidden_engine, settings_for
from howdah.client.home_paths import expand_home
from howdah.client.missing_scripts import missing_scripts
from howdah.client.overridden_variables import overridden_variables
from howdah.client.provenance import Provenance
from howdah.client.unconnected_copies import unconnected_copies
from howdah.config.engine_settings import missing_engines, with_checked_options
from howdah.config.settings import HISTORY_URL, Settings
from howdah.engines import Engine
from howdah.engines.info import GROUP as ENGINES
from howdah.engines.info import find as find_engine
from howdah.errors import Mistake, SpecError
from howdah.frameworks import find
from howdah.inputs.assignment import explain_shortages
from howdah.localfiles import regular_file
from howdah.spec import Environment, JobSpec, Plan, StagedFile, StagedJob, exec_limits, plugins, redaction, uris
from howdah.spec.job_file_keys import job_file_record
from howdah.spec.launchers import unconnected
from howdah.spec.message import Sentence, message
from howdah.spec.staged import PYTHON_ARCHIVE
from howdah.spec.values import dataclass
from howdah.spec.working_files import SPREAD, entries, file_name
from howdah.staging.stage import ARCHIVES, archive_file, stage
from howdah.storage import object_stores
from howdah.storage.content_cache import location
from howdah.storage.factory import filesystem
from howdah.storage.progress import Notice

_HDFS_SCHEMES = {"hdfs", "viewfs"}
ENVIRONMENT_ARCHIVE = "howdah-environment"
_MASKED = (
    "{place}: *** stands for a value that was hidden where this was copied: write the value, or name it under `secrets`"
)


@dataclass(frozen=True)
class PreparedJob:
    """A job that can be submitted."""

    engine: Engine
    """The engine to submit the plan to."""
    plan: Plan
    """What the engine will run."""
    secrets: Mapping[str, str]
    """The values of the job's secret variables, which no plan shows."""
    profile: str = ""
    """The profile of the settings with which the plan was made."""
    fresh: bool = False
    """Whether the job begins without the checkpoint that is there."""


def prepare(
    job: JobSpec,
    base_directory: Path,
    flags: Mapping[str, str | None],
    notice: Notice,
    *,
    overwrite: bool = False,
    fresh: bool = False,
    origins: Mapping[str, str] | None = None,
    file: Path | None = None,
    text: str = "",
    overrides: Mapping[str, str] | None = None,
    install: bool = True,
) -> PreparedJob:
    """Make the plan of `job`, whose relative paths start at `base_directory`.

    `flags` are settings from the command line, and `notice` is called with a sentence before each step that takes time.
    `overwrite` lets outputs exist already, and `fresh` lets the job begin without the existing checkpoint. `origins`
    maps paths in the spec to the words that the user typed. `file` is the job file from which the job was read, `text`
    its content, or the content that such a file would have, and `overrides` are the options that replaced values of it.
    Without `install` an environment that has not been installed is only named: the plan can be shown, but not
    submitted.

    Raises:
        SpecError, StagingError, EngineRejected, EngineUnavailable: the job cannot run; the message says why.
    """
    with Provenance(job, base_directory, file, text, overrides) as provenance:
        return _prepare(job, base_directory, flags, notice, overwrite, fresh, origins or {}, provenance, install)


def _prepare(
    job: JobSpec,
    base_directory: Path,
    flags: Mapping[str, str | None],
    notice: Notice,
    overwrite: bool,
    fresh: bool,
    origins: Mapping[str, str],
    provenance: Provenance,
    install: bool,
) -> PreparedJob:
    if fresh and not job.checkpoint.path:
        raise SpecError.at("--fresh", "the job has no checkpoint.path")
    settings = settings_for(flags)
    engine = engine_for(settings)
    for sentence in hidden_engine(flags, settings):
        notice(sentence)
    queue, port_range = job.queue or settings["queue"], job.port_range or settings["port_range"]
    for sentence in dict.fromkeys(overridden_variables(job)):
        notice(sentence)
    for sentence in _check_launches(job, base_directory, origins):
        notice(sentence)
    job = find(job.framework).expand(replace(job, queue=queue, port_range=port_range))
    job = expand_home(job, engine.one_machine)
    for sentence in missing_engines(job):
        notice(sentence)
    for place in redaction.masked_places(job_file_record(job)):
        notice(message(_MASKED, place=place))
    job = with_checked_options(job, engine.name, base_directory)
    secrets = read_secrets(job.secrets)
    environment = _environment(job, base_directory, engine, settings, notice, install)
    conf_dir = settings["hadoop_conf_dir"]
    with _temporary_environ(object_stores.variables(job.env, secrets)):
        staged = stage(
            job,
            base_directory,
            engine.home,
            overwrite=overwrite,
            fresh=fresh,
            conf_dir=conf_dir,
            origins=origins,
            notice=notice,
        )
    for sentence in explain_shortages(job, staged):
        notice(sentence)
    staged = replace(
        staged,
        files=(*staged.files, *environment.files),
        runtime=()
        if engine.one_machine
        else (_runtime_archive(engine, staged), *environment.runtime, *_py_spy_files(engine, job)),
        page=() if engine.one_machine else _page_files(engine),
        python=environment.python,
        program_path=environment.program_path,
        settings={**settings.values, HISTORY_URL: settings[HISTORY_URL].partition("#")[0].partition("?")[0]},
        sources={**settings.sources, **origins},
        submission=provenance.submission(secrets.values()),
        node_penalties={} if engine.one_machine else _node_penalties(engine),
    )
    if mistakes := list(missing_scripts(job, staged, base_directory)):
        raise SpecError(mistakes)
    return PreparedJob(engine, engine.plan(staged), secrets, settings.profile, fresh)


def _check_launches(job: JobSpec, base_directory: Path, origins: Mapping[str, str]) -> list[Sentence]:
    """Return a sentence for each role whose launchers, in its command or in its scripts, may not find the other tasks,
    and one for tasks that know nothing of each other.

    Raises:
        SpecError: launchers will not find the other tasks.
    """
    launches = launches_of_job(job, base_directory)
    found = list(unconnected(job, launches))
    if mistakes := [each for each in found if isinstance(each, Mistake)]:
        raise SpecError([each.with_origin(origins) for each in mistakes])
    copies = unconnected_copies(job, base_directory, origins, launches)
    return [*(each for each in found if not isinstance(each, Mistake)), *([copies] if copies else [])]


def _py_spy_files(engine: Engine, job: JobSpec) -> tuple[StagedFile, ...]:
    """Return the stack sampler, if hang detection may need it and it is installed here."""
    if job.timeouts.stall_s <= 0 or all(role.on_stall == "ignore" for role in job.roles.values()):
        return ()
    from howdah.staging.runtime_archive import py_spy

    found = py_spy(engine.home)
    return (found,) if found is not None else ()


@contextlib.contextmanager
def _temporary_environ(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a while: during staging, too, the job's own addresses and credentials of object stores
    apply."""
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
    """Return howdah with those other distributions that this job needs: for the engine, the framework, its formats, and
    the file systems that it uses."""
    from howdah.staging import runtime_archive  # takes 10 ms, which a local job need not wait for

    info, job = find_engine(engine.name), staged.job
    libraries = set(info.libraries if info is not None else ())
    if object_stores.used_schemes(staged) & _HDFS_SCHEMES:
        libraries.update(runtime_archive.HDFS_LIBRARIES)
    used = [(ENGINES, engine.name), ("howdah.frameworks", job.framework)]
    used += [("howdah.readers", each.format) for each in job.inputs]
    used += [("howdah.writers", each.format) for each in job.outputs]
    brought = {plugins.distribution(group, name) for group, name in used if name} - {""}
    clients = object_stores.clients(staged)
    return runtime_archive.stage_runtime(engine.home, clients=clients, libraries=libraries, plugins=brought)


def _node_penalties(engine: Engine) -> dict[str, float]:
    from howdah.engines.node_penalties import read_penalties

    return read_penalties(engine.home, time.time())


def _page_files(engine: Engine) -> tuple[StagedFile, ...]:
    from howdah.staging.runtime_archive import page

    return page(engine.home)


def read_secrets(references: Mapping[str, str]) -> dict[str, str]:
    """Return the values behind `env:NAME` and `file:/path`.

    Raises:
        SpecError: a secret can't be read; no message contains a value.
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
    """Return the content of a file, or of a pipe, without its line end."""
    return regular_file.read(Path(path).expanduser(), exec_limits.MAX_ARGUMENT_BYTES).decode("utf-8").rstrip("\n")


@dataclass(frozen=True)
class _Environment:
    python: str
    """The interpreter that runs howdah on the nodes."""
    program_path: tuple[str, ...] = ()
    """Directories that come first on the programs' PATH."""
    files: tuple[StagedFile, ...] = ()
    """Files shipped for the programs."""
    runtime: tuple[StagedFile, ...] = ()
    """Files shipped for howdah itself."""


def _environment(
    job: JobSpec, base_directory: Path, engine: Engine, settings: Settings, notice: Notice, install: bool
) -> _Environment:
    """Choose the Python of howdah and that of the programs: the job's own environment, else the one of the settings."""
    base_environment = _python_of_howdah(engine, settings)
    given = job.environment.given
    chosen = job.environment if given else default_environment(settings["environment"])
    if chosen.python:
        where = "environment.python" if given else "environment (your setting)"
        return _with_interpreter(base_environment, job, chosen.python, where, base_directory, engine, settings)
    if chosen.requirements:
        from howdah.staging.virtual_environments import ensure_environment, environment_path

        venv = environment_path(base_directory / chosen.requirements)
        if not install and not venv.is_dir():
            notice(
                message("{file} is to be installed, once, into {directory}", file=chosen.requirements, directory=venv)
            )
        if is_linked(venv, engine, settings) or is_used_in_place(engine, settings):
            if install:
                venv = ensure_environment(base_directory / chosen.requirements, notice)
            if is_used_in_place(engine, settings):
                return replace(base_environment, program_path=(str(venv / "bin"),))
            shared = StagedFile(ENVIRONMENT_ARCHIVE, uris.of_local(venv))  # each task makes its own copy of it
            return _with_environment_archive(base_environment, shared)
        packed = packed_environment(base_directory / chosen.requirements, engine, settings, notice, install)
        return _with_environment_archive(base_environment, packed)
    if chosen.conda:
        from howdah.staging import conda_environments

        prefix = conda_environments.find_prefix(chosen.conda, base_directory)
        if is_seen(prefix, engine, settings):
            return replace(base_environment, program_path=(str(prefix / "bin"),))
        if not install:
            conda_environments.conda_pack(prefix)
            notice(message("the conda environment {name} is to be packed, once", name=str(prefix)))
        key = conda_environments.environment_key(prefix)
        make = functools.partial(conda_environments.pack, prefix, notice)
        return _with_environment_archive(base_environment, _packed(key, make, engine, settings, install))
    if chosen.archive:
        path, _, top = chosen.archive.partition("#")
        archive = path if "://" in path else str(base_directory / path)
        file = archive_file(ENVIRONMENT_ARCHIVE, archive, engine.home)
        if file.source and file.kind == "archive" and not top:
            from howdah.staging.packed_environment import find_top

            top = find_top(Path(file.source))
        return _with_environment_archive(base_environment, file, top)
    return base_environment


def _with_interpreter(
    environment: _Environment,
    job: JobSpec,
    python: str,
    where: str,
    base_directory: Path,
    engine: Engine,
    settings: Settings,
) -> _Environment:
    """Return `environment` with the interpreter that the job, or the setting `where`, names. Programs find it as
    `python` and `python3`.

    Raises:
        SpecError: this machine sees what the nodes see, and there is no such interpreter.
    """
    from howdah.staging import named_interpreter

    if "/" not in python:
        raise SpecError.at(where, f"is {python!r}, must be a path such as /opt/env/bin/python")
    sent = {file_name(entry) for _, _, entry, _ in entries(job)}
    if not python.startswith("/") and not sent.isdisjoint({SPREAD, os.path.normpath(python).partition("/")[0]}):
        is_directory = (base_directory / python).is_dir()  # a virtual environment that the job brings along
        return replace(environment, program_path=(str(Path(python, "bin") if is_directory else Path(python).parent),))
    in_image = any(image for image in (job.environment.image, *(role.image for role in job.roles.values())))
    path = str(base_directory.absolute() / python) if in_image else named_interpreter.locate(python, base_directory)
    is_known = not in_image and is_seen(path, engine, settings)
    if is_known and not named_interpreter.is_interpreter(path):
        raise SpecError.at(where, f"{python!r}: no such interpreter")
    directory, name = os.path.split(path)
    if named_interpreter.has_both_names(path) if is_known else name in named_interpreter.NAMES:
        return replace(environment, program_path=(directory,))
    file = archive_file(ENVIRONMENT_ARCHIVE, str(named_interpreter.pack_names(path)), engine.home)
    found = _with_environment_archive(environment, file)
    return replace(found, program_path=(*found.program_path, directory))


def is_seen(path: str | Path, engine: Engine, settings: Settings) -> bool:
    """Return whether the nodes see the same files at `path` as this machine."""
    return engine.sees(path) or any(Path(path).is_relative_to(shared) for shared in settings.shared_paths)


def is_linked(venv: Path, engine: Engine, settings: Settings) -> bool:
    """Return whether tasks get links to an environment of howdah's cache, from which each task makes its own
    environment. Engines whose home is not a directory of the nodes make no such links: there the environment is sent,
    so that no task writes to an environment that later jobs use."""
    return is_seen(venv, engine, settings) and uris.split(engine.home)[0] == "file"


def is_used_in_place(engine: Engine, settings: Settings) -> bool:
    """Return whether an environment of howdah's cache is used in its place. Only a cluster on this machine, such as a
    sandbox, does so: sending the environment would take longer than most of its jobs."""
    return "/" in settings.shared_paths and uris.split(engine.home)[0] != "file"


def default_environment(path: str) -> Environment:
    """Return the environment that the setting `environment` names; the file's extension shows its kind."""
    if path.endswith((".txt", ".lock", ".toml")):
        return Environment(requirements=path)
    return Environment(archive=path) if path.endswith((*ARCHIVES, ".pex")) else Environment(python=path)


def _python_of_howdah(engine: Engine, settings: Settings) -> _Environment:
    """Return the Python that runs howdah. `python_archive` may name the directory of `bin`:
    `cpython-3.12.tar.gz#python`."""
    archive, _, inside = settings["python_archive"].partition("#")
    if not archive or engine.one_machine:
        return _Environment(settings["python"] or "python3")
    file = archive_file(PYTHON_ARCHIVE, archive, engine.home, "python_archive", settings["hadoop_conf_dir"])
    root = "/".join(filter(None, (".", PYTHON_ARCHIVE, inside.strip("/"))))
    return _Environment(f"{root}/bin/python3", runtime=(file,))


def packed_environment(
    requirements: Path, engine: Engine, settings: Settings, notice: Notice, install: bool = True
) -> StagedFile:
    """Return the packed environment of a requirements file. The cluster keeps one for each content and Python version,
    whichever of this user's machines made it, and an existing one is not made again. Without `install` it is not made
    at all."""
    from howdah.staging import virtual_environments

    def make() -> Path:
        return virtual_environments.pack(virtual_environments.ensure_environment(requirements, notice), notice)

    packed = _packed(virtual_environments.environment_key(requirements), make, engine, settings, install)
    if packed.modified_ms:  # the cluster has it already
        virtual_environments.tell_open(requirements, packed.modified_ms / 1000, notice)
    return packed


def _packed(key: str, make: Callable[[], Path], engine: Engine, settings: Settings, install: bool) -> StagedFile:
    uri = location(engine.home, key, "environment.tar.gz")
    packed = filesystem(uri, settings["hadoop_conf_dir"]).stat(uri)
    if packed is not None:
        return StagedFile(ENVIRONMENT_ARCHIVE, uri, "archive", "", key, packed.size, packed.modified_ms)
    if not install:
        return StagedFile(ENVIRONMENT_ARCHIVE, uri, "archive", "", key)
    archive = make()
    return StagedFile(ENVIRONMENT_ARCHIVE, uri, "archive", str(archive), key, archive.stat().st_size)


def _with_environment_archive(environment: _Environment, file: StagedFile, top: str = "") -> _Environment:
    """Return `environment` with the programs' own environment, in whose archive `bin` is below the directory `top`."""
    path = "/".join(filter(None, (ENVIRONMENT_ARCHIVE, top.strip("/"), "bin")))
    return replace(environment, program_path=(path,), files=(*environment.files, file))
