"""Keeps what was in a directory when a job stores something under the same name there.

It goes into a hidden directory of the same one: what looks for checkpoints, for event files or for the files of a home
does not look there, and no other directory need be writable.
"""

from __future__ import annotations

from collections.abc import Sequence

from howdah.spec import uris
from howdah.spec.message import Message, message
from howdah.storage.filesystem import FileSystem


def set_aside(fs: FileSystem, directory: str, name: str, job: str) -> str:
    """Move what `name` is in a directory to where it stays, and return that directory; "" if something of this name
    lies there already: then a try of the job has put it there, and what is here now is the job's own.

    Raises:
        StagingError, EngineUnavailable: it can't be moved; it stays.
    """
    aside = uris.join(directory, f".howdah-before-{job}")
    kept = uris.join(aside, name)
    if fs.exists(kept):
        return ""
    fs.mkdirs(uris.parent(kept))
    fs.rename(uris.join(directory, name), kept)
    return aside


def describe_set_aside(directory: str, names: Sequence[str], aside: str) -> Message:
    """Return the sentence for people about what was set aside: one line, however much it is."""
    if len(names) == 1:
        text = "{name} in {uri} is replaced; what was there before the job is kept in {kept}"
        return message(text, name=names[0], uri=directory, kept=aside)
    text = "{count} files in {uri} are replaced, among them {name}; what was there before the job is kept in {kept}"
    return message(text, count=len(names), name=names[0], uri=directory, kept=aside)
