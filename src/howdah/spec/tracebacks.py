"""Finds the cause in the last lines of a failed program of Python: the exception that ended it, and the frames of the
user's own code."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

_RANK = re.compile(r"^\[(?:rank)?\d+\]:? ?")  # which torch puts before each line
_BEGIN = re.compile(r"(?:.*[\s|\]])?Traceback \(most recent call last\):\s*")  # a progress bar may precede it
_GROUP_BEGIN = re.compile(r" +\+ Exception Group Traceback ")
_MARGIN = re.compile(r" +[|+](?: |$)")
_RULE = re.compile(r" +\+-[-+]*(?: (?:\d+|\.\.\.) -+)?")
_OF_GROUP = re.compile(r" \(\d+ sub-exceptions?\)$")
_EXCEPTION = re.compile(r"[^\W\d][\w.]*(?:: .*|:)?")
_NAMED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?")
_IGNORED = ("Exception ignored ", "Error in atexit")
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_CHILD_FAILED = re.compile(r"(?:\w+\.)*ChildFailedError:?\s*")
_LAUNCHER_FAILED = re.compile(r"(?:\w+\.)*CalledProcessError: .* returned non-zero exit status \d+\.?")
_OF_TORCHRUN = re.compile(r"[EWIF]\d{4} .*torch/distributed/(?:elastic|run)")
_RANK_OF_TABLE, _CODE_OF_TABLE = re.compile(r"\s+rank\s+: (\d+)"), re.compile(r"\s+exitcode\s+: (-?\d+)")
_SIGNAL_OF_TABLE = re.compile(r"\s+traceback\s+: (Signal .*)")
_LOGGED = re.compile(
    r"\W*(?:\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[EWIF]\d{3,4} |(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b)|.*\d%\|"
)
_LOST_CONNECTION = re.compile(
    r"(?:\w+\.)*(?:Connection(?:Reset|Aborted|Refused)?Error|BrokenPipeError|EOFError|DistNetworkError)\b"
    r"|.*(?:connection (?:was )?(?:closed|reset) by peer|remote process exit|ncclRemoteError|broken pipe|"
    r"socket closed)",
    re.IGNORECASE,
)
_FRAME = re.compile(r'\s+File "([^"]+)", line \d+')
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*)[/\\]|^<")
MAX_LETTERS = 300
MAX_LINES_AFTER, MAX_TEXT_LINES, MAX_LOOSE_LINES = 8, 200, 40
"""The most lines after an exception that libraries print when they end; the most lines of its text; and the most of
these that do not begin with blanks, since they may come from a program that has handled the exception and gone on."""


class _Line(NamedTuple):
    rank: str
    """The mark that torchrun puts before a line of one of its processes, such as `[rank1]:`; "" without one."""
    text: str
    """The rest of the line, without the mark of the rank and without the margin."""
    margin: str
    """The prefix that Python prints before the lines of a group's exceptions."""


class _Traceback(NamedTuple):
    begin: int
    end: int
    """The number of the line with the exception."""
    text: str
    """The exception; of a group, together with the first exception in it."""
    is_ignored: bool


def exception_line(lines: Sequence[str], code: Optional[int] = 1) -> str:
    """Return what `exception_text` returns, cut to 300 letters."""
    return exception_text(lines, code)[:MAX_LETTERS]


def exception_text(lines: Sequence[str], code: Optional[int] = 1) -> str:
    """Return the line with the exception that ended the program, without the frames before it; "" if there is none.

    `code` is the exit status. Python's own is 1; with another status the program may have printed the exception and
    gone on, so only few lines may follow the exception. Lines that came after the cause are left out, unless nothing
    else is known: exceptions that Python ignores while it ends, and a launcher's words about the rank that failed.
    """
    rest, summary = _split_summary(_lines(lines))
    found = _tracebacks(rest)
    if summary:  # of several ranks, some fail because another one has gone
        found = [each for each in found if not is_lost_connection(each.text)] or found
    if not found:
        return _cut_exception(rest) or _failed_rank(summary)
    after = [line.text for line in rest[found[-1].end + 1 :]]
    if summary:
        went_on = any(_SIGNAL_OF_TABLE.match(line.text) for line in _root_cause(summary))
    else:
        went_on = code != 1 or any(_LOGGED.match(line) for line in after)
    loose = sum(line[:1].strip() != "" for line in after)
    is_last = len(after) <= (MAX_LINES_AFTER if went_on else MAX_TEXT_LINES) and loose <= MAX_LOOSE_LINES
    return found[-1].text if is_last else _failed_rank(summary)


def lines_of_cause(lines: Sequence[str]) -> List[str]:
    """Return the lines without those that come after the cause of an end (see `exception_text`), and without the
    prefixes of the lines of a rank or of a group's exceptions."""
    rest, _ = _split_summary(_lines(lines))
    return [line.text for line in rest]


def is_lost_connection(text: str) -> bool:
    """Return whether an exception only says that another program does not answer: it may be a consequence of that
    program's failure."""
    return _LOST_CONNECTION.match(text) is not None


def user_frames(lines: Sequence[str]) -> List[int]:
    """Return the numbers, from 0, of the lines about frames outside of libraries: the line of the place, and the source
    line."""
    found: List[int] = []
    shown = [line.text for line in _lines(lines)]
    for number, line in enumerate(shown):
        frame = _FRAME.match(line)
        if frame is not None and not _LIBRARY.search(frame[1]):
            found.append(number)
            following = shown[number + 1] if number + 1 < len(shown) else ""
            if following.startswith("    ") and not _FRAME.match(following):
                found.append(number + 1)
    return found


def _lines(lines: Iterable[str]) -> List[_Line]:
    found: List[_Line] = []
    in_group: Dict[str, bool] = {}  # by rank
    for line in lines:
        before = _RANK.match(line)
        rank = before[0] if before else ""
        text = line[len(rank) :]
        drawn = _RULE.fullmatch(text) or _MARGIN.match(text)
        begins = _GROUP_BEGIN.match(text) or not found  # a group may have begun above the lines
        in_group[rank] = drawn is not None and bool(begins or in_group.get(rank))
        margin = drawn[0] if drawn is not None and in_group[rank] else ""
        found.append(_Line(rank, text[len(margin) :], margin))
    return found


def _split_summary(lines: List[_Line]) -> Tuple[List[_Line], List[_Line]]:
    """Split off the summary of a launcher. Return the lines of the program itself, without ignored exceptions, and the
    launcher's lines, which only say that the program failed."""
    found = _tracebacks(lines)
    if any(each.is_ignored for each in found) and not all(each.is_ignored for each in found):
        left_out = {n for each in found if each.is_ignored for n in range(each.begin - 1, each.end + 1)}
        lines = [line for number, line in enumerate(lines) if number not in left_out]
        found = _tracebacks(lines)
    if not found:
        return lines, []
    last, before = found[-1], found[-2].end if len(found) > 1 else -MAX_LINES_AFTER
    of_launcher = _LAUNCHER_FAILED.match(last.text) is not None and last.begin - before <= MAX_LINES_AFTER
    if not of_launcher and not _CHILD_FAILED.fullmatch(last.text):
        return lines, []
    rest = [line for line in lines[: last.begin] if not _OF_TORCHRUN.match(line.text)]
    return rest, lines[last.begin :]


def _tracebacks(lines: Sequence[_Line]) -> List[_Traceback]:
    """Return the complete tracebacks in their order. Exceptions that follow from each other count as one, and so does a
    group."""
    found: List[_Traceback] = []
    opened: Dict[str, Tuple[int, bool]] = {}  # by rank: where its traceback begins, and whether it is a whole group's
    groups: Dict[str, int] = {}  # by rank: which of `found` is its last group
    if lines and lines[0].text[:1].isspace():  # a traceback may have begun above the lines
        opened[lines[0].rank] = (-1, False)
    for number, (rank, text, margin) in enumerate(lines):
        if _BEGIN.fullmatch(text):
            opened[rank] = (number, margin.endswith("+ "))
        elif rank in opened and text[:1].strip():
            begin, is_group = opened.pop(rank)
            if not (_EXCEPTION if begin >= 0 else _NAMED).fullmatch(text):
                continue
            if margin and not is_group and rank in groups:
                _add_to_group(found, groups[rank], number, text)
                continue
            before = [line.text for line in lines[max(0, begin - 2) : max(0, begin)] if line.text.strip()][-1:]
            is_ignored = bool(before) and before[0].startswith(_IGNORED)
            if before and before[0] in _CHAINED and found:
                begin, is_ignored = found[-1].begin, found[-1].is_ignored
                found.pop()
            found.append(_Traceback(begin, number, text, is_ignored))
            if is_group:
                groups[rank] = len(found) - 1
    return found


def _add_to_group(found: List[_Traceback], group: int, end: int, text: str) -> None:
    """Add an exception to its group. The group names its first exception that is no group itself."""
    whole = found[group]
    is_first = _OF_GROUP.search(whole.text) is not None and _OF_GROUP.search(text) is None
    found[group] = whole._replace(end=end, text=f"{whole.text}: {text}" if is_first else whole.text)


def _cut_exception(lines: Sequence[_Line]) -> str:
    """Return the last line if it is an exception without a traceback, because none was printed or it is above the
    lines."""
    last = next((line.text for line in reversed(lines) if line.text.strip()), "")
    return last if _NAMED.fullmatch(last) else ""


def _failed_rank(summary: Sequence[_Line]) -> str:
    """Return what torchrun's table says about the rank that failed first; "" if it has no entry for it."""
    if not summary:
        return ""
    launcher = _tracebacks(summary)[-1].text
    rank, code, killed = (
        next((found[1] for found in (sign.match(line.text) for line in _root_cause(summary)) if found), "")
        for sign in (_RANK_OF_TABLE, _CODE_OF_TABLE, _SIGNAL_OF_TABLE)
    )
    if not rank:
        return launcher
    return f"{launcher.rstrip(': ').rpartition('.')[2]}: rank {rank}: {killed or f'exit code {code}'}"


def _root_cause(summary: Sequence[_Line]) -> Sequence[_Line]:
    """Return the lines of torchrun's table about the rank that failed first."""
    begin = next((number for number, line in enumerate(summary) if line.text.startswith("Root Cause")), len(summary))
    return summary[begin:]
