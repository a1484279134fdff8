"""Draws histograms of one tag as SVG: a map of all steps, the bars of one step, or percentiles over the steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from howdah.eventfiles import svg
from howdah.eventfiles.event_batch import Histogram
from howdah.eventfiles.queries import PERCENTS, TagHistograms, percentiles
from howdah.eventfiles.svg import COLOURS, MAX_VALUE, ChartFrame, Style
from howdah.spec.values import dataclass

BINS = 60
_SHADES = 16
"""Cells of one shade are one path: a document of fifty steps has 16 paths instead of 3,000 rectangles."""
_COLOUR = COLOURS[0]
_HALF_WIDTH = 4.0
"""Half the width, in pixels, of a step without neighbours."""
Span = tuple[float, float]
Bucket = tuple[float, float, float]
"""Left edge, right edge, count; all finite."""


def draw_map(histograms: TagHistograms, style: Style) -> str:
    """Draw all steps: steps to the right, values up, deeper colours for more values. A logarithmic scale is that of the
    counts."""
    columns = [_Column.from_histogram(one, style, histograms.started) for one in histograms.steps]
    frame = svg.frame(style, 1)
    span = _value_range([column.buckets for column in columns])
    edges = _edges([column.x for column in columns])
    x_range = (edges[0], edges[-1]) if columns else (0.0, 1.0)
    cells = [_equal_bins(column.buckets, span) for column in columns]
    largest = max((count for counts in cells for count in counts), default=0.0)
    parts = [*svg.document_start(style, style.title or histograms.tag), *svg.vertical_axis(frame, span, log=False)]
    parts += _cells(cells, edges, frame, x_range, _depth(largest, style.log))
    parts += svg.horizontal_axis(frame, x_range, style.x, style.words[style.x])
    note = style.words["cell"].format(f"{largest:.4g}")
    parts += _row(frame, 0, histograms.run, note, sum(column.left_out for column in columns), style, opacity=1)
    return "\n".join([*parts, *svg.document_end(bool(largest), frame, style)])


def draw_bars(histograms: TagHistograms, style: Style) -> str:
    """Draw the last step: values to the right, counts up."""
    last = _Column.from_histogram(histograms.steps[-1], style, histograms.started)
    frame = svg.frame(style, 1)
    span = _value_range([last.buckets])
    counts = _equal_bins(last.buckets, span)
    positive = [count for count in counts if count > 0]
    high = max(positive, default=1.0)
    # The least count has a bar, too.
    tall = (min(positive, default=0.1) / 2, high) if style.log else (0.0, high)
    x, y = svg.scale(span, frame.left, frame.right, log=False), svg.scale(tall, frame.bottom, frame.top, style.log)
    width = (span[1] - span[0]) / BINS
    bars = [
        f"M{x(span[0] + at * width):.1f} {frame.bottom:.1f}V{y(count):.1f}"
        f"H{x(span[0] + (at + 1) * width) - 1:.1f}V{frame.bottom:.1f}Z"
        for at, count in enumerate(counts)
        if count > 0
    ]
    parts = [*svg.document_start(style, style.title or histograms.tag), *svg.vertical_axis(frame, tall, style.log)]
    parts += [f'<path fill="{_COLOUR}" d="{"".join(bars)}"/>'] if bars else []
    parts += svg.horizontal_axis(frame, span, "value", style.words["value"])
    note = style.words["at"].format(histograms.steps[-1].step)
    parts += _row(frame, 0, histograms.run, note, last.left_out, style, opacity=1)
    return "\n".join([*parts, *svg.document_end(bool(bars), frame, style)])


def draw_distribution(histograms: TagHistograms, style: Style) -> str:
    """Draw percentiles over the steps: a line for the median, and bands with as many values on either side of it."""
    steps = [_percentile_row(one, style, histograms.started) for one in histograms.steps]
    pairs = len(PERCENTS) // 2
    frame = svg.frame(style, pairs + 1)
    known = [value for _, values in steps for value in values if value is not None]
    y_range = svg.value_range(known, style.log)
    x_range = svg.value_range([across for across, _ in steps], log=False)
    x = svg.scale(x_range, frame.left, frame.right, log=False)
    y = svg.scale(y_range, frame.bottom, frame.top, style.log)
    parts = [*svg.document_start(style, style.title or histograms.tag), *svg.vertical_axis(frame, y_range, style.log)]
    parts += svg.horizontal_axis(frame, x_range, style.x, style.words[style.x])
    for low in range(pairs + 1):
        high = len(PERCENTS) - 1 - low
        points = [(across, values[low], values[high]) for across, values in steps]
        for section in svg.between_gaps(_drawable_points(points, style.log)):
            drawn = [(x(at), y(bottom), y(top)) for at, bottom, top in section]
            if len(drawn) == 1:  # a shape without width is invisible
                drawn = [(drawn[0][0] + side, *drawn[0][1:]) for side in (-_HALF_WIDTH, _HALF_WIDTH)]
            above = "L".join(f"{at:.1f} {top:.1f}" for at, _, top in drawn)
            below = "L".join(f"{at:.1f} {bottom:.1f}" for at, bottom, _ in reversed(drawn))
            if low == high:
                parts.append(f'<path class="c" stroke="{_COLOUR}" d="M{above}"/>')
            else:
                parts.append(f'<path class="b" fill="{_COLOUR}" d="M{above}L{below}Z"/>')
    unknown = sum(any(value is None for value in values) for _, values in steps)
    parts += _percent_rows(histograms, frame, style, unknown)
    return "\n".join([*parts, *svg.document_end(bool(known), frame, style)])


@dataclass(frozen=True)
class _Column:
    """Holds one step: its position, its finite buckets, and the number of values in buckets with an infinite edge."""

    x: float
    buckets: Sequence[Bucket]
    left_out: float

    @classmethod
    def from_histogram(cls, histogram: Histogram, style: Style, started: float) -> _Column:
        numbers = histogram.buckets
        triples = [(numbers[at], numbers[at + 1], numbers[at + 2]) for at in range(0, len(numbers) - 2, 3)]
        kept = [each for each in triples if all(math.isfinite(number) for number in each) and each[2] > 0]
        left_out = sum(count for left, right, count in triples if not math.isfinite(left + right) and count > 0)
        limited = [(max(left, -MAX_VALUE), min(right, MAX_VALUE), count) for left, right, count in kept]
        return cls(style.across(histogram.step, histogram.wall, started), limited, left_out)


def _value_range(steps: Sequence[Sequence[Bucket]]) -> Span:
    """Return the range of the values of all steps."""
    return svg.value_range(
        [edge for buckets in steps for left, right, _ in buckets for edge in (left, right)], log=False
    )


def _edges(centres: Sequence[float]) -> list[float]:
    """Return the edges of the columns, which lie halfway between neighbours; the outermost columns are symmetric."""
    if len(centres) < 2:
        return [centre + side for centre in centres for side in (-0.5, 0.5)]
    middles = [(left + right) / 2 for left, right in pairwise(centres)]
    return [2 * centres[0] - middles[0], *middles, 2 * centres[-1] - middles[-1]]


def _equal_bins(buckets: Sequence[Bucket], span: Span) -> list[float]:
    """Return the values in bins of equal width, since buckets of event files grow away from zero."""
    low, width = span[0], (span[1] - span[0]) / BINS
    counts = [0.0] * BINS
    for left, right, count in buckets:
        first = max(0, min(BINS - 1, math.floor((left - low) / width)))
        last = max(first, min(BINS - 1, math.ceil((right - low) / width) - 1))
        if first == last:
            counts[first] += count
            continue
        for at in range(first, last + 1):
            overlap = min(right, low + (at + 1) * width) - max(left, low + at * width)
            counts[at] += max(0.0, overlap) / (right - left) * count
    return counts


def _depth(largest: float, log: bool) -> svg.Scale:
    """Return the function from a count above 0 to the depth of its colour, from 0 to 1."""
    if log:
        return lambda count: math.log1p(count) / math.log1p(largest)
    return lambda count: math.sqrt(count / largest)


def _cells(
    columns: Sequence[Sequence[float]], edges: Sequence[float], frame: ChartFrame, x_range: Span, depth: svg.Scale
) -> Iterator[str]:
    """Yield the cells by shade; adjacent cells of one shade in a column become one."""
    x = svg.scale(x_range, frame.left, frame.right, log=False)
    height = (frame.bottom - frame.top) / BINS
    # Cells on whole pixels have neither smoothed edges nor gaps between them.
    rows = [round(frame.bottom - at * height) for at in range(BINS + 1)]
    shades: list[list[str]] = [[] for _ in range(_SHADES + 1)]
    for number, counts in enumerate(columns):
        left, right = round(x(edges[number])), round(x(edges[number + 1]))
        shade_of = [max(1, math.ceil(depth(count) * _SHADES)) if count > 0 else 0 for count in counts]
        start = 0
        for shade, cells in groupby(shade_of):
            end = start + len(list(cells))
            shades[shade].append(f"M{left} {rows[end]}H{right}V{rows[start]}H{left}Z")
            start = end
    for shade, paths in enumerate(shades):
        if shade and paths:
            opacity, path = 0.06 + 0.94 * shade / _SHADES, "".join(paths)
            yield f'<path fill="{_COLOUR}" fill-opacity="{opacity:.2f}" d="{path}"/>'


def _percentile_row(histogram: Histogram, style: Style, started: float) -> tuple[float, list[float | None]]:
    """Return the position of a step, and its percentiles: None for each that is not finite, or for all if the step has
    no values."""
    found: list[float | None] = [value if isinstance(value, float) else None for _, value in percentiles(histogram)]
    return style.across(histogram.step, histogram.wall, started), found or [None] * len(PERCENTS)


def _drawable_points(
    points: Sequence[tuple[float, float | None, float | None]], log: bool
) -> Iterator[tuple[float, float, float] | None]:
    """Yield for each point of a band its position, its lower and its upper edge; None at a gap of the band."""
    for across, low, high in points:
        yield None if low is None or high is None or (log and high <= 0) else (across, low, high)


def _percent_rows(histograms: TagHistograms, frame: ChartFrame, style: Style, unknown: float) -> Iterator[str]:
    """Yield the legend of a distribution: the median, then each band from the inside out."""
    pairs = len(PERCENTS) // 2
    yield from _row(frame, 0, histograms.run, style.words["median"], unknown, style, opacity=0)
    for number in range(1, pairs + 1):
        low = pairs - number
        note = style.words["between"].format(*(f"{percent:.0f}" for percent in (PERCENTS[low], PERCENTS[-1 - low])))
        yield from _row(frame, number, "", note, 0, style, opacity=1 - 0.82 ** (low + 1))


def _row(
    frame: ChartFrame, number: int, run: str, note: str, odd: float, style: Style, opacity: float
) -> Iterator[str]:
    suffix = f" ({style.words['odd'].format(f'{odd:.4g}')})" if odd else ""
    content = (f"{svg.shorten_name(run)}: " if run else "") + note + suffix
    return svg.legend_row(frame, number, content, _COLOUR, opacity=opacity)
