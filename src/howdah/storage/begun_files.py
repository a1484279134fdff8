"""Files that were begun before they are needed, with an empty line, so that a master's event log is written at once.

HDFS's client asks whether a new block has arrived as soon as it has sent it, and again half a second later: until then
a new file is not closed. A file that was closed once takes more bytes in some hundredths of a second. So a submitter
gives each job the file that the submission before has begun, and begins one for the next. Where there is none, the job
gets one of its own, which is ready half a second later. All of this saves time alone: a master goes on without it.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from howdah.errors import HowdahError, StagingError
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

BEGUN_LOG = "events.begun"
"""The name of a begun event log in a job's directory, and above all jobs that of the next job's."""
EMPTY_LINE = b"\n"


def give_begun_log(files: FileSystem, home: str, directory: str) -> None:
    """Put a begun event log into a job's directory, and leave another one for the next job below `home`."""
    spare, own = uris.join(home, BEGUN_LOG), uris.join(directory, BEGUN_LOG)
    missing = [spare]
    with contextlib.suppress(HowdahError):
        try:
            files.rename(spare, own)  # no other submitter gets the same file
        except StagingError:
            missing.append(own)
        with ThreadPoolExecutor(len(missing)) as pool:
            list(pool.map(lambda uri: files.write_bytes(uri, EMPTY_LINE), missing))


def take_begun_file(files: FileSystem, begun: str, uri: str) -> int:
    """Make the file `begun` the file `uri`, unless one is there or `begun` is missing; return the length of a file that
    only this call, or an earlier one whose answer was lost, has begun, else 0.

    Raises:
        EngineUnavailable: the file system does not answer.
    """
    with contextlib.suppress(StagingError):
        files.rename(begun, uri)
    found = files.stat(uri)
    begins = found is not None and found.size == len(EMPTY_LINE) and files.read_bytes(uri) == EMPTY_LINE
    return len(EMPTY_LINE) if begins else 0
