"""What looks like a secret is not shown, wherever somebody wrote one: in a variable, on a command line, in a job file.

Secrets have a place of their own in a job (`secrets`), whose values are in no spec; this is for those who use another.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Mapping, Sequence

MASK = "***"
_WORDS = {"password", "passwd", "pwd", "passphrase", "secret", "token", "credential", "credentials", "apikey"}
_PAIRS = {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("account", "key")}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_USER = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*(?=@)")
_LINE = re.compile(r"""(?m)^(?P<head>[ \t]*(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?[ \t]*[:=][ \t]*)(?P<value>\S.*)$""")
_REFERENCE = re.compile(r"""["']?(env:|file:|\$\{)""")


def looks_secret(name: str) -> bool:
    """Whether what is called so is better not shown: DB_PASSWORD, apiKey, `fs.s3a.secret.key`; not max_tokens."""
    parts = [part.lower() for part in _PART.findall(name)]
    return not _WORDS.isdisjoint(parts) or any(pair in _PAIRS for pair in zip(parts, parts[1:]))  # noqa: B905, RUF007 - 3.9 has neither


def variables(values: Mapping[str, str]) -> dict[str, str]:
    """The same, but for the values of those that look secret."""
    return {name: MASK if looks_secret(name) else line(value) for name, value in values.items()}


def line(text: str, known: Iterable[str] = ()) -> str:
    """`text` without the secrets that are `known`, and without passwords in addresses."""
    for secret in known:
        if len(secret) >= 4:
            text = text.replace(secret, MASK)
    return _USER.sub(MASK, text)


def words(command: Sequence[str], known: Iterable[str] = ()) -> List[str]:
    """A command line: `--password X`, `--set TOKEN=X` and `--token=X` lose what they say."""
    found: List[str] = []
    hidden, known = False, list(known)
    for word in command:
        name, separator, _ = word.partition("=")
        if hidden:
            found.append(MASK)
        elif separator and looks_secret(name):
            found.append(f"{name}={MASK}")
        else:
            found.append(line(word, known))
        hidden = not hidden and not separator and word.startswith("-") and looks_secret(word)
    return found


def lines(text: str, known: Iterable[str] = ()) -> str:
    """A file of `name: value` or `name=value` lines; what only says where a secret is stays."""

    def shown(found: re.Match[str]) -> str:
        secret = looks_secret(found["name"]) and not _REFERENCE.match(found["value"])
        return found["head"] + MASK if secret else found[0]

    return line(_LINE.sub(shown, text), known)
