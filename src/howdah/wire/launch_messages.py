"""The messages of pull launch: a container that an engine has started asks the master what to run (docs/adr/0017).

The container signs as `container <id>`, with a key that the engine has brought into it. The secrets in the answer are
encrypted: other messages on the wire are only signed.
"""

from __future__ import annotations

import hmac
import os
import urllib.parse
from dataclasses import field
from typing import Mapping, Tuple

from howdah.spec.staged import StagedFile
from howdah.spec.values import dataclass
from howdah.wire import auth

PRINCIPAL = "container "
PATH = "/v1/containers/"
RUNTIME = "/runtime"
"""The suffix that turns a container's path into the path of howdah's runtime archive."""
_NONCE_BYTES, _BLOCK_BYTES = 16, 32
MASTER, CONTAINER, KEY_FILE = "HOWDAH_MASTER", "HOWDAH_CONTAINER", "HOWDAH_CONTAINER_KEY_FILE"
"""Variables of the bootstrap: the master's URL, the container's id, and the file with its key in hexadecimal."""
CONTAINER_DIRECTORY, CACHE_DIRECTORY = "HOWDAH_CONTAINER_DIR", "HOWDAH_CACHE_DIR"
"""Variables of the bootstrap: the container's own directory (else the current one), and a directory of the node in
which unpacked archives are kept for other containers (else none are kept)."""
FACT = "HOWDAH_FACT_"
"""The prefix of the bootstrap's variables that are facts of its greeting: HOWDAH_FACT_NODE is the fact `node`."""
STORES_LOGS = "HOWDAH_STORES_LOGS"
"""Variable of the bootstrap and of the executor. It is set for a container that does not see the job's directory as a
directory: its logs would be lost with the container, so it copies them to the job's directory."""
TERM_GRACE_S, TERM_TO_ALL = "HOWDAH_TERM_GRACE_S", "HOWDAH_TERM_TO_ALL"
"""Two variables of the executor. The first is set on an engine that ends a container by TERM: seconds that it gives the
program between TERM and KILL. The second is set if that TERM goes to all processes of the container, not to the
executor alone."""

_EXECUTOR = (
    "import os, sys; here = os.getcwd(); sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here];"
    " import runpy; runpy.run_module(sys.argv[1], run_name=__name__, alter_sys=True)"
)
_BOOTSTRAP = (
    "import os, sys; from importlib.util import find_spec; here, modules = os.getcwd(), sys.argv.pop();"
    " sys.path[:] = [modules] + [path for path in sys.path if os.path.abspath(path) not in (here, modules)];"
    " find_spec('howdah') or sys.exit(print('howdah is not in ' + modules, file=sys.stderr) or 78);"
    " from howdah.executor.__main__ import bootstrap; sys.exit(bootstrap())"
)
OWN_NETWORK = "HOWDAH_OWN_NETWORK"
"""Variable of an executor that says whether its engine may have given the container a network of its own."""


def executor_command(python: str) -> Tuple[str, ...]:
    """Return the command of an executor: `python -m howdah.executor`, with an option by which Python imports no module
    from its directory. On YARN the user's files are there, and one of them may have a module's name."""
    return (python, "-c", _EXECUTOR, "howdah.executor")


def bootstrap_command(python: str, modules: str) -> Tuple[str, ...]:
    """Return the command of a bootstrap that imports howdah from the directory `modules`, as the executor will, too.
    Python keeps byte code there, while it compiles the bootstrap archive at each start. As for an executor, Python
    imports no module from its current directory."""
    return (python, "-c", _BOOTSTRAP, python, modules)


@dataclass(frozen=True)
class Greeting:
    """The first message of a container that has started."""

    host: str
    """The name or address by which others reach this container."""
    python: str = ""
    """The version of its Python."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts that the engine's own bootstrap passes to its allocator, such as the place that the container took."""
    problem: str = ""
    """Why nothing can be run here; "" when all is well."""


@dataclass(frozen=True)
class LaunchOrder:
    """What a container runs: the answer to its Greeting. An order without a task means that the container asks
    again."""

    task: str = ""
    """The task, such as `worker:1`; "" while the master has none for this container."""
    attempt: int = 0
    """The number of the task's attempt."""
    command: Tuple[str, ...] = ()
    """The executor's argument vector."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the executor."""
    sealed: str = ""
    """The credentials file of the executor (`howdah.wire.credentials`), encrypted by `seal`, in hexadecimal."""
    files: Tuple[StagedFile, ...] = ()
    """The files in the working directory."""
    runtime: Tuple[StagedFile, ...] = ()
    """The files of howdah itself; empty where the nodes have howdah."""


def principal(container_id: str) -> str:
    """Return the name by which a container signs."""
    return PRINCIPAL + container_id


def path_of(container_id: str) -> str:
    """Return the path, as a URL has it, of the master's call that answers a container's Greeting."""
    return PATH + urllib.parse.quote(container_id, safe="")


def key_of(job_key: bytes, container_id: str) -> bytes:
    """Return the key by which a container signs. If its id has a plus sign, the key is derived from the key of the part
    before the sign: an engine can bring one key to all containers that it starts together, before their ids are
    known."""
    asked = container_id.rpartition("+")[0]
    return auth.derive(key_of(job_key, asked) if asked else job_key, principal(container_id))


def seal(key: bytes, data: bytes) -> bytes:
    """Encrypt `data` for the holder of a container's key: HMAC-SHA256 in counter mode, from a random nonce on. The
    message around it is signed, so that nobody can change it."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _apply_keystream(key, nonce, data)


def unseal(key: bytes, sealed: bytes) -> bytes:
    """Return what `seal` has encrypted."""
    return _apply_keystream(key, sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:])


def _apply_keystream(key: bytes, nonce: bytes, data: bytes) -> bytes:
    secret = auth.derive(key, "seal")
    blocks = range((len(data) + _BLOCK_BYTES - 1) // _BLOCK_BYTES)
    stream = b"".join(hmac.digest(secret, nonce + number.to_bytes(8, "big"), "sha256") for number in blocks)
    masked = int.from_bytes(data, "big") ^ int.from_bytes(stream[: len(data)], "big")
    return masked.to_bytes(len(data), "big")
