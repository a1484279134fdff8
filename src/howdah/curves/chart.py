"""Curves as SVG: axes, a legend, stretches between least and greatest shaded, what is no number marked at the edges.

All text is escaped, nothing is loaded, nothing runs in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.curves.answers import Curve, Query
from howdah.curves.refusals import Wrong

COLOURS = ("#1f77b4", "#e8710a", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#d454a4", "#7f7f7f", "#a0a020", "#17a2b8")
WORDS = {
    "en": {"step": "step", "time": "time (UTC)", "relative": "time since the start", "none": "no points yet",
           "more": "and {} more", "odd": "NaN or infinite: {}"},
    "zh": {"step": "步数", "time": "时间（UTC）", "relative": "开始后的时间", "none": "还没有数据点",
           "more": "另有 {} 条", "odd": "NaN 或无穷：{}"},
}  # fmt: skip
# Paper, ink, lines. Without variables of CSS, which not every drawer of SVG knows.
_LIGHT, _DARK = ("#ffffff", "#333333", "#dddddd"), ("#141414", "#d0d0d0", "#3a3a3a")
_FONTS = "'Noto Sans','Noto Sans CJK SC','DejaVu Sans','PingFang SC','Microsoft YaHei',sans-serif"
_LEFT, _RIGHT, _TOP, _BOTTOM, _ROW = 64.0, 16.0, 30.0, 40.0, 18.0
_MOST_ROWS, _MOST_NAME = 12, 60
LARGEST = 4000
_LARGEST = 1e300
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Style:
    """`x` is step, time or relative; `theme` light, dark or auto (the reader's); `language` en or zh."""

    width: int = 720
    height: int = 360
    x: str = "step"
    log: bool = False
    theme: str = "auto"
    language: str = "en"
    title: str = ""


@dataclass(frozen=True)
class _Frame:
    left: float
    right: float
    top: float
    bottom: float


def style(asked: Query, theme: str) -> Style:
    """As it is asked for in a query; `theme` is the usual one.

    Raises:
        Wrong: there is no such style.
    """

    def choice(name: str, allowed: Sequence[str]) -> str:
        value = asked.get(name, [allowed[0]])[-1]
        if value not in allowed:
            raise Wrong(f"{name}={value[:40]}: one of {', '.join(allowed)}")
        return value

    def size(name: str, usual: int) -> int:
        value = asked.get(name, [str(usual)])[-1]
        if not value.isdigit() or not 100 <= int(value[:9]) <= LARGEST:
            raise Wrong(f"{name}={value[:40]}: a whole number from 100 to {LARGEST}")
        return int(value)

    return Style(
        size("width", Style.width),
        size("height", Style.height),
        choice("x", ("step", "time", "relative")),
        choice("scale", ("linear", "log")) == "log",
        choice("theme", (theme, "auto", "light", "dark")),
        asked.get("language", ["en"])[-1],
        asked.get("title", [""])[-1],
    )


def svg(curves: Sequence[Curve], style: Style) -> str:
    """The chart as a document."""
    words = WORDS["zh" if style.language.startswith("zh") else "en"]
    rows = min(len(curves), _MOST_ROWS) + (len(curves) > _MOST_ROWS)
    frame = _Frame(_LEFT, style.width - _RIGHT, _TOP, max(_TOP + 40, style.height - _BOTTOM - rows * _ROW))
    drawn = _Drawing(curves, style, frame)
    parts = [*_open(style, curves), *drawn.axes(words), *drawn.curves(), *_legend(curves, frame, words)]
    if not any(curve.sample.points for curve in curves):
        middle = (frame.left + frame.right) / 2
        parts.append(_text(middle, (frame.top + frame.bottom) / 2, words["none"], "middle"))
    return "\n".join([*parts, "</svg>"])


def _open(style: Style, curves: Sequence[Curve]) -> Iterator[str]:
    tags = list(dict.fromkeys(curve.tag for curve in curves))
    title = style.title or ", ".join(tags[:3]) + (" …" if len(tags) > 3 else "")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{style.width}" height="{style.height}" '
        f'viewBox="0 0 {style.width} {style.height}" role="img">'
    )
    colours = _colours(_DARK if style.theme == "dark" else _LIGHT)
    dark = f"@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}" if style.theme == "auto" else ""
    yield f"<title>{_safe(title, 200)}</title><style>text{{font-size:12px;font-family:{_FONTS}}}{colours}{dark}"
    yield ".c{fill:none;stroke-width:1.5;stroke-linejoin:round}.b{stroke:none;fill-opacity:.18}"
    yield ".t{font-weight:600}</style>"
    yield f'<rect class="p" width="{style.width}" height="{style.height}"/>'
    yield _text(_LEFT, 19, title, "start", "t", 100)


def _colours(colours: tuple[str, str, str]) -> str:
    paper, ink, line = colours
    return f".p{{fill:{paper}}}text{{fill:{ink}}}.g{{stroke:{line}}}"


class _Drawing:
    """The plane between the axes."""

    def __init__(self, curves: Sequence[Curve], style: Style, frame: _Frame) -> None:
        self._curves, self._style, self._frame = curves, style, frame
        across = [self._across(curve, point) for curve in curves for point in curve.sample.points]
        self._x_range = _range(across, log=False)
        lows = [point[2] for curve in curves for point in curve.sample.points if point[2] is not None]
        highs = [point[4] for curve in curves for point in curve.sample.points if point[4] is not None]
        self._y_range = _range([*lows, *highs], style.log)
        self._x = _scale(self._x_range, frame.left, frame.right, log=False)
        self._y = _scale(self._y_range, frame.bottom, frame.top, style.log)

    def _across(self, curve: Curve, point: Sequence[float | None]) -> float:
        if self._style.x == "step":
            return float(point[0] or 0)
        wall = float(point[1] or 0)
        return wall - curve.started if self._style.x == "relative" else wall

    def axes(self, words: dict[str, str]) -> Iterator[str]:
        frame = self._frame
        for value in ticks(*self._y_range, 6, self._style.log):
            y = self._y(value)
            yield f'<path class="g" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
            yield _text(frame.left - 6, y + 4, label(value), "end")
        named = {"time": _clock, "relative": _duration}.get(self._style.x, label)
        unit = _unit(self._x_range[1])[0] if self._style.x == "relative" else 1
        low, high = self._x_range
        for value in (unit * tick for tick in ticks(low / unit, high / unit, 6, False)):
            x = self._x(value)
            yield f'<path class="g" d="M{x:.1f} {frame.bottom:.1f}v4"/>'
            yield _text(x, frame.bottom + 17, named(value), "middle")
        yield _text(frame.right, frame.bottom + 33, words[self._style.x], "end")

    def curves(self) -> Iterator[str]:
        for number, curve in enumerate(self._curves):
            colour = COLOURS[number % len(COLOURS)]
            dashed = ' stroke-dasharray="5 3"' if number // len(COLOURS) % 2 else ""
            for piece in self._pieces(curve):
                line = "L".join(f"{x:.1f} {y:.1f}" for x, _, y, _ in piece)
                if any(low - high > 0.5 for _, low, _, high in piece):
                    above = [f"{x:.1f} {high:.1f}" for x, _, _, high in piece]
                    below = [f"{x:.1f} {low:.1f}" for x, low, _, _ in reversed(piece)]
                    yield f'<path class="b" fill="{colour}" d="M{"L".join(above + below)}Z"/>'
                yield f'<path class="c" stroke="{colour}"{dashed} d="M{line}"/>'
                if len(piece) == 1:
                    yield f'<circle fill="{colour}" cx="{piece[0][0]:.1f}" cy="{piece[0][2]:.1f}" r="2.5"/>'
            yield from self._odd(curve, colour)

    def _pieces(self, curve: Curve) -> Iterator[list[tuple[float, float, float, float]]]:
        """Stretches without a gap: x, and y of the least, the mean and the greatest."""
        piece: list[tuple[float, float, float, float]] = []
        for point in curve.sample.points:
            low, mean, high = point[2:]
            if low is None or mean is None or high is None or (self._style.log and high <= 0):
                if piece:
                    yield piece
                piece = []
            else:
                piece.append((self._x(self._across(curve, point)), self._y(low), self._y(mean), self._y(high)))
        if piece:
            yield piece

    def _odd(self, curve: Curve, colour: str) -> Iterator[str]:
        """A cross for each NaN, a wedge for each infinity, where it would lie."""
        frame = self._frame
        for step, wall, name in curve.sample.odd:
            x = self._x(self._across(curve, (step, wall)))
            y = frame.top if name == "Infinity" else frame.bottom
            shape = "m-3 -3l6 6m0 -6l-6 6" if name == "NaN" else "m-4 0h8l-4 -6z" if y == frame.top else "m-4 0h8l-4 6z"
            yield f'<path stroke="{colour}" fill="none" d="M{x:.1f} {y:.1f}{shape}"><title>{name}</title></path>'


def _legend(curves: Sequence[Curve], frame: _Frame, words: dict[str, str]) -> Iterator[str]:
    several = len({curve.tag for curve in curves}) > 1
    for number, curve in enumerate(curves[:_MOST_ROWS]):
        y = frame.bottom + _BOTTOM + number * _ROW + 6
        dashed = ' stroke-dasharray="5 3"' if number // len(COLOURS) % 2 else ""
        colour = COLOURS[number % len(COLOURS)]
        yield f'<path class="c" stroke="{colour}"{dashed} d="M{frame.left:.0f} {y - 4:.0f}h18"/>'
        odd = curve.sample.nan + curve.sample.infinite
        name = f"{curve.run} · {curve.tag}" if several else curve.run
        last = f": {curve.last[2]:.5g}" if curve.last is not None else ""
        suffix = f" ({words['odd'].format(odd)})" if odd else ""
        yield _text(frame.left + 24, y, _short(name) + last + suffix, "start")
    if len(curves) > _MOST_ROWS:
        y = frame.bottom + _BOTTOM + _MOST_ROWS * _ROW + 6
        yield _text(frame.left + 24, y, words["more"].format(len(curves) - _MOST_ROWS), "start")


def _text(x: float, y: float, text: str, anchor: str, style: str = "", most: int = 200) -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{_safe(text, most)}</text>'


def _safe(text: str, most: int) -> str:
    """XML has no control characters, surrogates or U+FFFE, U+FFFF, not even as references."""
    kept = (
        each if each >= " " and not "\ud800" <= each <= "\udfff" and each < "\ufffe" else "\ufffd"
        for each in text[:most]
    )
    return escape("".join(kept), {'"': "&quot;", "'": "&#39;"})


def _short(name: str) -> str:
    return name if len(name) <= _MOST_NAME else name[: _MOST_NAME // 2] + "…" + name[-_MOST_NAME // 2 + 1 :]


def _range(values: Sequence[float], log: bool) -> tuple[float, float]:
    """From the least to the greatest, with some room if they are the same; on a logarithmic scale those above 0."""
    kept = [value for value in values if value > 0] if log else list(values)
    low, high = (max(-_LARGEST, min(kept)), min(_LARGEST, max(kept))) if kept else (0.0, 1.0)
    if log:
        low, high = max(min(kept, default=0.1), 1e-300), max(max(kept, default=1.0), 1e-299)
        return (low, high) if high > low else (low / 2, high * 2)
    if high > low:
        return low, high
    room = abs(low) / 10 or 1.0
    return low - room, high + room


def _scale(span: tuple[float, float], start: float, end: float, log: bool) -> Scale:
    low, high = map(math.log10, span) if log else span
    factor = (end - start) / (high - low)

    def place(value: float) -> float:
        number = math.log10(max(value, span[0])) if log else min(max(value, low), high)
        return start + (number - low) * factor

    return place


def ticks(low: float, high: float, most: int, log: bool) -> list[float]:
    """Round numbers from `low` to `high`, about `most` of them."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / most))
        powers = [10.0**power for power in range(first, last + 1, every)]
        if len(powers) >= 2:
            return powers
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((size * factor for factor in (1, 2, 5, 10) if size * factor >= raw), size * 10)
    first_number = math.ceil(low / step - 1e-9)
    count = min(3 * most, int((high - first_number * step) / step + 1e-9) + 1)
    return [(first_number + number) * step for number in range(count)]


def label(value: float) -> str:
    """A number as short as it goes."""
    size = abs(value)
    if size < 1e-300:
        return "0"
    for limit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if limit <= size < 1e12:
            unit = 1e3 if name == "k" else limit
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"


def _clock(value: float) -> str:
    try:
        return time.strftime("%m-%d %H:%M", time.gmtime(value))
    except (OverflowError, ValueError, OSError):
        return label(value)


def _unit(seconds: float) -> tuple[int, str]:
    units = ((86400, "d"), (3600, "h"), (60, "min"))
    return next((unit for unit in units if abs(seconds) >= 2 * unit[0]), (1, "s"))


def _duration(seconds: float) -> str:
    size, name = _unit(seconds)
    return f"{seconds / size:.3g} {name}"
