"""`files` and `archives` of the job and of single roles: which working directories have an entry, and under which
name."""

from __future__ import annotations

import posixpath
from typing import Dict, Iterator, List, Mapping, Tuple, Union

from howdah.errors import Mistake
from howdah.spec.job import JobSpec, Role

SPREAD = "."
"""The name of a directory or archive whose content goes straight into the working directory."""
_PACKED = "howdah-file-"


def entries(job: JobSpec) -> Iterator[Tuple[str, str, str, Tuple[str, ...]]]:
    """Yield each entry's place, kind (`file` or `archive`), text, and the roles that get it (empty: all)."""
    owners: List[Tuple[str, Union[JobSpec, Role], Tuple[str, ...]]] = [("", job, ())]
    owners += [(f"roles.{name}.", role, (name,)) for name, role in job.roles.items()]
    for place, owner, roles in owners:
        for key, kind, texts in (("files", "file", owner.files), ("archives", "archive", owner.archives)):
            for number, text in enumerate(texts):
                yield f"{place}{key}.{number}", kind, text, roles


def file_name(entry: str) -> str:
    """Return the name in the working directory of an entry of `files` or `archives`: after `#`, else the path's own
    name."""
    path, _, name = entry.partition("#")
    return name or posixpath.basename(path.rstrip("/"))


def mistakes(job: JobSpec, taken: Mapping[str, str]) -> Iterator[Mistake]:
    """Find mistakes in the entries. `taken` are names that are in use already, by the place that uses them."""
    everywhere: Dict[str, str] = dict(taken)
    of_role: Dict[str, Dict[str, str]] = {}
    for place, _, entry, roles in entries(job):
        name = file_name(entry)
        if not entry.partition("#")[0].strip() or name in ("", "..") or "/" in name:
            yield Mistake(place, f"is {entry!r}, must be a path, or path#name with a plain name")
        elif name != SPREAD:
            own = of_role.setdefault(roles[0], {}) if roles else everywhere
            owner = own.get(name) or everywhere.get(name)
            if owner:
                yield Mistake(place, f"would be {name!r} in the working directory, as {owner} is: rename it with #name")
            own.setdefault(name, place)


def name_of_packed_file(name: str) -> str:
    """Return the name of the archive that holds the one file `name`, and whose content is copied into the working
    directory."""
    return f"{_PACKED}{name.replace(':', '%3A')}"


def packed_file(archive: str) -> str:
    """Return the name of the file in an archive that `name_of_packed_file` has named; "" if the archive is another
    one."""
    return archive[len(_PACKED) :].replace("%3A", ":") if archive.startswith(_PACKED) else ""
