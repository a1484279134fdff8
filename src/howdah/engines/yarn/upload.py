"""Uploads the files that the cluster lacks, by content hash, and the job's own directory, before the submission.

A file that the cluster has is not sent again. YARN refuses a file whose size or modification time differs from those at
submission. So both are read back from the cluster after the upload, and a file in the cache is never changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from howdah.errors import HowdahError
from howdah.hadoop import conf
from howdah.spec import StagedFile, StagedJob, uris
from howdah.spec.codec import encode
from howdah.spec.staged import CONF_NAME
from howdah.storage import begun_files
from howdah.storage.content_cache import Cache, location
from howdah.storage.factory import filesystem
from howdah.storage.progress import Progress

AT_ONCE = 8
CLEAN_S = 0.3


class JobUploader:
    """Uploads to one cluster; the cache is below `home`."""

    def __init__(self, home: str, conf_dir: str, progress: Progress) -> None:
        self._files, self._cache, self._home = filesystem(home, conf_dir), Cache(home, conf_dir, progress), home

    def upload(self, job: StagedJob, configuration: Mapping[str, str]) -> StagedJob:
        """Upload all files that containers need; return the job with each file's size and time on the cluster.

        Raises:
            StagingError: a file is missing, or there is no permission or room.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            inputs = [pool.submit(self._cache.place, file) for file in _input_files_to_upload(job)]
            conf_file = pool.submit(self._configuration, configuration)
            placed = self._cache.place_all((*job.files, *job.page, *job.runtime))
            for future in inputs:
                future.result()
        first, second = len(job.files), len(job.files) + len(job.page)
        files, page, runtime = placed[:first], placed[first:second], placed[second:]
        return dataclasses.replace(job, files=files, page=page, runtime=(*runtime, conf_file.result()))

    def record(self, text: bytes, directory: str, key: bytes) -> StagedFile:
        """Write the job's key and text into its own directory, with a begun event log; return the text as a file for a
        container.

        All are written at once, because a small file takes HDFS half a second: its client waits that long before it
        asks again whether a block has arrived.
        """
        job_uri = uris.join(directory, "job.json")
        with ThreadPoolExecutor(2) as pool:
            if self._files.appends_cheaply(self._home):
                pool.submit(begun_files.give_begun_log, self._files, self._home, directory)
            written = pool.submit(self._files.write_bytes, job_uri, text, 0o600)
            self._files.write_bytes(uris.join(directory, "key"), key.hex().encode(), 0o600)
            written.result()
        return self._cache.place(StagedFile("job.json", job_uri))

    def clean(self, max_unused_s: float, oldest_job: Callable[[], float]) -> None:
        """Clean the cache as `Cache.clean` does, as far as a moment suffices."""
        with contextlib.suppress(HowdahError):
            self._cache.clean(max_unused_s, oldest_job, limit_s=CLEAN_S)

    def _configuration(self, properties: Mapping[str, str]) -> StagedFile:
        """Upload the client's Hadoop configuration as one file, so that master and executors read the same."""
        content = conf.to_xml(properties).encode()
        digest = hashlib.sha256(content).hexdigest()
        uri = location(self._home, digest, "conf.xml")
        if not self._files.exists(uri):
            self._files.mkdirs(uris.parent(uri), 0o700)
            with self._files.writing(uri, replace=False) as sink:
                sink.write(content)
        return self._cache.place(StagedFile(CONF_NAME, uri, sha256=digest))


def _input_files_to_upload(job: StagedJob) -> Iterator[StagedFile]:
    for entry in job.inputs:
        for uri, source in entry.uploads.items():
            yield StagedFile(uris.name(uri), uri, source=source)


def job_text(job: StagedJob) -> bytes:
    """Return the text from which the master starts."""
    return json.dumps(encode(job), separators=(",", ":")).encode()
