"""Reads a job file: its YAML text becomes a JobSpec, or a list of all mistakes in it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import yaml

from howdah.config.engine_settings import option_mistakes
from howdah.config.spec_reader import Reader
from howdah.config.variables import apply_overrides, read_declared_variables, read_sets
from howdah.config.yaml_tree import MAX_BYTES, Keys, Node, parse
from howdah.errors import Mistake, SpecError, StagingError
from howdah.frameworks import fills_commands, find, names
from howdah.localfiles import regular_file
from howdah.spec import JobSpec, plugins
from howdah.spec.job_file_keys import job_file_record
from howdah.spec.validation import find_mistakes
from howdah.spec.values import dataclass

PROGRAMS = {".py": "python", ".sh": "bash"}
"""The interpreter of a program that is given in place of a job file, by the extension of its name."""
_ODD_BREAKS = set("\r\x85\u2028\u2029\ufeff")


@dataclass(frozen=True)
class LoadedJob:
    """A job that was read from a file."""

    spec: JobSpec
    """The job."""
    base_directory: Path
    """The directory to which relative paths of the job refer: that of its file, or the current one if the job came
    through a pipe."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The origin of each place of the spec (`job.yaml:12`, `--set roles.worker.replicas`) and of each variable
    (`environment steps`)."""
    text: str = ""
    """The text of the file."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Options that replaced values of the file, as in `Submission.overrides`."""


def load(
    path: Path,
    sets: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> LoadedJob:
    """Return the job in the file at `path`, with `--set` applied; its values are texts, numbers or booleans. `environ`
    is this process's unless given. `fields` holds values of options such as `--name`, by the name of their field.

    Raises:
        StagingError: the file can't be read.
        SpecError: every mistake in it.
    """
    try:
        data = regular_file.read(path, MAX_BYTES)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError.at(str(path), f"is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise SpecError.at(str(path), f"{error.strerror}, the limit of a job file") from None
        raise StagingError(f"{path}: {error.strerror}. Give the path of a job file") from error
    if path.suffix in PROGRAMS:
        raise refuse_program(path)
    base_directory = path.resolve().parent if path.is_file() else Path.cwd()
    return load_text(
        text, path.name, base_directory, read_sets(sets or {}), os.environ if environ is None else environ, fields or {}
    )


def refuse_program(path: Path) -> SpecError:
    """Return the error for a program that was given in the place of a job file."""
    return SpecError.at(str(path), f"is a program, no job file: write `-- {PROGRAMS[path.suffix]} {path}`")


def load_text(
    text: str,
    file: str,
    base_directory: Path,
    sets: Mapping[str, str],
    environ: Mapping[str, str],
    fields: Mapping[str, str],
) -> LoadedJob:
    """Return the job in the text of a job file, as `load` does.

    Raises:
        SpecError: every mistake in it.
    """
    spec, sources = loads(text, file, sets, environ, fields)
    from_environment = {
        name: environ[name]
        for place, source in sources.items()
        if source == f"environment {(name := place.removeprefix('vars.'))}"
    }
    options = {f"--{name}": value for name, value in fields.items()}
    return LoadedJob(spec, base_directory, sources, text, {**from_environment, **sets, **options})


def loads(
    text: str, file: str, sets: Mapping[str, str], environ: Mapping[str, str], fields: Mapping[str, str] | None = None
) -> tuple[JobSpec, Mapping[str, str]]:
    """Return the job in `text`, as `from_tree` does; `file` is the name of the text."""
    root, found = parse(text, file)
    return from_tree(root, found, file, sets, environ, fields or {})


def from_tree(
    root: Node,
    found: list[Mistake],
    file: str,
    sets: Mapping[str, str],
    environ: Mapping[str, str],
    fields: Mapping[str, str],
) -> tuple[JobSpec, Mapping[str, str]]:
    """Return the job that a tree describes, and the origin of each of its values; `found` are the tree's own mistakes.

    Raises:
        SpecError: every mistake in it.
    """
    if isinstance(root, Keys) and {"apiVersion", "kind"} <= root.entries.keys():
        raise SpecError.at(file, "is a Kubernetes manifest, no job file: `howdah init -- COMMAND` writes a job file")
    variables, sources = read_declared_variables(root, sets, environ)
    root, wrong_sets = apply_overrides(root, sets, variables, fields)
    if isinstance(root, Keys):
        root = Keys({name: node for name, node in root.entries.items() if name != "vars"}, root.origin)
    reader = Reader(variables)
    spec: JobSpec = reader.read(root, JobSpec, "")
    found += [*wrong_sets, *reader.mistakes]
    found += [mistake for mistake in job_mistakes(spec, reader.sources) if not _is_reported(mistake, found)]
    if found:
        raise SpecError(sorted(found, key=lambda mistake: _line(mistake.origin or "", file)))
    return spec, {**sources, **reader.sources}


def check_job(spec: JobSpec, origins: Mapping[str, str] | None = None) -> None:
    """Raise SpecError with everything that is wrong with a job."""
    if found := job_mistakes(spec, origins):
        raise SpecError(found)


def job_mistakes(spec: JobSpec, origins: Mapping[str, str] | None = None) -> list[Mistake]:
    """Return everything that is wrong with a job, wherever it comes from: a file, Python or a command line."""
    found = _without_installed_formats(spec, find_mistakes(spec, names(spec.framework), origins))
    if fills_commands(spec.framework):  # a value that becomes empty is reported below
        found = [mistake for mistake in found if not re.fullmatch(r"roles\..+\.command", mistake.place)]
    if not any(mistake.place.startswith("engines") for mistake in found):  # their types are right
        found += option_mistakes(spec, origins)
    expanded = spec if found else find(spec.framework).expand(spec)
    return found or _without_installed_formats(spec, find_mistakes(expanded, origins=origins))


def _without_installed_formats(spec: JobSpec, mistakes: list[Mistake]) -> list[Mistake]:
    """Leave out mistakes about formats that an installed package brings."""
    return [mistake for mistake in mistakes if not _is_installed_format(spec, mistake.place)]


def _is_installed_format(spec: JobSpec, place: str) -> bool:
    match = re.fullmatch(r"(inputs|outputs)\.(\d+)\.format", place)
    if match is None:
        return False
    group = "howdah.readers" if match[1] == "inputs" else "howdah.writers"
    return getattr(spec, match[1])[int(match[2])].format in plugins.installed(group)


def to_yaml(spec: JobSpec) -> str:
    """Return a job file that `load` reads back as an equal `spec`."""
    return yaml.dump(job_file_record(spec), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _line(origin: str, file: str) -> int:
    """Return the line of a mistake, to sort mistakes by; a mistake that is not in the file comes last."""
    number = origin.removeprefix(f"{file}:")
    return int(number) if number != origin and number.isdigit() else MAX_BYTES


def _is_reported(mistake: Mistake, earlier: list[Mistake]) -> bool:
    """Return whether `mistake` is only a consequence: it is about the stand-in for a value that has an earlier
    mistake."""
    return any(other.place in ("", mistake.place) or mistake.place.startswith(other.place + ".") for other in earlier)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    # YAML takes some more characters for line ends, and keeps them only between double quotes.
    style = '"' if _ODD_BREAKS & set(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
