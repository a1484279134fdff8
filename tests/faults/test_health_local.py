"""Tests what the master of a running local job reports: resource usage and logs of its tasks."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from local_jobs import LIMIT_S, eventually
from prometheus_client.parser import text_string_to_metric_families
from test_local import Local, executor_of, local

from howdah.logs.query import LogQuery
from howdah.logs.search import search_archive
from howdah.wire import auth

__all__ = ["local"]
# Its first lines are each in the log before the next is printed: of what is read together nobody knows what came first.
PROGRAM = """
import os, sys, time
said = {"stdout": 0, "stderr": 0}
def say(name, text):
    said[name] += getattr(sys, name).write(text + "\\n")
    getattr(sys, name).flush()
    while i <= 10 and os.path.getsize("../" + name) < said[name]:
        time.sleep(0.001)
for i in range(100000):
    say("stdout", f"step {i} of {os.environ['HOWDAH_TASK']}")
    if i % 10 == 0:
        say("stderr", f"ERROR {i} <b>of</b> {os.environ['HOWDAH_TASK']}")
        say("stderr", f"reporter progress:{i / 100000}")
        with open("scratch", "wb") as file:
            file.write(os.urandom(1 << 20)), file.flush(), os.fsync(file.fileno())
    time.sleep(0.02)
"""


class Page:
    """The API of a job's page."""

    def __init__(self, local: Local, job: str) -> None:
        local.until_running(job)
        self.job, key = job, bytes.fromhex((local.home / "jobs" / job / "key").read_text())
        self.base, self.token = local.report(job).master, auth.view_token(key)

    def bytes(self, path: str, **query: object) -> bytes:
        text = urllib.parse.urlencode({**query, "token": self.token})
        request = urllib.request.Request(f"{self.base}/{path}?{text}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            data: bytes = answer.read()
            return gzip.decompress(data) if answer.headers["Content-Encoding"] == "gzip" else data

    def ask(self, call: str, **query: object) -> Any:
        return json.loads(self.bytes(f"api/v1/jobs/{self.job}/{call}".rstrip("/"), **query))


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_what_tasks_use_and_print_is_seen_live_and_afterwards(local: Local) -> None:
    began = time.time()
    job = local.submit(python(PROGRAM), replicas=2)
    page = Page(local, job)

    def rows() -> Any:
        found = page.ask("tasks")["tasks"]
        return [row for row in found if row["written_mib"] and row["progress"] is not None]

    assert eventually(rows, "what the tasks use")[0]["memory_mib"] > 5

    def series() -> Any:
        found = page.ask("series", name="cpu,memory_mib,written_mib_s,progress")
        return found if len(found["series"]) == 8 else None

    answer = eventually(series, "four series of each task")
    assert all(len(point) == 4 for one in answer["series"] for point in one["points"])
    assert page.ask("series", since=answer["version"], name="cpu").get("unchanged") in (True, None)
    assert {"name": "cpu", "unit": "cores", "kind": "sampled"} in page.ask("series")["names"]

    for task in ("worker:0", "worker:1"):
        eventually(lambda task=task: page.ask("search", text="ERROR 40", task=task)["hits"], f"ERROR 40 of {task}")
    both = page.ask("logs/worker:1", stream="both", offset=0, limit=400)
    lines = both["text"].splitlines()
    assert lines[:2] == ["step 0 of worker:1", "ERROR 0 <b>of</b> worker:1"]
    assert lines.index("step 9 of worker:1") < lines.index("ERROR 10 <b>of</b> worker:1")
    assert page.bytes(f"api/v1/jobs/{job}/logs/worker:1/download", stream="stdout").startswith(b"step 0 of worker:1\n")

    found = page.ask("search", text="step 3 of")
    assert [(hit["task"], hit["stream"], hit["line"]) for hit in found["hits"]] == [
        ("worker:0", "stdout", 4),
        ("worker:1", "stdout", 4),
    ] or [hit["task"] for hit in found["hits"]] == ["worker:1", "worker:0"]
    assert found["complete"]
    assert all(began - 1 < hit["time"] < time.time() + 1 for hit in found["hits"])
    errors = page.ask("search", level="error", task="worker:0", limit=3)
    assert {hit["level"] for hit in errors["hits"]} == {"error"}
    assert not errors["complete"]

    text = page.bytes("metrics").decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    memory = families["howdah_task_memory_bytes"].samples
    assert {sample.labels["task"] for sample in memory} == {"worker:0", "worker:1"}

    local.engine.cancel(job)
    kept = search_archive(lambda: local.engine.logs(job, None, "*"), LogQuery("step 3 of"), {"worker:0", "worker:1"})
    assert len(kept["hits"]) == 2
    assert all(hit["time"] for hit in kept["hits"])
    # The end is in the event log while the master still writes the last metrics.
    metrics = local.home / "jobs" / job / "metrics.jsonl"
    eventually(lambda: metrics.read_text().count('"t":'), "the last metrics")


def test_an_earlier_attempt_is_read_and_searched_while_the_job_goes_on(local: Local) -> None:
    job = local.submit(python(PROGRAM), retries=1)
    page = Page(local, job)
    eventually(lambda: page.ask("logs/worker:0", offset=0)["size"] > 100, "the first lines")
    os.kill(executor_of(local, job), signal.SIGKILL)
    eventually(
        lambda: page.ask("tasks")["tasks"][0]["attempt"] == 2 and page.ask("logs/worker:0", offset=0)["size"],
        "the second attempt's first lines",
        output=lambda: local.master_log(job),
    )
    first = page.ask("logs/worker:0", attempt=1, stream="both", offset=0, limit=400)
    assert "step 0 of worker:0\n" in first["text"]  # which of the two streams is the first, a moment decides
    assert "ERROR 0" in first["text"]
    assert first["attempts"] == [1, 2]
    hits = page.ask("search", text="step 0 of")["hits"]
    assert [hit["attempt"] for hit in hits] == [1, 2]
    assert [hit["attempt"] for hit in page.ask("search", text="step 0 of", attempt=1)["hits"]] == [1]


def test_bad_questions_are_answered_with_a_sentence(local: Local) -> None:
    page = Page(local, local.submit("sleep 600"))
    for call, query in (
        ("search", {}),
        ("search", {"text": "(", "regex": 1}),
        ("search", {"text": "x", "task": "nobody"}),
        ("series", {"name": "cpu", "points": "many"}),
        ("series", {"name": "cpu", "task": "worker:9"}),
        ("logs/worker:0", {"stream": "../key"}),
        ("logs/worker:0", {"attempt": 7}),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            page.ask(call, **query)
        assert caught.value.code in (400, 404), (call, query)
        assert json.load(caught.value)["error"]
        caught.value.close()


def test_a_deleted_log_directory_and_an_endless_pattern_harm_no_other_request(local: Local) -> None:
    job = local.submit(python(PROGRAM))
    page = Page(local, job)
    # From there on the program does not look at its log.
    eventually(lambda: "step 11 " in page.ask("logs/worker:0", offset=0)["text"], "the first lines")
    for path in (local.home / "jobs" / job / "tasks" / "worker-0" / "1").iterdir():
        if path.is_file():  # without its working directory the program itself would end
            path.unlink()
    size = page.ask("logs/worker:0", offset=0)["size"]
    eventually(lambda: page.ask("logs/worker:0", offset=0)["size"] > size, "further lines")
    assert page.ask("search", text="step 1 of")["hits"]


STORM = """
import sys, time
block = b"x" * 99 + b"\\n"
for _ in range(100):
    sys.stdout.buffer.write(block * 10000)
sys.stdout.buffer.write(b"a needle in it\\n")
sys.stdout.buffer.write(b"y" * (64 << 20))
sys.stdout.flush()
time.sleep(600)
"""


def test_a_storm_of_output_takes_no_memory_and_is_searched(local: Local) -> None:
    job = local.submit(python(STORM), memory_mib=256)
    page = Page(local, job)
    eventually(lambda: page.ask("logs/worker:0", offset=-1)["size"] > 160_000_000, "the whole storm")
    found = page.ask("search", text="a needle")
    assert [hit["line"] for hit in found["hits"]] == [1_000_001]
    assert found["scanned_bytes"] > 160_000_000
    for pid in (executor_of(local, job), local.running_master(job)):
        status = Path(f"/proc/{pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0])
        assert peak < 64 << 10, (pid, peak)
