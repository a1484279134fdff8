"""Draws curves as SVG: axes, a legend, the range from minimum to maximum shaded, NaNs and infinities at the edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from howdah.eventfiles import svg
from howdah.eventfiles.queries import Curve
from howdah.eventfiles.svg import COLOURS, ChartFrame, Style

_MAX_ROWS = 12


def draw_curves(curves: Sequence[Curve], style: Style) -> str:
    """Return the chart as a document."""
    rows = min(len(curves), _MAX_ROWS) + (len(curves) > _MAX_ROWS)
    frame = svg.frame(style, rows)
    drawing = _Drawing(curves, style, frame)
    tags = list(dict.fromkeys(curve.tag for curve in curves))
    title = style.title or ", ".join(tags[:3]) + (" …" if len(tags) > 3 else "")
    parts = [
        *svg.document_start(style, title),
        *drawing.axes(),
        *drawing.curves(),
        *_legend(curves, frame, style.words),
    ]
    return "\n".join([*parts, *svg.document_end(any(curve.sample.points for curve in curves), frame, style)])


class _Drawing:
    """Draws the plane between the axes."""

    def __init__(self, curves: Sequence[Curve], style: Style, frame: ChartFrame) -> None:
        self._curves, self._style, self._frame = curves, style, frame
        across = [self._x_value(curve, point) for curve in curves for point in curve.sample.points]
        self._x_range = svg.value_range(across, log=False)
        lows = [point[2] for curve in curves for point in curve.sample.points if point[2] is not None]
        highs = [point[4] for curve in curves for point in curve.sample.points if point[4] is not None]
        self._y_range = svg.value_range([*lows, *highs], style.log)
        self._x = svg.scale(self._x_range, frame.left, frame.right, log=False)
        self._y = svg.scale(self._y_range, frame.bottom, frame.top, style.log)

    def _x_value(self, curve: Curve, point: Sequence[float | None]) -> float:
        return self._style.across(int(point[0] or 0), float(point[1] or 0), curve.started)

    def axes(self) -> Iterator[str]:
        yield from svg.vertical_axis(self._frame, self._y_range, self._style.log)
        yield from svg.horizontal_axis(self._frame, self._x_range, self._style.x, self._style.words[self._style.x])

    def curves(self) -> Iterator[str]:
        for number, curve in enumerate(self._curves):
            colour, dashed = _line_style(number)
            for section in svg.between_gaps(self._pixels(curve)):
                line = "L".join(f"{x:.1f} {y:.1f}" for x, _, y, _ in section)
                if any(low - high > 0.5 for _, low, _, high in section):
                    above = [f"{x:.1f} {high:.1f}" for x, _, _, high in section]
                    below = [f"{x:.1f} {low:.1f}" for x, low, _, _ in reversed(section)]
                    yield f'<path class="b" fill="{colour}" d="M{"L".join(above + below)}Z"/>'
                yield f'<path class="c" stroke="{colour}"{dashed} d="M{line}"/>'
                if len(section) == 1:
                    yield f'<circle fill="{colour}" cx="{section[0][0]:.1f}" cy="{section[0][2]:.1f}" r="2.5"/>'
            yield from self._non_finite_marks(curve, colour)

    def _pixels(self, curve: Curve) -> Iterator[tuple[float, float, float, float] | None]:
        """Yield for each point x, and y of the minimum, the mean and the maximum; None where the line has a gap."""
        for point in curve.sample.points:
            low, mean, high = point[2:]
            if low is None or mean is None or high is None or (self._style.log and high <= 0):
                yield None
            else:
                yield self._x(self._x_value(curve, point)), self._y(low), self._y(mean), self._y(high)

    def _non_finite_marks(self, curve: Curve, colour: str) -> Iterator[str]:
        """Yield a cross for each NaN and a wedge for each infinity, at its step."""
        for step, wall, name in curve.sample.non_finite:
            x = self._x(self._x_value(curve, (step, wall)))
            y = self._frame.top if name == "Infinity" else self._frame.bottom
            shape = {"NaN": "m-3 -3l6 6m0 -6l-6 6", "Infinity": "m-4 0h8l-4 -6z"}.get(name, "m-4 0h8l-4 6z")
            yield f'<path stroke="{colour}" fill="none" d="M{x:.1f} {y:.1f}{shape}"><title>{name}</title></path>'


def _line_style(number: int) -> tuple[str, str]:
    """Return the colour of a curve, and an attribute that makes every other ten curves dashed."""
    dashed = ' stroke-dasharray="5 3"' if number // len(COLOURS) % 2 else ""
    return COLOURS[number % len(COLOURS)], dashed


def _legend(curves: Sequence[Curve], frame: ChartFrame, words: dict[str, str]) -> Iterator[str]:
    several = len({curve.tag for curve in curves}) > 1
    for number, curve in enumerate(curves[:_MAX_ROWS]):
        colour, dashed = _line_style(number)
        odd = curve.sample.nan + curve.sample.infinite
        name = svg.shorten_name(f"{curve.run} · {curve.tag}" if several else curve.run)
        last = f": {curve.last[2]:.5g}" if curve.last is not None else ""
        note = f" ({words['odd'].format(odd)})" if odd else ""
        yield from svg.legend_row(frame, number, name + last + note, colour, dashed)
    if len(curves) > _MAX_ROWS:
        more = words["more"].format(len(curves) - _MAX_ROWS)
        yield svg.text(frame.left + 24, svg.legend_y(frame, _MAX_ROWS), more, "start")
