"""Turns the errors of hdfs-native into errors on which a user can act.

A NameNode's refusal arrives as RuntimeError('RPCError("<Java class>", "<message and stack trace>")'). A refusal that
the library knows is an OSError of the right kind with the same text; a network fault is a plain OSError.
"""

from __future__ import annotations

import getpass
import os
import re
import time

from howdah.errors import EngineRejected, EngineUnavailable, HowdahError, StagingError
from howdah.spec import uris
from howdah.storage.filesystem import ConnectionBroken, NoSpace

_REMOTE = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "(.*)"\)', re.DOTALL)
_DENIED = re.compile(r'user=([^,]+), access=(\w+), inode="([^"]*)":([^:]*):([^:]*):(\S+)')
_NO_DATANODE = ("could only be written to 0 of", "could only be replicated to 0 nodes")
_ENCRYPTED = ("encryption zone", "KMS ", "File encryption")
_NO_KEY = (
    "lies in an encryption zone, whose key only the cluster's key server has: "
    "set hadoop.security.key.provider.path to it (kms://https@host:9600/kms)"
)
_LOST = ("DataTransferError", "in time", "ChecksumError")
_LOGIN = ("GSSAPIError", "SASLError", "NoSASLMechanism")
# Words by which a NameNode says that a file is open, or was left open.
_OPEN = ("lease", "already the current", "being created", "being recovered", "under recovery", "under construction")
_ACCESS = {"WRITE": "write to", "READ": "read", "EXECUTE": "enter", "READ_EXECUTE": "list"}


class NodeLost(ConnectionBroken):
    """A DataNode is gone. The NameNode may assign it until it notices; another attempt to write may get other nodes."""


class NodeStuck(ConnectionBroken):
    """A DataNode has accepted a call and moves no bytes."""


class NotSupported(Exception):
    """A file cannot be read directly from DataNodes; `slow` if no DataNode has moved any bytes within the limit."""

    def __init__(self, reason: object, slow: bool = False) -> None:
        super().__init__(str(reason))
        self.slow = slow


class BeingWritten(StagingError):
    """Another client has the file open for writing."""


def describe_overdue(uri: str, limit_s: float, moving: bool, conf_dir: str) -> str:
    """Describe a server that has accepted a call and not answered; with `moving` the call reads or writes bytes."""
    since = time.strftime("%H:%M:%S", time.localtime(time.time() - limit_s))
    if moving:
        return f"{uri}: a DataNode has moved nothing for {limit_s:.0f} s (since {since}): it is down, or overloaded"
    source = f"; its address is from {conf_dir}" if conf_dir else ""
    return (
        f"the NameNode {uris.root(uri)} accepts calls and does not answer: waited {limit_s:.0f} s"
        f" (since {since}) for {uris.path(uri)}{source}"
    )


def explain(error: BaseException, uri: str, waited_s: float, conf_dir: str) -> HowdahError:
    """Return the error to raise in place of `error`, which came at `uri` after `waited_s` seconds."""
    remote = _REMOTE.search(str(error))
    if remote:
        return _refusal_error(remote[1].rpartition("$")[2], _first_line(remote[2]), uri)
    if isinstance(error, FileNotFoundError):
        return _not_found(uri, _first_line(str(error)))
    if isinstance(error, FileExistsError):
        return _already_exists_error(uri, str(error))
    if isinstance(error, PermissionError):
        return _permission_error(_first_line(str(error)), uri)
    if "No NameNode hosts found" in str(error):
        unset = "HADOOP_CONF_DIR is not set, so no configuration says"
        missing = f"the configuration in {conf_dir} does not say" if conf_dir else unset
        return EngineUnavailable(f"{uris.root(uri)}: {missing} which NameNodes these are (dfs.ha.namenodes.*)")
    if isinstance(error, OSError):
        return _unreachable_error(error, uri, waited_s, conf_dir)
    if any(sign in str(error) for sign in _LOGIN):
        failure = f"the login to the NameNode of {uris.root(uri)} failed: {_library_message(str(error))}"
        return EngineRejected(f"{failure}. Do you have a Kerberos ticket (klist, kinit)?")
    if "All DataNodes failed" in str(error):
        return ConnectionBroken(_describe_missing_block(uri, str(error)))
    if any(sign in str(error) for sign in _ENCRYPTED):
        return StagingError(f"{uri}: {_NO_KEY}")
    if any(sign in str(error) for sign in _LOST):
        return NodeLost(f"{uri}: a DataNode failed while it was written to: {_library_message(str(error))}")
    return ConnectionBroken(f"{uri}: {_first_line(str(error)) or type(error).__name__}")


def _library_message(message: str) -> str:
    """Return the sentence in the library's text of an error: the last quoted text."""
    texts = re.findall(r'"([^"]+)"', message.replace('\\"', "'"))
    return _first_line(texts[-1] if texts else message)


def datanode_failure(uri: str, error: OSError, limit_s: float) -> NodeLost | NodeStuck:
    """Return the error to raise in place of `error`, which hdfs-native raised of a connection to a DataNode. Its own
    limit is as long as ours, and may be reached first."""
    if str(error).startswith("No data received for "):
        return NodeStuck(describe_overdue(uri, limit_s, moving=True, conf_dir=""))
    reason = _first_line(str(error)).partition(" (os error")[0]
    return NodeLost(f"{uri}: one of the block's DataNodes can't be reached: {reason}")


def _describe_missing_block(uri: str, message: str) -> str:
    addresses = re.findall(r'ip_addr: \\?"([^"\\]*)\\?".*?xfer_port: (\d+)', message)
    where = ", ".join(f"{host}:{port}" for host, port in addresses) or "none"
    return (
        f"{uri}: no copy of a block can be read (DataNodes: {where}): they are down, or the copies damaged; "
        f"`hdfs fsck {uris.path(uri)} -files -blocks -locations` says which"
    )


def _already_exists_error(uri: str, message: str) -> StagingError:
    if any(sign in message for sign in _OPEN):
        return BeingWritten(f"{uri}: is being written by another client")
    return StagingError(f"{uri}: exists already")


def _refusal_error(kind: str, message: str, uri: str) -> HowdahError:
    if kind == "AccessControlException":
        return _permission_error(message, uri)
    if kind in ("DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"):
        return NoSpace(f"{uri}: over the quota: {message}")
    if kind == "NotReplicatedYetException":  # Hadoop's own client goes on after a pause; this library gives up
        return NodeLost(f"{uri}: the NameNode waits to hear from the DataNodes of the last block: {message}")
    if kind in ("SafeModeException", "StandbyException", "RetriableException"):
        why = "is in safe mode: it accepts no changes until it has started up, or an administrator ends it"
        return EngineUnavailable(f"the NameNode of {uris.root(uri)} {why if kind[:4] == 'Safe' else message}")
    if any(sign in message for sign in _NO_DATANODE):
        # The library has excluded the DataNodes that failed: others, or these again, may take the block soon.
        lost = re.search(r"[1-9]\d* node\(s\) are excluded", message)
        return (NodeLost if lost else NoSpace)(f"{uri}: no DataNode takes the block: all are full, or down ({message})")
    if "must both be directories" in message or "must both be files" in message:
        return StagingError(f"{uri}: exists already")
    if kind in ("RecoveryInProgressException", "AlreadyBeingCreatedException"):
        return BeingWritten(f"{uri}: is being written by another client")
    if kind in ("ParentNotDirectoryException", "PathIsNotDirectoryException"):
        return StagingError(f"{uri}: a file is in the way: {message}")
    if kind in ("InvalidToken", "AuthorizationException", "SaslException"):
        return EngineRejected(f"the NameNode of {uris.root(uri)} does not accept this login: {message}")
    return StagingError(f"{uri}: {message} ({kind})")


def _not_found(uri: str, message: str) -> StagingError:
    if message.startswith("Path is not a file"):
        return StagingError(f"{uri}: is a directory")
    source = re.match(r"rename source (.*) is not found", message)
    return StagingError(f"{uris.root(uri) + source[1] if source else uri}: no such file or directory")


def _permission_error(message: str, uri: str) -> StagingError:
    found = _DENIED.search(message.replace('\\"', '"'))
    if not found:
        return StagingError(f"{uri}: permission denied: {message}")
    user, access, inode, owner, group, mode = found.groups()
    verb = _ACCESS.get(access, f"{access.lower().replace('_', ' and ')}")
    return StagingError(f"{uri}: permission denied: user {user} may not {verb} {inode} ({mode} {owner}:{group})")


def _unreachable_error(error: OSError, uri: str, waited_s: float, conf_dir: str) -> EngineUnavailable:
    source = f"; the address is from {conf_dir}" if conf_dir else ""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    reason = _first_line(str(error))
    if "listener disconnected" in reason:
        reason = "it closes the connection; does it demand Kerberos (hadoop.security.authentication)?"
    return EngineUnavailable(
        f"the NameNode {uris.root(uri)} does not answer: {reason} (tried for {waited_s:.0f} s as {user}{source})"
    )


def _first_line(text: str) -> str:
    return re.split(r"\n|\\n", text.strip(), maxsplit=1)[0].strip()
