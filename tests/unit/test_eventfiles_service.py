"""Tests that the event-file service starts at the first request and ends with its parent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import event_files as files
import pytest

import howdah
from howdah.eventfiles.client import Answer, EventFileService
from howdah.eventfiles.directory_cache import EventDirectories
from howdah.eventfiles.oom_priority import PREFER_AS_OOM_VICTIM
from howdah.spec import uris

HOSTILE = '"><script>alert(1)</script>&'
Ask = Callable[[str], Answer]


class Asker:
    """A service and a loop for it."""

    def __init__(self, directory: Path) -> None:
        self.loop, self.service = asyncio.new_event_loop(), EventFileService()
        self.places = [("", uris.of_local(directory))]

    def __call__(self, target: str) -> Answer:
        return self.loop.run_until_complete(self.service.get(target, self.places))

    def json(self, target: str, status: int = 200) -> Any:
        answer = self(target)
        assert (answer.status, answer.content_type) == (status, "application/json"), answer.body
        return json.loads(answer.body, parse_constant=pytest.fail)

    def close(self) -> None:
        self.loop.run_until_complete(self.service.close())
        self.loop.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("board")
    files.put(base / "one", files.curve("loss", range(5000)))
    media = [files.image("i", 3, files.PIXEL), files.audio("a", 4, files.WAV), files.audio("a", 5, b"<html>")]
    files.put(base / "eight", [*files.curve("loss", range(700)), *media])
    odd = [files.scalar("odd", step, {3: float("nan"), 4: float("inf")}.get(step, step)) for step in range(10)]
    no_image = files.image("svg", 1, b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    files.put(base / f"x {HOSTILE.replace('/', '')}", [*odd, *files.curve(HOSTILE, range(5)), no_image])
    return base


@pytest.fixture(scope="module")
def ask(directory: Path) -> Iterator[Asker]:
    asker = Asker(directory)
    yield asker
    asker.close()


def test_runs_and_their_tags(ask: Asker) -> None:
    answer = ask.json("curves/runs")
    assert [run["run"] for run in answer["runs"]] == ["eight", "one", f"x {HOSTILE.replace('/', '')}"]
    assert answer["runs"][0]["tags"] == {
        "scalar": ["loss"],
        "histogram": [],
        "image": ["i"],
        "audio": ["a"],
        "pr_curve": [],
        "text": [],
        "hparams": False,
    }
    assert answer["runs"][1]["steps"] == 4999
    assert answer["complete"] is True
    assert ask.json(f"curves/runs?since={answer['version']}") == {"version": answer["version"], "unchanged": True}


def test_curves_of_several_runs(ask: Asker) -> None:
    both = ask.json("curves/scalars?run=one,eight&tag=loss&points=100")["series"]
    assert [(each["run"], each["count"]) for each in both] == [("one", 5000), ("eight", 700)]
    points = both[0]["points"]
    assert 50 <= len(points) <= 100
    assert points[0] == [0, files.WALL, 1, 1, 1]
    assert points[-1][0] == 4999
    assert all(low <= mean <= high for _, _, low, mean, high in points)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("run=lr%3D1,wd%3D2", ["lr=1,wd=2"]),
        ("run=lr%3D1&run=wd%3D2", ["lr=1", "wd=2"]),
        ("run=lr%3D1,wd%3D2&run=lr%3D1", ["lr=1,wd=2", "lr=1"]),
        ("run=lr%3D1,lr%3D1,wd%3D2,none,wd%3D2", ["lr=1", "lr=1,wd=2", "wd=2"]),
        ("run=wd%3D2,lr%3D1", ["wd=2", "lr=1"]),
        ("run=,", []),
        ("run=none", []),
        ("tag=loss,all", ["lr=1", "lr=1,wd=2", "wd=2"]),
        ("tag=loss&tag=all&run=lr%3D1", []),
        ("run=" + "," * 5000, []),
    ],
)
def test_names_with_commas(query: str, runs: list[str], tmp_path: Path) -> None:
    for name in ("lr=1", "wd=2", "lr=1,wd=2"):
        files.put(tmp_path / name, files.curve("loss,all", range(3)))
    store = EventDirectories()
    store.read_job([("", uris.of_local(tmp_path))]).runs()
    board = store.read_job([("", uris.of_local(tmp_path))])
    assert [one["run"] for one in board.scalars(parse_qs(query))["series"]] == runs


def test_what_is_no_number_is_counted_and_named(ask: Asker) -> None:
    (one,) = ask.json("curves/scalars?tag=odd")["series"]
    assert (one["nan"], one["infinite"]) == (1, 1)
    assert [name for _, _, name in one["odd"]] == ["NaN", "Infinity"]
    assert one["points"][3][2:] == [None, None, None]


def test_nothing_hostile_comes_out_as_markup(ask: Asker) -> None:
    answer = ask(f"curves/scalars.svg?tag={quote(HOSTILE)}&title={quote(HOSTILE)}&language=zh")
    assert (answer.status, answer.content_type) == (200, "image/svg+xml")
    document = ElementTree.fromstring(answer.body)
    assert {each.tag.partition("}")[2] for each in document.iter()} <= {
        "svg", "title", "style", "rect", "text", "path", "circle",
    }  # fmt: skip
    page = ask(f"curves/embed.html?tag={quote(HOSTILE)}&token='\"<b>").body
    assert page.count(b"<script") == 1
    assert b"<b>" not in page
    assert ask("curves/embed.js").content_type.startswith("text/javascript")


def test_only_images_are_served_as_images(ask: Asker) -> None:
    assert ask("curves/image?run=eight&tag=i")[:2] == (200, "image/png")
    assert ask.json("curves/images?run=eight")["images"][0]["step"] == 3
    run = quote(f"x {HOSTILE.replace('/', '')}")
    assert "can't be shown" in ask.json(f"curves/image?run={run}&tag=svg", 404)["error"]


def test_only_audio_is_served_as_audio(ask: Asker) -> None:
    assert [clips["step"] for clips in ask.json("curves/audio?run=eight")["steps"]] == [4, 5]
    assert ask("curves/audio_clip?run=eight&tag=a&step=4") == (200, "audio/wav", files.WAV)
    for target, said in (
        ("run=eight&tag=a", "audio clip 'a' of run 'eight' at step 5 can't be played"),
        ("run=eight&tag=a&step=4&index=1", "audio clip 'a' of run 'eight' has 1 at step 4, no 1"),
        ("run=eight&tag=a&step=6", "no audio clip 'a' of run 'eight' at step 6"),
        ("run=one&tag=a", "run 'one' has no audio 'a'"),
    ):
        assert ask.json(f"curves/audio_clip?{target}", 404)["error"] == said


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
@pytest.mark.parametrize("axis", ["step", "time", "relative"])
def test_charts_are_documents(ask: Asker, theme: str, axis: str) -> None:
    for more in ("tag=loss", "tag=loss&scale=log", "tag=odd&scale=log", "tag=none", "run=one&width=100&height=100"):
        answer = ask(f"curves/scalars.svg?{more}&theme={theme}&x={axis}")
        assert answer.status == 200, answer.body
        assert ElementTree.fromstring(answer.body).tag.endswith("svg")


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("curves/scalars?points=many", 400, "a whole number from 4"),
        ("curves/scalars.svg?width=100000", 400, "from 100 to 4000"),
        ("curves/scalars.svg?theme=pink", 400, "one of"),
        ("curves/histograms?run=one&tag=w", 404, "has no histograms 'w'"),
        ("curves/histograms?run=none&tag=w", 404, "no run 'none'"),
        ("curves/nothing", 404, "nothing answers"),
        ("elsewhere", 404, "nothing answers"),
        ("checkpoints/tensors?uri=file:///etc/passwd", 404, "not below a directory of this job"),
        ("checkpoints/tensors?uri=../../etc/passwd", 404, "not below a directory of this job"),
        ("curves/runs\r\nHost: x", 404, "nothing answers"),
    ],
)
def test_wrong_questions_are_answered_with_a_sentence(ask: Asker, target: str, status: int, text: str) -> None:
    assert text in ask.json(target, status)["error"]


def test_a_chart_as_png(ask: Asker) -> None:
    pytest.importorskip("resvg_py")
    answer = ask("curves/scalars.png?tag=loss&width=320&height=200")
    assert (answer.status, answer.content_type) == (200, "image/png")
    assert answer.body.startswith(b"\x89PNG")
    assert struct.unpack(">II", answer.body[16:24]) == (320, 200)


def test_without_a_library_it_is_said_what_to_install() -> None:
    code = "from howdah.eventfiles.png import png\ntry: png('<svg/>')\nexcept Exception as error: print(repr(error))"
    alone = {"PYTHONPATH": str(Path(howdah.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=alone, capture_output=True, text=True)
    assert done.stdout.startswith("NoLibrary('no PNG here: install howdah[ui]"), done.stderr


def test_a_tag_with_a_million_points(tmp_path: Path) -> None:
    path = files.put(tmp_path, files.curve("loss", range(2)))
    once = files.framed(files.curve("loss", range(20_000, 30_000)))
    for _ in range(100):
        files.append(path, once)
    asker = Asker(tmp_path)
    try:
        (series,) = asker.json("curves/scalars?points=1000")["series"]
        while series["count"] < 1_000_002:
            (series,) = asker.json("curves/scalars?points=1000")["series"]
        assert len(series["points"]) <= 1000
        assert series["points"][0][4] == 1.0
    finally:
        asker.close()


def test_a_killed_service_is_started_again(tmp_path: Path) -> None:
    files.put(tmp_path, files.curve("loss", range(5)))
    asker = Asker(tmp_path)
    try:
        asker.json("curves/runs")
        assert asker.service._process is not None
        first = asker.service._process.pid
        os.kill(first, signal.SIGKILL)
        assert len(asker.json("curves/runs")["runs"]) == 1
        assert asker.service._process.pid != first
    finally:
        asker.close()


def test_an_idle_service_ends(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    command = [sys.executable, "-m", "howdah.eventfiles", "--socket", str(socket), "--idle", "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.wait(60) == 0
    assert not socket.exists()


def test_the_service_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\n"
        "from howdah.eventfiles.client import EventFileService\n"
        "async def main():\n"
        "    service = EventFileService()\n"
        "    await service.get('curves/runs')\n"
        "    print(service._process.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    process = int(done.stdout)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{process}/status").exists() and time.monotonic() < deadline:
        if "State:\tZ" in Path(f"/proc/{process}/status").read_text():
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{process}").exists(), "the service has not ended with its parent"


def test_a_service_that_can_not_start_is_reported_in_a_line() -> None:
    loop = asyncio.new_event_loop()
    service = EventFileService({"PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent"})
    answer = loop.run_until_complete(service.get("curves/runs"))
    loop.run_until_complete(service.close())
    loop.close()
    assert answer.status == 503
    assert "ended with" in json.loads(answer.body)["error"]


def test_a_service_that_becomes_too_large_ends_by_itself(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOWDAH_MEMORY_MIB", "20")  # of which an interpreter alone takes more than half

    async def ended() -> Answer:
        service = EventFileService()
        await service.get("curves/runs", [("", uris.of_local(directory))])
        assert service._process is not None
        await asyncio.wait_for(service._process.wait(), 60)
        monkeypatch.setenv("HOWDAH_MEMORY_MIB", "512")
        try:
            return await service.get("curves/runs", [("", uris.of_local(directory))])
        finally:
            await service.close()

    assert asyncio.run(ended()).status == 200  # another one is started
    assert "above its limit of 10 MiB: exiting" in capfd.readouterr().err


def test_the_kernel_is_told_whom_to_end_first(ask: Asker) -> None:
    ask("curves/runs")
    assert ask.service._process is not None
    told = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (ask.service._process.pid, os.getpid())]
    assert told[0] == max(PREFER_AS_OOM_VICTIM, told[1])
