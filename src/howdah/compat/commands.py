"""XLearning's and HBox's submit commands: their arguments go to `compat.xlearning` unchanged, and the job that comes
out runs like any job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from howdah.cli.i18n import translate_stored
from howdah.cli.mistakes import error_lines
from howdah.cli.run import notice, run_prepared
from howdah.client.submit import prepare
from howdah.compat import CompatCommand, Parsed, engine_flags
from howdah.config.job_file import job_mistakes
from howdah.errors import HowdahError, SpecError
from howdah.spec import JobSpec

NOT_SUBMITTED, FAILED, DETACHED = 1, 2, 130
VERBATIM = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


@click.command("xl-submit", context_settings=VERBATIM, add_help_option=False)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def xl_submit(argv: tuple[str, ...]) -> None:
    """Submit as XLearning's xl-submit does, to YARN unless HOWDAH_ENGINE says otherwise."""
    from howdah.compat.xlearning import XlSubmit

    _xlearning(XlSubmit(), argv, "xl-submit")


@click.command("hbox-submit", context_settings=VERBATIM, add_help_option=False)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def hbox_submit(argv: tuple[str, ...]) -> None:
    """Submit as HBox's hbox-submit does, to YARN unless HOWDAH_ENGINE says otherwise."""
    from howdah.compat.xlearning import HboxSubmit

    _xlearning(HboxSubmit(), argv, "hbox-submit")


def _xlearning(command: CompatCommand, argv: tuple[str, ...], program: str) -> None:
    from howdah.compat.xlearning import READ

    word = argv[0].lstrip("-") if argv else "help"
    if word in ("h", "help"):
        click.echo(f"{program} {' '.join(f'[--{name} …]' for name in READ)} [command …]")
    elif word == "version":
        from importlib.metadata import version

        click.echo(f"{program.partition('-')[0]} version {version('howdah')} (howdah)")
    else:
        _exit_like_xlearning(lambda: run_parsed(command.parse(argv)))


def _exit_like_xlearning(submit: Callable[[], None]) -> None:
    """Exit with 0; 1 if the job was not submitted, or could not be followed to its end; 2 if it ran and failed."""
    try:
        submit()
    except HowdahError as error:
        for line in error_lines(error):
            notice(f"howdah: {line}")
        raise SystemExit(NOT_SUBMITTED) from None
    except SystemExit as leaving:
        raise SystemExit(leaving.code if leaving.code in (0, None, DETACHED) else FAILED) from None


def run_parsed(parsed: Parsed) -> None:
    """Submit and follow the job of a command line. Where nobody can be asked, Ctrl-C leaves the job running, as it did
    in those systems."""
    mistakes = job_mistakes(parsed.job, parsed.origins)
    if mistakes:
        raise SpecError(mistakes)
    for note in parsed.notes:
        notice(f"howdah: {translate_stored(note)}")
    os.environ.update(parsed.variables)
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
