"""Makes a shell line tell when a part of its last pipeline fails, whose status is that of its last command alone.

bash keeps the statuses of all parts (PIPESTATUS), and a trap looks at them when the line ends. What writes to a reader
that has gone ends by SIGPIPE, or as Python does, and has not failed. Readers that often end early, and that are often
put behind a training to choose some of its lines, are told about and decide nothing (docs/adr/0023).
"""

from __future__ import annotations

import re

READERS = frozenset(
    ("head", "less", "more", "grep", "egrep", "fgrep", "zgrep", "sed", "awk", "gawk", "mawk", "true", ":")
)
"""Commands after which a failed part is only told."""
_DECIDES_ITSELF = re.compile(r"\b(?:pipefail|PIPESTATUS|trap|exit)\b")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_PIPE = re.compile(r"(?<![|>])\|(?!\|)&?")
_TELLS = "a part of the pipeline ended with exit code $_p, and the task with that of its last command"
_FAILS = "a part of the pipeline ended with exit code $_p, and so does the task: set +o pipefail before it ignores that"
_TRAP = (
    'trap \'_p=($? "${{PIPESTATUS[@]}}"); [ $_p = 0 ] && for _p in "${{_p[@]:1}}"; do case $_p in 0|120|141) ;; *)'
    ' echo "[howdah: {text}]" >&2; {then};; esac; done\' EXIT; '
)


def watch_pipelines(line: str) -> str:
    """Return the line for bash with a trap before it, if it has a pipeline and does not decide by itself about the
    statuses of its parts."""
    plain = _QUOTED.sub("_", line)
    parts = _PIPE.split(plain)
    if len(parts) == 1 or _DECIDES_ITSELF.search(plain):
        return line
    last = parts[-1].split()
    is_reader = bool(last) and last[0].rpartition("/")[2] in READERS
    return _TRAP.format(text=_TELLS if is_reader else _FAILS, then="break" if is_reader else "exit $_p") + line
