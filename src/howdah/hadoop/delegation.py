"""Delegation tokens of an HDFS: what lets a container in where Kerberos is demanded, for it has no ticket.

hdfs-native logs in with them (HADOOP_TOKEN_FILE_LOCATION) but can't get one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from howdah.hadoop.namenode import TOKEN_KIND, NameNodes, services
from howdah.hadoop.proto import ipc_pb2 as ipc
from howdah.wire.credentials import Token


async def delegation_tokens(authority: str, conf: Mapping[str, str], renewer: str) -> dict[str, Token]:
    """One new token of the file system `hdfs://authority`, by each name that clients look for it under.

    Nothing when that cluster demands no Kerberos. `renewer` is the principal that may prolong it.

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
    """The HDFS authorities behind `scheme://authority`: a view of others stands for all that are mounted in it."""
    scheme, _, authority = root.partition("://")
    if scheme == "hdfs":
        return {authority}
    if scheme != "viewfs":
        return set()
    prefix = f"fs.viewfs.mounttable.{authority or 'default'}.link"
    targets = (value for name, value in conf.items() if name.startswith(prefix))
    return {name for target in targets for name in re.findall(r"\bhdfs://([^/,\s]+)", target)}
