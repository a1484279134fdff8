"""Other systems' commands: their argv goes to their dialect untouched, and what comes out runs like any job."""

from __future__ import annotations

import os
from pathlib import Path

import click

from howdah.cli.run import notice, run_prepared
from howdah.client.jobfile import wrong
from howdah.client.prepare import prepare
from howdah.dialects import Dialect
from howdah.errors import SpecError

_VERBATIM = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


@click.command("xl-submit", context_settings=_VERBATIM, add_help_option=False)
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def xl_submit(argv: tuple[str, ...]) -> None:
    """Submit as XLearning's xl-submit does, to YARN unless HOWDAH_ENGINE says otherwise."""
    from howdah.dialects.xlearning import READ, XlSubmit

    if not argv or argv[0].lstrip("-") in ("h", "help"):
        click.echo(f"howdah xl-submit {' '.join(f'[--{name} …]' for name in READ)} [command …]")
        return
    _run(XlSubmit(), argv)


def _run(dialect: Dialect, argv: tuple[str, ...]) -> None:
    parsed = dialect.parse(argv)
    mistakes = wrong(parsed.job, parsed.origins)
    if mistakes:
        raise SpecError(mistakes)
    for note in parsed.notes:
        notice(f"howdah: {note}")
    flags = {} if os.environ.get("HOWDAH_ENGINE") else {"engine": "yarn"}
    prepared = prepare(parsed.job, Path.cwd(), flags, notice, origins=parsed.origins)
    run_prepared(prepared, "chief", "ask", as_json=False)
