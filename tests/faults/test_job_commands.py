"""Tests commands that take a job by its name or by a part of its id, or take the last one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 60
Howdah = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    dropped = ("HADOOP_CONF_DIR", "HOWDAH_", "XDG_", "CUDA_", "LC_", "LANG", "NO_COLOR", "SSH_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    home = {name: str(tmp_path / name) for name in ("HOWDAH_HOME", "XDG_CONFIG_HOME")}
    return {**kept, **home, "LANG": "C.UTF-8"}


@pytest.fixture
def howdah(tmp_path: Path, environment: dict[str, str]) -> Iterator[Howdah]:
    """Give a function that runs a command; jobs that still run in the end are cancelled."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command, given = [HOWDAH, *words], {**environment, **variables}
        return subprocess.run(
            command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    yield run
    for left in run("list", "-q", "--state", "PENDING,RUNNING").stdout.split():
        run("cancel", left)


def submit(howdah: Howdah, name: str, line: str, *options: str) -> str:
    done = howdah("submit", *options, "-n", name, "--", "sh", "-c", line)
    assert done.stdout, done.stderr
    return done.stdout.split()[0]


def test_several_jobs_are_cancelled_at_once_or_none(howdah: Howdah) -> None:
    first, second = submit(howdah, "one", "sleep 100"), submit(howdah, "two", "sleep 100")
    refused = howdah("cancel", "one", "three")
    assert refused.returncode == 66
    assert "three" in refused.stderr
    assert set(howdah("list", "-q", "--state", "PENDING,RUNNING").stdout.split()) == {first, second}
    done = howdah("cancel", "one", second, "one", "--json")
    assert done.returncode == 0
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(report["id"], report["state"]) for report in reports} == {(first, "CANCELLED"), (second, "CANCELLED")}
    again = howdah("cancel", first, second).stdout.splitlines()
    assert set(again) == {f"{job} had ended already: CANCELLED" for job in (first, second)}


def test_jobs_are_named(howdah: Howdah) -> None:
    first = submit(howdah, "prepare", "echo prepared")
    assert howdah("wait").stdout == f"{first} SUCCEEDED\n"
    second = submit(howdah, "train", "echo trained; exit 3", "--wait")
    assert "\ntrained\n" in howdah("logs").stdout  # the last job's
    assert "\nprepared\n" in howdah("logs", "prepare").stdout
    assert "\nprepared\n" in howdah("logs", "@-2").stdout
    end = second.partition("-")[2].partition("-")[2]  # the letters after the last dash may be without a digit
    shown = howdah("status", end, "--json")
    assert (json.loads(shown.stdout)["id"], shown.stderr) == (second, f"{second}  train\n")
    assert howdah("status", first).stderr == ""
    assert howdah("list", "-q").stdout.split() == [second, first]
    assert re.search(r"Diagnostics\n.*train .*worker:0 on .*: exit code 3\n", howdah("list", "-o", "wide").stdout)
    ambiguous = howdah("explain", first[: len("local-20261121")])
    assert ambiguous.returncode == 64
    assert f"may be 2 jobs: {second} (train, FAILED" in ambiguous.stderr
    assert howdah("cancel").returncode == 64  # the last job is never meant by saying nothing
    assert howdah("cancel", "").returncode == howdah("status", "").returncode == 66  # a script's, after a failure
    chinese = howdah("status", "nothing", LANG="zh_CN.UTF-8")
    assert (chinese.returncode, "没有名为" in chinese.stderr) == (66, True)


def test_wait_ends_as_the_jobs_do(howdah: Howdah) -> None:
    good, bad = submit(howdah, "good", "sleep 1"), submit(howdah, "bad", "exit 3")
    done = howdah("wait", "good", "bad")
    assert (done.returncode, good in done.stdout, f"{bad} FAILED worker:0 on" in done.stdout) == (1, True, True)
    submit(howdah, "long", "sleep 60")
    too_early = howdah("wait", "long", "--timeout", "1s")
    assert too_early.returncode == 75
    assert "has not ended within 1 s; it goes on" in too_early.stderr
    assert howdah("cancel", "long").returncode == 0
    assert howdah("wait", "good", "@last").returncode == 2
    assert howdah("wait", "--timeout", "soon").returncode == 64


def test_a_grid_is_a_job_for_each_combination(howdah: Howdah) -> None:
    grid = ("--grid", "code=0,3", "--grid", "seed=1..2")
    done = howdah("submit", "--wait", *grid, "-n", "search", "--", "sh", "-c", "echo seed ${seed}; exit ${code}")
    assert done.returncode == 1, done.stderr
    ids = done.stdout.splitlines()[:4]
    table = [line.split()[:4] for line in done.stdout.splitlines()[-5:]]
    combinations = (("0", "1", "SUCCEEDED"), ("0", "2", "SUCCEEDED"), ("3", "1", "FAILED"), ("3", "2", "FAILED"))
    assert table == [
        ["Id", "code", "seed", "State"],
        *([job, *each] for job, each in zip(ids, combinations, strict=True)),
    ]
    (tag,) = re.findall(r"4 jobs with the tag (grid-\w+)", done.stderr)
    assert sorted(howdah("list", "-q", "--tag", tag).stdout.split()) == sorted(ids)
    assert set(howdah("list", "-q", "--tag", "seed=2").stdout.split()) == {ids[1], ids[3]}
    refused = howdah("submit", *grid, "--output", "model", "--", "sh", "-c", "exit ${code} # ${seed}")
    assert "outputs.0.path: is the same for several jobs of the grid" in refused.stderr
    assert len(howdah("list", "-q").stdout.split()) == 4


def test_a_grid_that_is_stopped_says_what_it_has_submitted(
    howdah: Howdah, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [HOWDAH, "submit", "--grid", "n=1..40", "-n", "search", "--", "sh", "-c", "sleep ${n}0"]
    submitting = subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert submitting.stdout is not None
    first = submitting.stdout.readline()
    submitting.send_signal(signal.SIGTERM)
    printed, said = submitting.communicate(timeout=LIMIT_S)
    assert submitting.returncode == 143, said
    ids = [first.strip(), *printed.split()]
    assert 0 < len(ids) < 40
    assert f"howdah: {len(ids)} of 40 jobs were submitted: `howdah list -q --tag grid-" in said
    assert sorted(howdah("list", "-q").stdout.split()) == sorted(ids)


def test_an_address_is_told_how_a_job_ended(howdah: Howdah) -> None:
    posted: list[dict[str, str]] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hook = f"http://127.0.0.1:{server.server_address[1]}/hook"
        options = ("--set", "notify=[CHAT]", "--secret", "CHAT", "-n", "train", "--", "sh", "-c", "exit 3")
        done = howdah("submit", "--wait", *options, CHAT=hook)
        assert done.returncode == 1, done.stderr
        server.shutdown()
    (told,) = posted
    assert (told["id"], told["name"], told["state"]) == (done.stdout.split()[0], "train", "FAILED")
    assert told["text"].startswith(f"train ({told['id']}) FAILED: worker:0 on ")
    assert hook not in howdah("status", "--json").stdout


def test_who_stops_waiting_leaves_the_job_running(howdah: Howdah, environment: dict[str, str], tmp_path: Path) -> None:
    job = submit(howdah, "train", "sleep 60")
    waiting = subprocess.Popen([HOWDAH, "wait"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    while f"waiting for the end of {job}: RUNNING" not in waiting.stderr.readline():
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGINT)
    assert f"the job goes on; `howdah attach {job}`" in waiting.communicate(timeout=LIMIT_S)[1]
    assert waiting.returncode == 130
    assert json.loads(howdah("status", "--json").stdout)["state"] == "RUNNING"


def test_commands_that_act_want_to_hear_all_clusters(howdah: Howdah, tmp_path: Path) -> None:
    job = submit(howdah, "train", "sleep 60")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    (tmp_path / "conf").mkdir()
    value = f"<property><name>yarn.resourcemanager.address</name><value>{address}</value></property>"
    (tmp_path / "conf" / "core-site.xml").write_text(f"<configuration>{value}</configuration>")
    known = {"HOWDAH_HADOOP_CONF_DIR": str(tmp_path / "conf")}
    refused = howdah("cancel", "train", **known)
    assert refused.returncode == 69
    assert "train may be a job of a cluster that does not answer; give the whole id (yarn: " in refused.stderr
    looked = howdah("status", "train", **known)
    assert (looked.returncode, "howdah: yarn: ResourceManager" in looked.stderr) == (0, True)
    assert f"{job} CANCELLED" in howdah("cancel", job, **known).stdout


def test_attach_follows_a_job_and_leaves_it_running(
    howdah: Howdah, tmp_path: Path, environment: dict[str, str]
) -> None:
    job = submit(howdah, "train", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo trained")
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        attached = subprocess.Popen([HOWDAH, "attach"], env=environment, cwd=tmp_path, stdout=out, stderr=out)
    deadline = time.monotonic() + LIMIT_S
    while "worker:0 | begun" not in printed.read_text():
        assert time.monotonic() < deadline, printed.read_text()
        time.sleep(0.05)
    attached.send_signal(signal.SIGINT)
    assert attached.wait(LIMIT_S) == 130
    assert f"the job goes on; `howdah attach {job}` follows it, `howdah cancel {job}` ends it" in printed.read_text()
    directory = json.loads(howdah("status", "train", "--json").stdout)["directory"]
    again = subprocess.Popen(
        [HOWDAH, "attach", "train"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    for go in Path(directory.removeprefix("file://")).rglob("work"):
        (go / "go").touch()
    assert "worker:0 | trained" in again.communicate(timeout=LIMIT_S)[0]
    assert again.returncode == 0


def test_a_dry_run_submits_nothing(howdah: Howdah) -> None:
    for command in ("run", "submit"):
        done = howdah(command, "--dry-run", "--", "true")
        assert (done.returncode, "worker  1 " in done.stdout) == (0, True)
    assert howdah("ls").stdout == "no jobs\n"


def test_shells_complete_commands_jobs_tasks_engines_and_settings(howdah: Howdah) -> None:
    job = submit(howdah, "train", "true", "--wait")

    def completed(line: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_HOWDAH_COMPLETE": "bash_complete"}
        return [each.partition(",")[2] for each in howdah(**words).stdout.split()]

    assert completed("howdah sta") == ["status", "stacks"]
    assert completed("howdah status lo") == [job]
    assert completed("howdah logs tr") == ["train"]
    assert completed("howdah logs @la") == ["@last"]
    assert completed("howdah logs train w") == ["worker", "worker:0"]
    assert completed("howdah run --on sl") == ["slurm"]
    assert completed("howdah config get log_limit") == ["log_limit_mib"]
    for shell in ("bash", "zsh", "fish"):
        assert "_HOWDAH_COMPLETE" in howdah("completion", shell).stdout


def test_who_comes_by_ssh_is_told_how_a_browser_gets_here(howdah: Howdah) -> None:
    submit(howdah, "train", "sleep 60")
    deadline = time.monotonic() + LIMIT_S
    while (page := howdah("page", SSH_CONNECTION="192.0.2.7 50000 192.0.2.1 22")).returncode:
        assert time.monotonic() < deadline, page.stderr
    port = re.search(r"127\.0\.0\.1:(\d+)", page.stdout)
    assert port is not None
    assert f"ssh -L {port[1]}:127.0.0.1:{port[1]} " in page.stderr
    assert "@192.0.2.1" in page.stderr
    assert "ssh -L" not in howdah("page").stderr


def test_a_bundle_tells_all_but_secrets(howdah: Howdah, environment: dict[str, str], tmp_path: Path) -> None:
    line = "echo begun; echo --password hush456 API_KEY=$API_KEY; echo with $CODE >&2; exit 3"
    environment["CODE"] = "hush789"
    job = submit(howdah, "train", line, "--wait", "--env", "API_KEY=hush123", "--secret", "CODE")
    done = howdah("bundle")
    assert done.stdout == f"howdah-{job}.zip\n"
    path = tmp_path / f"howdah-{job}.zip"
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert not [name for name, text in parts.items() if "hush" in text]
    assert "begun" in parts["logs/worker-0.attempt.1.stdout.txt"]
    assert f"{job}  train  FAILED\nwhy: worker:0 on " in parts["explain.txt"]
    assert json.loads(parts["status.json"])["state"] == "FAILED"
    assert '"kind":"JobFinished"' in parts["events.jsonl"]
    assert {"engine", "profile"} & json.loads(parts["settings.json"]).keys()
    assert "click" in json.loads(parts["versions.json"])
    assert json.loads(parts["plan.json"])["job"]["name"] == "train"
    assert parts["missing.txt"].startswith("stacks: none were kept")
    del environment["CODE"]
    unknown = howdah("bundle", "--to", "unmasked.zip")
    assert "the value of the secret CODE: it is not known here, so it is not masked" in unknown.stderr
    nowhere = howdah("bundle", "--to", "no/such/directory.zip")
    assert (nowhere.returncode, "Traceback" in nowhere.stderr) == (66, False)
    again = howdah("bundle")
    assert (again.returncode, "exists: choose another file with --to" in again.stderr) == (66, True)
    assert json.loads(howdah("bundle", "train", "--to", "other.zip", "--json").stdout)["path"] == "other.zip"


def test_one_part_that_cannot_be_had_costs_a_bundle_nothing_else(howdah: Howdah, tmp_path: Path) -> None:
    job = submit(howdah, "train", "echo trained", "--wait", "--env", "PLACE=/data/\udce9")  # a byte that is no UTF-8
    kept = tmp_path / "HOWDAH_HOME/state/jobs" / job / "job.json"
    kept.write_bytes(kept.read_bytes()[:200])  # as a full disk leaves it
    done = howdah("bundle")
    assert "not in the bundle: plan: job.json is not as howdah writes it" in done.stderr
    with zipfile.ZipFile(tmp_path / f"howdah-{job}.zip") as archive:
        assert "/data/\\udce9" in archive.read("events.jsonl").decode()
        assert "plan: job.json is not" in archive.read("missing.txt").decode()


def test_what_a_command_tells_is_json_for_programs(howdah: Howdah, tmp_path: Path) -> None:
    def told(*words: str) -> dict[str, object]:
        done = howdah(*words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    (tmp_path / "numbers").write_text("1 2 3")
    (tmp_path / "work.py").write_text("print(1)")
    assert told("init", "work.py") == {"path": "job.yaml"}
    user_file = told("config", "set", "queue", "prod")
    assert told("config", "path") == user_file
    assert told("config", "get", "queue") == {
        "key": "queue",
        "value": "prod",
        "source": f"user file {user_file['path']}",
    }
    assert told("config", "unset", "queue") == user_file
    place = f"file://{tmp_path}/copy"
    assert told("data", "put", "numbers", place) == {"files": 1, "bytes": 5, "where": place}
    assert told("data", "head", place) == {"uri": place, "bytes": 5, "text": "1 2 3"}
    assert told("data", "get", place, "again") == {"files": 1, "bytes": 5, "where": "again"}
    assert told("data", "rm", place) == {"removed": place}
    assert told("sandbox", "down") == {"stopped": []}
