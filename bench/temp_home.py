"""Provides a temporary HOWDAH_HOME to a benchmark, with the user's cache inside."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.storage.content_cache import local_directory

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 300.0


@dataclass(frozen=True)
class Done:
    """A command that has ended well; `started` and `ended` are epoch seconds, around the process."""

    started: float
    ended: float
    output: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started

    def find(self, pattern: str) -> str:
        """The first match of `pattern` in what it printed."""
        found = re.search(pattern, self.output)
        if found is None:
            raise SystemExit(f"expected {pattern!r} in:\n{self.output}")
        return found[0]


@contextlib.contextmanager
def temp_home() -> Iterator[Path]:
    """Provide a temporary HOWDAH_HOME for this process and its children. Jars and environments are reused.

    Python programs may keep byte code beside their sources, whatever this process's environment says: else howdah,
    which is not installed here as its rivals are, would be compiled at each start.
    """
    cache, before = local_directory(), dict(os.environ)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="howdah-bench-") as home:
        Path(home, "cache").symlink_to(cache)
        os.environ["HOWDAH_HOME"] = home
        os.environ["HOWDAH_LANGUAGE"] = "en"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.pop("HADOOP_CONF_DIR", None)
        try:
            yield Path(home)
        finally:
            os.environ.clear()
            os.environ.update(before)


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_s: float = LIMIT_S,
) -> Done:
    """Run to the end; a failure ends the benchmark with what was printed."""
    started = time.time()
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit_s,
    )
    result = Done(started, time.time(), done.stdout)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return result
