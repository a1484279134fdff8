"""Reads everything that determines the packages of a requirements file: files that it includes, packages of this
machine that it installs, and the installer's settings.

Source of the format: pip's documentation, "Requirements File Format".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.localfiles import regular_file
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.staging import archive, installer_settings
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.git_references import GitReference, commits_of, find_references
from howdah.staging.project_files import PLACE, find_uv, local_packages
from howdah.storage.content_cache import sha256_of

MAX_BYTES = 4 << 20
"""The largest requirements file."""
_INCLUDING = {"-r", "--requirement", "-c", "--constraint"}
_NAMING = {"-e", "--editable", "-f", "--find-links"}
_EDITABLE = {"-e", "--editable"}
_COMMENT = re.compile(r"(^|\s)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_COMMENT_THAT_GOES_ON = re.compile(r"^(\s*#.*?)\\+$", re.MULTILINE)
_NAMED = re.compile(r"[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*")
_PACKAGES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class RequirementsContent:
    """Everything that determines the packages of a requirements file."""

    texts: Mapping[Path, bytes]
    """The file itself, and the files that it includes, with their content."""
    packages: Mapping[Path, str]
    """The digests of files and directories of this machine that are installed or searched."""
    editable: tuple[Path, ...] = ()
    """The files and directories of `packages` that are used in place (`-e`)."""
    linked: tuple[str, ...] = ()
    """The files and directories to which links lead from the packages."""
    settings: str = ""
    """The settings of this machine by which pip or uv chooses packages (`installer_settings`)."""
    git: tuple[GitReference, ...] = ()
    """The branches and tags of git that are installed."""

    @property
    def digest_input(self) -> bytes:
        """Return bytes that change when anything in the content changes. A file that refers to nothing else returns its
        own bytes. Servers are asked for the commits of branches."""
        own, *others = self.texts.items()
        more = [*others, *((path, digest.encode()) for path, digest in self.packages.items())]
        more += [(Path("settings"), self.settings.encode())] if self.settings else []
        more += [(Path("git"), f"{each.shown} {commit}".encode()) for each, commit in commits_of(self.git).items()]
        return b"\0".join([own[1], *(part for path, text in more for part in (os.fsencode(path.name), text))])


def read_content(requirements: Path) -> RequirementsContent:
    """Read a requirements file, and everything on this machine to which it refers.

    Raises:
        FilesWrong: a file is not there.
        StagingError: a directory can't be read.
    """
    texts: dict[Path, bytes] = {}
    packages: dict[Path, str] = {}
    editable: list[Path] = []
    linked: list[str] = []
    git: dict[GitReference, None] = {}
    waiting = [(Path(os.path.normpath(requirements)), "")]
    for path, included in waiting:
        if path in texts:
            continue
        try:
            texts[path] = regular_file.read(path, MAX_BYTES)
        except OSError as error:
            raise FilesWrong.at(PLACE, f"{str(path)!r}: {error.strerror}{included}") from error
        if path.suffix == ".toml":
            git.update(dict.fromkeys(find_references(texts[path].decode("utf-8", "replace"))))
            for local in local_packages(path):
                packages[local] = _digest_of(local, linked)
                editable.append(local)
            continue
        for option, value in _lines(texts[path].decode("utf-8-sig", "replace")):
            if value.startswith(("http:", "https:")) or "${" in value:
                continue
            if value.startswith("git+"):
                git.update(dict.fromkeys(find_references(value)))
                continue
            value = uris.path(value.partition("#")[0]) if value.startswith("file:/") else value
            base = path if option in _INCLUDING else requirements  # packages are looked for from where it is installed
            local = Path(os.path.normpath(base.parent / value))
            if option in _INCLUDING:
                waiting.append((local, f" (included by {path})"))
            elif local.is_file():
                packages[local] = sha256_of(local)
            elif local.is_dir():
                packages[local] = _digest_of(local, linked)
                editable += [local] if option in _EDITABLE else []
    settings = installer_settings.read(requirements.parent, uv=bool(find_uv()))
    return RequirementsContent(texts, packages, tuple(editable), tuple(linked), settings, tuple(git))


def _digest_of(package: Path, linked: list[str]) -> str:
    """Return the digest of a package's directory; `linked` gets the paths to which links in it lead."""
    return archive.digest_of(archive.members(package, with_ignored_files=True, followed=linked.append))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the option ("" for a requirement) and the value of each line that may refer to something."""
    text = _COMMENT_THAT_GOES_ON.sub(r"\1", text.replace("\r\n", "\n"))  # no comment does
    for line in text.replace("\\\n", " ").splitlines():
        line = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), _COMMENT.sub("", line).strip())
        option, _, value = line.partition("=") if line.startswith("--") and "=" in line else line.partition(" ")
        if line[:2] in _INCLUDING | _NAMING and not line.startswith("--"):
            option, value = line[:2], line[2:]
        if option in _INCLUDING | _NAMING:
            value = value.strip(" =")
            is_named = option in _EDITABLE and _NAMED.match(value)
            value = _unquoted(_NAMED.sub("", value, count=1) if is_named else value)
            yield option, value.partition("[")[0] if option in _EDITABLE else value
        elif line and not line.startswith("-"):
            place = _NAMED.sub("", line, count=1) if _NAMED.match(line) else line
            place = _unquoted(place.partition(";")[0].partition("[")[0].strip())
            if place.startswith((".", "/", "file:")) or "/" in place or place.endswith(_PACKAGES):
                yield "", place


def _unquoted(text: str) -> str:
    try:
        return (shlex.split(text) or [""])[0]
    except ValueError:
        return text
