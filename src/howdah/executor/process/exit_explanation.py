"""Explains the end of a program by its last lines: a program, a file or a module is missing on the node, a program of
Python can't be parsed, or an exception ended it.

The messages are those of bash, dash, busybox, env(1) and CPython, in English and Chinese.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
from dataclasses import replace
from typing import Iterable, Mapping, Optional, Sequence

from howdah.logs.last_lines import LAST_LINES, OutputEnd
from howdah.spec import redaction, tracebacks
from howdah.spec.message import Message, message
from howdah.spec.task import Exit

FILES_REMOVED = message("the node has removed the container's files")
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_SHELLS_OFFSET = 128
"""A shell adds it to the number of the signal that ended a command."""
_PERMANENT = (1, 2, _NOT_EXECUTABLE, _NOT_FOUND)
"""The exit statuses of Python and shells in these cases."""
_SEPARATOR = re.compile(r"\s*[:：]\s*")
_QUOTES = "'\"`‘’“”"
_NO_COMMAND = ("command not found", "not found", "未找到命令")
_NO_FILE = ("no such file or directory", "没有那个文件或目录")
_NO_INTERPRETER = ("required file not found", "bad interpreter")
_CARRIAGE_RETURN = "\\r"  # as shells and env print it
_DENIED = ("permission denied", "权限不够")
_IS_DIRECTORY = ("is a directory", "是一个目录", "是目录")
_NO_PROGRAM = ("exec format error", "cannot execute binary file")
_NO_SCRIPT = re.compile(r"can't open file '(.+)': \[Errno 2\]")
_NO_MODULE = re.compile(
    r"ModuleNotFoundError: No module named '(.+?)'"
    r"|\S*python\S*: (?:No module named ([\w.]+)|Error while finding .*No module named '(.+?)'\))"
)
"""The line as an import prints it, and as `python -m` does."""
_NOT_THE_LAST = re.compile(r"\[howdah: |\S*env: .*-\[v\]S")
"""Matches lines that come after the one that counts: howdah's own, and a hint of env(1)."""
_NOT_PARSED = re.compile(r"(SyntaxError|IndentationError|TabError): ")
_PLACE = re.compile(r'  File "(.+)", line (\d+)')
_NO_NAME = re.compile(r"ImportError: cannot import name ")
_WRONG_ARGUMENT = re.compile(
    r"\S+: error: (?:the following arguments are required|unrecognized arguments|ambiguous option|expected "
    r"|argument [^:]+: (?:expected|invalid (?:choice|int value|float value)|not allowed|ignored))"
)
"""Errors of argparse that depend on the command line alone. A function of the program may find another value invalid
because of something that is there at the next try."""
_SHELL_SYNTAX = re.compile(
    r"[:：] ?(?:line |行 ?)?\d{1,9}[:：] ?(?:[Ss]yntax error|语法错误)|行 ?\d{1,9}[:：].{0,80}附近有语法错误"
)
_SHELL_QUOTES = re.compile(r"[:：] ?(?:line |行 ?)\d{1,9}[:：] ?`.*'$")
"""The form in which bash repeats the line that it could not parse."""


def are_files_removed(container: Mapping[str, str], directory: str) -> bool:
    """Return whether the node has removed the files of a container with this environment while its programs still run.

    A node's agent that keeps no state does this when it restarts: it renames the directory before it deletes files.
    """
    return "HOWDAH_CONTAINER" in container and not os.path.isdir(directory)


def explain(exit: Exit, directory: str, secrets: Iterable[str] = (), end: Optional[OutputEnd] = None) -> Exit:
    """Add to `exit` what was missing and what to do, or the exception, if the `end` of its output says so (without
    `end`, its lines); otherwise add the last line. `directory` was the working directory, and `secrets` are values that
    must not be shown. If the program was stopped, add the exception that it had printed before.

    The end is permanent only if its very last line says what is missing: a program may go on after such a line.
    """
    if exit.ok or exit.cause not in ("exit", "stopped"):
        return exit
    end = end or OutputEnd(exit.lines)
    lines = [line for line in tracebacks.lines_of_cause(end.lines) if not _NOT_THE_LAST.match(line)]
    exception = _told(tracebacks.exception_text(end.lines, exit.code), secrets)
    if exit.cause == "stopped" and exception:
        detail = message("{reason}; before, it had printed {exception}", reason=exit, exception=exception)
        return replace(exit, detail=detail, exception=exception)
    if exit.cause == "stopped" or exit.detail:
        return exit
    found = _of_python(lines, directory)
    if found is None and exit.code in (_NOT_EXECUTABLE, _NOT_FOUND):
        found = next(filter(None, (_of_shell(line, directory) for line in reversed(lines[-LAST_LINES:]))), None)
    is_last = exit.code in _PERMANENT and _says_last(lines, directory)
    problem = _told(_not_as_written(lines) if is_last else "", secrets)
    said = found or problem or exception or _killed_in_shell(exit.code) or _last_words(lines, end, secrets)
    if said is None:
        return exit
    detail = message("exit code {code}: {reason}", code=exit.code, reason=said)
    permanent = is_last and (found is not None or bool(problem))
    return replace(exit, detail=detail, permanent=permanent, exception=exception)


def killed_by(number: int) -> Message:
    """Name the signal that ended a program."""
    try:
        return message("killed by {signal}", signal=f"{signal.Signals(number).name} ({number})")
    except ValueError:
        return message("killed by signal {number}", number=number)


def _killed_in_shell(code: Optional[int]) -> Optional[Message]:
    """Explain the exit code of a shell whose last command, or a part of whose pipeline, was ended by a signal."""
    number = (code or 0) - _SHELLS_OFFSET
    if number not in list(signal.Signals):
        return None
    return message("in a shell that means {how}", how=killed_by(number))


def _says_last(lines: Sequence[str], directory: str) -> bool:
    """Return whether the last line says what is missing."""
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    known = _NO_MODULE.match(last) or _NOT_PARSED.match(last) or _NO_SCRIPT.search(last)
    return bool(known or _of_shell(last, directory) or _not_as_written(lines))


def _not_as_written(lines: Sequence[str]) -> str:
    """Return the line that says that a shell can't parse its commands, that argparse can't parse its arguments, or that
    a module lacks a name, if the lines end with it; "" if they do not."""
    last = [line.strip() for line in lines if line.strip()][-2:]
    if len(last) == 2 and _SHELL_QUOTES.search(last[1]):
        last.pop()
    said = last[-1] if last else ""
    return said if _NO_NAME.match(said) or _WRONG_ARGUMENT.match(said) or _SHELL_SYNTAX.search(said) else ""


def _told(text: str, secrets: Iterable[str]) -> str:
    """Return a line of a program as users see it: shortened, and without words that look like a secret."""
    said = redaction.text(text, secrets)
    return said if len(said) <= tracebacks.MAX_LETTERS else f"{said[: tracebacks.MAX_LETTERS]}…"


def _last_words(lines: Sequence[str], end: OutputEnd, secrets: Iterable[str]) -> Optional[Message]:
    """Return the last line of stderr that has a word, and claim nothing else about it."""
    said = next((line.strip() for line in reversed(lines) if any(map(str.isalpha, line))), "")
    return message("it printed last: {line}", line=_told(said, secrets)) if said and end.is_stderr else None


def not_started(argv: Sequence[str], variables: Mapping[str, str], directory: str, error: OSError) -> Exit:
    """Return the exit of a program that could not be executed because of the kernel's `error`."""
    missing = isinstance(error, FileNotFoundError) or error.errno == errno.ENOEXEC
    permanent = missing and error.filename == argv[0]
    return Exit("start", detail=why_not_started(argv, variables, directory, error), permanent=permanent)


def why_not_started(argv: Sequence[str], variables: Mapping[str, str], directory: str, error: OSError) -> Message:
    """Explain why `argv` could not be executed, by the kernel's `error`."""
    name = argv[0]
    if isinstance(error, PermissionError):
        return _explain_not_executable(name)
    if error.errno == errno.ENOEXEC:
        return _no_program(name)
    if not isinstance(error, FileNotFoundError):
        return message("{command} cannot be run: {reason}", command=repr(name), reason=error.strerror or error)
    if "/" not in name:
        path = variables.get("PATH", os.defpath)
        return message("{problem}; PATH is {path}", problem=_no_command(name), path=path)
    is_there = os.path.exists(os.path.join(directory, name))
    return _no_interpreter(name, directory) if is_there else _no_file(name, directory)


def _of_python(lines: Sequence[str], directory: str) -> Optional[Message]:
    last = next((line for line in reversed(lines) if line.strip()), "")
    script, module = _NO_SCRIPT.search(last), _NO_MODULE.match(last.strip())
    if script is not None:
        return _no_file(script[1], directory)
    if module is not None:
        return _no_module(module[1] or module[2] or module[3])
    return _not_parsed(last, lines, directory) if _NOT_PARSED.match(last) else None


def _not_parsed(error: str, lines: Sequence[str], directory: str) -> Optional[Message]:
    """Explain Python's refusal of a file; Python names the file and the line before it."""
    place = next((found for found in map(_PLACE.match, reversed(lines)) if found), None)
    if place is None or not os.path.isfile(os.path.join(directory, place[1])):  # what `eval` was given, for example
        return None
    inside = os.path.relpath(place[1], directory)
    file = place[1] if inside.startswith(os.pardir) else inside
    return message("{file}, line {line}: {error}", file=file, line=place[2], error=error.strip())


def _of_shell(line: str, directory: str) -> Optional[Message]:
    *before, problem = (part.strip(_QUOTES) for part in _SEPARATOR.split(line.strip().rstrip(".")))
    problem = problem.lower()
    if not before or not before[-1]:
        return None
    if problem in _NO_FILE and before[-1].lower() in _NO_INTERPRETER and len(before) > 2:
        return _no_interpreter(before[-3], directory)
    name = before[-2] if before[-1].lower().startswith("cannot execute") and len(before) > 1 else before[-1]
    if problem in _NO_INTERPRETER:
        return _no_interpreter(name, directory)
    if name.endswith(_CARRIAGE_RETURN):
        return _windows_lines()
    if problem in _NO_COMMAND or (problem in _NO_FILE and os.path.basename(before[0]) == "env"):
        return _no_file(name, directory) if "/" in name else _no_command(name)
    if problem in _NO_FILE:
        return _no_file(name, directory)
    if problem in _IS_DIRECTORY:
        return message("{name} is a directory, which cannot be executed", name=repr(name))
    if problem in _DENIED:
        return _explain_not_executable(name)
    return _no_program(name) if problem in _NO_PROGRAM else None


def _no_command(name: str) -> Message:
    template = "{name} is not found on PATH: name an environment that has it (environment), or write its path"
    return message(template, name=repr(name))


def _no_file(name: str, directory: str) -> Message:
    inside = os.path.relpath(os.path.join(directory, name), directory)
    if inside.startswith(os.pardir):
        template = "this node has no {name}: add it to `files`, or name an environment that has it (environment)"
        return message(template, name=repr(name))
    return message("{name} is not in the working directory: add it to `files`", name=repr(inside))


def _no_module(name: str) -> Message:
    template = "Python has no module {name} here: name an environment that has it (environment), or add it to `files`"
    return message(template, name=repr(name))


def _windows_lines() -> Message:
    return message("a script has Windows line ends (CRLF): remove them with sed -i 's/\\r$//' FILE")


def _no_interpreter(name: str, directory: str) -> Message:
    with contextlib.suppress(OSError), open(os.path.join(directory, name), "rb") as file:
        if file.readline(256).endswith(b"\r\n"):
            return _windows_lines()
    template = "the interpreter that the first line of {name} names is not there: change it, or write it in the command"
    return message(template, name=repr(name))


def _explain_not_executable(name: str) -> Message:
    template = "{name} may not be executed: write its interpreter before it, or make it executable (chmod +x)"
    return message(template, name=repr(name))


def _no_program(name: str) -> Message:
    template = (
        "{name} is no program for this node: it was made for another system, or lacks a first line like #!/bin/sh"
    )
    return message(template, name=repr(name))
