"""Installs what howdah is compared with, each into an environment of its own below howdah's cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from howdah.storage.content_cache import local_directory

INSTALL_LIMIT_S = 600


def torchx() -> str | None:
    """The path of TorchX's command; None, with the reason printed, when it can't be installed."""
    home = _environment("torchx-0.7.0", "torchx==0.7.0")
    return str(home / "bin" / "torchx") if home else None


def tensorflowonspark() -> str | None:
    """The path of a Python that has TensorFlowOnSpark; None, with the reason printed, when it can't be installed."""
    needs = ("tensorflow-cpu==2.21.0", "setuptools<80", "six", "packaging", "pyarrow", "pandas<3")
    home = _environment("tensorflowonspark-2.2.5", "tensorflowonspark==2.2.5", *needs)
    return str(home / "bin" / "python") if home else None


def torch_distributor() -> str | None:
    """The path of a Python with what Spark's TorchDistributor needs on nodes; None, with the reason printed, when it
    can't be installed."""
    home = _environment("torch-distributor-2.15.0", "torch==2.15.0", "numpy<3", "pandas<3", "pyarrow")
    return str(home / "bin" / "python") if home else None


def _environment(name: str, *requirements: str) -> Path | None:
    home = (local_directory() / "bench" / name).resolve()  # the scripts name it, and a temporary home goes
    if not (home / "ready").exists():
        try:
            _install(home, requirements)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"  {name} can't be installed, so there is nothing to compare with: {error}")
            return None
        (home / "ready").touch()
    return home


def _install(home: Path, requirements: tuple[str, ...]) -> None:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    python = str(home / "bin" / "python")
    for command in (
        [uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)],
        [uv, "pip", "install", "-q", "--compile-bytecode", "--python", python, *requirements],
    ):
        subprocess.run(command, check=True, timeout=INSTALL_LIMIT_S)
