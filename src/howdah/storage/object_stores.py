"""Object stores: which library reads which scheme, and by which variables its user tells where and as whom.

What a job sets of these in `env` or `secrets` counts wherever howdah itself reads or writes for that job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from howdah.spec import uris
from howdah.spec.staged import StagedJob

CLIENTS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "az": "adlfs",
    "oss": "ossfs",
}
"""The distribution that fsspec reads a scheme with."""
PREFIXES = ("HOWDAH_HDFS_CLIENT", "AWS_", "FSSPEC_", "GOOGLE_", "GCSFS_", "STORAGE_EMULATOR_", "AZURE_", "OSS_")


def variables(*sources: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that clients of object stores know; of two with one name the later counts."""
    return {name: value for source in sources for name, value in source.items() if name.startswith(PREFIXES)}


def clients(staged: StagedJob) -> set[str]:
    """The distributions that this job's files, inputs, outputs and checkpoints need on the nodes."""
    arrow = {"pyarrow"} if staged.job.env.get("HOWDAH_HDFS_CLIENT") == "pyarrow" else set()
    return arrow | {CLIENTS[scheme] for scheme in {uris.split(uri)[0] for uri in _uris(staged)} if scheme in CLIENTS}


def _uris(staged: StagedJob) -> Iterable[str]:
    job = staged.job
    yield from (file.uri for entry in staged.inputs for file in entry.files)
    yield from (file.uri for file in staged.files)
    for output in job.outputs:
        yield output.path
        if output.save is not None:
            yield output.save.to
    if job.checkpoint is not None:
        yield job.checkpoint.path
    if job.board is not None:
        yield job.board.path
