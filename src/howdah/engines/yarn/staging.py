"""Uploads before an application is submitted: what the cluster lacks, by content hash, and the job's own directory.

Nothing that is there already is sent again. YARN refuses a file whose size or modification time is not the one it was
told, so both are read back from the cluster after the upload, and a file in the cache is never touched again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from xml.sax.saxutils import escape

from howdah.data import uris
from howdah.data.fs import CHUNK, FileSystem, filesystem, readable
from howdah.engines import Progress
from howdah.engines.yarn.launch import CONF_NAME
from howdah.errors import StagingError
from howdah.spec import StagedFile, StagedJob
from howdah.spec.codec import encode

AT_ONCE = 8


class Stager:
    """Uploads to one cluster; `home` is below which the cache is."""

    def __init__(self, files: FileSystem, conf_dir: str, home: str, progress: Progress) -> None:
        self._files, self._conf_dir, self._home, self._progress = files, conf_dir, home, progress

    def place(self, job: StagedJob, configuration: Mapping[str, str]) -> StagedJob:
        """Put everything that containers need in its place; the job with each file's size and time as they are there.

        Raises:
            StagingError: a file is missing, or there is no permission or room.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            inputs = [pool.submit(self._upload, source, uri) for uri, source in _uploads(job)]
            conf_file = pool.submit(self._configuration, configuration)
            files, runtime = tuple(pool.map(self._place, job.files)), tuple(pool.map(self._place, job.runtime))
            for future in inputs:
                future.result()
        return dataclasses.replace(job, files=files, runtime=(*runtime, conf_file.result()))

    def record(self, text: bytes, directory: str, key: bytes) -> StagedFile:
        """Keep the job's key and text in its own directory; the latter as a file that a container can have.

        Small files take HDFS half a second each, for its client waits that long before it asks again whether a block
        has arrived: both at once.
        """
        job_uri = uris.join(directory, "job.json")
        with ThreadPoolExecutor(2) as pool:
            written = pool.submit(self._files.write_bytes, job_uri, text, 0o600)
            self._files.write_bytes(uris.join(directory, "key"), key.hex().encode(), 0o600)
            written.result()
        return self._measured(StagedFile("job.json", job_uri))

    def _place(self, file: StagedFile) -> StagedFile:
        """The file, uploaded if it has to be, with its size and time as the cluster has them."""
        there = filesystem(file.uri, self._conf_dir).stat(file.uri)
        if file.source and (there is None or (file.sha256 and file.size and there.size != file.size)):
            self._upload(file.source, file.uri)
        return self._measured(file)

    def _measured(self, file: StagedFile) -> StagedFile:
        entry = filesystem(file.uri, self._conf_dir).stat(file.uri)
        if entry is None:
            raise StagingError(f"{file.uri}: no such file (for {file.name})")
        return dataclasses.replace(file, size=entry.size, modified_ms=entry.modified_ms)

    def _upload(self, source: str, uri: str) -> None:
        files = filesystem(uri, self._conf_dir)
        files.mkdirs(uris.parent(uri))
        with readable(source) as content, files.writing(uri) as sink:
            total, done = content.seek(0, 2), 0
            content.seek(0)
            while data := content.read(CHUNK):
                sink.write(data)
                done += len(data)
                self._progress(source, done, total)

    def _configuration(self, properties: Mapping[str, str]) -> StagedFile:
        """The client's Hadoop configuration, merged into one file: master and executors read the same as we do."""
        content = configuration_xml(properties)
        digest = hashlib.sha256(content).hexdigest()
        uri = uris.join(self._home, "cache", f"conf-{digest[:16]}.xml")
        if not self._files.exists(uri):
            self._files.mkdirs(uris.parent(uri))
            self._files.write_bytes(uri, content)
        return self._measured(StagedFile(CONF_NAME, uri, sha256=digest))


def _uploads(job: StagedJob) -> Iterator[tuple[str, str]]:
    for entry in job.inputs:
        yield from entry.uploads.items()


def job_text(job: StagedJob) -> bytes:
    """What the master starts from."""
    return json.dumps(encode(job), separators=(",", ":")).encode()


def configuration_xml(properties: Mapping[str, str]) -> bytes:
    """A Hadoop configuration file; the same bytes for the same properties."""
    rows = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in sorted(properties.items())
    )
    return ('<?xml version="1.0"?>\n<configuration>\n' + "".join(rows) + "</configuration>\n").encode()
