"""Draw curves as SVG: axes, a legend, the range from minimum to maximum shaded, NaNs and infinities at the edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from howdah.eventfiles import svg
from howdah.eventfiles.queries import Curve
from howdah.eventfiles.svg import COLOURS, ChartFrame, Style

_MOST_ROWS = 12


def draw_curves(curves: Sequence[Curve], style: Style) -> str:
    """Return the chart as a document."""
    rows = min(len(curves), _MOST_ROWS) + (len(curves) > _MOST_ROWS)
    frame = svg.frame(style, rows)
    drawn = _Drawing(curves, style, frame)
    tags = list(dict.fromkeys(curve.tag for curve in curves))
    title = style.title or ", ".join(tags[:3]) + (" …" if len(tags) > 3 else "")
    parts = [*svg.opening(style, title), *drawn.axes(), *drawn.curves(), *_legend(curves, frame, style.words)]
    if not any(curve.sample.points for curve in curves):
        parts.append(svg.nothing_yet(frame, style.words))
    return "\n".join([*parts, "</svg>"])


class _Drawing:
    """Draw the plane between the axes."""

    def __init__(self, curves: Sequence[Curve], style: Style, frame: ChartFrame) -> None:
        self._curves, self._style, self._frame = curves, style, frame
        across = [self._across(curve, point) for curve in curves for point in curve.sample.points]
        self._x_range = svg.value_range(across, log=False)
        lows = [point[2] for curve in curves for point in curve.sample.points if point[2] is not None]
        highs = [point[4] for curve in curves for point in curve.sample.points if point[4] is not None]
        self._y_range = svg.value_range([*lows, *highs], style.log)
        self._x = svg.scale(self._x_range, frame.left, frame.right, log=False)
        self._y = svg.scale(self._y_range, frame.bottom, frame.top, style.log)

    def _across(self, curve: Curve, point: Sequence[float | None]) -> float:
        return self._style.across(int(point[0] or 0), float(point[1] or 0), curve.started)

    def axes(self) -> Iterator[str]:
        yield from svg.vertical_axis(self._frame, self._y_range, self._style.log)
        yield from svg.horizontal_axis(self._frame, self._x_range, self._style.x, self._style.words[self._style.x])

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
        """Yield stretches without a gap: x, and y of the minimum, the mean and the maximum."""
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
        """Yield a cross for each NaN and a wedge for each infinity, at its step."""
        frame = self._frame
        for step, wall, name in curve.sample.odd:
            x = self._x(self._across(curve, (step, wall)))
            y = frame.top if name == "Infinity" else frame.bottom
            shape = "m-3 -3l6 6m0 -6l-6 6" if name == "NaN" else "m-4 0h8l-4 -6z" if y == frame.top else "m-4 0h8l-4 6z"
            yield f'<path stroke="{colour}" fill="none" d="M{x:.1f} {y:.1f}{shape}"><title>{name}</title></path>'


def _legend(curves: Sequence[Curve], frame: ChartFrame, words: dict[str, str]) -> Iterator[str]:
    several = len({curve.tag for curve in curves}) > 1
    for number, curve in enumerate(curves[:_MOST_ROWS]):
        y = frame.bottom + svg.BOTTOM + number * svg.ROW + 6
        dashed = ' stroke-dasharray="5 3"' if number // len(COLOURS) % 2 else ""
        colour = COLOURS[number % len(COLOURS)]
        yield f'<path class="c" stroke="{colour}"{dashed} d="M{frame.left:.0f} {y - 4:.0f}h18"/>'
        odd = curve.sample.nan + curve.sample.infinite
        name = f"{curve.run} · {curve.tag}" if several else curve.run
        last = f": {curve.last[2]:.5g}" if curve.last is not None else ""
        suffix = f" ({words['odd'].format(odd)})" if odd else ""
        yield svg.text(frame.left + 24, y, svg.shortened(name) + last + suffix, "start")
    if len(curves) > _MOST_ROWS:
        y = frame.bottom + svg.BOTTOM + _MOST_ROWS * svg.ROW + 6
        yield svg.text(frame.left + 24, y, words["more"].format(len(curves) - _MOST_ROWS), "start")
