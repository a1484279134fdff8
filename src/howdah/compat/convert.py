"""`howdah convert`: prints the job file that means the same as another system's command line."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import click

from howdah.compat import CompatCommand, Parsed
from howdah.config.job_file import job_mistakes, to_yaml
from howdah.errors import SpecError
from howdah.spec import plugins
from howdah.spec.validation import nearest

_GROUP = "howdah.dialects"
_ALIASES = {"azkaban": "azkaban-job"}
_VERBATIM = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("convert", context_settings=_VERBATIM)
@click.argument("system")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def convert(system: str, arguments: tuple[str, ...]) -> None:
    """Print the job file that says what ARGUMENTS say to SYSTEM: xl-submit, hbox-submit, tony, submarine, azkaban."""
    name = _ALIASES.get(system, system)
    if not plugins.find(_GROUP, name):
        known = [*plugins.names(_GROUP), *_ALIASES]
        problem = f"{system!r} is not a system it knows, those are {', '.join(known)}"
        raise SpecError.at("convert", problem, nearest(system, known))
    parsed = _command_line(name).parse(arguments)
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        raise SpecError(mistakes)
    click.echo(job_file_text(parsed, system, arguments), nl=False)


def job_file_text(parsed: Parsed, system: str, arguments: tuple[str, ...]) -> str:
    """Return the job file, with all that there is to know beside it as comments."""
    comments = "".join(
        f"# {line}\n" for note in _conversion_notes(parsed, system, arguments) for line in note.splitlines()
    )
    return comments + to_yaml(parsed.job)


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
    """Return the command line of this name, with Hadoop's configuration if it asks for one."""
    made = plugins.load(plugins.find(_GROUP, name))
    if "hadoop" not in inspect.signature(made).parameters:
        return cast(CompatCommand, made())
    from howdah.client.engine_registry import settings_for

    return cast(CompatCommand, made(hadoop=settings_for({})["hadoop_conf_dir"]))
