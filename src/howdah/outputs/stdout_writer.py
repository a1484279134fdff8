"""`python -m howdah.outputs.stdout_writer`: writes a program's output to a part file on any file system.

An executor runs this helper process (`howdah.wire.helper_main`), which also writes a line {"bytes"} from time to time.
At the end one byte from the descriptor `verdict` means that the program has succeeded; without that byte the part is
removed. A slow file system slows the program down, because no more than a block is kept in memory.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from howdah.errors import HowdahError
from howdah.inputs import formats
from howdah.spec import uris
from howdah.spec.codec import encode
from howdah.storage.factory import filesystem
from howdah.wire.helper_main import REPORT_S, one_line, run_helper_main, write_line
from howdah.wire.helper_messages import StdoutWriterReply, StdoutWriterRequest

PIECE = 1 << 20
LAST_BYTES = 4096


class OutputPart:
    """One part file. It is made when the first byte comes; a part that an earlier run of the same attempt has left is
    removed."""

    def __init__(self, uri: str, name: str, format: str, options: Mapping[str, str]) -> None:
        self._format, self._options = format, options
        self.directory, self.uri = uri, uris.join(uri, name + formats.suffix(format))
        self.fs = filesystem(uri)
        self.remove()
        self.fs.mkdirs(uri)
        self._sink: Any = None
        self._writer: formats.RecordWriter | None = None

    def write(self, data: bytes) -> None:
        """Write the next bytes."""
        if self._writer is None:
            self._sink = self.fs.create(self.uri)
            self._writer = formats.writer(self._format, self._options, self._sink)
        self._writer.write(data)

    def remove(self) -> None:
        """Remove the part with its directory."""
        self.fs.delete(self.directory)

    def close(self) -> None:
        """Close the part file, which is complete."""
        if self._writer is not None:
            self._writer.close()
            self._sink.close()


class StdoutWriter:
    """Copies bytes from the descriptor `source` to `part`, and reports their number."""

    def __init__(self, part: OutputPart, source: int, verdict: int, stall_s: float) -> None:
        self.part, self.source, self.verdict, self.stall_s = part, source, verdict, stall_s
        self.bytes = 0
        self.tail = b""
        self._writing_since = 0.0
        threading.Thread(target=self._report, name="report", daemon=True).start()

    def run(self) -> StdoutWriterReply:
        """Write until the program closes its stdout.

        Raises:
            HowdahError: it can't be written, or is not what the format takes.
        """
        while data := os.read(self.source, PIECE):
            self.tail = (self.tail + data[-LAST_BYTES:])[-LAST_BYTES:]
            self._call_timed(self.part.write, data)
            self.bytes += len(data)
        is_kept = os.read(self.verdict, 1) == b"k"
        self._call_timed(self.part.close if is_kept else self.part.remove)
        return self.reply()

    def reply(self, error: str = "") -> StdoutWriterReply:
        """Return what has been written so far."""
        return StdoutWriterReply(self.bytes, self.tail.decode("latin-1"), error)

    def _call_timed(self, act: Callable[..., None], *arguments: bytes) -> None:
        self._writing_since = time.monotonic()
        act(*arguments)
        self._writing_since = 0.0

    def _report(self) -> None:
        """Report from a thread of its own, because the main thread may wait for the file system for ever."""
        while True:
            time.sleep(REPORT_S)
            waited = time.monotonic() - (self._writing_since or time.monotonic())
            if 0 < self.stall_s < waited:
                problem = f"{self.part.uri} has taken nothing for {waited:.0f} s (timeouts.stall)"
                write_line(encode(self.reply(problem)))
                os._exit(1)
            write_line({"bytes": self.bytes})


def write_stdout(request: StdoutWriterRequest) -> StdoutWriterReply:
    """Write a program's output until the program ends."""
    # Writers of the user's are in the program's directory, which is searched last.
    sys.path.append(request.directory)
    output = request.output
    part = OutputPart(output.uri, output.name, output.format, output.options)
    writer = StdoutWriter(part, request.source, request.verdict, request.stall_s)
    try:
        return writer.run()
    except HowdahError as error:
        return writer.reply(one_line(error))
    except Exception as error:  # of a library, or of a writer of the user's
        sys.excepthook(*sys.exc_info())
        return writer.reply(one_line(f"{part.uri}: {type(error).__name__}: {error}"))


if __name__ == "__main__":
    run_helper_main({"write": write_stdout})
