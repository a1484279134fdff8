"""Finds the files that a command needs, in its words and in the imports of its Python programs, so that a first job
need not name them.

Only files below the current directory are found, and only small ones: data is given by `--input`.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from howdah.errors import SpecError
from howdah.spec.shell_commands import simple_commands
from howdah.spec.values import dataclass
from howdah.staging import archive

MAX_BYTES = 256 << 20
"""The largest file or directory that is sent along only because the command names it."""
FRAMEWORKS = {"torch": "pytorch", "tensorflow": "tensorflow", "jax": "jax", "flax": "jax", "ray": "ray"}
"""The framework for programs that import the module; the first match counts. Jobs with other frameworks name them."""
MAX_FOLLOWED = 500
"""The most Python files whose imports are followed for one program."""


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class ProgramFiles:
    """The files that a command needs."""

    files: tuple[str, ...]
    """Entries for the job's `files`."""
    imports: tuple[tuple[str, str], ...]
    """Pairs of a Python program and a module that it, or a module beside it, imports."""
    is_whole: bool = True
    """Whether the imports of all Python files were followed, and not only those of the first MAX_FOLLOWED."""
    too_large: tuple[str, ...] = ()
    """Files that are imported only by some file of a package, which may never be used, and that are too large to be
    sent unasked."""

    def framework(self, is_single: bool) -> tuple[str, str, str]:
        """Return the framework of the programs, and the program and the import that show it; "" if no import does. In a
        single task Ray starts a cluster by itself."""
        for module, framework in FRAMEWORKS.items():
            if is_single and framework == "ray":
                continue
            for program, imported in self.imports:
                if imported == module:
                    return framework, program, module
        return "", "", ""


def files_of_command(words: Sequence[str], base_directory: Path, given: Collection[str] = ()) -> ProgramFiles:
    """Return the files in `base_directory` that the command `words` needs (a single word is a shell line; no words need
    nothing), without those already `given`.

    Raises:
        SpecError: the command names a file that is too large to be sent along unasked.
    """
    files: dict[str, None] = {}
    imports: dict[tuple[str, str], None] = {}
    is_whole, needed = True, set[str]()
    for path, root in _named(words, base_directory):
        top = path.partition("/")[0]
        files[top] = None
        needed.add(top)
        if path.endswith(".py") and (base_directory / path).is_file():
            found = _ImportedModules(base_directory, root)
            found.follow(path)
            imports.update(dict.fromkeys((path, module) for module in found.of_program))
            files.update(dict.fromkeys(found.entries))
            needed |= found.needed
            is_whole = is_whole and found.is_whole
    wanted = [name for name in files if name not in given]
    large = [name for name in wanted if _is_too_large(base_directory / name)]
    for name in large:
        if name in needed:
            advice = f"give data by `--input {name}`, or say `--file {name}` where all of it is to be sent along"
            raise SpecError.at("the command", f"names {name!r}, which is larger than {MAX_BYTES >> 20} MiB: {advice}")
    sent = tuple(name for name in wanted if name not in large)
    return ProgramFiles(sent, tuple(imports), is_whole, tuple(large))


def _named(words: Sequence[str], base_directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths that a command names, each with the directory where its imports begin if it is a program."""
    commands = simple_commands(words[0] if len(words) == 1 else words)
    for before, word in (pair for command in commands for pair in _pairs_of_words(command, base_directory)):
        named = [word, word.partition("=")[2]] if word.startswith("-") and "=" in word else [word]
        for path in (path for each in named for path in _existing_path(base_directory, each)):
            yield path, posixpath.dirname(path)
        if before == "-m":
            path = word.replace(".", "/")
            yield from (
                (found, "")
                for name in (f"{path}.py", f"{path}/__main__.py")
                for found in _existing_path(base_directory, name)
            )


def _pairs_of_words(command: Sequence[str], base_directory: Path) -> Iterator[tuple[str, str]]:
    """Yield each word of a command with the word before it. A program that has the name of a directory is left out: it
    is looked for on PATH, and no directory is a program."""
    program = next((number for number, word in enumerate(command) if not _ASSIGNMENT.match(word)), -1)
    for number, word in enumerate(command):
        is_program = number == program and "/" not in word
        if not (is_program and os.path.isdir(base_directory / word)):  # noqa: PTH112 - False for what no name can be
            yield command[number - 1] if number else "", word


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


class _ImportedModules:
    """The modules that a program imports from `root`, the directory below `base_directory` where its imports begin."""

    def __init__(self, base_directory: Path, root: str) -> None:
        self._base, self._root = base_directory, root
        self._seen: set[str] = set()
        self.of_program: dict[str, None] = {}
        """The modules that the program, or a module beside it, imports. A module that only some file of a package
        imports may never be used."""
        self.entries: dict[str, None] = {}
        """The entries of `base_directory` that hold imported modules. A directory below it is sent whole."""
        self.needed: set[str] = set()
        """The modules that the program imports, or that a module beside it imports."""
        self.is_whole = True
        """Whether the imports of all these modules were followed."""

    def follow(self, program: str) -> None:
        """Find the modules that a program imports, and the modules that these import, in packages, too."""
        packages = [program.partition("/")[0]] if "/" in program and not self._root else []
        for module in self._imported_by(iter([program])):
            self.of_program[module] = None
            packages += self._packages_of(module)
        self.needed = set(self.entries)
        for package in packages:  # grows
            for module in self._imported_by(_python_files(self._base, package)):
                packages += [each for each in self._packages_of(module) if each not in packages]

    def _imported_by(self, paths: Iterator[str]) -> Iterator[str]:
        """Yield the modules that files import, and the modules that imported modules in `root` import."""
        for path in paths:
            waiting = [path]
            while waiting:
                here = waiting.pop()
                if here in self._seen:
                    continue
                if len(self._seen) >= MAX_FOLLOWED:
                    self.is_whole = False
                    return
                self._seen.add(here)
                for module in _imports_of(self._base / here):
                    yield module
                    beside = posixpath.join(self._root, f"{module}.py")
                    if (self._base / beside).is_file():
                        waiting.append(beside)
                        if not self._root:
                            self.entries[beside] = None

    def _packages_of(self, module: str) -> list[str]:
        """Return the package that a module is; nothing if it is below `root`, which is sent as a whole."""
        if self._root or (self._base / f"{module}.py").is_file() or not any((self._base / module).glob("*.py")):
            return []
        self.entries[module] = None
        return [module]


def _python_files(base_directory: Path, directory: str) -> Iterator[str]:
    """Yield the Python files of a directory below `base_directory` that are sent."""
    for here, directories, names in os.walk(base_directory / directory):
        directories[:] = sorted(each for each in directories if each not in archive.NEVER)
        path = Path(here).relative_to(base_directory).as_posix()
        yield from (posixpath.join(path, name) for name in sorted(names) if name.endswith(".py"))


def _imports_of(path: Path) -> list[str]:
    """Return the first part of each imported module's name; nothing for a file that can't be parsed."""
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


def _is_too_large(path: Path) -> bool:
    return (path.stat().st_size if path.is_file() else archive.size_up_to(MAX_BYTES, path)) > MAX_BYTES
