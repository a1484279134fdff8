"""Tests that the sandbox is a real Hadoop for a client that knows only HADOOP_CONF_DIR."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.sandbox import Sandbox, current
from howdah.sandbox.process import Process, wait_ended, with_variable_below
from howdah.storage.content_cache import local_directory

JARS = local_directory()  # as it is before the session's fixture moves HOWDAH_HOME

HDFS_ROUND_TRIP = """
import hdfs_native
client = hdfs_native.Client()
with client.create(PATH) as out:
    out.write(b"carried" * 1000)
with client.read(PATH) as back:
    assert back.read() == b"carried" * 1000
"""


HOWDAH = str(Path(sys.executable).with_name("howdah"))


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=240)


def daemon(sandbox: Sandbox, name: str):
    return next(found for found in sandbox.status() if found.name == name)


def rest(sandbox: Sandbox, path: str):
    with urllib.request.urlopen(f"http://{daemon(sandbox, 'rm').web}/ws/v1/cluster/{path}", timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize(("user", "path"), [("alice", "/user/alice/notes"), ("bob", "/tmp/bob/notes")])
def test_any_user_has_a_place_in_hdfs(sandbox: Sandbox, user: str, path: str) -> None:
    done = run("-c", f"PATH = {path!r}\n{HDFS_ROUND_TRIP}", HADOOP_USER_NAME=user, **sandbox.env())
    assert done.returncode == 0, done.stderr


def test_three_nodes_of_four_gpus(sandbox: Sandbox) -> None:
    nodes = rest(sandbox, "nodes")["nodes"]["node"]
    totals = [{row["name"]: row["value"] for row in rows(node)} for node in nodes]
    assert totals == [{"memory-mb": 8192, "vcores": 8, "yarn.io/gpu": 4}] * 3


def rows(node: dict) -> list[dict]:
    return node["totalResource"]["resourceInformations"]["resourceInformation"]


def test_two_queues(sandbox: Sandbox) -> None:
    queues = rest(sandbox, "scheduler")["scheduler"]["schedulerInfo"]["queues"]["queue"]
    assert {queue["queueName"] for queue in queues} == {"default", "prod"}


def test_a_node_stopped_and_started_is_seen(sandbox: Sandbox) -> None:
    sandbox.stop("nm2")
    try:
        sandbox.wait_nodes(2)
        assert not daemon(sandbox, "nm2").up
        assert current() is None
    finally:
        sandbox.start("nm2")
        sandbox.wait_nodes(3)
    assert daemon(sandbox, "nm2").up


def test_up_again_changes_nothing(sandbox: Sandbox) -> None:
    before, said = sandbox.status(), []
    Sandbox().up(said.append)
    assert [(found.name, found.pid) for found in before] == [(found.name, found.pid) for found in sandbox.status()]
    assert "already up" in said[0]
    assert current().run_dir == sandbox.run_dir


def test_up_starts_what_was_killed(sandbox: Sandbox) -> None:
    killed = Process.from_pid(daemon(sandbox, "nm3").pid)
    assert killed
    killed.send(signal.SIGKILL)
    assert not wait_ended([killed], 30)
    Sandbox().up()
    assert sandbox.is_up()


def test_another_shape_is_refused_while_up(sandbox: Sandbox) -> None:
    with pytest.raises(SpecError, match=r"nodes 3 \(asked for: 5\).*sandbox down"):
        Sandbox(nodes=5).up()


def test_env_prints_what_a_shell_evaluates(sandbox: Sandbox) -> None:
    done = run(HOWDAH, "sandbox", "env", **os.environ)
    assert done.stdout == f"export HADOOP_CONF_DIR={sandbox.conf_dir}\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Sandbox]:
    """A ResourceManager alone, beside whatever else runs."""
    sandbox = Sandbox(tmp_path / "run", nodes=0, hdfs=False, cache=JARS)
    yield sandbox
    sandbox.down()


@pytest.mark.parametrize("names", [("rm",), ("rm", "nm1")])
def test_commands_name_the_daemons_that_have_ended(tmp_path: Path, names: tuple[str, ...]) -> None:
    environment = {**os.environ, "HOWDAH_HOME": str(tmp_path), "XDG_CACHE_HOME": str(JARS.parent)}
    environment.pop("HADOOP_CONF_DIR", None)

    def howdah(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = "import sys; from howdah.cli import main; main(sys.argv[1:])"
        return run("-c", program, *arguments, **environment)

    with Sandbox(tmp_path / "state" / "sandbox", nodes=1, hdfs=False, memory_mib=3072, cache=JARS) as box:
        killed = [process for name in names if (process := Process.from_pid(daemon(box, name).pid))]
        for process in killed:
            process.send(signal.SIGTERM)
        assert not wait_ended(killed, 120)
        tony = ("tony", "--executes", "x", "--conf", "tony.worker.instances=1", "--conf", "tony.worker.command=x")
        xlearning = ("xl-submit", "--app-type", "x", "--launch-cmd", "x")
        # Where all have ended no sandbox is up any more: `list` asks this machine alone, as where there never was one.
        everything = [("list",)] if "nm1" not in names else []
        for command in (("list", "--on", "yarn"), ("status", "application_1_0001"), tony, xlearning, *everything):
            said = howdah(*command).stderr
            assert "these daemons of the sandbox have ended: ResourceManager (rm)" in said, said
            assert ("NodeManager (nm1)" in said) == ("nm1" in names)
        report = howdah("doctor", "--on", "yarn").stdout
        assert "these daemons of the sandbox have ended: ResourceManager (rm)" in report, report
        assert howdah("sandbox", "up").returncode == 0, "of the shape that it had"
        assert box.is_up()
        assert howdah("list", "--on", "yarn").stderr == ""


def test_down_leaves_no_process_and_no_file(small: Sandbox) -> None:
    small.up()
    pid = daemon(small, "rm").pid
    small.down()
    assert Process.from_pid(pid) is None
    assert not small.run_dir.exists()
    small.down()


def test_down_can_keep_the_data_for_the_next_up(small: Sandbox) -> None:
    small.up()
    small.down(keep=True)
    assert (small.run_dir / "rmstate").exists()
    assert not small.is_up()
    small.up()
    assert small.is_up()


def test_down_ends_containers_that_a_killed_node_left(small: Sandbox) -> None:
    small.up()
    directory = small.run_dir / "nm1" / "local"
    with subprocess.Popen(
        ["sleep", "60"], env={"LOCAL_DIRS": f"{directory},/elsewhere", "PATH": "/usr/bin:/bin"}
    ) as left:
        said: list[str] = []
        small.down(progress=said.append)
        assert left.wait(5) == -signal.SIGTERM
    assert "1 container" in said[0]
    assert with_variable_below("LOCAL_DIRS", small.run_dir) == []


def test_a_recycled_pid_is_not_ours(small: Sandbox) -> None:
    small.up()
    record = small.run_dir / "sandbox.json"
    known = json.loads(record.read_text())
    with subprocess.Popen(["sleep", "60"]) as stranger:
        ours, known["pids"]["rm"]["pid"] = Process.from_pid(known["pids"]["rm"]["pid"]), stranger.pid
        record.write_text(json.dumps(known))
        assert not small.is_up()
        small.stop("rm")
        assert stranger.poll() is None
        stranger.terminate()
    assert ours
    ours.send(signal.SIGTERM)
    assert not wait_ended([ours], 20)  # while it ends it removes files, as `down` does


def test_a_daemon_that_dies_at_start_is_named_with_its_reason(tmp_path: Path) -> None:
    wrong = {"yarn-site": {"yarn.resourcemanager.scheduler.class": "no.such.Scheduler"}}
    sandbox = Sandbox(tmp_path / "run", nodes=0, hdfs=False, properties=wrong, cache=JARS)
    with pytest.raises(EngineUnavailable, match=r"(?s)rm ended while starting.*rm\.log.*no\.such\.Scheduler"):
        sandbox.up()
    assert not daemon(sandbox, "rm").up
    sandbox.down()


def test_a_directory_of_something_else_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StagingError, match="not a sandbox's and not empty"):
        Sandbox(tmp_path).up()
    Sandbox(tmp_path).down()
    assert (tmp_path / "thesis.tex").exists()


def test_wrong_values_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"(?s)nodes: is -1.*gpus: is -2.*'yarn' is not one of core-site"):
        Sandbox(tmp_path, nodes=-1, gpus=-2, properties={"yarn": {}})
    with pytest.raises(SpecError, match=r"'2\.10' is not a version"):
        Sandbox(tmp_path, hadoop="2.10")


def test_missing_java_says_what_to_run(tmp_path: Path) -> None:
    done = run(HOWDAH, "sandbox", "up", PATH="", HOME=str(tmp_path))
    assert done.returncode == EngineUnavailable.exit_code
    assert "Java 17" in done.stderr
    assert "apt-get install" in done.stderr
    assert "openjdk-17-jre-headless maven" in done.stderr
