"""Reads from a command, or from a shell's script, which programs it runs with which words.

Nothing is run: a variable counts where the job gives it or the script assigns it once; others stay as they are written.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Union

SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
PARAMETERS = "@"
"""The name among variables of a script's arguments, quoted as words of a shell line; "0" is that of the script."""
_COMMENT = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
_HERE_DOCUMENT = re.compile(r"""(?<!<)<<(?!<)-?[ \t]*['"\\]?(\w+)['"]?""")
_RUNS_DOCUMENT = re.compile(r"(^|[\s/|])(ba|da|z|k)?sh\b(?!\.)|>\s*\S+\.(ba)?sh\b")
"""A here-document is a script if a shell reads it, or if it becomes one."""
_LOOKED_UP = re.compile(r"(?:\$\(|`)(?:which|command -v|type -p)\s+([\w./-]+)\s*[`)]")
_OWN_DIRECTORY = re.compile(
    r"""\$\(\s*(?:cd\s+(?:--\s+|-P\s+)?"?\$\(\s*)?dirname\s+(?:--\s+)?"?(?:\$\(readlink\s+-f\s+"?)?"""
    r"""\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})"?\)?"?\s*\)(?:"?\s*(?:>\S+\s*)?(?:&&|;)\s*pwd(?:\s+-P)?\s*\))?"""
)
"""How scripts name the directory in which they are: `$(cd "$(dirname "$0")" && pwd)`."""
_ASSIGNED = re.compile(
    r"""(?:^|;|&&)[ \t]*(?:(?:export|readonly|local|declare(?:[ ]-\w+)*)[ \t]+)?(\w+)="""
    r"""(?:\(([^()]*)\)|"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;&|()"'`]*))(?=[ \t]*(?:$|;|&&))""",
    re.MULTILINE,
)
_ASSIGNMENT = re.compile(r"(?:^|(?<=[\s;&|(]))(\w+)\+?=")
_ARRAY = re.compile(r'"?\$(?:\{(\w+)\[[@*]\]\}|\{?([@*])\}?)"?')
_SCALAR = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MOVES_PARAMETERS = re.compile(r"(^|[;&|\s])(shift|set[ \t]+--)([;&|\s]|$)")
_DEPTH = 5
"""How often what a variable stands for may have variables itself."""
_MAX_VALUE = 2048
_MAX_LINES = 8
"""Lines within lines that are read, at most."""
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "{", "}", "then", "do", "else", "!", "\n", "if", "elif", "while", "until"}


def simple_commands(
    command: Union[str, Sequence[str]], variables: Optional[Mapping[str, str]] = None, depth: int = _MAX_LINES
) -> Iterator[List[str]]:
    """Yield the words of each program that a command runs, in shell lines also those between `;`, `|` and the like, and
    those of a line that is given to a shell by `-c`, or to `eval`, and of lines in it, to `depth`. `variables` are
    those of the job."""
    for words in [list(command)] if not isinstance(command, str) else _commands_of_line(command, variables or {}):
        yield words
        for line in _lines_given(words) if depth else ():
            yield from simple_commands(line, variables, depth - 1)


def script_of_shell(words: Sequence[str]) -> str:
    """Return the script that the words after a shell's name tell it to run; "" if they give it a line, or none."""
    rest, is_line = _without_options(words)
    return rest[0] if rest and not is_line else ""


def _lines_given(words: Sequence[str]) -> Iterator[str]:
    if words and words[0] == "eval":
        yield " ".join(words[1:])
    for at, word in enumerate(words):
        if posixpath.basename(word) in SHELLS:
            rest, is_line = _without_options(words[at + 1 :])
            if rest and is_line:
                yield rest[0]


def _without_options(words: Sequence[str]) -> tuple[List[str], bool]:
    """Return what follows a shell's options, and whether it is a line (`-c`) and no script."""
    rest, is_line = list(words), False
    while rest and rest[0][:1] in ("-", "+") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option.startswith("--"):
            values = 1 if option in ("--rcfile", "--init-file") else 0
        else:
            is_line = is_line or (option[0] == "-" and "c" in option)
            values = option.count("o") + option.count("O")
        del rest[:values]
    return rest, is_line


def _commands_of_line(line: str, variables: Mapping[str, str]) -> Iterator[List[str]]:
    text = _without_documents(line.replace("\r\n", "\n"))
    text = _COMMENT.sub(lambda found: found[1] or "", text).replace("\\\n", " ")
    text = _LOOKED_UP.sub(lambda found: found[1], text)
    if "0" in variables:
        text = _OWN_DIRECTORY.sub(lambda _: posixpath.dirname(variables["0"]) or ".", text)
    text = _expand(text, variables)
    try:
        yield from list(_split(text))
    except ValueError:  # a quotation without an end, or syntax that shlex does not know
        for each in text.splitlines():
            try:
                yield from list(_split(each))
            except ValueError:
                yield each.split()


def _without_documents(text: str) -> str:
    """Leave out here-documents that are no scripts."""
    lines = text.split("\n")
    ends: Dict[str, List[int]] = {}
    for number in range(len(lines) - 1, -1, -1):
        ends.setdefault(lines[number].strip(" \t"), []).append(number)
    kept: List[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        begin = _HERE_DOCUMENT.search(line)
        after = ends.get(begin[1], []) if begin else []
        while after and after[-1] < number:
            after.pop()
        if begin and after:
            line = f"{line[: begin.start()]} {line[begin.end() :]}"
            kept += [line, *(lines[number : after[-1]] if _RUNS_DOCUMENT.search(line) else ())]
            number = after[-1] + 1
        else:
            kept.append(line)
    return "\n".join(kept)


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """Put the values of variables in their place, as far as they are known."""
    times: Dict[str, int] = {}
    for found in _ASSIGNMENT.finditer(text):
        times[found[1]] = times.get(found[1], 0) + 1
    known = {name: value for name, value in variables.items() if name not in times}
    if _MOVES_PARAMETERS.search(text):
        known = {name: value for name, value in known.items() if name != PARAMETERS and not re.match("[1-9]", name)}
    for found in _ASSIGNED.finditer(text):
        if times.get(found[1]) == 1:
            value = next((each for each in found.groups()[1:] if each is not None), "").replace("\n", " ")
            if found[2] is None:
                value = re.sub(r"""["'\\]""", "", value)
            if len(value) <= _MAX_VALUE and not re.search(r"[`;|&<>]|\$\(", value):
                known[found[1]] = value

    def put(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return known.get(PARAMETERS if name == "*" else name, found[0])

    for _ in range(_DEPTH):
        expanded = _SCALAR.sub(put, _ARRAY.sub(put, text))
        if expanded == text or len(expanded) > 1 << 20:
            break
        text = expanded
    return text


def _split(text: str) -> Iterator[List[str]]:
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: List[str] = []
    for word in lexer:
        if word in _ENDS or (word and not word.strip(";&|()")):
            yield words
            words = []
        else:
            words.append(word)
    yield words
