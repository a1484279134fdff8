"""Tests the page in a browser: a job on YARN by the ResourceManager's proxy, then the same job in the history."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from commandline import CommandLine, Running, eventually

pytest.importorskip("playwright")
from browser import EXECUTED, NASTY, ROOT, Tab, chromium, missing, served
from playwright.sync_api import Browser, Error

from howdah.sandbox import Sandbox

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(900)]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p7QmOgAAAABJRU5ErkJggg=="
# Learns something, and tells of it in a way that would do harm if it were taken for HTML.
PROGRAM = f"""
import os, sys, time
import base64, math, numpy, tensorboardX
from tensorboardX.proto.summary_pb2 import Summary
nasty = {NASTY!r}
os.makedirs("model", exist_ok=True)
directory = sys.argv[1] + "/" + os.environ["HOWDAH_TASK"].replace(":", "-")
writer = tensorboardX.SummaryWriter(directory)
writer.add_hparams({{"rate" + nasty: 0.1}}, {{"loss": 0.5}}, name="tried")
writer.add_text("notes" + nasty, "said " + nasty, 0)
def raw(step, **value):  # the writer's own calls take < and > out of names
    writer.file_writer.add_summary(Summary(value=[Summary.Value(**value)]), step)
raw(0, tag="picture" + nasty, image=Summary.Image(height=1, width=1, encoded_image_string=base64.b64decode({PIXEL!r})))
numpy.savez("model/weights.npz", hidden=numpy.arange(12.0).reshape(3, 4))
for step in range(14_000):  # an hour: until it is cancelled
    writer.add_scalar("loss", 1 / (step + 1), step)
    raw(step, tag="train/" + nasty, simple_value=step % 7)
    raw(step, tag="odd", simple_value=math.nan if step % 3 else math.inf)
    if step % 20 == 0:
        writer.add_histogram("weights", numpy.random.default_rng(step).normal(0, 1 + step / 50, 500), step)
    writer.flush()
    open("model/weights.txt", "w").write(str(step))
    print(f"step {{step}} {{nasty}}", flush=True)
    if step % 10 == 9:
        print("WARNING: slow disk", file=sys.stderr)
    print(f"reporter progress:{{min(1, step / 4000):.4f}}", file=sys.stderr, flush=True)
    time.sleep(0.25)
"""
TABS = {
    "overview": "Master host",
    "tasks": "worker:1",
    "tasks/worker:0": "Attempts",
    "timeline": "allocated",
    "metrics": "Memory",
    "curves": f"train/{NASTY}",
    "curves/histograms": "Over all steps",
    "curves/text": f"said {NASTY}",
    "curves/images": "step 0",
    "curves/hparams": f"rate{NASTY}",
    "logs?task=worker:1": "step ",
    "spec": "As submitted",
    "events": "WorldFormed",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        made = CommandLine(sandbox, tmp_path_factory.mktemp("browser"))
        yield made
        made.end_all()


@pytest.fixture(scope="module")
def running(howdah: CommandLine) -> Running:
    board = howdah.directory / "board"
    output = {"from": "model", "path": f"{howdah.root}/tmp/browser-model"}
    return howdah.run(
        [sys.executable, "-c", PROGRAM, str(board)],
        replicas=2,
        name=f"digits {NASTY}",
        outputs=[output],
        board=f"file://{board}",
        memory="256MiB",
        links={"dashboard": "http://example.org/"},
    )


def _link(howdah: CommandLine, job: str) -> str:
    return str(json.loads(howdah("page", "--json", job).out)["url"])


def _all_screens(tab: Tab, job: str, places: Collection[str] = tuple(TABS)) -> list[str]:
    found = []
    for place in places:
        text = TABS[place]
        tab.go(f"jobs/{job}/{place}")
        tab.sees(text)
        tab.page.wait_for_timeout(500)  # charts are drawn
        found += tab.looked_over(re.sub(r"\W+", "-", place.partition("?")[0]))
    return found


def test_a_job_watched_through_the_proxy(howdah: CommandLine, running: Running, browser: Browser) -> None:
    job = running.job
    eventually(lambda: howdah.status(job)["state"] == "RUNNING", "running")
    link = _link(howdah, job)
    assert "/proxy/" in link
    tab = Tab(browser, link)
    page = tab.page
    assert "act=" not in page.url, "tokens do not stay in the address"
    assert page.locator("h1").inner_text() == f"digits {NASTY}"
    bar = page.get_by_role("progressbar")
    first = int(bar.get_attribute("aria-valuenow") or 0)
    eventually(lambda: int(bar.get_attribute("aria-valuenow") or 0) > first, "progress")
    assert _all_screens(tab, job) == []
    _log_comes(tab, job)
    _saved(tab)
    dark = Tab(browser, link, "dark")
    assert _all_screens(dark, job) == []
    assert page.title().startswith("digits ")
    assert (tab.wrong, dark.wrong) == ([], [])
    assert EXECUTED not in (page.title(), dark.page.title())


def _log_comes(tab: Tab, job: str) -> None:
    tab.go(f"jobs/{job}/logs?task=worker:0&stream=stdout")
    log = tab.page.get_by_role("log")
    log.get_by_text(NASTY).first.wait_for()
    last = _steps(log.inner_text())
    eventually(lambda: _steps(log.inner_text()) > last, "later lines")
    tab.page.get_by_label("Search all tasks' logs").fill("step 7")
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("table", name="Search results").get_by_role("button", name="worker:1").first.click()
    tab.page.locator(".log .found").filter(has_text="step 7").wait_for()


def _steps(text: str) -> int:
    return max(int(step) for step in re.findall(r"step (\d+)", text))


def _saved(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Take snapshot").click()
    tab.page.get_by_role("button", name="Snapshots (1)").click()
    tab.page.get_by_role("dialog").get_by_text("SUCCEEDED").wait_for(timeout=90_000)
    tab.page.keyboard.press("Escape")


def test_without_a_link_that_may_act_the_page_says_how_to_get_one(
    howdah: CommandLine, running: Running, browser: Browser
) -> None:
    look = howdah("page", "--look-only", running.job).out.decode().strip()
    tab = Tab(browser, look, language="zh-CN")
    tab.sees(f"howdah page {running.job}")
    assert tab.page.get_by_role("button", name="制作快照").is_disabled()
    for place, text in (("tasks", "容器"), ("timeline", "已分配"), ("logs?level=error&among=here", "输出流")):
        tab.go(f"jobs/{running.job}/{place}")
        tab.sees(text)
        assert tab.looked_over(f"zh-{place.partition('?')[0]}") == []
    tab.page.get_by_role("button", name="English").click()
    assert tab.page.get_by_role("button", name="Cancel job…").is_disabled()
    tab.go(f"jobs/{running.job}/tasks")
    tab.page.get_by_label("Search tasks").fill("worker:1")
    tab.sees("1 of 2 tasks")
    assert tab.wrong == []


def test_by_keyboard_alone(howdah: CommandLine, running: Running, browser: Browser) -> None:
    tab = Tab(browser, howdah("page", "--look-only", running.job).out.decode().strip())
    tab.reach("tab", "Overview")
    tab.reach("tab", "Tasks", "ArrowRight", maximum=3)
    tab.page.keyboard.press("Enter")
    tab.sees("2 of 2 tasks")
    tab.reach("searchbox", "Search tasks")
    tab.page.keyboard.type("worker:1")
    tab.sees("1 of 2 tasks")
    head = tab.page.get_by_role("columnheader", name="CPU")
    assert head.count() == 0, "a window as narrow as this has no room for it"
    tab.reach("combobox", "Columns")
    tab.page.keyboard.type("CPU")
    tab.page.keyboard.press("Enter")
    head.wait_for()
    tab.page.keyboard.press("Escape")
    tab.reach("button", "Rank")
    tab.page.keyboard.press("Enter")
    tab.page.locator("[aria-sort=descending]").wait_for()
    tab.reach("link", "worker:1")
    tab.page.keyboard.press("Enter")
    tab.sees("Attempts")
    tab.reach("tab", "Tasks", "Shift+Tab")
    tab.reach("tab", "Logs", "ArrowRight", maximum=5)
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("log").get_by_text("step ").first.wait_for()
    assert tab.wrong == []


def test_embedded_in_a_page_of_another_origin(howdah: CommandLine, running: Running, browser: Browser) -> None:
    eventually(lambda: howdah.status(running.job)["state"] == "RUNNING", "running")
    text = (ROOT / "docs" / "embedding.md").read_text()
    (link,) = howdah("page", "--embed", running.job).out.decode().split()
    base, _, token = link.partition("/curves/embed.html?token=")
    parts = re.findall(r"```html\n(.*?)```", text, re.S)
    html = "\n".join(parts).replace("BASE", base).replace("TOKEN", token)
    html = html.replace("train%2Floss", "loss").replace("run=one&run=eight", "run=worker-0&run=worker-1")
    html = html.replace("dense%2Fkernel", "weights").replace("run=one&", "run=worker-0&")
    page = browser.new_page()
    with served(html) as wiki:
        page.goto(wiki)
        drawn = "[...document.images].filter(image => image.naturalWidth > 100).length"

        def pictures() -> list[int]:
            with suppress(Error):  # a frame is on its way to another page
                return [int(frame.evaluate(drawn)) for frame in page.frames]
            return []

        eventually(lambda: pictures() == [2, 1, 1], "script and picture, both frames", 90)
    page.close()


def test_cancelled_on_the_page(howdah: CommandLine, running: Running, browser: Browser) -> None:
    tab = Tab(browser, _link(howdah, running.job))
    tab.page.get_by_role("button", name="Cancel job…").click()
    tab.page.get_by_role("button", name="Cancel the job").click()
    assert running.done().code != 0
    assert eventually(lambda: b"CANCELLED" in howdah("status", running.job).out, "its end")
    assert tab.wrong == []


def test_found_in_the_history(howdah: CommandLine, running: Running, browser: Browser) -> None:
    job = running.job
    if howdah.status(job)["state"] != "CANCELLED":  # alone, this test finds it running
        eventually(lambda: any(task["progress"] for task in howdah.status(job)["tasks"]), "a model")
        assert howdah("save", "--wait", job).code == 0
        howdah("cancel", job)  # what runs has its logs on its own page
    eventually(lambda: b"CANCELLED" in howdah("status", job).out, "its end")
    failed = howdah.run([sys.executable, "-c", f"raise SystemExit({NASTY!r})"], name="fails").done().job
    serving = howdah.start("history", "--port", "0")
    link = next(word for word in serving.says("#token=").split() if "#token=" in word)
    tab = Tab(browser, link)
    tab.sees("fails", limit_ms=300_000)  # its first look may take a while, and it comes a minute before the next
    assert tab.looked_over("history") == []
    tab.page.get_by_label("Name", exact=True).fill("digits <img")
    tab.sees("1–1 of 1 jobs")
    tab.page.get_by_role("link", name=f"digits {NASTY}").click()
    tab.page.locator("h1").get_by_text("digits").wait_for()
    assert _all_screens(tab, job, ("overview", "timeline", "curves", "logs?task=worker:1")) == []
    _checkpoint(tab, job)
    tab.go(f"jobs/{failed}")
    tab.sees(NASTY, "section.failure")
    assert tab.looked_over("failure") == []
    chinese = Tab(browser, link, language="zh-CN")
    chinese.go(f"jobs/{failed}")
    chinese.sees("退出码 1", "section.failure")
    assert chinese.looked_over("zh-failure") == []
    for place, text in (
        ("users", "Wasted GPU hours"),
        (f"compare?jobs={job},{failed}", "Environment and code"),
    ):
        tab.go(place)
        tab.sees(text)
        assert tab.looked_over(place.partition("?")[0]) == []
    assert tab.wrong == []
    assert tab.page.title() != EXECUTED


def _checkpoint(tab: Tab, job: str) -> None:
    """The snapshot that the page took, though `board` names another place."""
    tab.go(f"jobs/{job}/curves/checkpoints")
    tab.page.get_by_role("link", name="weights.npz").first.click()
    tab.sees("hidden")
    assert tab.looked_over("checkpoints") == []


def test_the_page_is_within_its_weight() -> None:
    static = Path(__file__).parents[2] / "src" / "howdah" / "api" / "static"
    assert sum(path.stat().st_size for path in static.rglob("*.gz")) < 1_000_000
