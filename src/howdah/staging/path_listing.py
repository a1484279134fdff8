"""Lists the files that a user's path means, with their names below the task's directory.

As in Hadoop, files are not data if their names begin with `_` or `.` (`_SUCCESS`, `.crc`, half-written files). This
holds at any depth below the path, and for the matches of a pattern. It does not hold for the path itself, nor for a
pattern that names such files explicitly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from howdah.spec import uris
from howdah.spec.message import Message, message
from howdah.spec.staged import DataFile
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass
from howdah.storage.filesystem import Entry, FileSystem
from howdah.storage.linked_tree import HOWDAHS_OWN, LeftOut, ignore
from howdah.storage.local import expand_braces

_NO_DATA = re.compile(
    r"(^|/)(_(SUCCESS|metadata|common_metadata|(started|committed)_\d+)$|_(temporary|logs|spark_metadata)/"
    r"|\.(hive|spark)-staging|\.[^/]+\.crc$|\.[^/]*[0-9a-f]{8}\.part$)"
)
"""Names that Hadoop, Spark and howdah give to files beside data: leaving them out is not reported."""
_HIDDEN_FORM = re.compile(r"[_.]|\[[^!^]")
"""The beginning of a part of a pattern that is meant for names with `_` or `.`."""
_MAX_NAMED = 3
_EITHER = re.compile(r"\{,|,,|,\}")
"""A group with an empty word, as in `a{,.gz}`: a file has one of several forms."""


@dataclass(frozen=True)
class Listing:
    """The files for which a path stands."""

    found: bool
    """Whether the path exists: an empty directory is found, and has no files."""
    files: tuple[DataFile, ...] = ()
    """The files, sorted by name."""
    empty: tuple[str, ...] = ()
    """The names of empty directories."""
    hidden: tuple[str, ...] = ()
    """The names of files that are left out because of `_` or `.`, each up to the part with that character; files whose
    loss is not reported are not among them."""
    missing: tuple[str, ...] = ()
    """The missing URIs that a pattern names only by words in braces. For other patterns it is not known what they
    should match."""


def listing(fs: FileSystem, uri: str, left_out: LeftOut = ignore, home: str = "") -> Listing:
    """List the files for which `uri` stands: the file itself, those below the directory, or those of everything that
    its pattern matches.

    Below a directory files are named by their paths in it. A match of a pattern keeps its own name, so that the files
    of several directories stay apart. Links are followed; `left_out` is called with the path of each that can't be
    followed, and the reason. howdah's files in `home`, the URI of an engine's home, are left out, too.
    """
    entry = fs.stat(uri)
    if entry is None and not uris.is_pattern(uris.path(uri)):
        return Listing(False)
    matches = [(entry, "")] if entry else [(each, uris.name(each.uri) + "/") for each in fs.glob(uri)]
    files, empty, hidden = list[DataFile](), list[str](), list[str]()
    forms = [] if entry else [form.split("/") for form in expand_braces(uris.path(uris.normalize(uri)))]
    for match, prefix in matches:
        if not entry and _is_hidden_match(forms, match.uri):
            hidden += _hidden_names(fs, match)
        elif not match.is_dir:
            files.append(_file(match, uris.name(match.uri)))
        else:
            found = _named(fs, match, left_out, home)
            shown = [(prefix + name, each) for name, each in found if not _is_hidden(name)]
            files += [_file(each, name) for name, each in shown if not each.is_dir]
            empty += [name for name, each in shown if each.is_dir]
            lost = [name for name, each in found if not each.is_dir and _is_hidden(name) and not _NO_DATA.search(name)]
            hidden += [prefix + _hidden_part(name) for name in lost]
    missing = () if entry else _missing_words(uri, {uris.path(match.uri) for match, _ in matches})
    return Listing(bool(matches), tuple(files), tuple(empty), tuple(hidden), missing)


def _missing_words(pattern: str, found: set[str]) -> tuple[str, ...]:
    if _EITHER.search(uris.path(pattern)):
        return ()
    scheme, server, path = uris.split(uris.normalize(pattern))
    words = [word for word in dict.fromkeys(expand_braces(path)) if not uris.is_pattern(word)]
    named = [uris.normalize(uris.build(scheme, server, word)) for word in words]
    missing = tuple(each for each in named if uris.path(each) not in found)
    return missing if len(missing) < len(named) else ()  # else the store has another form of its names


def numbered_paths(place: str, path: str | Sequence[str]) -> list[tuple[str, str]]:
    """Return the paths of one field of the job, each with its place in the job file."""
    return [(place, path)] if isinstance(path, str) else [(f"{place}.{n}", each) for n, each in enumerate(path)]


def describe_hidden(path: str, hidden: Sequence[str]) -> Message:
    """Return the sentence for people about files that are left out of an input because of their names."""
    first = sorted(dict.fromkeys(hidden), key=lambda name: "/." in f"/{name}")  # `.DS_Store` last
    shown = ", ".join(first[:_MAX_NAMED]) + (", …" if len(first) > _MAX_NAMED else "")
    return message(
        "{path}: {count} files are left out, as names that begin with _ or . are no data ({names}): what the job needs"
        " of them must be an input of its own",
        path=path,
        count=len(hidden),
        names=shown,
    )


def tree(fs: FileSystem, entry: Entry, left_out: LeftOut, home: str = "") -> Listing:
    """List everything below a directory, including hidden files: code has an `__init__.py`. `home`: as for
    `listing`."""
    found = _named(fs, entry, left_out, home)
    files = tuple(_file(each, name) for name, each in found if not each.is_dir)
    return Listing(True, files, tuple(name for name, each in found if each.is_dir))


def _named(fs: FileSystem, directory: Entry, left_out: LeftOut, home: str) -> list[tuple[str, Entry]]:
    """Return the entries below a directory, each after its name there, sorted."""
    own = [uris.join(home, name) for name in ("jobs", "cache")] if home else []
    own = [each for each in own if not f"{directory.uri}/".startswith(f"{each}/")]  # a user who names it means it
    found, kept_back = list[Entry](), dict[str, None]()
    for entry in fs.list_tree(directory.uri, left_out):
        holder = next((each for each in own if entry.uri == each or entry.uri.startswith(f"{each}/")), "")
        if holder:
            kept_back[holder] = None
        else:
            found.append(entry)
    for each in kept_back:
        left_out(uris.path(each) if each.startswith("file:") else each, HOWDAHS_OWN)
    return sorted(((uris.below(entry.uri, directory.uri), entry) for entry in found), key=itemgetter(0))


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _is_hidden_match(forms: Sequence[Sequence[str]], found: str) -> bool:
    """Return whether a pattern, in all its forms, has matched a name that begins with `_` or `.` only by chance: no
    part of the pattern names it explicitly."""
    path = uris.path(uris.normalize(found))
    return _is_hidden(path) and not any(_names_hidden(form, path.split("/")) for form in forms)


def _names_hidden(forms: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether all hidden parts of a path are named explicitly by the same part of a pattern."""
    if len(forms) != len(parts):  # `**`, which is no part of a path
        return not any(_is_hidden(part) and part not in forms for part in parts)
    return not any(_is_hidden(part) and not _HIDDEN_FORM.match(form) for part, form in zip(parts, forms, strict=True))


def _hidden_names(fs: FileSystem, match: Entry) -> list[str]:
    """Return the name of a hidden file or directory, once for each file that is left out with it."""
    name = uris.name(match.uri)
    below = [uris.below(each.uri, match.uri) for each in fs.walk(match.uri)] if match.is_dir else [""]
    shown = f"{name}/" if match.is_dir else name
    return [shown for each in below if not _NO_DATA.search(f"{name}/{each}" if each else name)]


def _hidden_part(name: str) -> str:
    """Return a name up to its first part that begins with `_` or `.`, with `/` after a directory."""
    parts = name.split("/")
    number = next(number for number, part in enumerate(parts, 1) if _is_hidden(part))
    return "/".join(parts[:number]) + "/" * (number < len(parts))


def _file(entry: Entry, name: str) -> DataFile:
    return DataFile(entry.uri, name, entry.size, entry.modified_ms, entry.etag)


def nearest_file_name(path: Path) -> str | None:
    """Return the name in the directory of `path` that is most similar to the last part of `path`."""
    try:
        return nearest(path.name, [each.name for each in path.parent.iterdir()])
    except OSError:
        return None
