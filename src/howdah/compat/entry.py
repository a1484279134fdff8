"""Runs console scripts that have the names of other systems' commands: `xl-submit`, `xl-kill ID`, `hbox-logs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from howdah.cli import main

_MEANINGS = {"submit": (), "kill": ("cancel",), "logs": ("logs", "--all")}


def run() -> None:
    """Run the command that has the console script's name."""
    main(translate(Path(sys.argv[0]).name, sys.argv[1:]))


def translate(program: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `howdah` for a command of this name with these arguments.

    `hbox-logs` was `yarn logs`, so its job is named by `-applicationId`, as hbox-submit itself printed it.
    """
    verb = program.rpartition("-")[2]
    if verb == "logs" and arguments and arguments[0].lstrip("-") == "applicationId":
        arguments = arguments[1:]
    return [*(_MEANINGS[verb] or (program,)), *arguments]
