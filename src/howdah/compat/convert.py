"""`howdah convert`: prints the job file that means the same as another system's command line."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import click

from howdah.cli.terminal import json_option
from howdah.compat import CompatCommand, Parsed
from howdah.config.job_file import job_mistakes, to_yaml
from howdah.errors import SpecError
from howdah.spec import plugins
from howdah.spec.codec import to_json
from howdah.spec.job_file_keys import job_file_record
from howdah.spec.validation import nearest

_GROUP = "howdah.dialects"
_ALIASES = {"azkaban": "azkaban-job"}
_VERBATIM = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("convert", context_settings=_VERBATIM)
@click.argument("system")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@json_option
def convert(system: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Print the job file for ARGUMENTS of SYSTEM's command line: xl-submit, hbox-submit, tony, submarine, azkaban."""
    name = _ALIASES.get(system, system)
    if not plugins.find(_GROUP, name):
        known = [*plugins.names(_GROUP), *_ALIASES]
        problem = f"{system!r} is not a system it knows, those are {', '.join(known)}"
        raise SpecError.at("convert", problem, nearest(system, known))
    parsed = _command_line(name).parse(arguments)
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        raise SpecError(mistakes)
    if as_json:
        click.echo(to_json(job_file_object(parsed, system, arguments)))
    else:
        click.echo(job_file_text(parsed, system, arguments), nl=False)


def job_file_text(parsed: Parsed, system: str, arguments: tuple[str, ...]) -> str:
    """Return the job file, with notes and remarks as comments."""
    comments = "".join(
        f"# {line}\n" for note in _conversion_notes(parsed, system, arguments) for line in note.splitlines()
    )
    return comments + to_yaml(parsed.job)


def job_file_object(parsed: Parsed, system: str, arguments: tuple[str, ...]) -> dict[str, object]:
    """Return the job file as an object, `job`, with the comments as `notes`."""
    return {"job": job_file_record(parsed.job), "notes": list(_conversion_notes(parsed, system, arguments))}


def _conversion_notes(parsed: Parsed, system: str, arguments: tuple[str, ...]) -> Iterator[str]:
    yield from parsed.notes
    if system.startswith("azkaban"):
        yield f"paths are relative to {Path(arguments[0]).absolute().parent}: put this file there"
    if parsed.variables:
        hidden = {reference.removeprefix("env:") for reference in parsed.job.secrets.values()}
        shown = (
            f"{name}=(its value is a secret)" if name in hidden else f"{name}={shlex.quote(value)}"
            for name, value in parsed.variables.items()
        )
        yield f"set these where you submit: {' '.join(shown)}"
    if parsed.conf_files:
        yield f"HADOOP_CONF_DIR must hold {', '.join(parsed.conf_files)}"
    if parsed.same_hosts:
        yield "a job file does not remember hosts: name them by roles.….placement.prefer"


def _command_line(name: str) -> CompatCommand:
    """Return the command line of this name, with Hadoop's configuration if it needs one."""
    made = plugins.load(plugins.find(_GROUP, name))
    if "hadoop" not in inspect.signature(made).parameters:
        return cast(CompatCommand, made())
    from howdah.client.engine_registry import settings_for

    return cast(CompatCommand, made(hadoop=settings_for({})["hadoop_conf_dir"]))
