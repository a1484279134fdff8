"""Creates files with an empty line before they are needed, so that a master's event log can be written at once.

HDFS's client asks whether a new block has arrived as soon as it has sent the block, and again half a second later; a
new file is not closed before that. A file that was closed once can be extended within hundredths of a second. So each
submission gives its job the file that the previous submission has created, and creates one for the next. If there is
none, the job gets a new file, which is ready half a second later. This only saves time: a master works without it, too.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from howdah.errors import HowdahError, StagingError
from howdah.spec import uris
from howdah.storage.filesystem import FileSystem

BEGUN_LOG = "events.begun"
"""The name of a begun event log in a job's directory, and of the next job's begun event log above all jobs."""
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
    """Rename the file `begun` to `uri`, unless `uri` exists or `begun` is missing. Return the length of `uri` if it is
    a begun file, which only this call, or an earlier one whose answer was lost, can have put there; else 0.

    Raises:
        EngineUnavailable: the file system does not answer.
    """
    with contextlib.suppress(StagingError):
        files.rename(begun, uri)
    found = files.stat(uri)
    begins = found is not None and found.size == len(EMPTY_LINE) and files.read_bytes(uri) == EMPTY_LINE
    return len(EMPTY_LINE) if begins else 0
