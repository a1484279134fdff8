"""The tokens that travel with a job to a cluster that requires Kerberos: one for each file system that the job uses.

The ResourceManager renews them as long as the job runs, up to the age that the NameNode allows.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator

from howdah.engines.yarn.conf import Configuration
from howdah.hadoop import delegation
from howdah.hadoop.namenode import TOKEN_KIND
from howdah.spec import StagedJob, uris
from howdah.wire import credentials
from howdah.wire.credentials import Token

OTHERS = "mapreduce.job.hdfs-servers"
"""Hadoop's own property for file systems that only the programs themselves use: `hdfs://a,hdfs://b`."""


async def collect(configuration: Configuration, staged: StagedJob) -> dict[str, Token]:
    """Return tokens for the job's containers, by alias; none if the cluster does not require Kerberos.

    Raises as delegation.delegation_tokens does.
    """
    if not configuration.secure:
        return {}
    if os.environ.get("HADOOP_TOKEN_FILE_LOCATION"):  # only a ticket gets tokens: pass on those that we have
        held = await asyncio.to_thread(credentials.load)
        return {alias: token for alias, token in held.tokens.items() if token.kind == TOKEN_KIND}
    conf, renewer = configuration.merged(), _renewer(configuration)
    wanted = {
        one for root in {*roots(staged), *configuration.words(OTHERS)} for one in delegation.authorities(root, conf)
    }
    found = await asyncio.gather(*(delegation.delegation_tokens(one, conf, renewer) for one in sorted(wanted)))
    return {alias: token for tokens in found for alias, token in tokens.items()}


def roots(staged: StagedJob) -> set[str]:
    """Return the file systems of the job's files, inputs and outputs."""
    return {uris.root(uri) for uri in _used(staged) if uris.has_scheme(uri)}


def _used(staged: StagedJob) -> Iterator[str]:
    yield staged.home
    yield from (file.uri for file in (*staged.files, *staged.runtime))
    yield from (file.uri for entry in staged.inputs for file in entry.files)
    for output in staged.job.outputs:
        yield from (output.path, output.save.to)
    yield staged.job.checkpoint.path
    yield staged.job.board.path


def _renewer(configuration: Configuration) -> str:
    """Return the ResourceManager's principal; of several the first part of the name counts, which they share."""
    host = configuration.resourcemanagers()[0].host
    return configuration.text("yarn.resourcemanager.principal").replace("_HOST", socket.getfqdn(host).lower())
