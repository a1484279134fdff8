"""The commands of other systems under their own names: `xl-submit` is `howdah xl-submit`, `xl-kill ID` ends a job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from howdah.cli import main

_MEANINGS = {"submit": (), "kill": ("cancel",), "logs": ("logs", "--all")}


def run() -> None:
    """The console script: which command it is, is the name by which it was called."""
    program = Path(sys.argv[0]).name
    main([*meaning(program), *sys.argv[1:]])


def meaning(program: str) -> Sequence[str]:
    """The words that `howdah` is given for a command of this name."""
    return _MEANINGS[program.rpartition("-")[2]] or (program,)
