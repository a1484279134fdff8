"""What hdfs-native raises, in words a user can act on.

A NameNode's refusal arrives as RuntimeError('RPCError("<Java class>", "<message and stack trace>")'), one the library
knows as an OSError of the right kind with the same text, a network fault as a plain OSError.
"""

from __future__ import annotations

import getpass
import os
import re

from howdah.data import uris
from howdah.data.fs import Broken
from howdah.errors import EngineUnavailable, HowdahError, StagingError

_REMOTE = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "(.*)"\)', re.DOTALL)
_DENIED = re.compile(r'user=([^,]+), access=(\w+), inode="([^"]*)":([^:]*):([^:]*):(\S+)')
_NO_DATANODE = ("could only be written to 0 of", "could only be replicated to 0 nodes")
_DEEDS = {"WRITE": "write to", "READ": "read", "EXECUTE": "enter", "READ_EXECUTE": "list"}


def explain(error: Exception, uri: str, waited_s: float, conf_dir: str) -> HowdahError:
    """The error to raise instead of `error`, met at `uri` after `waited_s` seconds."""
    remote = _REMOTE.search(str(error))
    if remote:
        return _refusal(remote[1], _first_line(remote[2]), uri)
    if isinstance(error, FileNotFoundError):
        return _not_found(uri, _first_line(str(error)))
    if isinstance(error, FileExistsError):
        return StagingError(f"{uri}: exists already")
    if isinstance(error, PermissionError):
        return _denied(_first_line(str(error)), uri)
    if "No NameNode hosts found" in str(error):
        where = f"the configuration in {conf_dir}" if conf_dir else "HADOOP_CONF_DIR is not set, so no configuration"
        return EngineUnavailable(f"{uris.root(uri)}: {where} says which NameNodes these are (dfs.ha.namenodes.*)")
    if isinstance(error, OSError):
        return _unreachable(error, uri, waited_s, conf_dir)
    return Broken(f"{uri}: {_first_line(str(error)) or type(error).__name__}")


def _refusal(kind: str, message: str, uri: str) -> HowdahError:
    if kind == "AccessControlException":
        return _denied(message, uri)
    if kind in ("DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"):
        return StagingError(f"{uri}: over the quota: {message}")
    if kind in ("SafeModeException", "StandbyException", "RetriableException"):
        why = "is in safe mode: it accepts no changes until it has started up, or an administrator ends it"
        return EngineUnavailable(f"the NameNode of {uris.root(uri)} {why if kind[:4] == 'Safe' else message}")
    if any(sign in message for sign in _NO_DATANODE):
        return StagingError(f"{uri}: no DataNode takes the block: all are full, or down ({message})")
    if "must both be directories" in message or "must both be files" in message:
        return StagingError(f"{uri}: exists already")
    if kind in ("ParentNotDirectoryException", "PathIsNotDirectoryException"):
        return StagingError(f"{uri}: a file is in the way: {message}")
    if kind in ("InvalidToken", "AuthorizationException", "SaslException"):
        return EngineUnavailable(f"the NameNode of {uris.root(uri)} does not accept this login: {message}")
    return StagingError(f"{uri}: {message} ({kind})")


def _not_found(uri: str, message: str) -> StagingError:
    if message.startswith("Path is not a file"):
        return StagingError(f"{uri}: is a directory")
    source = re.match(r"rename source (.*) is not found", message)
    return StagingError(f"{uris.root(uri) + source[1] if source else uri}: no such file or directory")


def _denied(message: str, uri: str) -> StagingError:
    told = _DENIED.search(message.replace('\\"', '"'))
    if not told:
        return StagingError(f"{uri}: permission denied: {message}")
    user, access, inode, owner, group, mode = told.groups()
    deed = _DEEDS.get(access, f"{access.lower().replace('_', ' and ')}")
    return StagingError(f"{uri}: permission denied: user {user} may not {deed} {inode} ({mode} {owner}:{group})")


def _unreachable(error: OSError, uri: str, waited_s: float, conf_dir: str) -> EngineUnavailable:
    source = f"; the address is from {conf_dir}" if conf_dir else ""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return EngineUnavailable(
        f"the NameNode {uris.root(uri)} does not answer: {_first_line(str(error))}"
        f" (tried for {waited_s:.0f} s as {user}{source})"
    )


def _first_line(text: str) -> str:
    return re.split(r"\n|\\n", text.strip(), maxsplit=1)[0].strip()
