"""Decodes event files in several processes if there is much to read. One process reads all files of a run in their
order and sends the decoded values. `python -m howdah.eventfiles.parallel` is such a process.

The process is no helper of `wire.helper_main`, whose replies are JSON: it sends megabytes of arrays while it reads, and
turning the numbers into JSON and back would take longer than decoding them.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from howdah.errors import HowdahError
from howdah.eventfiles import oom_priority
from howdah.eventfiles.decoder import batches
from howdah.eventfiles.event_batch import Batch
from howdah.spec.values import dataclass
from howdah.storage.files_of_owner import files_of

WORTH_BYTES = 96 << 20
"""The number of bytes that justifies another process, which takes a quarter of a second to start."""


@dataclass(frozen=True)
class FilePart:
    """A part of a file that is to be read."""

    run: str
    """The run that the file belongs to."""
    uri: str
    start: int
    """The byte at which reading begins."""
    size: int
    """The bytes from `start` to the end of the file."""
    owner: str = ""
    """The user who must own the file; "": any user."""


BatchCallback = Callable[[FilePart, "Batch | str"], object]
"""A function that takes a decoded batch of a part, or the reason why the part cannot be read. Several threads call it.
"""
Kinds = dict[str, dict[bytes, bytes]]
"""The known plugins of each run's tags."""


def read(parts: Sequence[FilePart], kinds: Kinds, on_batch: BatchCallback, worth: int = WORTH_BYTES) -> None:
    """Read all parts; `worth` is the number of bytes that justifies another process."""
    shares = _shares(parts, worth)
    if len(shares) == 1:
        _read_here(shares[0], kinds, on_batch)
        return
    with ThreadPoolExecutor(len(shares)) as threads:
        for done in [threads.submit(_read_in_process, share, kinds, on_batch) for share in shares]:
            done.result()


def _read_here(parts: Sequence[FilePart], kinds: Kinds, on_batch: BatchCallback) -> None:
    """Read all parts in this process."""
    for part in parts:
        try:
            for batch in batches(files_of(part.owner, part.uri), part.uri, part.start, kinds.setdefault(part.run, {})):
                on_batch(part, batch)
        except HowdahError as error:
            on_batch(part, str(error))


def _shares(parts: Sequence[FilePart], worth: int) -> list[list[FilePart]]:
    """Return shares of whole runs with about the same number of bytes; one share if further processes are not worth
    it."""
    sizes: dict[str, int] = {}
    for part in parts:
        sizes[part.run] = sizes.get(part.run, 0) + part.size
    count = min(
        len(os.sched_getaffinity(0)), oom_priority.max_processes(), len(sizes), 1 + sum(sizes.values()) // worth
    )
    if count < 2:
        return [list(parts)]
    loads, owner = [0] * count, {}
    for run, size in sorted(sizes.items(), key=lambda item: -item[1]):
        owner[run] = lightest = loads.index(min(loads))
        loads[lightest] += size
    return [[part for part in parts if owner[part.run] == number] for number in range(count)]


def _read_in_process(parts: list[FilePart], kinds: Kinds, on_batch: BatchCallback) -> None:
    """Read all parts in a new process, which sends pairs of a part and a batch, a reason, or None when it is read."""
    unread = {part.uri: part for part in parts}
    command = [sys.executable, "-m", "howdah.eventfiles.parallel"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump((parts, {part.run: kinds[part.run] for part in parts if part.run in kinds}), process.stdin)
        process.stdin.close()
        try:
            while unread:
                part, found = pickle.load(process.stdout)  # noqa: S301 - from a process of ours
                if found is None:
                    unread.pop(part.uri, None)
                else:
                    on_batch(part, found)
        except (EOFError, pickle.UnpicklingError):
            pass
    for part in unread.values():
        on_batch(part, f"the process that read it ended with {process.returncode}")


def main() -> None:
    """Read the parts that the parent names, without garbage collection: nothing here makes cycles."""
    gc.disable()
    parts, kinds = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    for part in parts:
        _read_here([part], kinds, lambda *batch: pickle.dump(batch, sys.stdout.buffer, 5))
        pickle.dump((part, None), sys.stdout.buffer, 5)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    from howdah.eventfiles import parallel  # so that both sides can import the module of pickled functions

    parallel.main()
