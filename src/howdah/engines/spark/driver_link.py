"""The allocator's connection to Spark's driver, which it starts by spark-submit unless one runs already."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from howdah.engines.spark.cluster import SparkCluster
from howdah.engines.spark.socket_path import short_path
from howdah.errors import EngineUnavailable

_SECRET = re.compile(r"(?i)secret|password|token|access[.]?key")
"""Names of properties whose values Spark itself does not show (`spark.redaction.regex`)."""
_SPECIAL = re.compile("[^A-Za-z0-9._/+-]")
"""What may mean something in a file of properties, or what its encoding may lack."""
START_LIMIT_S, STEP_S, LAST_LINES = 300.0, 0.1, 5


class DriverLink:
    """Talks to the driver at a Unix socket; `log` gets what the driver says."""

    def __init__(self, path: Path, log: Path) -> None:
        self.path, self.log = path, log
        self._private = log.with_name("private.conf")
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None

    async def start(self, cluster: SparkCluster, properties: Mapping[str, str], masters: Path) -> None:
        """Start a driver, which ends when no master locks the file `masters` any more.

        Raises:
            EngineUnavailable: there is no spark-submit, or its defaults cannot be read.
        """
        # All users of this machine see a command line: what looks like a secret goes by a file.
        private = {name: value for name, value in properties.items() if _SECRET.search(name)}
        shown = {name: value for name, value in properties.items() if name not in private}
        words = [word for name, value in shown.items() for word in ("--conf", f"{name}={value}")]
        program = [str(Path(__file__).with_name("driver.py")), str(self.path), str(masters)]
        if private and cluster.defaults is not None:  # for spark-submit, too, which may download jars by them
            self._write_private(_defaults_with(cluster.defaults, private))
            words += ["--properties-file", str(self._private)]
        elif private:  # the file would take the place of defaults that nobody here knows
            self._write_private(json.dumps(private).encode())
            program.append(str(self._private))
        command = [cluster.submit, "--master", cluster.master, "--deploy-mode", "client", *words]
        # The driver is a program of this Python; its executors have theirs (PYSPARK_PYTHON, or
        # spark.pyspark.python).
        environment = {**os.environ, **cluster.variables, "PYSPARK_DRIVER_PYTHON": sys.executable}
        with self.log.open("ab") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(*command, *program),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,
                )
            except OSError as error:
                raise EngineUnavailable(f"{cluster.submit}: {error.strerror or error}") from error

    def _write_private(self, content: bytes) -> None:
        self._private.unlink(missing_ok=True)
        self._private.touch(0o600)
        self._private.write_bytes(content)

    async def connect(self, limit_s: float = START_LIMIT_S) -> None:
        """Return when the driver answers.

        Raises:
            EngineUnavailable: it has ended, or does not answer within the limit.
        """
        try:
            await self._connect(asyncio.get_running_loop().time() + limit_s, limit_s)
        finally:
            self._private.unlink(missing_ok=True)  # Spark has read it

    async def _connect(self, deadline: float, limit_s: float) -> None:
        while True:
            with contextlib.suppress(OSError), short_path(self.path) as path:
                self._reader, self._writer = await asyncio.open_unix_connection(path, limit=1 << 26)
                return
            if self._process is not None and self._process.returncode is not None:
                raise EngineUnavailable(f"Spark's driver ended with {self._process.returncode}: {self.last_words()}")
            if asyncio.get_running_loop().time() > deadline:
                raise EngineUnavailable(f"Spark's driver did not answer within {limit_s:.0f} s: {self.last_words()}")
            await asyncio.sleep(STEP_S)

    def send(self, **order: Any) -> None:
        """Give an order to the driver, if it is there."""
        if self._writer is not None:
            self._writer.write(json.dumps(order).encode() + b"\n")

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what the driver tells, until the connection ends."""
        assert self._reader is not None
        with contextlib.suppress(OSError):
            while line := await self._reader.readline():
                yield json.loads(line)
        self._writer = None

    async def close(self, ends_driver: bool, limit_s: float) -> None:
        """Close the connection; let the driver end first, with its application, if `ends_driver`."""
        if ends_driver:
            self.send(stop=True)
        if self._writer is not None:
            with contextlib.suppress(OSError):
                await self._writer.drain()
            self._writer.close()
        if self._process is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), limit_s)
            if self._process.returncode is None:
                self._process.kill()

    def last_words(self) -> str:
        """Return the last lines of the driver's log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        wrong = [line for line in lines if "Exception" in line or "ERROR" in line or "Error:" in line]
        return " / ".join((wrong or lines)[-LAST_LINES:]) or "it said nothing"


def _defaults_with(defaults: Path, private: Mapping[str, str]) -> bytes:
    """Return spark-submit's file of defaults with further properties, because such a file takes its place.

    Raises:
        EngineUnavailable: the defaults cannot be read.
    """
    try:
        content = defaults.read_bytes() if defaults.exists() else b""
    except OSError as error:
        raise EngineUnavailable(f"{defaults}: {error.strerror or error}") from error
    lines = (f"{_escape(name)}={_escape(value)}\n" for name, value in private.items())
    return content + b"\n\n" + "".join(lines).encode("ascii")  # an empty line ends a last one that goes on


def _escape(text: str) -> str:
    """Write a text as Java's files of properties have it: other characters than plain ones by their UTF-16 numbers."""
    return _SPECIAL.sub(lambda match: re.sub("(....)", r"\\u\1", match[0].encode("utf-16-be").hex()), text)
