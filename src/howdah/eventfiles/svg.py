"""The common parts of all SVG charts: style, size, axes, words and numbers.

All text is escaped; a document loads nothing and runs no script.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar
from xml.sax.saxutils import escape

from howdah.errors import InvalidRequest
from howdah.eventfiles.queries import Query
from howdah.spec.values import dataclass

COLOURS = ("#1f77b4", "#e8710a", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#d454a4", "#7f7f7f", "#a0a020", "#17a2b8")
WORDS = {
    "step": "step",
    "time": "time (UTC)",
    "relative": "time since the start",
    "none": "no points yet",
    "more": "and {} more",
    "odd": "NaN or infinite: {}",
    "value": "value",
    "at": "step {}",
    "cell": "at most {} values in one cell",
    "median": "median",
    "between": "{}–{} %",
}
"""The words in charts, in English."""
LEFT, RIGHT, TOP, BOTTOM, ROW = 64.0, 16.0, 30.0, 40.0, 18.0
MAX_SIDE = 4000
# Background, text, lines. No CSS variables, because not every program that draws SVG supports them.
_LIGHT, _DARK = ("#ffffff", "#333333", "#dddddd"), ("#141414", "#d0d0d0", "#3a3a3a")
_FONTS = "'Noto Sans','Noto Sans CJK SC','DejaVu Sans','PingFang SC','Microsoft YaHei',sans-serif"
_MAX_NAME = 60
MAX_VALUE = 1e300
"""The largest value: beyond it the width of a range may be infinite."""
Scale = Callable[[float], float]
T = TypeVar("T")


@dataclass(frozen=True)
class Style:
    """Holds the size, axes, colours and language of a chart."""

    width: int = 720
    height: int = 360
    x: str = "step"
    """The horizontal axis: step, time or relative."""
    log: bool = False
    theme: str = "auto"
    """light, dark or auto (the reader's)."""
    language: str = "en"
    """en or zh."""
    title: str = ""

    @property
    def words(self) -> dict[str, str]:
        """Return the words in charts, in the chart's language."""
        if not self.language.startswith("zh"):
            return WORDS
        from howdah.locale.catalogue import CHART, chinese  # English needs no catalogue

        return {name: chinese(CHART).get(text, text) for name, text in WORDS.items()}

    def across(self, step: int, wall: float, started: float) -> float:
        """Return the position of a step on the horizontal axis, in its unit; `wall` and `started` are epoch seconds."""
        if self.x == "step":
            return float(step)
        return wall - started if self.x == "relative" else wall


@dataclass(frozen=True)
class ChartFrame:
    """Holds the plane between the axes, in pixels."""

    left: float
    right: float
    top: float
    bottom: float


def style(query: Query, theme: str) -> Style:
    """Return the style that a query requests; `theme` is the default theme.

    Raises:
        InvalidRequest: a value of the query is not allowed.
    """

    def choice(name: str, allowed: Sequence[str]) -> str:
        value = query.get(name, [allowed[0]])[-1]
        if value not in allowed:
            raise InvalidRequest(f"{name}={value[:40]}: one of {', '.join(allowed)}")
        return value

    def size(name: str, default: int) -> int:
        value = query.get(name, [str(default)])[-1]
        if not value.isdigit() or not 100 <= int(value[:9]) <= MAX_SIDE:
            raise InvalidRequest(f"{name}={value[:40]}: a whole number from 100 to {MAX_SIDE}")
        return int(value)

    return Style(
        size("width", Style.width),
        size("height", Style.height),
        choice("x", ("step", "time", "relative")),
        choice("scale", ("linear", "log")) == "log",
        choice("theme", (theme, "auto", "light", "dark")),
        query.get("language", ["en"])[-1],
        query.get("title", [""])[-1],
    )


def frame(style: Style, rows: int) -> ChartFrame:
    """Return the plane of a chart whose legend has `rows` rows."""
    return ChartFrame(LEFT, style.width - RIGHT, TOP, max(TOP + 40, style.height - BOTTOM - rows * ROW))


def document_start(style: Style, title: str) -> Iterator[str]:
    """Yield the beginning of a document: size, colours and title."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{style.width}" height="{style.height}" '
        f'viewBox="0 0 {style.width} {style.height}" role="img">'
    )
    colours = _colours(_DARK if style.theme == "dark" else _LIGHT)
    dark = f"@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}" if style.theme == "auto" else ""
    yield f"<title>{_escaped(title, 200)}</title><style>text{{font-size:12px;font-family:{_FONTS}}}{colours}{dark}"
    yield ".c{fill:none;stroke-width:1.5;stroke-linejoin:round}.b{stroke:none;fill-opacity:.18}"
    yield ".t{font-weight:600}</style>"
    yield f'<rect class="p" width="{style.width}" height="{style.height}"/>'
    yield text(LEFT, 19, title, "start", "t", 100)


def _colours(colours: tuple[str, str, str]) -> str:
    background, text, line = colours
    return f".p{{fill:{background}}}text{{fill:{text}}}.g{{stroke:{line}}}"


def vertical_axis(frame: ChartFrame, span: tuple[float, float], log: bool) -> Iterator[str]:
    """Yield grid lines and numbers from the lower to the upper edge."""
    pixel = scale(span, frame.bottom, frame.top, log)
    for value in ticks(*span, 6, log):
        y = pixel(value)
        yield f'<path class="g" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
        yield text(frame.left - 6, y + 4, format_number(value), "end")


def horizontal_axis(frame: ChartFrame, span: tuple[float, float], kind: str, word: str) -> Iterator[str]:
    """Yield marks and numbers below the plane; `kind` is step, time, relative or value, `word` the axis's name."""
    pixel = scale(span, frame.left, frame.right, log=False)
    text_of = {"time": _clock, "relative": _duration}.get(kind, format_number)
    unit = _unit(span[1])[0] if kind == "relative" else 1
    for value in (unit * tick for tick in ticks(span[0] / unit, span[1] / unit, 6, False)):
        x = pixel(value)
        yield f'<path class="g" d="M{x:.1f} {frame.bottom:.1f}v4"/>'
        yield text(x, frame.bottom + 17, text_of(value), "middle")
    yield text(frame.right, frame.bottom + 33, word, "end")


def legend_y(frame: ChartFrame, number: int) -> float:
    """Return the vertical position of the text of a row of the legend."""
    return frame.bottom + BOTTOM + number * ROW + 6


def legend_row(
    frame: ChartFrame, number: int, content: str, colour: str, dashed: str = "", opacity: float = 0.0
) -> Iterator[str]:
    """Yield a row of the legend with a patch of its colour, or with a line if the opacity is 0."""
    y = legend_y(frame, number)
    if opacity:
        yield f'<path fill="{colour}" fill-opacity="{opacity:.2f}" d="M{frame.left:.0f} {y - 9:.0f}h18v10h-18Z"/>'
    else:
        yield f'<path class="c" stroke="{colour}"{dashed} d="M{frame.left:.0f} {y - 4:.0f}h18"/>'
    yield text(frame.left + 24, y, content, "start")


def document_end(has_values: bool, frame: ChartFrame, style: Style) -> Iterator[str]:
    """Yield the end of a document, with a note if the chart has no value."""
    if not has_values:
        yield text((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2, style.words["none"], "middle")
    yield "</svg>"


def between_gaps(items: Iterable[T | None]) -> Iterator[list[T]]:
    """Yield the sections between items that are None."""
    for _, section in groupby(items, lambda item: item is None):
        if found := [item for item in section if item is not None]:
            yield found


def text(x: float, y: float, content: str, anchor: str, style: str = "", max_length: int = 200) -> str:
    """Return a line of text; `anchor` is start, middle or end."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{_escaped(content, max_length)}</text>'


def _escaped(content: str, max_length: int) -> str:
    """Escape text. XML allows no control characters, surrogates, U+FFFE or U+FFFF, not even as references."""
    allowed = re.sub("[\0-\x1f\ud800-\udfff\ufffe-\U0010ffff]", "\ufffd", content[:max_length])
    return escape(allowed, {'"': "&quot;", "'": "&#39;"})


def shorten_name(name: str) -> str:
    """Return a name without its middle if it is too long."""
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME // 2] + "…" + name[-_MAX_NAME // 2 + 1 :]


def value_range(values: Sequence[float], log: bool) -> tuple[float, float]:
    """Return the minimum and maximum, with some room if they are equal; on a logarithmic scale of values above 0."""
    kept = [value for value in values if value > 0] if log else list(values)
    low, high = (max(-MAX_VALUE, min(kept)), min(MAX_VALUE, max(kept))) if kept else (0.0, 1.0)
    if log:
        low, high = max(min(kept, default=0.1), 1e-300), max(max(kept, default=1.0), 1e-299)
        return (low, high) if high > low else (low / 2, high * 2)
    if high > low:
        return low, high
    room = abs(low) / 10 or 1.0
    return low - room, high + room


def scale(span: tuple[float, float], start: float, end: float, log: bool) -> Scale:
    """Return a function from values of `span` to pixels from `start` to `end`; values beyond `span` lie at the edge."""
    low, high = map(math.log10, span) if log else span
    factor = (end - start) / (high - low)

    def pixel(value: float) -> float:
        number = math.log10(max(value, span[0])) if log else min(max(value, low), high)
        return start + (number - low) * factor

    return pixel


def ticks(low: float, high: float, count: int, log: bool) -> list[float]:
    """Return about `count` round numbers from `low` to `high`."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / count))
        powers = [10.0**power for power in range(first, last + 1, every)]
        if len(powers) >= 2:
            return powers
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((power * factor for factor in (1, 2, 5, 10) if power * factor >= raw), power * 10)
    first_number = math.ceil(low / step - 1e-9)
    size = min(3 * count, int((high - first_number * step) / step + 1e-9) + 1)
    return [(first_number + number) * step for number in range(size)]


def format_number(value: float) -> str:
    """Return a number in few characters."""
    size = abs(value)
    if size < 1e-300:
        return "0"
    for limit, unit, name in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if limit <= size < 1e12:
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"


def _clock(value: float) -> str:
    try:
        return time.strftime("%m-%d %H:%M", time.gmtime(value))
    except (OverflowError, ValueError, OSError):
        return format_number(value)


def _unit(seconds: float) -> tuple[int, str]:
    units = ((86400, "d"), (3600, "h"), (60, "min"))
    return next((unit for unit in units if abs(seconds) >= 2 * unit[0]), (1, "s"))


def _duration(seconds: float) -> str:
    size, name = _unit(seconds)
    return f"{seconds / size:.3g} {name}"
