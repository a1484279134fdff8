"""Makes a shell line report when a part of its last pipeline fails; the shell's own status is that of the last command
alone.

bash keeps the statuses of all parts (PIPESTATUS), and a trap reads them when the line ends. A writer whose reader has
gone ends by SIGPIPE, or as Python does, and has not failed. The task fails only if a reader follows that reads to the
end and passes on what it reads, in a statement without conditions; otherwise the failure is only reported
(docs/adr/0023).
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Tuple

READERS = frozenset(("tee", "cat", "ts"))
"""Commands that read to the end, and whose own status says nothing about what they read."""
_PREFIXES = ("stdbuf", "command", "time")
"""Commands that may stand before the readers, with options."""
_OWN_LAUNCHERS = ("howdah-mpi.py", "howdah-ray.py")
"""Scripts of `frameworks` that run their arguments from the second one on as a command."""
_DECIDES_ITSELF = re.compile(r"(?<![\w-])(?:pipefail|PIPESTATUS|trap|exit)\b")
_CONDITION = re.compile(r"\|\||(?<![\w-])(?:if|while|until|for|case|select)\b|!|\[\[|\(\(|<<|<\(")
_COMPOUND = re.compile(r"[()`]|<<|(?<!\S)[{}](?!\S)|(?<![\w-])(?:if|while|until|for|case|select)\b")
"""Signs that group statements: a condition anywhere in the line may then concern the pipeline."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_COMMENT = re.compile(r"(?<![^\s;&|()])#[^\n]*")
_SUBSHELL = re.compile(r"\s*\([^()]*\)\s*")
_BASH = re.compile(
    r"""\s*(?:exec\s+)?(?:env\s+)?(?:[A-Za-z_]\w*=[^\s'"$`\\]*\s+)*(?:\S*/)?bash\s+-[a-z]*c\s+(?:'([^']*)'|"([^"$`\\]*)")\s*"""
)
_PIPE = re.compile(r"(?<![|>])\|(?!\|)&?")
_TELLS = "a part of the pipeline ended with exit code $_p, and the task with that of its last command"
_FAILS = "a part of the pipeline ended with exit code $_p, and so does the task: set +o pipefail before it ignores that"
# A simple command has a PIPESTATUS, too, of one number.
_TRAP = (
    'trap \'_p=($? "${{PIPESTATUS[@]}}"); [ $_p = 0 ] && [ ${{#_p[@]}} -gt 2 ] && for _p in "${{_p[@]:1}}"; do'
    ' case $_p in 0|120|141) ;; *) echo "[howdah: {text}]" >&2; {then};; esac; done\' EXIT; '
)


def watch_words(words: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return the words of a command; if they run a line by bash, that line is changed as `watch_pipelines` does, also
    if a launcher script of howdah's frameworks comes first."""
    at = 4 if words[:2] == ("python3", "-I") and words[2:3] and words[2] in _OWN_LAUNCHERS else 0
    if len(words) == at + 3 and os.path.basename(words[at]) == "bash" and re.fullmatch("-[a-z]*c", words[at + 1]):
        return (*words[:-1], watch_pipelines(words[-1]))
    return words


def watch_pipelines(line: str) -> str:
    """Return the line for bash with a trap before it, if it has a pipeline and does not itself handle the statuses of
    its parts. If the whole line is one subshell, or a line for another bash, the trap is put in there."""
    if inner := _BASH.fullmatch(line):
        group = 1 if inner[1] is not None else 2
        watched = watch_pipelines(inner[group])
        return line if watched == inner[group] else f"{line[: inner.start(group) - 1]}{shlex.quote(watched)}"
    plain = _COMMENT.sub("", _QUOTED.sub("_", line))
    if _SUBSHELL.fullmatch(plain) and line.strip().startswith("(") and line.strip().endswith(")"):
        return f"({watch_pipelines(line.strip()[1:-1])})"
    parts = _PIPE.split(plain)
    if len(parts) == 1 or _DECIDES_ITSELF.search(plain):
        return line
    last = parts[-1].split()
    while last and (last[0] in _PREFIXES or last[0].startswith("-")):
        last = last[1:]
    joined = re.sub(r"(\|\||&&|\|)\s+", r"\1 ", plain).rstrip("; \t\r\n")
    statement = plain if _COMPOUND.search(plain) else re.split(r"[;\n]", joined)[-1]
    fails = bool(last) and last[0].rpartition("/")[2] in READERS and not _CONDITION.search(statement)
    return _TRAP.format(text=_FAILS if fails else _TELLS, then="exit $_p" if fails else "break") + line
