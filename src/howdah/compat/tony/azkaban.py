"""Reads the properties of a job of Azkaban's job type for TonY.

The rules are those of Java's property files and of TonyJob: `worker_env.X` is --shell_env, `main.args` has options as
they are typed, names that begin with `tony.` are configuration, the other names are those of the options; the flow
becomes tags. Later files override earlier ones, and `${name}` is replaced.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from howdah.compat import Parsed
from howdah.compat.tony.conf import merge_configuration
from howdah.compat.tony.options import TonyOptions, parse_options
from howdah.compat.tony.submit import Tony
from howdah.config.yaml_tree import MAX_BYTES
from howdah.errors import Mistake, SpecError
from howdah.hadoop.conf import Property, expand
from howdah.localfiles import regular_file

ARGUMENTS = ("hdfs_classpath", "task_params", "python_binary_path", "python_venv", "executes", "src_dir")
TYPES = ("TonYJob", "TonyJob", "TensorFlowJob")
TAGS = ("azkaban.flow.execid", "azkaban.flow.flowid", "azkaban.flow.projectname")
_TYPED = "main.args"
_ENVIRONMENT = ("worker_env.", "tony.worker_env.")
_ENTRY = re.compile(r"((?:\\.|[^\s=:\\])*)[ \t\f]*[=: \t\f]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BLANK = " \t\f"
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


class AzkabanJob:
    """Reads `howdah azkaban-job FILE.properties [FILE2…]`; paths are relative to the first file."""

    def __init__(self, environ: Mapping[str, str] | None = None, hadoop: str = "") -> None:
        self.hadoop = hadoop
        self.environ = os.environ if environ is None else environ

    def parse(self, argv: Sequence[str]) -> Parsed:
        if not argv:
            raise SpecError.at("FILE", "is missing: give the job's properties file, and those it inherits before it")
        files = {name: read(Path(name)) for name in argv}
        properties = {name: value for found in files.values() for name, value in found.items()}
        values = {name: expand(value, properties.get) for name, value in properties.items()}
        directory = Path(argv[0]).absolute().parent
        options = _options(values, directory)
        own = {file: list(_configuration(found, values)) for file, found in files.items()}
        conf = merge_configuration(options, directory, self.environ, self.hadoop, own)
        tags = [f"{name}:{values[name]}" for name in TAGS if values.get(name)]
        conf.values["tony.application.tags"] = ",".join([*conf.get_list("tony.application.tags"), *tags])
        kind = values.get("type", TYPES[0])
        if kind.lower() not in (known.lower() for known in TYPES):
            options.mistakes.append(Mistake("type", f"is {kind!r}, must be one of {', '.join(TYPES)}"))
        return Tony(directory, self.environ).job("cluster", options, conf)


def _configuration(names: Iterable[str], values: Mapping[str, str]) -> Iterator[Property]:
    """Yield the keys as properties of a file. TonyJob wrote them into a tony.xml, so the site's file overrides them."""
    for name in names:
        if name.startswith("tony.") and not name.startswith(_ENVIRONMENT):
            yield Property(name, values[name])


def _options(values: Mapping[str, str], directory: Path) -> TonyOptions:
    options = _typed_options(values.get(_TYPED, ""))
    for name in ARGUMENTS:
        if values.get(name):
            options.values.setdefault(name, [values[name]])  # typed arguments came first, and the first of two counted
    if "src_dir" not in options.values and (directory / "src").is_dir():
        options.values["src_dir"] = ["src"]
    variables = [
        f"{name.removeprefix(prefix)}={value}"
        for name, value in values.items()
        for prefix in _ENVIRONMENT
        if name.startswith(prefix)
    ]
    if variables:
        options.values.setdefault("shell_env", []).extend(variables)
    return options


def _typed_options(text: str) -> TonyOptions:
    """Read the options that the job's author typed; TonyJob wrote its own after them."""
    try:
        return parse_options(shlex.split(text))
    except ValueError:
        return TonyOptions(mistakes=[Mistake(_TYPED, f"is {text!r}, which has a quote that isn't closed")])


def read(path: Path) -> dict[str, str]:
    """Read a file of properties.

    Raises:
        SpecError: it cannot be read.
    """
    try:
        text = regular_file.read(path, MAX_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise SpecError.at(str(path), f"is not UTF-8: byte {error.start}") from None
    except OSError as error:
        raise SpecError.at(str(path), error.strerror or str(error)) from None
    return dict(_entries(text))


def _entries(text: str) -> Iterator[tuple[str, str]]:
    lines = iter(text.split("\n"))
    for line in lines:
        parts = [line.lstrip(_BLANK)]
        if parts[0][:1] in ("", "#", "!"):  # a comment is never continued
            continue
        while _is_continued(parts[-1]):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, "").lstrip(_BLANK))
        if match := _ENTRY.match("".join(parts)):
            yield _unescape(match[1]), _unescape(match[2])


def _is_continued(line: str) -> bool:
    """Return whether the next line continues this one, by a backslash that is not the second of a pair."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def letter(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _LETTERS.get(escaped, escaped)

    # Java wrote a character beyond U+FFFF as two escapes.
    return _ESCAPE.sub(letter, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
