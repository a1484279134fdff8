"""The common parts of the commands of other systems: they get their arguments unchanged, and submit the job that is
read."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.mistakes import error_lines
from howdah.cli.run import notice, run_prepared
from howdah.client.submit import prepare
from howdah.compat import Parsed, engine_flags
from howdah.config import job_file
from howdah.errors import HowdahError
from howdah.spec import JobSpec

USAGE_WIDTH = 100


def verbatim_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a click command from a function that gets all arguments unchanged, including `--help`."""
    settings = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}

    def decorated(function: Callable[..., Any]) -> click.Command:
        with_arguments = click.argument("argv", nargs=-1, type=click.UNPROCESSED)(function)
        return click.command(name, context_settings=settings, add_help_option=False)(with_arguments)

    return decorated


@contextlib.contextmanager
def exit_codes(refused: int, failed: int, kept: Collection[object] = (0, None)) -> Iterator[None]:
    """Exit with `refused` and a message for an error of howdah's, and with `failed` for a code that is not `kept`."""
    try:
        yield
    except HowdahError as error:
        for line in error_lines(error):
            notice(f"howdah: {line}")
        raise SystemExit(refused) from None
    except SystemExit as leaving:
        raise SystemExit(leaving.code if leaving.code in kept else failed) from None


def check_and_apply(parsed: Parsed) -> None:
    """Check the job of a command line, show its notes, and set its variables in this process.

    Raises:
        SpecError: everything that is wrong with the job.
    """
    job_file.check_job(parsed.job, parsed.origins)
    for note in parsed.notes:
        notice(f"howdah: {translate_stored(note)}")
    os.environ.update(parsed.variables)


def run_parsed(parsed: Parsed) -> None:
    """Submit and follow the job of a command line. Without a terminal Ctrl-C leaves the job running, as it did in those
    systems."""
    check_and_apply(parsed)
    flags = engine_flags()
    if parsed.conf_files:
        from howdah.config.hadoop_conf_overlay import overlay_configuration

        flags["hadoop_conf_dir"] = str(overlay_configuration(parsed.conf_files))
    job = _prefer_last_hosts(parsed.job, flags) if parsed.same_hosts else parsed.job
    prepared = prepare(job, Path.cwd(), flags, notice, origins=parsed.origins)
    run_prepared(prepared, "chief", "ask" if sys.stdin.isatty() else "detach", as_json=False, await_engine=True)


def _prefer_last_hosts(job: JobSpec, flags: dict[str, str | None]) -> JobSpec:
    from howdah.client.engine_registry import engine, settings_for
    from howdah.client.previous_hosts import prefer_previous_hosts

    return prefer_previous_hosts(job, engine(settings_for(flags)))


def show_usage(program: str, words: Iterable[str], page: str) -> None:
    """Print how another system's command is called, in lines of USAGE_WIDTH, and the page that explains its options."""
    line = program
    for word in words:
        if len(line) + 1 + len(word) > USAGE_WIDTH:
            click.echo(line)
            line = "   "
        line += f" {word}"
    click.echo(line)
    click.echo(_("what each option does: {page}", page=page))
