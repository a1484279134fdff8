"""Tests drawing histograms of real event files, as SVG, PNG and embedded."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import event_files as files
import pytest
from test_eventfiles_service import HOSTILE, Asker

from howdah.eventfiles.proto import event_pb2

np = pytest.importorskip("numpy")
writing = pytest.importorskip("tensorboardX")

ELEMENTS = {"svg", "title", "style", "rect", "text", "path", "circle"}


def unbounded(step: int) -> bytes:
    """A histogram whose last bucket has no right edge, with one value in it."""
    made = files.event(step)
    made.summary.value.add(tag=b"unbounded").histo.CopyFrom(
        event_pb2.Histogram(
            min=0,
            max=float("inf"),
            num=31,
            sum=40,
            sum_squares=50,
            bucket_limit=[1, 2, float("inf")],
            bucket=[10, 20, 1],
        )
    )
    return made.SerializeToString()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("charts")
    writer = writing.SummaryWriter(str(base / "train"))
    for step in range(0, 1000, 10):
        values = np.random.default_rng(step).normal(step / 500, 0.2 + step / 1000, 400)
        writer.add_histogram("weights", values, step)
    writer.close()
    writer = writing.SummaryWriter(str(base / "one"))
    writer.add_histogram("constant", np.array([1.0, 1.0]), 3)
    writer.close()
    hostile = unbounded(1).replace(b"unbounded", HOSTILE.encode()[:9])
    files.put(base / f"x {HOSTILE.replace('/', '')}", [unbounded(0), unbounded(1), hostile])
    return base


@pytest.fixture(scope="module")
def ask(directory: Path) -> Iterator[Asker]:
    asker = Asker(directory)
    yield asker
    asker.close()


def drawn(ask: Asker, target: str) -> ElementTree.Element:
    answer = ask(target)
    assert (answer.status, answer.content_type) == (200, "image/svg+xml"), answer.body
    return ElementTree.fromstring(answer.body)


def texts(document: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in document.iter() if each.tag.endswith("}text")]


def paths(document: ElementTree.Element, mark: str) -> list[str]:
    """The shapes of those paths that have an attribute of this name, in the chart's plane."""
    found = [each for each in document.iter() if each.tag.endswith("}path") and each.get(mark)]
    return [each.attrib["d"] for each in found if not re.search(r"h18", each.attrib["d"])]


def test_a_map_of_all_steps_has_a_column_for_each(ask: Asker) -> None:
    document = drawn(ask, "curves/histograms.svg?run=train&tag=weights&steps=25")
    columns = {left for path in paths(document, "fill") for left in re.findall(r"M(\d+) ", path)}
    assert len(columns) == 25
    assert min(map(int, columns)) == 64
    assert "weights" in texts(document)
    assert any(re.fullmatch(r"train: at most [\d.]+ values in one cell", text) for text in texts(document))


def test_the_map_is_as_deep_as_there_are_values(ask: Asker) -> None:
    """What the cells weigh, by their depth, lies where the program drew its values from: higher and wider with time."""
    document = drawn(ask, "curves/histograms.svg?run=train&tag=weights")
    heights: dict[int, list[int]] = {}
    for path in paths(document, "fill"):
        for left, top, bottom in re.findall(r"M(\d+) (\d+)H\d+V(\d+)H", path):
            heights.setdefault(int(left), []).extend((int(top), int(bottom)))
    columns = sorted(heights)
    first, last = heights[columns[0]], heights[columns[-1]]
    assert min(last) < min(first) < max(first) < max(last)


def test_bars_of_one_step_add_up(ask: Asker) -> None:
    document = drawn(ask, "curves/histograms.svg?run=train&tag=weights&step=990")
    (bars,) = paths(document, "fill")
    heights = [float(low) - float(top) for low, top in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)H", bars)]
    assert "train: step 990" in texts(document)
    bottom = 360 - 40 - 18
    assert max(heights) == pytest.approx(bottom - 30), "the most reach from edge to edge"
    labels = [each for each in document.iter() if each.get("text-anchor") == "end" and float(each.get("x", 0)) < 64]
    value, y = float(labels[-1].text or 0), float(labels[-1].attrib["y"]) - 4
    assert sum(heights) * value / (bottom - y) == pytest.approx(400, rel=0.01), "as many values as were written"
    assert "no histogram 'weights' of run 'train' at step 991" in str(
        ask.json("curves/histograms.svg?run=train&tag=weights&step=991", 404)
    )


def test_a_distribution_has_its_median_between_bands(ask: Asker) -> None:
    document = drawn(ask, "curves/distributions.svg?run=train&tag=weights&steps=20")
    bands = [each for each in document.iter() if each.get("class") == "b"]
    assert len(bands) == 4
    (median,) = (path for path in paths(document, "stroke"))
    middle = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", median)]
    assert len(middle) == 20
    assert middle[0] > middle[-1], "the mean grows from 0 to 2"
    points = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", bands[-1].attrib["d"])]
    assert all(above <= y <= below for above, y, below in zip(points[:20], middle, points[:19:-1], strict=True))
    assert {"train: median", "31–69 %", "0–100 %"} <= set(texts(document))


def test_what_has_no_edge_is_counted_and_leaves_a_gap(ask: Asker) -> None:
    run = quote(f"x {HOSTILE.replace('/', '')}")
    of_map = drawn(ask, f"curves/histograms.svg?run={run}&tag=unbounded")
    assert any("(NaN or infinite: 2)" in text for text in texts(of_map))
    of_percents = drawn(ask, f"curves/distributions.svg?run={run}&tag=unbounded&language=zh")
    assert any("NaN 或无穷：2" in text for text in texts(of_percents))
    assert len([each for each in of_percents.iter() if each.get("class") == "b"]) == 3, (
        "the outermost has no upper edge"
    )


@pytest.mark.parametrize("chart", ["histograms", "distributions"])
def test_a_single_constant_is_seen(ask: Asker, chart: str) -> None:
    document = drawn(ask, f"curves/{chart}.svg?run=one")
    assert paths(document, "fill") + paths(document, "stroke")
    assert "no points yet" not in texts(document)


@pytest.mark.parametrize("chart", ["histograms", "histograms-step", "distributions"])
@pytest.mark.parametrize(
    "more", ["scale=log", "x=time", "x=relative&language=zh", "width=100&height=100", "theme=dark"]
)
def test_charts_are_documents(ask: Asker, chart: str, more: str) -> None:
    name, _, step = chart.partition("-")
    document = drawn(ask, f"curves/{name}.svg?run=train&tag=weights&{more}{'&step=10' if step else ''}")
    numbers = [float(number) for path in paths(document, "fill") for number in re.findall(r"[\d.]+", path)]
    assert all(0 <= number <= 720 for number in numbers)


def test_nothing_hostile_comes_out_as_markup(ask: Asker) -> None:
    run = quote(f"x {HOSTILE.replace('/', '')}")
    for chart in ("histograms", "distributions"):
        document = drawn(ask, f"curves/{chart}.svg?run={run}&tag={quote(HOSTILE[:9])}&title={quote(HOSTILE)}")
        assert {each.tag.partition("}")[2] for each in document.iter()} <= ELEMENTS


@pytest.mark.parametrize("chart", ["histograms", "distributions"])
def test_charts_as_png(ask: Asker, chart: str) -> None:
    pytest.importorskip("resvg_py")
    answer = ask(f"curves/{chart}.png?run=train&tag=weights&width=320&height=200")
    assert (answer.status, answer.content_type) == (200, "image/png")
    assert struct.unpack(">II", answer.body[16:24]) == (320, 200)


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("curves/histograms.svg?run=train", 200, ""),
        ("curves/histograms.svg", 404, "say which run"),
        ("curves/distributions.svg?run=train&tag=none", 404, "has no histograms 'none'"),
        ("curves/distributions.svg?run=train&steps=many", 400, "a whole number from 1"),
        ("curves/histograms.gif", 404, "nothing answers"),
        ("curves/images.svg", 404, "nothing answers"),
        ("curves/embed.html?chart=histograms", 200, ""),
        ("curves/embed.html?chart=../runs", 400, "one of scalars, histograms, distributions"),
        ("curves/embed.js?chart=images", 400, "one of scalars, histograms, distributions"),
    ],
)
def test_questions_and_their_answers(ask: Asker, target: str, status: int, text: str) -> None:
    answer = ask(target)
    assert answer.status == status, answer.body
    assert text in answer.body.decode()
