"""`python -m howdah.outputs.stdout_writer`: what a program prints becomes a part file on any filesystem.

A process of its own beside an executor. On stdin {"from", "verdict", "uri", "name", "format", "options", "stall_s"}; on
stdout a JSON line {"bytes"} from time to time, and one at the end: {"ok": true, "bytes", "tail"} or {"error": "..."};
`tail` is the last of what was printed, in latin-1. When all is printed, one byte from the descriptor `verdict` says
that the program has ended well; without it the part is removed. A slow filesystem holds the program back: no more than
a block is kept in memory.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from howdah.errors import HowdahError
from howdah.inputs import formats
from howdah.spec import uris
from howdah.storage.filesystem import filesystem

PIECE = 1 << 20
LAST_BYTES = 4096
REPORT_S = 0.5


class OutputPart:
    """One part file, made when the first byte comes. A run of the same attempt before may have left one: it goes."""

    def __init__(self, uri: str, name: str, format: str, options: Mapping[str, str]) -> None:
        self._format, self._options = format, options
        self.directory, self.uri = uri, uris.join(uri, name + formats.suffix(format))
        self.fs = filesystem(uri)
        self.remove()
        self.fs.mkdirs(uri)
        self._sink: Any = None
        self._writer: formats.RecordWriter | None = None

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._writer is None:
            self._sink = self.fs.create(self.uri)
            self._writer = formats.writer(self._format, self._options, self._sink)
        self._writer.write(data)

    def remove(self) -> None:
        """Nothing is left of it."""
        self.fs.delete(self.directory)

    def close(self) -> None:
        """It is complete."""
        if self._writer is not None:
            self._writer.close()
            self._sink.close()


class StdoutWriter:
    """Moves bytes from descriptor `source` to `part` and reports."""

    def __init__(self, part: OutputPart, source: int, verdict: int, stall_s: float) -> None:
        self.part, self.source, self.verdict, self.stall_s = part, source, verdict, stall_s
        self.bytes = 0
        self.tail = b""
        self._writing_since = 0.0
        threading.Thread(target=self._report, name="report", daemon=True).start()

    def run(self) -> dict[str, Any]:
        """To the end; the last line's content.

        Raises:
            HowdahError: it can't be written, or is not what the format takes.
        """
        while data := os.read(self.source, PIECE):
            self._see(data)
            self._guarded(self.part.write, data)
            self.bytes += len(data)
        is_wanted = os.read(self.verdict, 1) == b"k"
        self._guarded(self.part.close if is_wanted else self.part.remove)
        return {"ok": True, **self.told()}

    def told(self) -> dict[str, Any]:
        """What the last line says."""
        return {"bytes": self.bytes, "tail": self.tail.decode("latin-1")}

    def _see(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-LAST_BYTES:] if len(data) < LAST_BYTES else data[-LAST_BYTES:]

    def _guarded(self, act: Callable[..., None], *arguments: bytes) -> None:
        self._writing_since = time.monotonic()
        act(*arguments)
        self._writing_since = 0.0

    def _report(self) -> None:
        """From a thread of its own: the other one may wait for ever."""
        while True:
            time.sleep(REPORT_S)
            waited = time.monotonic() - (self._writing_since or time.monotonic())
            if 0 < self.stall_s < waited:
                problem = f"{self.part.uri} has taken nothing for {waited:.0f} s (timeouts.stall)"
                tell({"error": problem, **self.told()})
                os._exit(1)
            tell({"bytes": self.bytes})


def tell(message: Mapping[str, Any]) -> None:
    """One line; in one piece, whichever thread it comes from."""
    os.write(1, json.dumps(message).encode() + b"\n")


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Take what is printed; the last line's content."""
    # Behind everything of ours: people's own writers are in the program's directory.
    sys.path.append(request["directory"])
    part = OutputPart(request["uri"], request["name"], request.get("format", "text"), request.get("options", {}))
    recorder = StdoutWriter(part, request["from"], request["verdict"], float(request["stall_s"]))
    try:
        return recorder.run()
    except HowdahError as error:
        return {"error": str(error).replace("\n", "; "), **recorder.told()}
    except Exception as error:  # of a library, or of somebody's own writer
        sys.excepthook(*sys.exc_info())
        return {"error": f"{part.uri}: {type(error).__name__}: {error}".replace("\n", "; "), **recorder.told()}


def main() -> int:
    request = json.load(sys.stdin)
    try:
        answer = run(request)
    except HowdahError as error:
        answer = {"error": str(error).replace("\n", "; ")}
    tell(answer)
    return 0 if "ok" in answer else 1


if __name__ == "__main__":
    # At once: a thread that waits for a dead server must not hold the process back.
    os._exit(main())
