"""Installs xl-submit and hbox-submit as their users have them: a directory of scripts, a cluster, commands on PATH."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from commandline import CommandLine

from howdah.sandbox import Sandbox
from howdah.spec import uris

PROGRAMS = Path(sys.executable).parent
# An environment that isn't there yet is made first, and torch is large.
LIMIT_S = 600.0


@dataclass(frozen=True)
class XLearningClient:
    """Runs one of the two commands from a directory of scripts, as users do."""

    howdah: CommandLine
    directory: Path
    variables: dict[str, str]

    def __call__(self, program: str, line: str, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        argv = [str(PROGRAMS / program), *line.split(), *command]
        environment = {**self.variables, **variables}
        return subprocess.run(
            argv, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def start(self, program: str, line: str, *command: str) -> subprocess.Popen[str]:
        argv = [str(PROGRAMS / program), *line.split(), *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(argv, cwd=self.directory, env=self.variables, text=True, **pipes)

    def put(self, path: str, text: str) -> None:
        """Write a file on the cluster."""
        uri = f"{self.howdah.root}{path}"
        self.howdah.files.mkdirs(uris.parent(uri))
        with self.howdah.files.writing(uri) as sink:
            sink.write(text.encode())

    def names(self, path: str) -> list[str]:
        """Return the names below a directory of the cluster, without the marker of completeness."""
        top = f"{self.howdah.root}{path}"
        found = sorted(uris.below(entry.uri, top) for entry in self.howdah.files.walk(top))
        assert any(name.endswith("_SUCCESS") for name in found)
        return [name for name in found if not name.endswith("_SUCCESS")]

    def read(self, path: str) -> str:
        return self.howdah.files.read_bytes(f"{self.howdah.root}{path}").decode()


@contextlib.contextmanager
def xlearning_client_in(sandbox: Sandbox, directory: Path) -> Iterator[XLearningClient]:
    """Set up the commands in `directory`, with the environments in the user's own cache."""
    cache = Path(os.environ["HOWDAH_HOME"]) / "cache" / "environments"
    real = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "howdah" / "environments"
    real.mkdir(parents=True, exist_ok=True)
    cache.parent.mkdir(parents=True, exist_ok=True)
    if not cache.exists():
        cache.symlink_to(real)  # environments are large, and stay in the user's own cache
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        howdah = CommandLine(sandbox, directory)
        yield XLearningClient(howdah, directory, {**os.environ, "HOWDAH_SHARED_PATHS": "/"})
        howdah.end_all()
