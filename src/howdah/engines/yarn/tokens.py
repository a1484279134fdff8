"""The tokens that travel with a job to a cluster that requires Kerberos: one for each file system that the job uses.

The ResourceManager renews them as long as the job runs, up to the age that the NameNode allows.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Mapping

from howdah.engines.yarn.conf import Configuration
from howdah.hadoop.namenode import TOKEN_KIND, NameNodes, services
from howdah.hadoop.proto import ipc_pb2 as ipc
from howdah.spec import StagedJob, uris
from howdah.storage.object_stores import used_uris
from howdah.wire import credentials
from howdah.wire.credentials import Token

OTHERS = "mapreduce.job.hdfs-servers"
"""Hadoop's own property for file systems that only the programs themselves use: `hdfs://a,hdfs://b`."""


async def collect(configuration: Configuration, staged: StagedJob) -> dict[str, Token]:
    """Return tokens for the job's containers, by alias; none if the cluster does not require Kerberos.

    Raises as delegation_tokens does.
    """
    if not configuration.secure:
        return {}
    if os.environ.get("HADOOP_TOKEN_FILE_LOCATION"):  # only a ticket gets tokens: pass on those that we have
        held = await asyncio.to_thread(credentials.load)
        return {alias: token for alias, token in held.tokens.items() if token.kind == TOKEN_KIND}
    conf, host = configuration.merged(), configuration.resourcemanagers()[0].host
    # Of several ResourceManagers the first part of the principal counts, which they share.
    renewer = configuration.text("yarn.resourcemanager.principal").replace("_HOST", socket.getfqdn(host).lower())
    wanted = {name for root in {*roots(staged), *configuration.get_list(OTHERS)} for name in authorities(root, conf)}
    found = await asyncio.gather(*(delegation_tokens(name, conf, renewer) for name in sorted(wanted)))
    return {alias: token for tokens in found for alias, token in tokens.items()}


async def delegation_tokens(authority: str, conf: Mapping[str, str], renewer: str) -> dict[str, Token]:
    """Get one new token of the file system `hdfs://authority`; return it under each name by which clients look for it.
    hdfs-native logs in with tokens (HADOOP_TOKEN_FILE_LOCATION), but cannot get one.

    The result is empty if that cluster does not require Kerberos. `renewer` is the principal that may renew the token.

    Raises:
        EngineUnavailable: no NameNode answers.
        EngineRejected: it refuses, or there is no ticket.
    """
    namenodes = NameNodes(authority, conf)
    try:
        request = ipc.DelegationTokenRequest(renewer=renewer)
        answer = await namenodes.call("getDelegationToken", request, ipc.DelegationTokenResponse)
    finally:
        await namenodes.close()
    if not answer.HasField("token"):
        return {}
    token = answer.token
    return {name: Token(token.identifier, token.password, TOKEN_KIND, name) for name in services(authority, conf)}


def authorities(root: str, conf: Mapping[str, str]) -> set[str]:
    """Return the HDFS authorities behind `scheme://authority`; for a viewfs those of all its mounts."""
    scheme, _, authority = root.partition("://")
    if scheme == "hdfs":
        return {authority}
    if scheme != "viewfs":
        return set()
    prefix = f"fs.viewfs.mounttable.{authority or 'default'}.link"
    targets = (value for name, value in conf.items() if name.startswith(prefix))
    return {name for target in targets for name in re.findall(r"\bhdfs://([^/,\s]+)", target)}


def roots(staged: StagedJob) -> set[str]:
    """Return the file systems of the job's files, inputs and outputs."""
    used = (staged.home, *(file.uri for file in staged.runtime), *used_uris(staged))
    return {uris.root(uri) for uri in used if uris.has_scheme(uri)}
