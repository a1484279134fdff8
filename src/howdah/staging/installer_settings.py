"""Reads the settings of this machine by which pip or uv chooses packages: with other settings, the same requirements
file makes another environment.

Source: pip's documentation, "Configuration"; uv's, "Environment variables" and "Configuration files".
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from howdah.localfiles import regular_file

MAX_BYTES = 1 << 20
"""The largest configuration file."""
_CHOOSES = re.compile(
    r"(?:PIP|UV)_\w*(?:INDEX|FIND_LINKS|CONSTRAINT|OVERRIDE|BINARY|BUILD|SOURCES|EXCLUDE|PRERELEASE|RESOLUTION|STRATEGY"
    r"|PRIOR|TORCH_BACKEND|NO_DEPS|REQUIREMENT|CONFIG)\w*|PIP_PRE"
)
_CHOOSES_NOT = re.compile(r"UV_INDEX_\w+_(USERNAME|PASSWORD)|UV_CONCURRENT_\w+")
"""Two patterns for the names of variables: those that may change the choice of packages, and exceptions from the first.
Variables for time limits, certificates and caches do not match."""
_TABLES_OF_UV = re.compile(r"(?ms)^\[+tool\.uv\b.*?(?=^\[+(?!tool\.uv\b|\[)|\Z)")
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")
"""The login in an address. It is left out, because tokens of an index change each day and do not change the
packages."""


def read(project: Path, *, uv: bool) -> str:
    """Return the variables and configuration files that `uv`, or else pip, uses when it installs the packages of a file
    in the directory `project`, without logins; "" if there are none. A file that can't be read is no setting:
    installers skip it, or report themselves what is wrong with it."""
    prefix = "UV_" if uv else "PIP_"
    names = sorted(name for name in os.environ if name.startswith(prefix) and _CHOOSES.fullmatch(name))
    lines = [f"{name}={os.environ[name]}" for name in names if os.environ[name] and not _CHOOSES_NOT.fullmatch(name)]
    texts = [_text_of(path) for path in _files_of_pip()] if not uv else _texts_of_uv(project)
    return _LOGIN.sub("", "\n".join([*lines, *filter(None, texts)]))


def _texts_of_uv(project: Path) -> list[str]:
    own = os.environ.get("UV_CONFIG_FILE")
    if own or os.environ.get("UV_NO_CONFIG"):
        return [_text_of(Path(own))] if own else []
    machine = [_config_directory() / "uv" / "uv.toml", Path("/etc/uv/uv.toml")]
    return [_nearest_text_of_uv(project.absolute()), *map(_text_of, machine)]


def _nearest_text_of_uv(directory: Path) -> str:
    """Return the settings that uv reads in the directory, or in the nearest parent that has some."""
    for place in (directory, *directory.parents):
        of_project = "".join(_TABLES_OF_UV.findall(_text_of(place / "pyproject.toml")))
        if found := _text_of(place / "uv.toml") or of_project:
            return found
    return ""


def _files_of_pip() -> Iterator[Path]:
    own = os.environ.get("PIP_CONFIG_FILE", "")
    if own != os.devnull:
        directories = (Path("/etc/xdg/pip"), Path("/etc"), Path.home() / ".pip", _config_directory() / "pip")
        yield from (directory / "pip.conf" for directory in (*directories, Path(sys.prefix)))
        if own:
            yield Path(own)


def _config_directory() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _text_of(path: Path) -> str:
    try:
        return regular_file.read(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
