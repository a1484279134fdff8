"""Tests that the page draws the curves, images and texts of real event files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright")
pytest.importorskip("tensorboardX")
from browser import EXECUTED, Tab, missing, open_page, served
from event_program import IMAGES, INFINITE_AT, MINUS_INFINITE_AT, NAN_AT, STEPS, command
from local_jobs import LocalJobs, RunningCommand, eventually
from playwright.sync_api import Browser, Error, Locator, Page, expect

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]

COLOURED = """canvas => {
  // Pixels with a colour of their own, unlike paper, grid and words, by place in the canvas in CSS pixels.
  const {width, height, clientWidth} = canvas, scale = width / clientWidth;
  const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const found = [];
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
    const at = 4 * (y * width + x), [r, g, b, a] = data.slice(at, at + 4);
    if (a > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 60) found.push([x / scale, y / scale, r, g, b]);
  }
  return found;
}"""
PLANE = """place => {
  const over = place.querySelector(".u-over").getBoundingClientRect();
  const canvas = place.querySelector("canvas").getBoundingClientRect();
  return {left: over.left - canvas.left, top: over.top - canvas.top, width: over.width, height: over.height};
}"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalJobs]:
    made = LocalJobs(tmp_path_factory.mktemp("curves"))
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def job(jobs: LocalJobs) -> RunningCommand:
    """It runs, and has written its event files."""
    board = jobs.directory / "board"
    program = command(str(board), jobs.until_told("exit 0"))
    run = jobs.start("run", jobs.job_file(program, name="curves", board=f"file://{board}"))
    run.prints("written", "its event files")
    return run


@pytest.fixture
def tab(job: RunningCommand, browser: Browser) -> Iterator[Tab]:
    made = Tab(browser, job.link)
    yield made
    assert made.wrong == []


def go(tab: Tab, job: RunningCommand, kind: str) -> None:
    tab.go(f"jobs/{job.job}/curves{kind}")


def coloured(canvas: Locator) -> list[list[float]]:
    found: list[list[float]] = canvas.evaluate(COLOURED)
    return found


def test_every_image_of_a_step_is_shown(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/images")
    images = tab.page.locator(".image-list img")
    expect(images).to_have_count(IMAGES)
    shade = """image => {
      const canvas = document.createElement("canvas");
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.getContext("2d").getImageData(3, 3, 1, 1).data[0];
    }"""

    def shades() -> list[int]:
        loaded = images.evaluate_all("all => all.every(image => image.complete && image.naturalWidth === 28)")
        return [int(images.nth(number).evaluate(shade)) for number in range(IMAGES)] if loaded else []

    tab.sees("step 10")
    eventually(lambda: shades() == [50, 90, 130], "each image of the last step")
    assert images.first.bounding_box()["width"] == 4 * 28 + 2, "enlarged, with an edge"  # type: ignore[index]
    tab.page.get_by_role("slider", name="Step").press("ArrowLeft")
    eventually(lambda: shades() == [40, 80, 120], "each image of the first step")
    tab.page.get_by_role("radio", name="1×").locator("..").click()
    eventually(lambda: images.first.bounding_box()["width"] == 28 + 2, "their own size")  # type: ignore[index]
    assert tab.looked_over("curves-images") == []


def test_audio_can_be_heard(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/audio")
    clip = tab.page.get_by_label("tone at step 10")
    heard = """async clip => {
      clip.muted = true;
      await clip.play();
      return clip.duration;
    }"""
    assert clip.evaluate(heard) == pytest.approx(1, abs=0.05)
    assert tab.looked_over("curves-audio") == []


def test_precision_over_recall(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/pr")
    page = tab.page
    canvas = page.get_by_role("img", name="classes: 1").locator("canvas")
    eventually(lambda: coloured(canvas), "the curve")
    tab.sees("step 100")
    assert tab.looked_over("curves-pr") == []
    page.get_by_role("button", name="Expand classes").click()
    enlarged = page.get_by_role("dialog", name="classes")
    enlarged.get_by_role("slider", name="Step").press("Home")
    expect(enlarged.get_by_role("rowheader")).to_have_text("step 0")
    enlarged.locator(".u-over").hover()
    pointed_at = re.compile(r"recall [\d.]+step 0precision [\d.]+, threshold [\d.]+")
    expect(enlarged.locator(".chart-tooltip")).to_have_text(pointed_at)
    assert tab.looked_over("curves-pr-expanded") == []
    enlarged.get_by_role("button", name="Close").click()
    tab.sees("step 0")
    page.get_by_role("button", name="Files of classes").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Download as CSV").click()
    table = download.value.path().read_text().splitlines()
    assert table[0] == "line,recall,value,minimum,maximum,threshold"
    assert table[-1] == "step 0,1,0.5,0.5,0.5,0"  # at a threshold of 0 everything is called positive


def test_histograms_are_enlarged_and_downloaded(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/histograms")
    page = tab.page
    page.get_by_role("button", name="Expand Over all steps").click()
    enlarged = page.get_by_role("dialog", name="Over all steps")
    enlarged.locator("canvas").wait_for()
    assert tab.looked_over("curves-histogram-expanded") == []
    enlarged.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Files of At step 100").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Download as CSV").click()
    head, *rows = download.value.path().read_text().splitlines()
    assert head == "step,left,right,count"
    assert {row.split(",")[0] for row in rows} == {"100"}
    assert sum(float(row.split(",")[3]) for row in rows) == pytest.approx(500)


def test_texts_are_markdown_and_never_html(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/text")
    card = tab.page.locator("section.card").first
    expect(card.locator("h3")).to_have_text("Epoch 100")
    expect(card).to_contain_text("lr: 0.100")
    expect(card.locator("td")).to_have_text(["loss", "100"])
    expect(card.get_by_role("link")).to_have_count(1)
    expect(card.get_by_role("link", name="safe")).to_have_attribute("href", "https://example.org/")
    assert card.locator("img, [onerror], [id]").count() == 0
    tab.sees("<img src=x onerror=")
    assert tab.looked_over("curves-text") == []
    tab.page.get_by_role("switch", name="As written").click()
    tab.sees("# Epoch 100")
    assert tab.page.title() != EXECUTED


def test_a_distribution_is_drawn(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "/histograms?run=.")
    chart = tab.page.get_by_role("img", name="Distribution: 9")
    chart.locator("canvas").wait_for()
    pixels = eventually(lambda: coloured(chart.locator("canvas")), "lines")
    plane: dict[str, float] = chart.evaluate(PLANE)
    inside = [(x, y, colour) for x, y, *colour in pixels]
    assert max(x for x, _, _ in inside) - min(x for x, _, _ in inside) > 0.9 * plane["width"]
    assert len({tuple(colour) for _, _, colour in inside}) >= 9, "a colour for each percentile"
    for name in ("Over all steps", "At step 100"):
        card = tab.page.locator("section.card", has=tab.page.get_by_role("heading", name=name))
        canvas = card.locator("canvas").first
        eventually(partial(canvas.evaluate, f"canvas => ({COLOURED})(canvas).length"), name)
    expect(tab.page.get_by_role("table", name="Distribution").get_by_role("row")).to_have_count(10)


def clusters(columns: set[int]) -> list[float]:
    """The middles of stretches of neighbouring columns."""
    found: list[list[int]] = []
    for column in sorted(columns):
        if found and column - found[-1][-1] <= 2:
            found[-1].append(column)
        else:
            found.append([column])
    return [(each[0] + each[-1]) / 2 for each in found]


def test_every_point_that_a_program_reports_is_drawn_over_its_step(jobs: LocalJobs, browser: Browser) -> None:
    program = jobs.directory / "reports.py"
    program.write_text(
        "import howdah.here as here\n"
        "for step in range(41): here.metric('wave', step % 2, step)\n"
        "print('reported', flush=True)\n"
    )
    command = jobs.until_told("exit 0").replace("echo begun", f"{sys.executable} {program}")
    run = jobs.start("run", jobs.job_file(command, name="wave"))
    run.prints("reported", "that it has reported")
    tab = Tab(browser, run.link)
    go(tab, run, "")
    chart = tab.page.get_by_role("img", name="wave: 1")
    chart.locator("canvas").wait_for()
    plane: dict[str, float] = chart.evaluate(PLANE)

    def count_peaks() -> int:
        pixels = coloured(chart.locator("canvas"))
        highest = min((y for _, y, *_ in pixels), default=0.0)
        return len(clusters({round(x) for x, y, *_ in pixels if y < highest + 0.1 * plane["height"]}))

    eventually(lambda: count_peaks() == 20, "a peak at every second step")
    assert tab.wrong == []


@pytest.mark.parametrize("smoothing", ["", "&smooth=0.6"])
def test_what_is_no_number_is_marked_and_leaves_a_gap(tab: Tab, job: RunningCommand, smoothing: str) -> None:
    go(tab, job, f"?tag=odd{smoothing}")
    chart = tab.page.get_by_role("img", name="odd: 1")
    chart.locator("canvas").wait_for()
    plane: dict[str, float] = chart.evaluate(PLANE)
    pixels = eventually(lambda: coloured(chart.locator("canvas")), "the curve")
    top, bottom = plane["top"], plane["top"] + plane["height"]

    def step(x: float) -> float:
        return (x - plane["left"]) / plane["width"] * (STEPS - 1)

    def steps_of_marks(low: float, high: float) -> list[float]:
        return [step(x) for x in clusters({round(x) for x, y, *_ in pixels if low <= y < high})]

    assert steps_of_marks(top, top + 7) == [pytest.approx(INFINITE_AT, abs=1)]
    assert steps_of_marks(bottom - 7, bottom) == [
        pytest.approx(NAN_AT, abs=1),
        pytest.approx(MINUS_INFINITE_AT, abs=1),
    ]
    line = {round(x) for x, y, *_ in pixels if top + 20 < y < bottom - 20}
    gaps = [at for at in (NAN_AT, INFINITE_AT, MINUS_INFINITE_AT) if not any(abs(step(x) - at) < 0.3 for x in line)]
    assert gaps == [NAN_AT, INFINITE_AT, MINUS_INFINITE_AT]
    tab.sees("(1 NaN) (2 infinite)")


def test_a_part_of_a_chart_is_shown_enlarged_and_downloaded(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "?tag=train/loss")
    page = tab.page
    plane = page.locator(".u-over")
    plane.hover()
    expect(page.locator(".chart-tooltip")).to_contain_text("step 50")
    expect(page.locator(".chart-tooltip")).to_contain_text("0.01961")
    box = plane.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 20, steps=4)
    page.mouse.up()
    reset = page.locator(".chart-head").get_by_role("button", name="Show all")
    reset.wait_for()
    shown = parse_qs(urlsplit(page.evaluate("location.hash.slice(1)")).query)["zoom"][0]
    assert [float(edge) for edge in shown.split(",")] == [pytest.approx(20, abs=2), pytest.approx(40, abs=2)]
    page.get_by_role("button", name="Expand train/loss").click()
    enlarged = page.get_by_role("dialog", name="train/loss")
    enlarged.locator("canvas").wait_for()
    assert tab.looked_over("curves-expanded") == []
    enlarged.get_by_role("button", name="Show all").click()
    expect(reset).to_have_count(0)
    for kind, head in (("CSV", b"line,step,value,minimum,maximum\r\n"), ("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        enlarged.get_by_role("button", name="Files of train/loss").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=f"Download as {kind}").click()
        assert download.value.suggested_filename == f"train-loss.{kind.lower()}"
        assert download.value.path().read_bytes().startswith(head)
    enlarged.get_by_role("button", name="Close").click()
    line = page.get_by_role("button", name="curves", exact=True)
    line.click()
    expect(line).to_have_attribute("aria-pressed", "true")


def test_a_link_to_a_part_from_zero_on_is_drawn_logarithmically(tab: Tab, job: RunningCommand) -> None:
    go(tab, job, "?tag=train/loss&zoom=0,20&logx=1")
    canvas = tab.page.get_by_role("img", name="train/loss: 1").locator("canvas")
    eventually(lambda: coloured(canvas), "the curve")
    assert tab.looked_over("curves-log-axis") == []


def test_checkpoints_and_what_could_not_be_searched(
    tab: Tab, job: RunningCommand, jobs: LocalJobs, browser: Browser
) -> None:
    go(tab, job, "/checkpoints")
    tab.page.get_by_role("link", name="weights-7.npz").click()
    tab.sees("hidden")
    loop = jobs.directory / "loop"
    spoilt = f"rm -rf {loop}; ln -s loop {loop}; " + jobs.until_told("exit 0")
    run = jobs.start("run", jobs.job_file(spoilt, board=f"file://{loop}"))
    run.prints("begun", "its board")
    other = Tab(browser, run.link)
    go(other, run, "/checkpoints")
    other.page.get_by_text("1 locations could not be searched").click()
    other.sees("too many levels of symbolic links")
    assert other.wrong == []


def test_histograms_are_embedded_in_another_page(job: RunningCommand, jobs: LocalJobs, browser: Browser) -> None:
    embed = jobs("page", "--embed", job.job).strip()
    base, _, token = embed.partition("/embed.html?token=")
    asked = f"run=.&tag=weights&token={token}"
    html = (
        f'<iframe src="{base}/embed.html?chart=distributions&{asked}" width="760" height="400"></iframe>'
        f'<iframe src="{base}/embed.html?chart=histograms&step=20&{asked}" width="760" height="400"></iframe>'
        f'<script src="{base}/embed.js?chart=histograms&{asked}"></script>'
        f'<img src="{base}/distributions.svg?{asked}" alt="">'
    )
    pictures = "[...document.images].filter(image => image.naturalWidth === 720).map(image => image.src)"

    def shown(page: Page) -> list[str]:
        found: list[str] = []
        with suppress(Error):  # a frame is on its way to its page
            found = [source for frame in page.frames for source in frame.evaluate(pictures)]
        return [source.partition("?")[0].rpartition("/")[2] for source in found]

    wanted = ["histograms.svg", "distributions.svg", "distributions.svg", "histograms.svg"]
    with served(html) as address:
        page = open_page(browser, address)
        eventually(lambda: sorted(shown(page)) == sorted(wanted), "the script, the picture and both frames")
        page.context.close()
