"""Parses and builds the URIs of files: `scheme://authority/path`.

In `file:` URIs the path is percent-encoded, as every library does it. On all other file systems it is taken letter by
letter: HDFS allows `?`, `#` and `%` in names, and a URI parser would cut there and name a *different* file.
"""

# ruff: noqa: PTH100, PTH118 - resolving links would change what the user named

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import quote, unquote

from howdah.errors import StagingError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_HDFS = ("hdfs", "viewfs")
_COLON = re.compile("%((?:25)*3A)")
_NO_TEXT = re.compile("[\ud800-\udfff]")  # as which Python has bytes of a file's name that are no UTF-8


def split(uri: str) -> tuple[str, str, str]:
    """Return (scheme, authority, path); a plain path is a `file`, made absolute."""
    match = _URI.fullmatch(uri)
    if match and match[1].lower() != "file":
        return match[1].lower(), match[2], match[3] or "/"
    if match:
        return "file", "", unquote(match[3], errors="surrogateescape") or "/"
    if uri.startswith("file:/"):
        return "file", "", unquote(uri[5:], errors="surrogateescape")
    return "file", "", os.path.abspath(uri)


def build(scheme: str, authority: str, path: str) -> str:
    """Build the URI that `split` splits. In names of this machine's files a byte that is not UTF-8 stays as it is.
    Names on other file systems are text, and contain it as `%E9`. HDFS allows no `:` in a name; it becomes `%3A`, as
    Hive and Spark write it."""
    if scheme == "file":
        return f"file://{authority}{quote(path, errors='surrogateescape')}"
    if scheme == "hdfs" and ":" in path:
        path = path.replace(":", "%3A")
    text = path if path.isascii() else _NO_TEXT.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", path)
    return f"{scheme}://{authority}{text}"


def stored_name(name: str, uri: str) -> str:
    """Return the name under which howdah stores a file of this machine to fetch it again. HDFS allows no `:`: it
    becomes `%3A` there, a `%3A` becomes `%253A`, and so on."""
    return _COLON.sub(r"%25\1", name).replace(":", "%3A") if split(uri)[0] in _HDFS else name


def local_name(name: str, uri: str) -> str:
    """Return the name on this machine of a file that was stored under its `stored_name`. A `%3A` in a name that others
    have made stays."""
    if split(uri)[0] not in _HDFS:
        return name
    return _COLON.sub(lambda found: f"%{found[1][2:]}" if found[1] != "3A" else ":", name)


class StoredNames:
    """Maps paths in a local `directory` to their names below `uri`, in the same way each time. On HDFS `:` becomes
    `%3A`, or `%253A` if another file would have the same name."""

    def __init__(self, uri: str, directory: str) -> None:
        self._uri, self._directory = uri, directory
        self._stored: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def uri_of(self, name: str) -> str:
        """Return the URI of the file or directory at the path `name` in the directory."""
        return join(self._uri, self.stored(name))

    def stored(self, name: str) -> str:
        """Return the path below the URI at which the file or directory at the path `name` is stored."""
        if split(self._uri)[0] not in _HDFS or not (":" in name or _COLON.search(name)):
            return name
        if name in self._stored:
            return self._stored[name]
        directory, _, own = name.rpartition("/")
        above = f"{self.stored(directory)}/" if directory else ""
        written = own.replace(":", "%3A")
        while (
            written != own and os.path.lexists(os.path.join(self._directory, directory, written))
        ) or self._names.setdefault(above + written, name) != name:
            written = stored_name(written, self._uri)
        return self._stored.setdefault(name, above + written)


def has_scheme(text: str) -> bool:
    """Return whether `text` itself names its file system."""
    return bool(_URI.fullmatch(text)) or text.startswith("file:/")


def of_local(path: str | os.PathLike[str]) -> str:
    """Return the URI of a file of this machine."""
    return build("file", "", os.path.abspath(path))


def path(uri: str) -> str:
    """Return the path on its file system."""
    return split(uri)[2]


def root(uri: str) -> str:
    """Return the file system that `uri` is on: `hdfs://host:port`, `file://`."""
    scheme, authority, _ = split(uri)
    return f"{scheme}://{authority}"


def join(uri: str, *parts: str) -> str:
    """Return `uri` with further (plain, not encoded) path parts below it."""
    scheme, authority, base = split(uri)
    kept = [part.strip("/") for part in parts if part.strip("/")]
    return build(scheme, authority, "/".join([base.rstrip("/"), *kept]) or "/")


def parent(uri: str) -> str:
    """Return the directory that holds it; the root's parent is the root."""
    scheme, authority, full = split(uri)
    return build(scheme, authority, posixpath.dirname(full.rstrip("/")) or "/")


def name(uri: str) -> str:
    """Return the last part of its path."""
    return posixpath.basename(path(uri).rstrip("/"))


def below(uri: str, directory: str) -> str:
    """Return the path of `uri` relative to `directory`, which holds it.

    Raises:
        StagingError: as `check_inner_name`; in object stores `..` and empty parts are names like any other.
    """
    return check_inner_name(path(uri)[len(path(directory).rstrip("/")) + 1 :], directory)


def check_inner_name(name: str, directory: str) -> str:
    """Return `name`, which a program or another user has written, after checking that it leads to a place below
    `directory` and nowhere else.

    Raises:
        StagingError: `name` is absolute, or holds `..`.
    """
    if name.startswith("/") or (".." in name and ".." in name.split("/")):
        raise StagingError(f"{directory}: holds a file named {name!r}, which leads out of it")
    return name


def normalize(uri: str) -> str:
    """Return the URI of the same file in its one normal form: no `.`, `..`, doubled or trailing slashes."""
    scheme, authority, full = split(uri)
    return build(scheme, authority, posixpath.normpath("/" + full.lstrip("/")))


def absolute(text: str, default_root: str, directory: str) -> str:
    """Return the URI that a user's `text` means: a URI stays as it is, an absolute path is on `default_root`, any other
    path is below the URI `directory`. A URI that names no server (`hdfs:///path`) is on `default_root`, if that has the
    same scheme."""
    scheme, authority, _ = split(default_root)
    if has_scheme(text):
        own, server, path_ = split(text)
        return normalize(build(own, server or authority, path_) if own == scheme else text)
    if text.startswith("/"):
        return normalize(build(scheme, authority, text))
    return normalize(join(directory, text))


def is_pattern(text: str) -> bool:
    """Return whether the text has to be expanded before it names files: it contains `*`, `?`, `[` or `{`."""
    return any(letter in text for letter in "*?[{")
