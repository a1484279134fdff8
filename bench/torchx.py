"""Installs TorchX, for comparison on one machine, into an environment of its own below howdah's cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from howdah.storage.content_cache import local_directory

VERSION = "0.7.0"
INSTALL_LIMIT_S = 600


def torchx() -> str | None:
    """The path of its command; None, with the reason printed, when it can't be installed."""
    home = local_directory() / "bench" / f"torchx-{VERSION}"
    program = home / "bin" / "torchx"
    if not program.exists():
        try:
            _install(home)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"  torchx can't be installed, so there is nothing to compare with: {error}")
            return None
    return str(program)


def _install(home: Path) -> None:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    python = str(home / "bin" / "python")
    for command in (
        [uv, "venv", "-q", "--python", sys.executable, str(home)],
        [uv, "pip", "install", "-q", "--compile-bytecode", "--python", python, f"torchx=={VERSION}"],
    ):
        subprocess.run(command, check=True, timeout=INSTALL_LIMIT_S)
