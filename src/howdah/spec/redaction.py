"""Hides texts that look like secrets, wherever a user wrote them: in a variable, on a command line, in a job file.

Secrets have a place of their own in a job (`secrets`), and the spec does not hold their values; this module is for
users who write them elsewhere. Names are judged by whole words: `DB_PASS` and `OPENAI_KEY` hide the value that follows,
`passes` and `--num-keys` do not.
"""

from __future__ import annotations

import functools
import re
from typing import Any, FrozenSet, Iterable, Iterator, List, Mapping, Sequence

MASK = "***"


def _set(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


_ALWAYS = _set(
    "password passwd pwd pw passphrase passcode secret credential credentials creds jwt apikey authkey accesskey "
    "secretkey privatekey authtoken accesstoken passwords secrets pgpass"
)
# Secret as the last word, unless one of `_PLAIN` stands before it: `first_pass`, `--pad-token`, `--no-auth`.
_LAST = {"pass", "auth", "authorization", "token"}
_PLAIN = _set(
    "num n max min count per use enable disable no with without pad eos bos unk sep cls mask special start end next "
    "last first second third one two single multi all any forward backward high low band by"
)
# Words after `token` and its like that make no secret of it: `token_type`, `pad_token_id`.
_ABOUT = _set("id ids type types mode dim size count len length column col field limit name names enabled index")
# Words for the place of a secret, not the secret itself: PASSWORD_FILE, `credential.provider.path`.
_WHERE = {"file", "path", "dir", "url", "uri", "endpoint"}
# Words before `key` that make it one that opens something; `sort_key` and `--image-key` open nothing.
_OPENING = _set(
    "access account admin api app auth aws azure aes anthropic bot client cohere cos database dashscope db deepseek "
    "deploy decryption encryption fernet gcp gemini github gitlab google groq hf hmac huggingface jwt license master "
    "mistral minio mlflow neptune openai oss private root rsa secret server service session shared sign signing ssh "
    "ssl storage stripe subscription tls user wandb webhook"
)
_OPEN = _set("public sort primary foreign partition group index join row cache dict metric hot")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_USER = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*(?=@)")
_BEARER = re.compile(
    r"(?i)\b(bearer[ \t]+|authorization[\"']?[ \t]*:[ \t]*[\"']?(?:basic|token|bearer)[ \t]+)[\w.~+/=-]+"
)
_OF_LINK = re.compile(r"([#&?](?:token|act)=)[\w.~-]+")
"""The part of an address that opens the page of a job, or permits to act on it."""
_LINE = re.compile(r"""(?m)^(?P<head>[ \t]*(?:-[ \t]+)?["']?(?P<name>[\w.-]+)["']?[ \t]*[:=][ \t]*)(?P<value>\S.*)$""")
# A reference to a secret, which does not contain the secret.
_REFERENCE = re.compile(r"""["']?(?:env:|file:|\$(?:\{[\w.]+\}|[A-Z_][A-Z0-9_]*)["']?(?=[\s"'\\;&|<>()\]}]|,\s|$))""")
# `name=`, `"name": `, and of an option also what follows it after blanks, on the next line, as the next of a list.
_NAMED = re.compile(
    r"""(?<![\w.$-])(?P<option>--?)?(?P<name>[A-Za-z_][\w.-]*)"""
    r"""(?:\\?["']?[ \t]*[=:][ \t]*|(?(option)["']?(?:,|\\?\r?\n|[ \t])+(?:-[ \t]+)?|(?!)))"""
)
# Masked already, or empty, in a shell line or in YAML.
_NO_SECRET = re.compile(r"""(?:(["']?)\*\*\*\1|""|'')(?=[\s"',;\\\]}&|<>()]|$)""")
# The names within a mapping are judged by themselves.
_MAPPING = re.compile(r"""\{\s*(?:\}|(["']?)[\w.-]+\1\s*:)""")
_VALUE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\;&|<>()])+|["'].*""")


@functools.lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Return whether a value of this name should not be shown: DB_PASSWORD, apiKey, `fs.s3a.secret.key`; not
    max_tokens."""
    parts = [part.lower() for part in _PART.findall(name)]
    while parts and parts[-1].isdigit():
        parts.pop()
    if not parts or parts[-1] in _WHERE:
        return False
    if not _ALWAYS.isdisjoint(parts) or any(part.endswith(("password", "passwd")) for part in parts):
        return True
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last in _LAST:
        return before not in _PLAIN and not before.isdigit()
    if "token" in parts:
        return _ABOUT.isdisjoint(parts[parts.index("token") + 1 :]) and _PLAIN.isdisjoint(parts)
    if any(one in _OPENING and other == "key" for one, other in zip(parts, parts[1:])):  # noqa: B905, RUF007 - 3.9
        return True
    return last == "key" and bool(before) and name.isupper() and before not in _OPEN | _PLAIN


def variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, with a mask in place of each value whose name looks secret."""
    return {name: MASK if _is_secret(name, value) else text(value) for name, value in values.items()}


def line(text: str, known: Iterable[str] = ()) -> str:
    """Return `text` without the secrets that are `known`, and without passwords in addresses."""
    for secret in known:
        if len(secret) >= 4:
            text = text.replace(secret, MASK)
    text = _OF_LINK.sub(lambda found: found[1] + MASK, text)
    return _BEARER.sub(lambda found: found[1] + MASK, _USER.sub(MASK, text))


def text(said: str, known: Iterable[str] = ()) -> str:
    """Return a shell line, or any words, without the values in `--password X`, `TOKEN=X` and `"token": "X"`."""
    found, at = [], 0
    said = line(said, known)
    for name in _NAMED.finditer(said):
        if name.start() < at or not looks_secret(name["name"]):
            continue
        at_value = name.end()
        if _REFERENCE.match(said, at_value) or _NO_SECRET.match(said, at_value):
            continue
        if name[0].rstrip().endswith(":") and _MAPPING.match(said, at_value):
            continue
        value = _VALUE.match(said, name.end())
        if value is not None:
            found += [said[at : name.end()], MASK]
            at = value.end()
    return "".join(found) + said[at:]


def words(command: Sequence[str], known: Iterable[str] = ()) -> List[str]:
    """Return a command line without the values in `--password X`, `--set TOKEN=X` and `--token=X`, and with each word
    redacted as by `text`."""
    found: List[str] = []
    hidden, known = False, list(known)
    for word in command:
        name, separator, value = word.partition("=")
        if hidden:
            found.append(word if _REFERENCE.match(word) else MASK)
        elif separator and not set(name) & set(" \t\n") and _is_secret(name, value):
            found.append(f"{name}={MASK}")
        else:
            found.append(text(word, known))
        hidden = not hidden and not separator and word.startswith("-") and " " not in word and looks_secret(word)
    return found


def lines(said: str, known: Iterable[str] = ()) -> str:
    """Return a file of `name: value` or `name=value` lines, redacted. A value that only says where a secret is stays,
    and so does an existing mask. In YAML a mask is quoted: without quotes it would be an alias of a value that does not
    exist."""

    def shown(found: re.Match[str]) -> str:
        value = found["value"]
        is_mask = value.startswith(MASK)  # without quotes, which it gets
        if (not is_mask and _NO_SECRET.match(value)) or _MAPPING.match(value) or not _is_secret(found["name"], value):
            return found[0]
        return found["head"] + (f'"{MASK}"' if found["head"].rstrip().endswith(":") else MASK)

    return text(_LINE.sub(shown, said), known)


def record(value: Any, name: str = "") -> Any:
    """Return a spec, or any other value, as JSON. Each text is redacted as by `text`. Values, and lists of values,
    whose name looks secret are masked, but not mappings: a role may be called `token`."""
    if isinstance(value, Mapping):
        return {key: record(each, str(key)) for key, each in value.items()}
    hidden = looks_secret(name)
    if isinstance(value, (list, tuple)):
        if value and not hidden and all(isinstance(each, str) for each in value):
            return words(value)
        return [record(one, name if hidden else "") for one in value]
    if hidden and value not in ("", None) and not (isinstance(value, str) and _REFERENCE.match(value)):
        return MASK
    return text(value) if isinstance(value, str) else value


def masked_places(value: Any, place: str = "") -> Iterator[str]:
    """Yield the places of a record, such as `env.TOKEN`, that hold a mask because the value is not known."""
    if isinstance(value, str):
        if MASK in value:
            yield place
        return
    if isinstance(value, Mapping):
        entries: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, (list, tuple)):
        entries = enumerate(value)
    else:
        return
    for name, one in entries:
        yield from masked_places(one, f"{place}.{name}" if place else str(name))


def _is_secret(name: str, value: str) -> bool:
    return bool(value) and not _REFERENCE.match(value) and looks_secret(name)
