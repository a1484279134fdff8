"""The options of a history server, and the things that it stores: a directory for its index, and the key of its
tokens."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from howdah.engines import Engine
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.prices import Prices
from howdah.spec.values import dataclass
from howdah.wire import auth

KEY_VARIABLE = "HOWDAH_HISTORY_KEY"


@dataclass(frozen=True)
class ShownCluster:
    """A cluster whose jobs a server shows."""

    engine: Engine
    """The engine, with the settings that lead to the cluster."""
    root: str
    """The URI of its home; with a `*` in it, that of all users' homes."""
    conf_dir: str = ""
    """Directory of the Hadoop configuration that leads there."""
    name: str = ""
    """The name on the page: that of the profile; "" if there is none."""

    def has(self, uri: str) -> bool:
        """Return whether a URI is below the root."""
        return uri.startswith(self.root.partition("*")[0])


@dataclass(frozen=True)
class HistoryOptions:
    """The options of one server."""

    clusters: tuple[ShownCluster, ...]
    """The clusters whose jobs are shown."""
    state: Path
    """Directory of the index and of the key."""
    more_roots: tuple[str, ...] = ()
    """URIs of homes whose jobs are shown beside those of the clusters."""
    conf_dir: str = ""
    """Directory of the Hadoop configuration for homes that are on none of the clusters."""
    host: str = "127.0.0.1"
    """Address at which the server listens."""
    port: int = 0
    """Port at which the server listens; 0 takes a free one."""
    keep_s: float = 0.0
    """Seconds for which an ended job is kept; 0 keeps it forever."""
    remove_files: bool = False
    """The directories of jobs that are no longer kept are removed, too."""
    names: tuple[str, ...] = ()
    """Further names of this host."""
    idle_s: float = 0.0
    """Seconds without a request after which the server ends; 0: never."""
    pause_s: float = 0.0
    """Seconds between two scans of the jobs' directories; 0: the duration of a scan determines it."""
    prices: Prices | None = None
    """The price of an hour of each resource; None: no costs are shown."""
    link_command: str = "howdah history"
    """The command that prints a link to the server."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the URIs of all homes."""
        return tuple(dict.fromkeys((*(cluster.root for cluster in self.clusters), *self.more_roots)))

    def conf_dir_of(self, uri: str) -> str:
        """Return the directory of the Hadoop configuration by which a home, or a file in it, is read."""
        return conf_dir_of(self.clusters, uri, self.conf_dir)


def conf_dir_of(clusters: Iterable[ShownCluster], uri: str, default: str) -> str:
    """Return the Hadoop configuration of the cluster that has `uri`, `default` if none has it."""
    return next((cluster.conf_dir for cluster in clusters if cluster.has(uri)), default)


def find_cluster(clusters: Sequence[ShownCluster], directory: str, engine: str) -> ShownCluster | None:
    """Return the cluster of this engine that has a job's directory; the first one of the engine if none has it."""
    of_engine = [cluster for cluster in clusters if cluster.engine.name == engine]
    return next((cluster for cluster in of_engine if cluster.has(directory)), next(iter(of_engine), None))


def key_of(state: Path) -> bytes:
    """Return the key that makes this user's tokens for history servers; make one when there is none.

    Raises:
        StagingError: it can't be read, or not be made.
    """
    path, given = state / "key", os.environ.get(KEY_VARIABLE)
    try:
        if given:
            return auth.read_key(given)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            fresh = state / f".key.{secrets.token_hex(4)}"
            fresh.touch(0o600)
            fresh.write_text(secrets.token_hex(32))
            try:
                os.link(fresh, path)
            finally:
                fresh.unlink()
        return auth.read_key(path.read_text())
    except ValueError:
        raise StagingError(f"{KEY_VARIABLE if given else path}: is not a key; remove it, and another is made") from None
    except OSError as error:
        raise StagingError(f"{path}: no key can be kept here: {error}") from error


def job_key(key: bytes, job_id: str) -> bytes:
    """Return the key from which a history server with `key` makes a job's embed token (docs/adr/0008)."""
    return auth.derive(key, f"job {job_id}")


def index_directory(options: HistoryOptions) -> Path:
    """Return the directory of the index: each set of roots has one of its own."""
    return options.state / hashlib.sha256("\n".join(sorted(options.roots)).encode()).hexdigest()[:12]


def root_of(engine: Engine, user: str) -> str:
    """Return the URI of an engine's jobs: those of all users, if each user has a home."""
    home = engine.home
    above = uris.parent(home)
    if uris.split(home)[0] == "file" or uris.name(above) != user:
        return home
    return uris.join(uris.parent(above), "*", uris.name(home))
