"""Builds the LaunchContext of a container, which a NodeManager starts: files, variables, a command, credentials.

The NodeManager writes variables and command into a bash script between double quotes, unescaped: escaping is ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import StagedFile, uris
from howdah.spec.staged import CONF_NAME, IMPORT_PATH, RUNTIME
from howdah.wire.credentials import Credentials

_ARCHIVE, _FILE = 1, 2
PRIVATE, APPLICATION = 2, 3
# What the NodeManager says of the container, by the names that master and executor read.
_OF_NODEMANAGER = 'HOWDAH_HOST="$NM_HOST" HOWDAH_CREDENTIALS="$HADOOP_TOKEN_FILE_LOCATION"'
_IN_DOUBLE_QUOTES = str.maketrans({letter: "\\" + letter for letter in '\\"$`'})


def context(
    files: Iterable[StagedFile],
    environment: Mapping[str, str],
    command: Sequence[str],
    credentials: Credentials,
    log: str,
) -> pb.LaunchContext:
    """Return the context that runs `command` with `files` in its working directory; the output of the command itself
    goes to `log` in the log directory.

    YARN puts the last lines of a log named *stderr* into the diagnostics of a container that failed.
    """
    line = f"{_OF_NODEMANAGER} exec {' '.join(map(shlex.quote, command))}".translate(_IN_DOUBLE_QUOTES)
    found = pb.LaunchContext(command=[f"{line} 1><LOG_DIR>/{log} 2>&1"], tokens=credentials.to_bytes())
    for name, value in environment.items():
        found.environment.add(key=name, value=value)
    for file in files:
        found.local_resources.add(key=file.name, value=local_resource(file))
    return found


def literal(value: str) -> str:
    """Return a variable's value in a form that the NodeManager's script leaves unchanged (except `{{` and `}}`, which
    the script replaces)."""
    return value.translate(_IN_DOUBLE_QUOTES)


def local_resource(file: StagedFile) -> pb.LocalResource:
    """Return the file as YARN localises it; its size and modification time must equal the file's own."""
    scheme, authority, path = uris.split(file.uri)
    host, _, port = authority.partition(":")
    url = pb.Url(scheme=scheme, host=host or None, port=int(port) if port else -1, file=path)
    kind = _FILE if file.kind == "file" else _ARCHIVE
    visibility = PRIVATE if file.sha256 else APPLICATION  # files named by their content are worth keeping on the node
    return pb.LocalResource(resource=url, size=file.size, timestamp=file.modified_ms, type=kind, visibility=visibility)


def common_environment(runtime: Iterable[StagedFile], user: str, secure: bool) -> dict[str, str]:
    """Return the variables of the master's container and of every executor's."""
    found = {
        "HADOOP_CONF_DIR": "$PWD/" + CONF_NAME.rpartition("/")[0],
        "HOWDAH_LOG_DIR": "<LOG_DIR>",
        # The runtime may have a Python of its own beside it, which needs no path.
        "PYTHONPATH": ":".join(f"$PWD/{IMPORT_PATH}" for file in runtime if file.name == RUNTIME),
    }
    if not secure:  # processes may run as the NodeManager's account; the cluster believes this name
        found["HADOOP_USER_NAME"] = literal(user)
    return found
