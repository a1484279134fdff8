"""Decode event files in several processes where there is much to read. One process reads all files of a run in their
order and sends what they say. `python -m howdah.eventfiles.parallel` is such a process.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from howdah.errors import HowdahError
from howdah.eventfiles import oom_priority
from howdah.eventfiles.decoder import batches
from howdah.eventfiles.event_batch import Batch
from howdah.storage.factory import filesystem

WORTH_BYTES = 96 << 20
"""The bytes that are worth a further process, which takes a quarter of a second to start."""


@dataclass(frozen=True)
class FilePart:
    """Name the part of a file that is to be read."""

    run: str
    """The run that the file belongs to."""
    uri: str
    start: int
    """The byte at which reading begins."""
    size: int
    """The bytes from `start` to the end of the file."""


Taken = Callable[[FilePart, "Batch | str"], object]
"""The function that several threads call with what was read, or with what is wrong with the file."""


def read(
    parts: Sequence[FilePart], kinds: dict[str, dict[bytes, bytes]], taken: Taken, worth: int = WORTH_BYTES
) -> None:
    """Read all parts. `kinds` are the known plugins of each run's tags; `worth` bytes are worth a process."""
    shares = _shares(parts, worth)
    if len(shares) == 1:
        one_by_one(shares[0], kinds, taken)
        return
    with ThreadPoolExecutor(len(shares)) as threads:
        for done in [threads.submit(_by_process, share, kinds, taken) for share in shares]:
            done.result()


def one_by_one(parts: Sequence[FilePart], kinds: dict[str, dict[bytes, bytes]], taken: Taken) -> None:
    """Read all parts in this process."""
    for part in parts:
        try:
            for batch in batches(filesystem(part.uri), part.uri, part.start, kinds.setdefault(part.run, {})):
                taken(part, batch)
        except HowdahError as error:
            taken(part, str(error))


def _shares(parts: Sequence[FilePart], worth: int) -> list[list[FilePart]]:
    """Return shares of whole runs with about the same bytes; one share where further processes are not worth it."""
    sizes: dict[str, int] = {}
    for part in parts:
        sizes[part.run] = sizes.get(part.run, 0) + part.size
    count = min(len(os.sched_getaffinity(0)), oom_priority.processes(), len(sizes), 1 + sum(sizes.values()) // worth)
    if count < 2:
        return [list(parts)]
    loads, owner = [0] * count, {}
    for run, size in sorted(sizes.items(), key=lambda item: -item[1]):
        owner[run] = least = loads.index(min(loads))
        loads[least] += size
    return [[part for part in parts if owner[part.run] == number] for number in range(count)]


def _by_process(parts: list[FilePart], kinds: dict[str, dict[bytes, bytes]], taken: Taken) -> None:
    left = {part.uri: part for part in parts}
    command = [sys.executable, "-m", "howdah.eventfiles.parallel"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        runs = {part.run for part in parts}
        pickle.dump((parts, {run: known for run, known in kinds.items() if run in runs}), process.stdin)
        process.stdin.close()
        try:
            while (answer := pickle.load(process.stdout)) is not None:  # noqa: S301 - from a process of ours
                part, found = answer
                if found is None:
                    left.pop(part.uri, None)
                else:
                    taken(part, found)
            left.clear()
        except (EOFError, pickle.UnpicklingError):
            pass
    for part in left.values():
        taken(part, f"the process that read it ended with {process.returncode}")


def main() -> int:
    """Read the parts that the parent names, without garbage collection: nothing here makes cycles."""
    gc.disable()
    parts, kinds = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    out = sys.stdout.buffer

    def taken(part: FilePart, found: Batch | str) -> None:
        pickle.dump((part, found), out, 5)

    for part in parts:
        one_by_one([part], kinds, taken)
        pickle.dump((part, None), out, 5)
    pickle.dump(None, out, 5)
    out.flush()
    return 0


if __name__ == "__main__":
    from howdah.eventfiles import parallel  # so that what is pickled is of a module that both sides know

    status = parallel.main()
    sys.stdout.flush()
    os._exit(status)
