"""Finds the programs, and their words, that a command or a shell script runs.

Nothing is executed. A variable is replaced if the job sets it or the script assigns it exactly once; others stay as
they are written.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Union

_WRAPPERS = {
    **dict.fromkeys(("env", "nohup", "time", "numactl", "taskset", "srun", "timeout", "nice", "ionice", "chrt"), 0),
    **dict.fromkeys(("exec", "command", "xargs", "strace", "ltrace", "tini", "dumb-init", "gdb", "stdbuf", "sudo"), 0),
    **dict.fromkeys(("setsid", "unbuffer", "uvx", "catchsegv", "valgrind"), 0),
    "flock": 1,
}
"""Programs that run another program given after their options, and the number of words, other than numbers, that they
take before it."""
_WITH_SUBCOMMAND = {
    **dict.fromkeys(
        ("conda", "mamba", "micromamba", "uv", "poetry", "pdm", "pixi", "hatch", "rye", "pipx"), ("run", 0)
    ),
    **dict.fromkeys(("singularity", "apptainer"), ("exec", 1)),
    "nsys": ("profile", 0),
}
"""Programs that run a command after a subcommand."""
_FLAGS = {
    *("--", "--args", "-E", "-l", "--label", "--frozen", "--locked", "--nv", "--rocm", "--cleanenv", "--foreground"),
    *("-", "--no-capture-output", "--live-stream", "--preserve-status", "--wait", "--fork", "--ignore-environment"),
    *("--exclusive", "--unbuffered", "--pty", "--overlap", "--oversubscribe", "--exact", "--contiguous", "--verbose"),
    *("--quiet", "--no-kill", "--preserve-env", "--spread-job", "--use-min-nodes", "--localalloc", "--all", "--active"),
    *("--no-sync", "--isolated", "--offline", "--no-project", "--no-dev", "--no-run-if-empty", "--set-home", "--null"),
    *("--follow-forks", "--non-interactive", "--no-banner", "--fakeroot", "--writable-tmpfs", "--containall"),
}
_FLAG_LETTERS = {
    **{"srun": "EQXZHklsuv", "env": "0iv", "setsid": "cfw", "time": "apqv", "sudo": "EHPSbkns", "strace": "cdfqvwxy"},
    **{"ltrace": "Scfirt", "xargs": "0optrx", "exec": "cl", "command": "pvV", "ionice": "t", "numactl": "l"},
    **{"taskset": "a", "chrt": "abdfiorv", "timeout": "v", "conda": "v", "flock": "noseux", "singularity": "ce"},
    "apptainer": "ce",
}
"""Their options without a value. The word after any other option is its value: `conda run -n deepspeed python`."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d[\d.,:-]*[smhd]?")
_IS_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
PARAMETERS = "@"
"""The name, among the variables, of a script's arguments, quoted as words of a shell line; the name "0" is that of the
script."""
_COMMENT = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
_HERE_DOCUMENT = re.compile(r"""(?<!<)<<(?!<)-?[ \t]*['"\\]?(\w+)['"]?""")
_RUNS_DOCUMENT = re.compile(r"(^|[\s/|])(ba|da|z|k)?sh\b(?!\.)|>\s*\S+\.(ba)?sh\b")
"""Matches lines whose here-document is a script: a shell reads it, or it is written to a script."""
_LOOKED_UP = re.compile(r"(?:\$\(|`)(?:which|command -v|type -p)\s+([\w./-]+)\s*[`)]")
_OWN_DIRECTORY = re.compile(
    r"""\$\(\s*(?:cd\s+(?:--\s+|-P\s+)?"?\$\(\s*)?dirname\s+(?:--\s+)?"?(?:\$\(readlink\s+-f\s+"?)?"""
    r"""\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})"?\)?"?\s*\)(?:"?\s*(?:>\S+\s*)?(?:&&|;)\s*pwd(?:\s+-P)?\s*\))?"""
)
"""The forms in which scripts refer to their own directory: `$(cd "$(dirname "$0")" && pwd)`."""
_ASSIGNED = re.compile(
    r"""(?:^|;|&&)[ \t]*(?:(?:export|readonly|local|declare(?:[ ]-\w+)*)[ \t]+)?(\w+)="""
    r"""(?:\(([^()]*)\)|"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;&|()"'`]*))(?=[ \t]*(?:$|;|&&))""",
    re.MULTILINE,
)
_ASSIGNMENT = re.compile(r"(?:^|(?<=[\s;&|(]))(\w+)\+?=")
_ARRAY = re.compile(r'"?\$(?:\{(\w+)\[[@*]\]\}|\{?([@*])\}?)"?')
_SCALAR = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SET_OTHERWISE = re.compile(
    r"(?<![\w./-])(?:(?:for|select)[ \t]+(\w+)|(?:read|mapfile|readarray|unset)\b([^;&|<>\n]*)"
    r"|printf[ \t]+-v[ \t]*(\w+)|getopts[ \t]+\S+[ \t]+(\w+))"
)
"""Commands that give variables an unknown value."""
_SETS_ANYTHING = re.compile(
    r"""(?:^|[;&|({'"])[ \t]*(?:(?:then|do|else)[ \t]+)?(?:source|\.|eval)[ \t]""", re.MULTILINE
)
_GOES_ON = re.compile(
    r"(?:^|(?<=[\s;&|({]))(?:cd|pushd|source|\.|export|set|mkdir)[ \t][^;&|\n]{0,300}"
    r"(?:&&|\|\|[ \t]*(?:exit|return)\b[ \t]*\d*)",
    re.MULTILINE,
)
"""Commands after which the script goes on in any case, or ends: `cd src || exit`."""
_CONDITION = re.compile(
    r"""\|\||(?:^|[;&|({'"])[ \t]*(?:![ \t]+)?(?:(?:if|case|while|until|for|select|function|\[\[?|test)\s"""
    r"""|[\w-]{1,100}[ \t]*\([ \t]*\)|(?:exit\b|return\b|exec[ \t]+(?![\d&]*[<>]))[^;\n]{0,300}[;\n]\s*\S)""",
    re.MULTILINE,
)
_MOVES_PARAMETERS = re.compile(r"(^|[;&|\s])(shift|set[ \t]+--)([;&|\s]|$)")
_DEPTH = 5
"""The most levels of variables within the values of variables."""
_MAX_VALUE = 2048
_MAX_LINES = 8
"""The most levels of lines within lines that are read."""
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "{", "}", "then", "do", "else", "!", "\n", "if", "elif", "while", "until"}


def simple_commands(
    command: Union[str, Sequence[str]],
    variables: Optional[Mapping[str, str]] = None,
    depth: int = _MAX_LINES,
    is_strict: bool = False,
) -> Iterator[List[str]]:
    """Yield the words of each program that a command runs. In shell lines this includes commands between `;`, `|` and
    the like, lines that are given to a shell by `-c` or to `eval`, and lines in these, down to `depth`.

    `variables` are those of the job. `is_strict` leaves out everything uncertain: a line of a shell that an unknown
    program may run, and the value of a variable that a file which the line reads may change."""
    for words in (
        [list(command)] if not isinstance(command, str) else _commands_of_line(command, variables or {}, is_strict)
    ):
        yield words
        for line in _lines_given(words, is_strict) if depth else ():
            yield from simple_commands(line, variables, depth - 1, is_strict)


def runs_every_line(command: Union[str, Sequence[str]], is_script: bool) -> bool:
    """Return whether every part of a command, or of a script, runs each time: it has no conditions, no loops and no
    functions. The part after `&&` runs each time in a command, which fails otherwise."""
    text = _without_comments(command if isinstance(command, str) else "\n".join(command))
    text = _GOES_ON.sub("", text)
    return not (_CONDITION.search(text) or (is_script and "&&" in text))


def programs(words: Sequence[str]) -> Iterator[int]:
    """Yield the positions of the words of a simple command that are programs: the first word, and the program that it
    is known to run."""
    at = 0
    while at < len(words) and _IS_ASSIGNMENT.fullmatch(words[at]):
        at += 1
    while at < len(words):
        yield at
        name = posixpath.basename(words[at])
        subcommand, skipped = _WITH_SUBCOMMAND.get(name, ("", _WRAPPERS.get(name, -1)))
        if skipped < 0:
            return
        at = _next_word(name, words, at + 1, subcommand)
        if subcommand:
            if words[at : at + 1] != [subcommand]:
                return
            at = _next_word(name, words, at + 1)
        for _ in range(skipped):
            at = _next_word(name, words, at + 1)


def _next_word(program: str, words: Sequence[str], at: int, subcommand: str = "") -> int:
    """Return the position of the first word from `at` on that is no option, no option's value, and no number."""
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("-"):
            is_alone = word in _FLAGS or "=" in word or (word[1] != "-" if len(word) > 2 else False)
            is_alone = is_alone or word[1:] in _FLAG_LETTERS.get(program, "")
            if not is_alone and at < len(words) and not words[at].startswith("-") and words[at] != subcommand:
                at += 1
        elif not (_IS_ASSIGNMENT.fullmatch(word) or _NUMBER.fullmatch(word)):
            return at - 1
    return at


def script_of_shell(words: Sequence[str]) -> str:
    """Return the script that a shell runs when it is called with these words; "" if they contain a line for it, or
    nothing."""
    rest, is_line = _without_options(words)
    return rest[0] if rest and not is_line else ""


def _lines_given(words: Sequence[str], is_strict: bool) -> Iterator[str]:
    if words and words[0] == "eval":
        yield " ".join(words[1:])
    for at in programs(words) if is_strict else range(len(words)):
        if posixpath.basename(words[at]) in SHELLS:
            rest, is_line = _without_options(words[at + 1 :])
            if rest and is_line:
                yield rest[0]


def _without_options(words: Sequence[str]) -> tuple[List[str], bool]:
    """Return the words after a shell's options, and whether the first of them is a line (`-c`), not a script."""
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


def _without_comments(line: str) -> str:
    text = _without_documents(line.replace("\r\n", "\n"))
    return _COMMENT.sub(lambda found: found[1] or "", text).replace("\\\n", " ")


def _commands_of_line(line: str, variables: Mapping[str, str], is_strict: bool) -> Iterator[List[str]]:
    text = _without_comments(line)
    text = _LOOKED_UP.sub(lambda found: found[1], text)
    if "0" in variables:
        text = _OWN_DIRECTORY.sub(lambda _: posixpath.dirname(variables["0"]) or ".", text)
    text = _expand(text, variables, is_strict)
    try:
        yield from list(_split(text))
    except ValueError:  # a quotation without an end, or syntax that shlex does not know
        for each in text.splitlines():
            try:
                yield from list(_split(each))
            except ValueError:
                yield each.split()


def _without_documents(text: str) -> str:
    """Remove here-documents that are no scripts."""
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


def _assignments(text: str) -> Dict[str, int]:
    """Return how often each variable is set. A variable that is set in another way than by `=` counts as set more than
    once."""
    times: Dict[str, int] = {}
    for found in _ASSIGNMENT.finditer(text):
        times[found[1]] = times.get(found[1], 0) + 1
    for found in _SET_OTHERWISE.finditer(text):
        for name in re.findall(r"\w+", " ".join(each or "" for each in found.groups())):
            times[name] = times.get(name, 0) + 2
    return times


def unchanged(variables: Mapping[str, str], command: Union[str, Sequence[str]]) -> Dict[str, str]:
    """Return the variables whose values surely reach the programs of a command, or of a script, unchanged."""
    text = _without_comments(command if isinstance(command, str) else "\n".join(command))
    times = _assignments(text)
    return (
        {} if _SETS_ANYTHING.search(text) else {name: value for name, value in variables.items() if name not in times}
    )


def _expand(text: str, variables: Mapping[str, str], is_strict: bool) -> str:
    """Replace variables by their values, as far as these are known."""
    times = _assignments(text)
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

    if is_strict and _SETS_ANYTHING.search(text):
        known = {name: value for name, value in known.items() if name == PARAMETERS or name.isdigit()}

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
