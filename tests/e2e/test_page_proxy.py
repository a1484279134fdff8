"""Tests a job's page on YARN by the ResourceManager's proxy, which allows hardly more than GET and PUT."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from commandline import CommandLine, eventually

import howdah as package
from howdah.sandbox import Sandbox
from howdah.spec.staged import PAGE, RUNTIME

STRANGER = "127.0.0.9"
"""An address of this machine that is not the proxy's."""
BUILT = any((Path(package.__file__).parent / "api" / "static").glob("index.html*"))


@pytest.fixture
def howdah(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


class Caller:
    """Asks at `base`, from `source` where one is given."""

    def __init__(self, base: str, source: str = "") -> None:
        parts = urlsplit(base)
        self.netloc, self.prefix = parts.netloc, parts.path.rstrip("/")
        self.source = (source, 0) if source else None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
        connection = http.client.HTTPConnection(self.netloc, timeout=120, source_address=self.source)
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, f"{self.prefix}/{path}", data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        return answer.status, content, answer.headers


def test_looking_and_acting_through_the_proxy_and_beside_it(howdah: CommandLine) -> None:
    running = howdah.run("mkdir -p out; echo 1 > out/a; sleep 600", outputs=[{"from": "out", "path": "/tmp/page-out"}])
    job = running.job
    eventually(lambda: "RUNNING" in [task["state"] for task in howdah.status(job)["tasks"]], "running")
    act = json.loads(howdah("page", "--json", job).out)["url"]
    look = howdah("page", "--look-only", job).out.decode().strip()
    embed = howdah("page", "--embed", job).out.decode().strip()
    base, _, fragment = act.partition("#")
    words = dict(pair.split("=") for pair in fragment.split("&"))
    assert look == f"{base}#token={words['token']}"
    assert "/proxy/" in base
    proxy, path = Caller(base), f"api/v1/jobs/{job}"
    _the_page(proxy)
    status, content, _ = proxy.ask("GET", path)  # the proxy vouches: nobody is anybody here
    assert (status, json.loads(content)["state"]) == (200, "RUNNING")
    assert proxy.ask("GET", f"{path}/tasks?token=wrong")[0] == 403
    assert proxy.ask("GET", f"{path}/tasks?token={words['token']}", **{"Accept-Encoding": "gzip"})[0] == 200
    _strangers(howdah, job, path, words["token"], embed)
    _changes(howdah, proxy, path, words)
    assert running.done().code != 0
    assert howdah.status(job)["state"] == "CANCELLED"


def test_a_log_of_megabytes_comes_whole_through_the_proxy(howdah: CommandLine) -> None:
    """In chunks, as nobody knows its length before: the proxy passes them on as they come."""
    running = howdah.run("seq 600000; echo all >&2; sleep 600", "--logs", "none")
    job = running.job
    eventually(lambda: b"all" in howdah("logs", job, "worker:0", "--stream", "stderr").out, "the last line")
    base = json.loads(howdah("page", "--json", job).out)["url"].partition("#")[0]
    status, content, headers = Caller(base).ask("GET", f"api/v1/jobs/{job}/logs/worker:0/download?stream=stdout")
    assert (status, headers["Transfer-Encoding"]) == (200, "chunked")
    assert headers["Content-Disposition"] == 'attachment; filename="worker-0-1-stdout.txt"'
    printed = b"".join(b"%d\n" % number for number in range(1, 600_001))
    assert (len(content), hashlib.sha256(content).digest()) == (len(printed), hashlib.sha256(printed).digest())
    assert howdah("cancel", job).code == 0


def _the_page(proxy: Caller) -> None:
    status, content, headers = proxy.ask("GET", "")
    assert (status, b"<!doctype html>" in content.lower()) == (200, True)
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    if BUILT:
        script = content.decode().partition('src="./')[2].partition('"')[0]
        status, _, headers = proxy.ask("GET", script)
        assert status == 200
        assert "immutable" in headers["Cache-Control"]


def _strangers(howdah: CommandLine, job: str, path: str, token: str, embed: str) -> None:
    """Beside the proxy only tokens count, whatever a cookie says."""
    pid, executor = _processes("howdah.master", job), _processes("howdah.executor", job)
    master = Caller(howdah.status(job)["master"], STRANGER)
    assert master.ask("GET", path, Cookie="proxy-user=dr.who")[0] == 403
    assert master.ask("GET", path, Cookie=f"proxy-user={howdah.status(job)['user']}")[0] == 403
    assert master.ask("GET", f"{path}?token={token}")[0] == 200
    assert master.ask("GET", f"{path}?token={token}", Host="evil.example")[0] == 403
    curves = f"{path}/curves/runs?{urlsplit(embed).query}"
    assert master.ask("GET", curves)[0] == 200
    assert master.ask("GET", f"{path}?{urlsplit(embed).query}")[0] == 403
    assert (pid / RUNTIME).is_dir()
    assert (executor / RUNTIME).is_dir()
    assert (pid / PAGE).is_dir() == BUILT
    assert not (executor / PAGE).exists()
    assert _resident_mb(pid) < 45


def _changes(howdah: CommandLine, proxy: Caller, path: str, words: dict[str, str]) -> None:
    body = {"token": words["act"]}
    assert proxy.ask("PUT", f"{path}/actions/check", {"token": words["token"]})[0] == 403
    assert proxy.ask("PUT", f"{path}/actions/check", {})[0] == 403
    assert proxy.ask("PUT", f"{path}/actions/check", body)[0] == 200
    assert proxy.ask("POST", f"{path}/actions/check", body)[0] == 405  # the proxy's own word
    status, content, _ = proxy.ask("PUT", f"{path}/actions/save", body)
    assert (status, json.loads(content)) == (200, {"saves": [[0, 1]]})
    job = path.rpartition("/")[2]
    saved = eventually(lambda: [one for one in howdah.status(job)["saves"] if one["state"] != "RUNNING"], "save")
    assert saved[0]["state"] == "SUCCEEDED"
    assert proxy.ask("PUT", f"{path}/actions/cancel", body)[0] == 200


def _processes(module: str, job: str) -> Path:
    """The working directory of the job's process that runs `module`."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes().split(b"\0")
            if module.encode() in line and job.encode() in (directory / "environ").read_bytes() + b" ".join(line):
                return directory / "cwd"
        except OSError:
            continue
    raise AssertionError(f"no {module} of {job}")


def _resident_mb(cwd: Path) -> float:
    text = (cwd.parent / "status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6
