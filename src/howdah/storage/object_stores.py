"""Object stores: the library that reads each scheme, and the variables that give it the server and the user.

The values that a job gives these variables in `env` or `secrets` apply wherever howdah reads or writes for that job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from howdah.spec import uris
from howdah.spec.staged import StagedJob

CLIENTS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "oss": "ossfs"}
"""The distribution with which fsspec reads a scheme."""
PREFIXES = ("HOWDAH_HDFS_CLIENT", "AWS_", "FSSPEC_", "GOOGLE_", "GCSFS_", "STORAGE_EMULATOR_", "AZURE_", "OSS_")


def variables(*sources: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that clients of object stores read; if two have one name, the later one counts."""
    return {name: value for source in sources for name, value in source.items() if name.startswith(PREFIXES)}


def clients(staged: StagedJob) -> set[str]:
    """Return the distributions that this job's home, files, inputs, outputs and checkpoints need on the nodes, beside
    those for HDFS."""
    arrow = {"pyarrow"} if staged.job.env.get("HOWDAH_HDFS_CLIENT") == "pyarrow" else set()
    return arrow | {CLIENTS[scheme] for scheme in used_schemes(staged) if scheme in CLIENTS}


def used_schemes(staged: StagedJob) -> set[str]:
    """Return the schemes of this job's home, files, inputs, outputs and checkpoints; "" is this machine's files, or
    those of the cluster."""
    return {uris.split(uri)[0] for uri in (staged.home, *used_uris(staged))}


def used_uris(staged: StagedJob) -> Iterator[str]:
    """Yield the URIs of the job's files, inputs, outputs and checkpoints; some may be ""."""
    job = staged.job
    yield from (file.uri for entry in staged.inputs for file in entry.files)
    yield from (file.uri for file in staged.files)
    for output in job.outputs:
        yield from (output.path, output.save.to)
    yield from (job.checkpoint.path, job.board.path)
