"""Fills in `%input_path%` and its like in launch commands: a value is one word, whatever characters it has.

Values of plain characters are written into the command. Others become variables of its shell, which nothing splits or
runs, and which stand in the user's own quotes as well as outside them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable

from howdah.compat.submarine.options import ROLES, SubmarineOptions

PATHS = ("input_path", "saved_model_path", "checkpoint_path")
JOBS = "submarine/jobs"
"""The directory of all jobs' checkpoints, in the user's home."""
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_PLAIN_NAME = re.compile(r"[\w@%+=,-][\w@%+=,.-]*")
_MAX_NAME_BYTES, _KEPT_CHARACTERS = 200, 50  # a file name has at most 255 bytes, a character at most 4
_TOKEN = re.compile(rf"""%({"|".join(PATHS)})%|\\['"\\]|['"]|(?<![^\s;&|(])#[^\n]*""")
_READ_ANEW = re.compile(r"\$\(|`|<<|\$'|\b\w*sh\s+-\w*c\b|\beval\b")
"""Parts of a line that a shell reads in another way than the words around them: quotes in such a part would have
another meaning."""


def default_checkpoint_path(name: str) -> str:
    """Return the path, in the user's home, of the job's checkpoints by default. The job's name becomes one part of the
    path: if it has characters that such a part should not have, they are left out, and a hash is added."""
    if not _PLAIN_NAME.fullmatch(name) or len(os.fsencode(name)) > _MAX_NAME_BYTES:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
        kept = re.sub(r"[^\w@%+=,.-]+", "_", name).strip("._")[:_KEPT_CHARACTERS]
        name = f"{kept}-{digest}"
    return f"{JOBS}/{name}/staging/checkpoint_path"


def uses_default_checkpoint_path(options: SubmarineOptions) -> bool:
    """Return whether a launch command contains the default checkpoint path."""
    default = [] if options.given("checkpoint_path") else ["checkpoint_path"]
    if default and not options.given("saved_model_path"):
        default.append("saved_model_path")
    return any(f"%{name}%" in options.text(f"{role}_launch_cmd") for role in ROLES for name in default)


def is_plain(value: str) -> bool:
    """Return whether a shell reads the value as one word without quotes."""
    return _PLAIN.fullmatch(value) is not None


def keeps_whole(line: str) -> bool:
    """Return whether each value in a launch command can be one word. It cannot in a substitution, a here-document or a
    nested shell, which read it as text, as under Submarine."""
    return _READ_ANEW.search(line) is None


def fill_in(line: str, path: Callable[[str], str], as_text: bool) -> str:
    """Return a launch command with the value `path(name)` for each placeholder. With `as_text` the shell reads the
    value as if it had been typed there, as under Submarine."""
    variables: dict[str, str] = {}
    quote = ""

    def replaced(token: re.Match[str]) -> str:
        nonlocal quote
        name, text = token[1], token[0]
        if name:
            value = path(name)
            if as_text or is_plain(value):
                return value
            variables[variable := f"SUBMARINE_{name.upper()}"] = value
            return f'{quote}"${variable}"{quote}'
        if text[0] == "#":  # a comment, whose apostrophes quote nothing
            return f"#{_TOKEN.sub(replaced, text[1:])}" if quote else text
        if text in ("'", '"'):
            quote = text if not quote else "" if quote == text else quote
        elif text == "\\'" and quote == "'":  # in single quotes a backslash is itself
            quote = ""
        return text

    filled = _TOKEN.sub(replaced, line)
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()) + filled
