"""Tests jobs that fail on a real cluster, by the command line: a clear line, the right exit code, nothing left.

Programs that go wrong by themselves all run at the same time, and each is a test of its own.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, Done, eventually, processes

from howdah.sandbox import Sandbox

AT_ONCE = 4
SUCCEEDED, FAILED, CANCELLED, DETACHED = 0, 1, 2, 130
SPEC, STAGING, UNAVAILABLE, REJECTED = 64, 66, 69, 77
OLD_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.[678].*/bin/python3"))


@pytest.fixture(scope="module")
def howdah(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield CommandLine(sandbox, tmp_path_factory.mktemp("faults"))


@pytest.fixture(autouse=True)
def tidy(howdah: CommandLine) -> Iterator[None]:
    """A test that fails leaves no job to disturb the others."""
    yield
    howdah.end_all()


# Programs that go wrong by themselves.

# Worker 0 waits for worker 1 in a collective, as in a ring of sockets, when worker 1 goes.
COLLECTIVE = """
import json, os, socket, time
world = json.loads(os.environ["HOWDAH_WORLD"])["roles"]["worker"]
if os.environ["HOWDAH_INDEX"] == "0":
    with socket.create_server((world[0]["host"], world[0]["ports"]["main"])) as server:
        peer, _ = server.accept()
        peer.sendall(b"go")
        {wait}
else:
    while True:
        try:
            peer = socket.create_connection((world[0]["host"], world[0]["ports"]["main"]))
            break
        except OSError:
            time.sleep(0.05)
    peer.recv(2)
    {die}
"""
FLOOD = """
import os
block, written = b"x" * 65535 + b"\\n", 0
while written <= 120e6:
    written += os.write(1, block)
os.write(2, b"%d\\n" % written)
"""


@dataclass(frozen=True)
class Wrong:
    """A job of one role, and how it is run."""

    command: str | list[str]
    job: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def python(source: str) -> list[str]:
    return ["python3", "-c", source]


def collective(wait: str, die: str) -> list[str]:
    return python(COLLECTIVE.format(wait=wait, die=die))


WRONG = {
    "not found": Wrong(["nosuchprogram", "--steps", "3"]),
    "not found by the shell": Wrong("nosuchprogram --steps 3"),
    "exits at once": Wrong("echo no such layer >&2; [ $HOWDAH_INDEX != 1 ] || exit 3; sleep 600", {"replicas": 2}),
    "signal": Wrong("kill -SEGV $$"),
    "binary": Wrong(python("import os; os.write(1, bytes(range(256)) * 4)")),
    "flood": Wrong(python(FLOOD), options=("--logs", "none")),
    "children": Wrong("(setsid sh -c 'sleep 600 & sleep 600' &); sleep 0.2"),
    "hangs": Wrong(collective("time.sleep(600)", "raise SystemExit(5)"), {"replicas": 2}),
    "memory": Wrong(
        collective(
            'assert peer.recv(1), "connection reset by peer"', "x = bytes(range(256)) * (600 << 12); time.sleep(600)"
        ),
        {"replicas": 2, "memory": "192MiB"},
    ),
    "no python": Wrong("true", environment={"HOWDAH_PYTHON": "/nonexistent/python3"}),
}
if OLD_PYTHONS:
    WRONG["old python"] = Wrong("true", environment={"HOWDAH_PYTHON": str(OLD_PYTHONS[0])})


@pytest.fixture(scope="module")
def ended(howdah: CommandLine) -> dict[str, Done]:
    """Each of WRONG, run to its end."""

    def play(wrong: Wrong) -> Done:
        path = howdah.job_file(wrong.command, **wrong.job)
        return howdah("run", "--on", "yarn", *wrong.options, path, **wrong.environment)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(WRONG, pool.map(play, WRONG.values()), strict=True))


FAILURES = {
    "not found": ["worker:0 on 127.0.0.1", "'nosuchprogram' is not found on PATH: name an environment", "; PATH is /"],
    "not found by the shell": ["worker:0 on 127.0.0.1", "exit code 127", "nosuchprogram: command not found"],
    "exits at once": ["worker:1 on 127.0.0.1", "exit code 3", "last lines of worker:1:\n    no such layer\n"],
    "signal": ["worker:0 on 127.0.0.1", "killed by SIGSEGV (11)"],
    "hangs": ["worker:1 on 127.0.0.1", "exit code 5"],
    "memory": ["worker:1 on 127.0.0.1", "killed by the node, used ", " of 192 MiB"],
    "no python": ["the job's master ended: exit code 127: ", "/nonexistent/python3: No such file or directory"],
    "old python": ["howdah's master needs CPython 3.10 or newer, ", "/bin/python3 is 3.", "python_archive"],
}


class TestPrograms:
    @pytest.mark.parametrize("name", [name for name in WRONG if name in FAILURES])
    def test_the_failure_is_named(self, name: str, howdah: CommandLine, ended: dict[str, Done]) -> None:
        done = ended[name]
        assert done.code == FAILED, done.text
        _, found, verdict = done.text.partition(f"{done.job} FAILED: ")
        assert found, done.text
        for words in FAILURES[name]:
            assert words in verdict
        assert howdah.left(done.job) == []

    @pytest.mark.parametrize("name", ["exits at once", "memory"])
    def test_yarn_knows_the_cause_too(self, name: str, howdah: CommandLine, ended: dict[str, Done]) -> None:
        said = eventually(lambda: howdah.yarn_says(ended[name].job), "diagnostics")
        assert all(words in said for words in FAILURES[name][:2])

    def test_the_first_failure_is_not_its_consequence(self, ended: dict[str, Done]) -> None:
        assert "connection reset by peer" in ended["memory"].text  # worker 0 was heard of first

    def test_children_end_with_their_program(self, howdah: CommandLine, ended: dict[str, Done]) -> None:
        assert ended["children"].code == SUCCEEDED
        assert howdah.left(ended["children"].job) == []

    def test_binary_output_is_readable_live_and_whole_afterwards(
        self, howdah: CommandLine, ended: dict[str, Done]
    ) -> None:
        done = ended["binary"]
        assert done.code == SUCCEEDED
        assert rb"worker:0 | \x0e\x0f\x10" in done.out  # what stands before a carriage return is written over
        assert b"\x0b" not in done.out
        logs = howdah("logs", done.job, "worker:0", "--stream", "stdout")
        assert logs.out.endswith(b"==> worker:0 attempt 1 stdout <==\n" + bytes(range(256)) * 4)

    def test_a_flood_passes(self, howdah: CommandLine, ended: dict[str, Done]) -> None:
        done = ended["flood"]
        assert done.code == SUCCEEDED
        written = int(howdah("logs", done.job, "worker:0", "--stream", "stderr").out.split()[-1])
        logs = howdah("logs", done.job, "worker:0", "--stream", "stdout").out
        assert written > 100e6
        assert len(logs) - written < 100  # the heading


# People, and what is killed from outside.

SLEEP = "echo up; sleep 600"
# In the gang that forms anew it ends well.
DECOMMISSIONED = """
import signal, time
from howdah import here
def told(*_):
    notice = here.notice()
    print(f"told {notice.kind}, {notice.seconds:.1f} s left, by SIGURG", flush=True)
signal.signal(signal.SIGURG, told)
print("up", flush=True)
time.sleep(600 if here.epoch == 1 else 0)
"""


def executor_of(howdah: CommandLine, job: str, task: str) -> int:
    """The parent of the task's program."""
    pid = next(each["pid"] for each in howdah.status(job)["tasks"] if each["task"] == task)
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class TestPeople:
    def test_cancel_ends_what_ignores_term(self, howdah: CommandLine) -> None:
        running = howdah.run("trap '' TERM; echo up; while :; do sleep 0.2; done", replicas=2)
        running.says("worker:0 | up")
        cancelled = howdah("cancel", running.job)
        assert cancelled.code == SUCCEEDED
        assert "CANCELLED cancelled by " in cancelled.text  # the master's words: an engine's force has others
        done = running.done()
        assert done.code == CANCELLED
        assert howdah.left(done.job) == []
        assert "had ended already: CANCELLED" in howdah("cancel", done.job).text

    def test_ctrl_c_cancels(self, howdah: CommandLine) -> None:
        running = howdah.run(SLEEP, "--on-interrupt", "cancel")
        running.says("worker:0 | up")
        running.process.send_signal(signal.SIGINT)
        done = running.done()
        assert done.code == CANCELLED
        assert "CANCELLED: cancelled by " in done.text
        assert howdah.left(done.job) == []

    def test_ctrl_c_detaches_and_logs_are_read_live_and_afterwards(self, howdah: CommandLine) -> None:
        running = howdah.run("echo up $HOWDAH_TASK; sleep 600", "--on-interrupt", "detach", replicas=2)
        job = running.job
        running.says("worker:0 | up")
        running.process.send_signal(signal.SIGINT)
        detached = running.done()
        assert detached.code == DETACHED
        assert f"the job goes on; `howdah attach {job}` follows it, `howdah cancel {job}` ends it" in detached.text
        assert howdah.status(job)["state"] == "RUNNING"
        words = "logs", job, "worker:1", "--stream", "stdout"
        live = eventually(lambda: done if (done := howdah(*words)).out else None, "its line")
        assert live.out == b"==> worker:1 stdout <==\nup worker:1\n"
        following = howdah.start("logs", "-f", job)
        following.says("up worker:1")
        assert howdah("cancel", job).code == SUCCEEDED
        assert following.done().code == SUCCEEDED
        after = howdah("logs", job, "worker:1", "--stream", "stdout")
        assert after.out == b"==> worker:1 attempt 1 stdout <==\nup worker:1\n"
        missing = howdah("logs", job, "worker:7")
        assert missing.out == b""

    def test_a_waiting_job_is_cancelled(self, howdah: CommandLine) -> None:
        # The queue gives a quarter of the cluster, 6 GiB, to masters, and lets one be larger.
        large = {"HOWDAH_MASTER_MEMORY_MIB": "7000"}
        first = howdah.start("run", "--on", "yarn", howdah.job_file(SLEEP), **large)
        first.says("worker:0 | up")
        waiting = howdah.start("run", "--on", "yarn", howdah.job_file(SLEEP), **large)
        waiting.says("waiting for the master's container in queue root.default: Queue's AM resource limit exceeded")
        assert howdah.status(waiting.job)["state"] == "PENDING"
        for running in (waiting, first):
            cancelled = howdah("cancel", running.job)
            assert cancelled.code == SUCCEEDED
            # Without a master it is the engine that ends it, and says so.
            assert ("CANCELLED cancelled by " in cancelled.text) == (running is first), cancelled.text
            assert running.done().code == CANCELLED
            assert howdah.left(running.job) == []


class TestKilled:
    def test_a_killed_client_leaves_its_job_running(self, howdah: CommandLine, tmp_path: Path) -> None:
        running = howdah.run(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo done")
        running.says("worker:0 runs")
        job = running.job
        running.process.kill()
        assert howdah.status(job)["state"] == "RUNNING"
        (tmp_path / "go").touch()
        eventually(lambda: howdah.status(job)["state"] == "SUCCEEDED", "end of the job")
        assert howdah.left(job) == []

    def test_a_killed_program_is_named_and_its_gang_starts_again(self, howdah: CommandLine, tmp_path: Path) -> None:
        running = howdah.run(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done", replicas=2, retries=1)
        running.says("worker:1 runs")
        pid = next(each["pid"] for each in howdah.status(running.job)["tasks"] if each["task"] == "worker:1")
        os.kill(pid, signal.SIGKILL)
        running.says("starting again: ")
        told = running.text.partition("starting again: ")[2].partition("\n")[0]
        assert told.startswith("worker:1 on 127.0.0.1")
        assert "killed by SIGKILL (9)" in told
        (tmp_path / "go").touch()
        done = running.done()
        assert done.code == SUCCEEDED, done.text
        assert howdah.left(done.job) == []

    def test_a_killed_executor_is_named_and_leaves_nothing(self, howdah: CommandLine) -> None:
        running = howdah.run(
            "echo up $HOWDAH_TASK; sleep 600 & setsid sleep 601 & (setsid sleep 602 &) ; wait", replicas=2
        )
        running.says("worker:1 runs")
        running.says("worker:0 | up")
        eventually(lambda: b"up worker:1" in howdah("logs", running.job, "worker:1").out, "its words")
        os.kill(executor_of(howdah, running.job, "worker:1"), signal.SIGKILL)
        done = running.done()
        assert done.code == FAILED
        verdict = done.text.partition(f"{done.job} FAILED: ")[2]
        assert verdict.startswith("worker:1 on 127.0.0.1")
        assert "killed by signal 9" in verdict
        assert "up worker:1" in verdict  # its last words, read where they lie
        assert howdah.left(done.job) == []

    def test_a_killed_master_leaves_nothing(self, howdah: CommandLine) -> None:
        command = "mkdir output; [ $HOWDAH_INDEX = 0 ] || { setsid sleep 601 & sleep 602; }"
        running = howdah.run(command, replicas=2, outputs=[{"path": "/tmp/killed"}], master={"attempts": 1})
        running.says("worker:0 on 127.0.0.1")
        master, *_ = processes(running.job, "-m howdah.master --engine")
        os.kill(master, signal.SIGKILL)
        done = running.done()
        assert done.code == FAILED
        reason = "the job's master ended: killed by signal 9"
        assert f"{done.job} FAILED: {reason}" in done.text
        assert reason in howdah("status", done.job).text
        assert howdah.status(done.job)["state"] == "FAILED"
        howdah("run", "--on", "yarn", howdah.job_file("true"))  # the next submission looks after what was left
        assert howdah.left(done.job) == []


# The cluster itself.


class TestCluster:
    def test_two_gangs_that_need_more_than_half_each_both_end(self, howdah: CommandLine) -> None:
        job = {"replicas": 4, "gpus": 2, "timeouts": {"hold": "1s", "stop": "1s"}}
        both = [howdah.run("sleep 1", "--queue", queue, **job) for queue in ("default", "prod")]
        for running in both:
            done = running.done()
            assert done.code == SUCCEEDED, done.text

    def test_a_preempted_task_is_named_and_its_gang_starts_again(self, howdah: CommandLine) -> None:
        """It uses up none of its `retries`: the job is not to blame."""
        greedy = howdah.run(SLEEP, replicas=3, gpus=4, retries=1)
        greedy.says("worker:2 runs")
        entitled = howdah.run("true", "--queue", "prod", replicas=1, gpus=4).done()
        assert entitled.code == SUCCEEDED
        eventually(lambda: greedy.text.count(" runs: ") >= 6, "all of the gang once more")
        told = greedy.text.partition("starting again: ")[2].partition("\n")[0]
        assert "preempted: the scheduler gave the room to another queue or job" in told
        assert told.endswith("(not counted as a retry: preempted)")
        assert "about to preempt" in greedy.text
        howdah("cancel", greedy.job)
        assert greedy.done().code == CANCELLED

    def test_a_lost_node_is_named_and_the_gang_starts_again(self, howdah: CommandLine, sandbox: Sandbox) -> None:
        """As soon as there is room, and it uses up none of its `retries`: the job is not to blame."""
        running = howdah.run(SLEEP, replicas=3, gpus=3, retries=1)  # one on each of the three nodes
        running.says("worker:2 runs")
        found = howdah.status(running.job)
        task = next(each for each in found["tasks"] if each["host"] != found["host"])
        node = f"nm{int(task['host'].rpartition('.')[2]) - 10}"
        begun = time.monotonic()
        sandbox.stop(node, signal.SIGKILL)
        try:
            running.says("starting again: ")
            took = time.monotonic() - begun
            told = running.text.partition("starting again: ")[2].partition("\n")[0]
            assert told.startswith(f"{task['task']} on {task['host']}: the container was given back")
            assert "*lost* node" in told
            assert told.endswith("(not counted as a retry: node)")
            assert took < 200  # nothing is waited for that the node still has: 20 s on a quiet machine
        finally:
            sandbox.start(node)
            sandbox.wait_nodes(3)
        eventually(lambda: running.text.count(" runs: ") >= 6, "all of the gang once more")
        howdah("cancel", running.job)
        assert running.done().code == CANCELLED
        assert howdah.left(running.job) == []

    def test_an_executor_falls_silent_and_nothing_starts_a_second_time_unasked(self, howdah: CommandLine) -> None:
        begun = howdah.directory / "begun"
        running = howdah.run(f"echo began >> {begun}; {SLEEP}", replicas=2)
        running.says("worker:1 runs")
        silent = executor_of(howdah, running.job, "worker:1")
        os.kill(silent, signal.SIGSTOP)
        done = running.done()
        assert done.code == FAILED
        assert "not heard for" in done.text
        assert "nothing starts again, because the job has no retries" in done.text
        assert begun.read_text() == "began\n" * 2
        assert not howdah.left(done.job)

    def test_a_program_is_told_that_its_node_is_decommissioned(self, howdah: CommandLine, sandbox: Sandbox) -> None:
        """It gets the signal and finds the reason and its time; when the node goes, no retry is used up."""
        running = howdah.run(python(DECOMMISSIONED), "--logs", "all", replicas=2, gpus=3, retries=1)
        for number in range(2):
            running.says(f"worker:{number} | up")
        found = howdah.status(running.job)
        task = next(each for each in found["tasks"] if each["host"] != found["host"])
        node = f"nm{int(task['host'].rpartition('.')[2]) - 10}"
        try:
            sandbox.decommission(node, 20)
            sandbox.wait_nodes(2)
            done = running.done()
            assert done.code == SUCCEEDED, done.text
        finally:
            sandbox.recommission()
            sandbox.stop(node)
            sandbox.start(node)
            sandbox.wait_nodes(3)
        announced = re.search(rf"node {task['host']} is being decommissioned, in at most (\d+) s", done.text)
        assert announced, done.text
        assert 10 <= int(announced[1]) <= 20
        told = re.search(rf"{task['task']} \| told decommission, ([\d.]+) s left, by SIGURG", done.text)
        assert told, done.text
        assert 5 <= float(told[1]) <= 20
        assert "not counted as a retry: node" in done.text
        after = howdah.status(done.job)["tasks"]
        assert task["host"] not in {each["host"] for each in after}
        assert howdah.left(done.job) == []

    def test_a_restarted_resourcemanager_ends_no_job(
        self, howdah: CommandLine, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        running = howdah.run(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done", replicas=2)
        running.says("worker:1 runs")
        sandbox.stop("rm")
        try:
            unanswered = howdah("status", running.job)
            assert unanswered.code == UNAVAILABLE
            assert "(yarn.resourcemanager.address): connection refused" in unanswered.text
            running.says("containers run on, trying again")
        finally:
            sandbox.start("rm")
            sandbox.wait_nodes(3)
        (tmp_path / "go").touch()
        done = running.done()
        assert done.code == SUCCEEDED, done.text
        assert howdah.left(done.job) == []


# What is refused before anything starts.


class TestRefused:
    def test_what_can_never_run(self, howdah: CommandLine) -> None:
        refused = {
            ("--queue", "defualt"): "there is no queue 'defualt'; yours are: default, prod. Did you mean 'default'?",
            ("--set", "roles.worker.resources.memory=64GiB"): "64 GiB memory asked, the largest node has 8 GiB memory",
            ("--set", "roles.worker.resources.gpus=5"): "role 'worker': 5 gpus asked, the largest node has 4 gpus",
            ("--set", "roles.worker.resources.gpus=4", "--set", "roles.worker.replicas=4"): "the whole cluster has 12",
        }
        for options, message in refused.items():
            done = howdah("run", "--on", "yarn", *options, howdah.job_file("true"))
            assert (done.code, done.out) == (REJECTED, b""), done.text
            assert message in done.text

    def test_every_missing_file_is_told_at_once(self, howdah: CommandLine) -> None:
        inputs = [{"path": "/nosuch/data", "to": "data"}, {"path": "relative", "to": "more"}]
        path = howdah.job_file("true", files=["tain.py"], inputs=inputs, outputs=[{"path": "/tmp"}])
        done = howdah("run", "--on", "yarn", path)
        assert (done.code, done.out) == (STAGING, b""), done.text
        for words in (
            f"files.0: 'tain.py': no such file: {howdah.directory}/tain.py",
            f"inputs.0.path: '/nosuch/data': no such file or directory: {howdah.root}/nosuch/data",
            f"neither {howdah.directory}/relative nor {howdah.root}/user/",
            f"outputs.0.path: {howdah.root}/tmp exists already: remove it, choose another, or allow it with overwrite",
        ):
            assert words in done.text

    def test_permissions_are_tried_before_the_work(self, howdah: CommandLine) -> None:
        for directory, mode in (("/theirs", 0o755), ("/private", 0o700)):
            howdah.files.mkdirs(howdah.root + directory, mode)
        reads = howdah.job_file("true", inputs=[{"path": "/private", "to": "data"}])
        done = howdah("run", "--on", "yarn", reads, HADOOP_USER_NAME="stranger")
        assert (done.code, done.out) == (STAGING, b"")
        assert "permission denied: user stranger may not list /private (drwx------ " in done.text
        writes = howdah.job_file("true", outputs=[{"path": "/theirs/model"}])
        done = howdah("run", "--on", "yarn", writes, HADOOP_USER_NAME="stranger")
        assert (done.code, done.out) == (STAGING, b"")
        assert "permission denied: user stranger may not write to /theirs (drwxr-xr-x " in done.text
        assert howdah.files.children(f"{howdah.root}/theirs") == []
        assert howdah.files.children(f"{howdah.root}/user/stranger/.howdah/jobs") == []

    def test_no_room_for_staging(self, howdah: CommandLine) -> None:
        home = f"{howdah.root}/user/poor"
        howdah.files.mkdirs(home, 0o777)
        howdah.files.chmod(home, 0o777)
        howdah.dfsadmin("-setSpaceQuota", "1m", home)
        done = howdah("run", "--on", "yarn", howdah.job_file("true"), HADOOP_USER_NAME="poor")
        assert (done.code, done.out) == (STAGING, b"")
        assert "over the quota: The DiskSpace quota of /user/poor is exceeded" in done.text
        assert howdah.files.children(f"{home}/.howdah/jobs") == []
        assert [entry.uri for entry in howdah.files.walk(home)] == []

    def test_a_namenode_in_safe_mode(self, howdah: CommandLine) -> None:
        howdah.dfsadmin("-safemode", "enter")
        try:
            done = howdah("run", "--on", "yarn", howdah.job_file("true"))
        finally:
            howdah.dfsadmin("-safemode", "leave")
        assert (done.code, done.out) == (UNAVAILABLE, b"")
        assert f"the NameNode of {howdah.root} is in safe mode" in done.text
