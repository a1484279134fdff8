"""XLearning's and HBox's submit commands as click commands.

The arguments go to the system's own reader unchanged, and the job that comes out runs like any job.
"""

from __future__ import annotations

import click

from howdah.compat import CompatCommand
from howdah.compat.submission import exit_codes, run_parsed, show_usage, verbatim_command

NOT_SUBMITTED, FAILED, DETACHED = 1, 2, (130, 143)


@verbatim_command("xl-submit")
def xl_submit(argv: tuple[str, ...]) -> None:
    """Submit as XLearning's xl-submit does, to YARN unless HOWDAH_ENGINE says otherwise."""
    from howdah.compat.xlearning.submit import XlSubmit

    _xlearning(XlSubmit(), argv, "xl-submit")


@verbatim_command("hbox-submit")
def hbox_submit(argv: tuple[str, ...]) -> None:
    """Submit as HBox's hbox-submit does, to YARN unless HOWDAH_ENGINE says otherwise."""
    from howdah.compat.xlearning.submit import HboxSubmit

    _xlearning(HboxSubmit(), argv, "hbox-submit")


def _xlearning(command: CompatCommand, argv: tuple[str, ...], program: str) -> None:
    from howdah.compat.xlearning.settings import PAGE
    from howdah.compat.xlearning.submit import OPTION_NAMES

    word = argv[0].lstrip("-") if argv else "help"
    if word in ("h", "help"):
        show_usage(program, [*(f"[--{name} …]" for name in OPTION_NAMES), "[command …]"], PAGE)
    elif word == "version":
        from importlib.metadata import version

        click.echo(f"{program.partition('-')[0]} version {version('howdah')} (howdah)")
    else:
        # A job that could not be followed to its end counts as not submitted.
        with exit_codes(NOT_SUBMITTED, FAILED, kept=(0, None, *DETACHED)):
            run_parsed(command.parse(argv))
