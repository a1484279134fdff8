"""Changes one setting in the user's file.

One line is replaced, added or removed, and every other byte stays, comments included. If one line is not enough (flow
style, a value over several lines), the file stays as it is, and a message asks its owner to edit it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from howdah.config.settings import check_value, resolve, setting_nodes
from howdah.config.yaml_tree import Keys, Text, parse
from howdah.errors import Mistake, SpecError, StagingError
from howdah.localfiles.change_lock import changing

_ENTRY = re.compile(r"""(\s*[^:]+:)[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#\n]*?)([ \t]+#.*)?\n$""")
_UNQUOTED = re.compile(r"[A-Za-z0-9_/.]([A-Za-z0-9_/.@+:,=-]*[A-Za-z0-9_/.@+=-])?")


Check = Callable[[str, str], None]
"""Takes the file's present text and its new text, and raises SpecError if the change must not be made."""


def refuse_harm(key: str, profile: str, env: Mapping[str, str]) -> Check:
    """Return the check of a change of `key` in the user's file. It refuses a mistake in `key` itself, and a change that
    makes correct settings wrong."""
    env = {name: value for name, value in env.items() if name != "HOWDAH_PROFILE"}  # it would hide the file's

    def find(text: str) -> Sequence[Mistake]:
        return _mistakes(text, "", env) or (profile and _mistakes(text, profile, env)) or ()

    def check(before: str, after: str) -> None:
        found = find(after)
        if any(mistake.place == key for mistake in found) or (found and not find(before)):
            raise SpecError(found)

    return check


def _mistakes(text: str, profile: str, env: Mapping[str, str]) -> Sequence[Mistake]:
    try:
        resolve({"profile": profile}, env, own=text)
    except SpecError as error:
        return error.mistakes
    except StagingError:
        pass  # another file can't be read, which this one does not change
    return ()


def _accept(_before: str, _after: str) -> None:
    pass


def write(path: Path, key: str, value: str, profile: str = "", check: Check = _accept) -> None:
    """Set `key` in the file at `path`, or in its `profile`, which is made if it does not exist.

    Raises:
        SpecError: no such key or value, the file has a form in which one line can't be changed, or `check` refuses.
        StagingError: it can't be read or written.
    """
    if key != "profile" or profile:
        check_value(key, value, "howdah config set", path.parent)
    with _changing(path):
        text = _text(path)
        new = replace_setting(text, key, value, profile)
        expected = _values(text)
        expected[(profile, key)] = value
        if _values(new, key) != expected:
            raise SpecError.at(str(path), f"has a form in which {key} can't be changed line by line: edit it yourself")
        check(text, new)
        _replace(path, new)


def remove(path: Path, key: str, profile: str = "", check: Check = _accept) -> None:
    """Remove `key` from the file at `path`, or from its `profile`; a profile without settings is removed, too.

    Raises:
        SpecError: it is not set there, the file has a form in which one line can't be removed, or `check` refuses.
        StagingError: it can't be read or written.
    """
    with _changing(path):
        text = _text(path)
        expected = _values(text)
        if expected.pop((profile, key), None) is None:
            where = f"profile {profile!r} of {path}" if profile else str(path)
            raise SpecError.at(key, f"is not set in {where}")
        new = remove_setting(text, key, profile)
        if _values(new) != expected:
            raise SpecError.at(str(path), f"has a form in which {key} can't be removed line by line: edit it yourself")
        check(text, new)
        _replace(path, new)


def remove_setting(text: str, key: str, profile: str = "") -> str:
    """Return `text` without the setting's line, and without headings that are empty then."""
    lines = text.splitlines(keepends=True)
    names, key = _headings(lines, key, profile)
    headings, start, end, indent = _block(lines, names)
    at = _line_of(lines, key, start, end, indent)
    if at is None or len(headings) < len(names):
        return text
    del lines[at]
    for heading in reversed(headings):
        outer = re.match(r"\s*", lines[heading])
        last = _block_end(lines, heading + 1, outer[0] if outer else "")
        if any(re.match(r"\s*[^\s#]", line) for line in lines[heading + 1 : last]):
            break
        del lines[heading]
    return "".join(lines)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise StagingError(f"{path} can't be read: {error}") from error


def replace_setting(text: str, key: str, value: str, profile: str = "") -> str:
    """Return `text` with the setting's line replaced, or added."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    names, key = _headings(lines, key, profile)
    headings, start, end, indent = _block(lines, names)
    for number in range(len(headings), len(names)):
        lines.insert(start if number else _top_end(lines), f"{indent}{names[number]}:\n")
        _, start, end, indent = _block(lines, names)
    at = _line_of(lines, key, start, end, indent)
    if at is None:
        lines.insert(start if names else _top_end(lines), f"{indent}{key}: {_quoted(value)}\n")
    elif match := _ENTRY.match(lines[at]):
        lines[at] = f"{match[1]} {_quoted(value)}{match[3] or ''}\n"
    return "".join(lines)


def _headings(lines: list[str], key: str, profile: str) -> tuple[tuple[str, ...], str]:
    """Return the headings below which the setting's line is, or would be, and its key there. An engine's setting is
    `account` below `slurm`, unless `slurm.account` is written in one line already."""
    outer = ("profiles", profile) if profile else ()
    engine, dot, name = key.partition(".")
    headings, start, end, indent = _block(lines, outer)
    is_one_line = len(headings) == len(outer) and _line_of(lines, key, start, end, indent) is not None
    return ((*outer, engine), name) if dot and not is_one_line else (outer, key)


def _top_end(lines: list[str]) -> int:
    """Return where a line outside of all profiles goes: at the end of the file it could seem to belong to the last
    profile."""
    profiles = _line_of(lines, "profiles", 0, len(lines), "")
    return len(lines) if profiles is None else profiles


def _block(lines: list[str], names: tuple[str, ...]) -> tuple[list[int], int, int, str]:
    """Return four values: the lines of the headings in `names` that exist, each below the one before it; and the first
    line, the end and the indentation of the block below the last of them."""
    headings: list[int] = []
    start, end, indent = 0, len(lines), ""
    for name in names:
        at = _line_of(lines, name, start, end, indent)
        if at is None:
            break
        headings.append(at)
        start, end = at + 1, _block_end(lines, at + 1, indent)
        indent = _indent(lines, start, end, indent)
    return headings, start, end, indent


def _line_of(lines: list[str], key: str, start: int, end: int, indent: str) -> int | None:
    pattern = re.compile(rf"{indent}{re.escape(key)}\s*:(\s|$)")
    return next((number for number in range(start, end) if pattern.match(lines[number])), None)


def _block_end(lines: list[str], start: int, indent: str) -> int:
    """Return the first line after `start` that is indented no deeper than `indent`."""
    deeper = re.compile(rf"{indent}\s+\S|\s*(#|$)")
    return next((n for n in range(start, len(lines)) if not deeper.match(lines[n])), len(lines))


def _indent(lines: list[str], start: int, end: int, outer: str) -> str:
    inner = (re.match(r"(\s+)[^\s#]", line) for line in lines[start:end])
    return next((match[1] for match in inner if match), outer + "  ")


def _quoted(value: str) -> str:
    return value if _UNQUOTED.fullmatch(value) and value.lower() != "null" else json.dumps(value, ensure_ascii=False)


def _values(text: str, place: str = "the file") -> dict[tuple[str, str], str]:
    """Return every value of the file by (profile, key), to check that only one has changed. `place` is what an error
    names."""
    root, _ = parse(text, place)
    if not isinstance(root, Keys):
        return {("", ""): repr(root)}
    entries = root.entries
    profiles = entries.get("profiles")
    parts: Mapping[str, object] = profiles.entries if isinstance(profiles, Keys) else {}
    blocks = {"": entries, **{name: part.entries for name, part in parts.items() if isinstance(part, Keys)}}
    return {
        (name, key): node.value if isinstance(node, Text) else repr(node).partition("origin")[0]
        for name, block in blocks.items()
        for key, node in setting_nodes({key: node for key, node in block.items() if key != "profiles"})
    }


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Keep other commands from changing the file between reading and replacing it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StagingError(f"{path} can't be written: {error.strerror}") from error
    with changing(path):
        yield


def _replace(path: Path, text: str) -> None:
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(path.resolve())
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise StagingError(f"{path} can't be written: {error.strerror}") from error
