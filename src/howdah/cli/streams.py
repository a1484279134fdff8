"""Makes the standard streams of a command usable in every condition: closed, full, without a reader, or in an encoding
without some of the characters that a program prints."""

from __future__ import annotations

import array
import codecs
import contextlib
import errno
import fcntl
import io
import os
import resource
import select
import stat
import sys
import termios
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

import click

from howdah.errors import EngineUnavailable, StagingError

UNREAD = 141
"""The exit status of a process that the system ends by SIGPIPE, as it ends other commands whose reader has exited (`|
head`)."""
MIN_OPEN_FILES = 64
_ESCAPED = "howdah.escaped"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_given_up = False


def prepare() -> None:
    """Make the standard streams usable: a closed one leads to /dev/null, no character is refused, and a terminal may
    go away.

    Raises:
        EngineUnavailable: too few files may be open at once.
    """
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # takes this number: otherwise the next socket would get it, and the output
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    codecs.register_error(_ESCAPED, _escape)
    sys.stdout, sys.stderr = _outlive_terminal(sys.stdout), _outlive_terminal(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)
    _allow_open_files()


def _outlive_terminal(stream: TextIO) -> TextIO:
    """Return a stream to the same terminal that drops what is printed after the terminal was closed."""
    if not (isinstance(stream, io.TextIOWrapper) and stream.isatty()):
        return stream
    buffer = io.BufferedWriter(_Terminal(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=True)


class _Terminal(io.FileIO):
    """The terminal. SIGHUP reports that it was closed, and decides what ends. The signal may come later than the error
    of a write to the closed terminal."""

    def write(self, data: Any, /) -> int:
        """Write as a file does; write nothing if the terminal has been closed."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            _discard_output(self.fileno())
            return memoryview(data).nbytes


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that can't be encoded, in the form of JSON (UTF-16), so that `--json` prints JSON in any
    encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= MIN_OPEN_FILES:
        return
    if hard != resource.RLIM_INFINITY and hard < MIN_OPEN_FILES:
        raise EngineUnavailable(
            f"this process may have {hard} files open at once (`ulimit -n`), and needs {MIN_OPEN_FILES} at least"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (MIN_OPEN_FILES, hard))


@contextlib.contextmanager
def ended_by_streams() -> Iterator[None]:
    """End the process, without a traceback, if its output can't be written.

    Raises:
        SystemExit: UNREAD where no process reads standard output any more; that of a full disk.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _is_unread(1):
            _discard_output(1)
            raise SystemExit(UNREAD) from None
        if error.errno not in _NO_ROOM:
            raise
        print_error([f"howdah: {error}: nothing more can be written; a job that was submitted goes on"])
        _discard_output(1)
        raise SystemExit(StagingError.exit_code) from None


def has_unread_input() -> bool:
    """Return whether there is input on the standard input, and it is no terminal."""
    with contextlib.suppress(OSError):
        mode, waiting = os.fstat(0).st_mode, array.array("i", [0])
        if stat.S_ISREG(mode):
            return os.lseek(0, 0, os.SEEK_CUR) < os.fstat(0).st_size
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            fcntl.ioctl(0, termios.FIONREAD, waiting)
            return waiting[0] > 0
    return False


def _is_unread(number: int) -> bool:
    """Return whether this descriptor is a pipe without a reader."""
    poll = select.poll()
    poll.register(number, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def print_error(lines: Iterable[str]) -> None:
    """Print lines to standard error if there is room for them: the exit code reports the error in any case."""
    with stderr_may_be_full():
        for line in lines:
            click.echo(line, err=True)


@contextlib.contextmanager
def stderr_may_be_full() -> Iterator[None]:
    """Ignore errors because standard error has no room or no reader."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_NO_ROOM, errno.EPIPE):
            raise
        _discard_output(2)


def give_up_output() -> None:
    """Note that another thread is writing to standard output, and may never return because nobody reads the output."""
    global _given_up
    _given_up = True


@contextlib.contextmanager
def exit_without_output() -> Iterator[None]:
    """Exit at once if the output was given up, because the interpreter would wait for it."""
    global _given_up
    _given_up = False
    try:
        yield
    except SystemExit as leaving:
        if _given_up:
            os._exit(leaving.code if isinstance(leaving.code, int) else 1)
        raise


def _discard_output(stream: int) -> None:
    """Drop the buffered output: if writing it failed once more, the interpreter would exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
