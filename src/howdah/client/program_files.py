"""Finds the files that a command needs, in its words and in the imports of its Python programs, so that a first job
need not name them.

Only files below the current directory are found, and only small ones: data is given by `--input`.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from howdah.errors import SpecError
from howdah.spec.shell_commands import simple_commands
from howdah.spec.values import dataclass
from howdah.staging import archive

MAX_BYTES = 256 << 20
"""The largest file or directory that is sent along only because the command names it."""
FRAMEWORKS = {"torch": "pytorch", "tensorflow": "tensorflow", "jax": "jax", "flax": "jax", "ray": "ray"}
"""The framework of a program that imports the module; the first that fits. Other jobs name their framework."""


@dataclass(frozen=True)
class ProgramFiles:
    """What a command needs."""

    files: tuple[str, ...]
    """Entries for the job's `files`."""
    imports: tuple[tuple[str, str], ...]
    """Pairs of a Python program and a module that it imports."""

    def framework(self, is_single: bool) -> tuple[str, str, str]:
        """Return the framework of the programs, and the program and its import that tell it; "" when no import does.
        In a single task Ray starts a cluster by itself."""
        for module, framework in FRAMEWORKS.items():
            if is_single and framework == "ray":
                continue
            for program, imported in self.imports:
                if imported == module:
                    return framework, program, module
        return "", "", ""


def files_of_command(words: Sequence[str], base_directory: Path, given: Collection[str] = ()) -> ProgramFiles:
    """Return which files in `base_directory` the command `words` (a single word: a shell line) needs, without
    those already `given`.

    Raises:
        SpecError: the command names a file that is too large to be sent along unasked.
    """
    files: dict[str, None] = {}
    imports: dict[tuple[str, str], None] = {}
    for path in _named(words, base_directory):
        top = path.partition("/")[0]
        files[top] = None
        if path.endswith(".py") and (base_directory / path).is_file():
            for program, module in _imported_modules(base_directory, path):
                imports[program, module] = None
                files.update(dict.fromkeys(_module_entries(base_directory, posixpath.dirname(path), module)))
    wanted = tuple(name for name in files if name not in given)
    for name in wanted:
        _check_size(base_directory / name, name)
    return ProgramFiles(wanted, tuple(imports))


def _named(words: Sequence[str], base_directory: Path) -> Iterator[str]:
    commands = simple_commands(words if len(words) > 1 else words[0])
    words = [word for command in commands for word in (*command, "")]
    for before, word in zip(("", *words), words, strict=False):
        yield from _existing_path(base_directory, word)
        if word.startswith("-") and "=" in word:
            yield from _existing_path(base_directory, word.partition("=")[2])
        if before == "-m":
            path = word.replace(".", "/")
            yield from (
                found
                for name in (f"{path}.py", f"{path}/__main__.py")
                for found in _existing_path(base_directory, name)
            )


def _existing_path(base_directory: Path, word: str) -> Iterator[str]:
    """Yield the path below `base_directory` that a word names, if it exists."""
    path = posixpath.normpath(word) if word else "."
    try:
        if (
            not path.startswith(("/", "..", "-"))
            and path != "."
            and "#" not in path
            and (base_directory / path).exists()
        ):
            yield path
    except OSError:  # too long for a name, for example
        return


def _imported_modules(base_directory: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that a program imports, and those that modules beside it import, each with the program."""
    directory, waiting, seen = posixpath.dirname(path), [path], set[str]()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        for module in _imports_of(base_directory / here):
            yield path, module
            waiting += [
                f"{found}"
                for found in (posixpath.join(directory, f"{module}.py"),)
                if (base_directory / found).is_file()
            ]


def _imports_of(path: Path) -> list[str]:
    """Return the first part of each imported module's name; nothing of a file that can't be parsed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update((alias.name.partition(".")[0], None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module.partition(".")[0]] = None
    return list(found)


def _module_entries(base_directory: Path, directory: str, module: str) -> Iterator[str]:
    """Yield the entry of `base_directory` that a program in `directory` imports as `module`. A directory
    below `base_directory` is sent whole."""
    if directory:
        return
    if (base_directory / f"{module}.py").is_file():
        yield f"{module}.py"
    elif (base_directory / module).is_dir() and any((base_directory / module).glob("*.py")):
        yield module


def _check_size(path: Path, name: str) -> None:
    size = path.stat().st_size if path.is_file() else archive.size_up_to(MAX_BYTES, path)
    if size > MAX_BYTES:
        advice = f"give data by `--input {name}`, or say `--file {name}` where all of it is to be sent along"
        raise SpecError.at("the command", f"names {name!r}, which is larger than {MAX_BYTES >> 20} MiB: {advice}")
