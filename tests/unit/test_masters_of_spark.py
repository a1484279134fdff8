"""Tests what differs between Spark's masters, without a Spark: homes, directories, room, and how executors are lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

from howdah.cli.doctor_spark import checks
from howdah.client.engine_registry import settings_for
from howdah.config.user_file import user_file
from howdah.engines import MasterContext
from howdah.engines.pull_launch import LaunchOffers
from howdah.engines.spark import container_task
from howdah.engines.spark.allocator import Ask, SparkAllocator, SparkTask
from howdah.engines.spark.cluster import SparkCluster
from howdah.engines.spark.driver_link import DriverLink
from howdah.engines.spark.engine import SparkEngine
from howdah.errors import EngineRejected, EngineUnavailable, JobNotFound, StagingError
from howdah.localfiles.own_directories import cache_directory, state_directory
from howdah.spec import Container, JobSpec, Resources, Role, StagedFile, StagedJob
from howdah.spec.events import ContainerEnded
from howdah.staging.working_directory import prepare
from howdah.testing.allocator_contract import staged_job


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "HADOOP_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def spark_install(directory: Path) -> str:
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "spark-submit").touch()
    return str(directory)


def hadoop_conf(directory: Path, default: str) -> str:
    directory.mkdir()
    content = f"<configuration><property><name>fs.defaultFS</name><value>{default}</value></property></configuration>"
    (directory / "core-site.xml").write_text(content)
    return str(directory)


@pytest.mark.parametrize("has_driver", [True, False])
@pytest.mark.parametrize(
    ("master", "example"),
    [
        ("yarn", "config set spark.home hdfs:///user/NAME/howdah`, .* spark.yarn.appMasterEnv.HOWDAH_SPARK_HOME=URI"),
        ("k8s://https://somewhere", "config set spark.home /shared/DIRECTORY`"),
    ],
)
def test_jobs_on_other_machines_need_a_home_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, example: str, has_driver: bool
) -> None:
    """A home that depended on the master would be one that other programs do not look into: not for the job, and not
    for the lock of its checkpoints."""
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    settings = {"hadoop_conf_dir": hadoop_conf(tmp_path / "conf", "hdfs://nn:8020")}
    settings |= {"spark.install": spark_install(tmp_path / "spark")}
    engine = SparkEngine({**settings, "spark.master": master})
    assert engine.home == SparkEngine(settings).home
    (said,) = engine.wrong_settings(has_driver)
    assert re.fullmatch(f"spark.home is not set: .*{example}", said), said
    assert not list(SparkEngine({**settings, "spark.master": master, "spark.home": "hdfs:///h"}).wrong_settings())


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ({"ps": 1, "worker": 2}, "ps, worker: 3 cores are needed at the same time, and local-cluster[2,1,1024] has 2"),
        ({"worker": Role("true", 4, min_replicas=2)}, ""),
        ({"worker": Role("true", 1, Resources(256, vcores=2)), "ps": 1}, "ps: 3 cores are needed"),
        ({"worker": 2}, ""),
    ],
)
def test_a_local_cluster_that_is_too_small_is_told_before_the_start(
    tmp_path: Path, roles: dict[str, Any], says: str
) -> None:
    settings = {"spark.master": "local-cluster[2,1,1024]", "spark.install": spark_install(tmp_path / "spark")}
    made = {name: role if isinstance(role, Role) else Role("true", role) for name, role in roles.items()}
    engine = SparkEngine(settings)
    if not says:
        assert engine.plan(StagedJob(JobSpec(made), tmp_path.as_uri())).request["master"] == settings["spark.master"]
        return
    with pytest.raises(EngineRejected) as refused:
        engine.plan(StagedJob(JobSpec(made), tmp_path.as_uri()))
    assert says in str(refused.value)


def test_a_local_cluster_has_memory_for_so_many_heaps(tmp_path: Path) -> None:
    settings = {"spark.master": "local-cluster[1, 8, 1024]", "spark.install": spark_install(tmp_path / "spark")}
    says = "3 executors with heaps of 512 MiB are needed at the same time, and local-cluster.* has memory for 2"
    with pytest.raises(EngineRejected, match=says):
        SparkEngine(settings).plan(StagedJob(JobSpec({"worker": Role("true", 3)}), tmp_path.as_uri()))


@pytest.mark.parametrize(
    ("conf", "is_accepted"),
    [
        (["spark.dynamicAllocation.enabled=false", "spark.executor.cores=4"], True),
        (["spark.executor.cores=4"], True),
        ([" spark.executor.memory = 128m"], True),
        (["spark.dynamicAllocation.enabled=true", "spark.ui.enabled=false"], False),
    ],
)
def test_executors_that_the_job_describes_need_other_memory(tmp_path: Path, conf: list[str], is_accepted: bool) -> None:
    settings = {"spark.master": "local-cluster[1,4,1024]", "spark.install": spark_install(tmp_path / "spark")}
    job = JobSpec({"worker": Role("true", 4)}, engines={"spark": {"conf": tuple(conf)}})
    with contextlib.nullcontext() if is_accepted else pytest.raises(EngineRejected, match="has memory for 2"):
        SparkEngine(settings).plan(StagedJob(job, tmp_path.as_uri()))


def test_the_doctor_says_what_helps(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    settings = settings_for({"engine": "spark", "spark.master": "k8s://https://somewhere"})
    remedies = {finding.text.split()[0]: finding.advice for finding in checks(settings) if finding.advice}
    assert remedies["spark.home"] == "howdah config set spark.home /shared/DIRECTORY"


def test_a_node_that_does_not_see_the_home_is_told(tmp_path: Path) -> None:
    missing = StagedFile("train.py", (tmp_path / "cache" / "train.py").as_uri())
    with pytest.raises(
        StagingError, match=r"train\.py: No such file or directory; each node must see the home of jobs"
    ):
        prepare(tmp_path / "work", (missing,), tmp_path / "own")


@pytest.mark.parametrize("container", ["container_1_0001_01_000002", ""])
def test_a_container_is_in_a_directory_of_yarns(tmp_path: Path, container: str) -> None:
    """YARN's disks are larger than /tmp, and YARN removes what is there."""
    (tmp_path / "application_1").mkdir()
    environment = {"LOCAL_DIRS": f"{tmp_path}/gone,{tmp_path}/application_1"}
    environment |= {"CONTAINER_ID": container} if container else {}
    expected = str(tmp_path / "application_1") if container else None
    assert container_task._yarn_directory(environment) == expected


@pytest.mark.parametrize("names_user", [True, False])
def test_hadoop_takes_a_program_for_the_user_of_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names_user: bool
) -> None:
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    monkeypatch.setenv("SPARK_USER", "alice")
    variables = {"HOWDAH_MASTER": "http://127.0.0.1:9"}
    order = {"key": "11", "archive": "", "variables": variables, "names_user": names_user}
    found = container_task.write_files(tmp_path, "container", order, {"gpus": ""})
    assert found.get("HADOOP_USER_NAME") == ("alice" if names_user else None)


def test_a_signal_for_sparks_processes_keeps_no_container_from_being_removed(tmp_path: Path) -> None:
    """Spark ends its Python processes by one signal for their group, also those that have just begun."""
    directory = tmp_path / "container"
    directory.mkdir()
    (directory / "bootstrap.pyz").write_text("import time; time.sleep(60)")
    with (tmp_path / "log").open("wb") as log:
        order = {"background": False, "python": ""}
        keeper = container_task.start(directory, dict(os.environ), order, log)
        assert os.getpgid(keeper.pid) == keeper.pid, "it is in the group of Spark's process"
        assert keeper.stdin is not None
        keeper.stdin.close()  # as when Spark's process has ended
        keeper.wait(30)
    assert not directory.exists()


@pytest.mark.parametrize(("pod", "node"), [(["--podName", "job-exec-1"], "job-exec-1"), ([], "10.0.0.1")])
def test_a_node_on_kubernetes_is_the_pod(monkeypatch: pytest.MonkeyPatch, pod: list[str], node: str) -> None:
    """A pod's address is later another pod's, which no failure may be held against."""
    words = ["java", "--executor-id", "1", "--app-id", "a", "--hostname", "10.0.0.1", *pod]
    monkeypatch.setattr(container_task, "_command_line", lambda _pid: words)
    numbers = {"taskAttemptId": lambda: 7, "stageId": lambda: 0, "resources": dict}
    facts = container_task._facts(SimpleNamespace(**numbers), 0)
    assert (facts["node"], facts["executor"], facts["attempt"]) == (node, "1", "7")


@pytest.mark.parametrize("knows_defaults", [True, False])
def test_a_secret_is_on_no_command_line(tmp_path: Path, knows_defaults: bool) -> None:
    """spark-submit has it from a file with its own defaults, whose place the file takes; or else the driver."""
    install = tmp_path / "install"
    submit = Path(spark_install(install), "bin", "spark-submit")
    submit.write_text(
        f'#!/bin/sh\nfor word; do echo "$word"; case $word in */private.*) cp -p "$word" {tmp_path}/seen; esac; done\n'
    )
    submit.chmod(0o700)
    if knows_defaults:
        (install / "jars").mkdir()
        (install / "conf").mkdir()
        (install / "conf" / "spark-defaults.conf").write_text("spark.jars s3a://depot/a.jar\nspark.x goes \\")
    cluster = SparkCluster("yarn", str(submit), {})
    properties = {"spark.executor.cores": "1", "spark.hadoop.fs.s3a.secret.key": "hush \\=é𐍈"}
    link = DriverLink(tmp_path / "socket", tmp_path / "log")

    async def start() -> None:
        await link.start(cluster, properties, tmp_path / "lock")
        assert link._process is not None
        await asyncio.wait_for(link._process.wait(), 30)
        with pytest.raises(EngineUnavailable):
            await link.connect(1)

    asyncio.run(start())
    words = (tmp_path / "log").read_text().splitlines()
    assert "spark.executor.cores=1" in words
    assert not any("hush" in word for word in words)
    seen = tmp_path / "seen"
    assert stat.S_IMODE(seen.stat().st_mode) == 0o600
    if knows_defaults:
        key, value = "spark.hadoop.fs.s3a.secret.key", r"hush\u0020\u005c\u003d\u00e9\ud800\udf48"
        assert seen.read_text() == f"spark.jars s3a://depot/a.jar\nspark.x goes \\\n\n{key}={value}\n"
        assert words[words.index("--properties-file") + 2].endswith("driver.py"), "an option is before the program"
    else:
        assert json.loads(seen.read_text()) == {"spark.hadoop.fs.s3a.secret.key": "hush \\=é𐍈"}
    assert not link._private.exists()


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_defaults_are_those_of_spark_submit(tmp_path: Path, variable: str) -> None:
    (tmp_path / "jars").mkdir()
    directory = tmp_path if variable == "SPARK_CONF_DIR" else tmp_path / "conf"
    cluster = SparkCluster("yarn", "/usr/bin/spark-submit", {variable: str(tmp_path)})
    assert cluster.defaults == directory / "spark-defaults.conf"


@pytest.fixture
def allocator(tmp_path: Path) -> SparkAllocator:
    launches = LaunchOffers(b"k" * 32, (), ())
    options: dict[str, str | tuple[str, ...]] = {
        "driver_socket": str(tmp_path / "socket"),
        "conf": ("spark.dynamicAllocation.enabled=false",),
    }
    job = JobSpec({"worker": Role("true", 4)}, engines={"spark": options})
    context = MasterContext("spark-1", staged_job(tmp_path, job), tmp_path.as_uri(), "127.0.0.1", 1, launches=launches)
    return SparkAllocator(context)


@pytest.mark.parametrize("content", [None, "<configuration", "<configuration></configuration>"])
def test_a_broken_configuration_of_hadoop_fails_no_job_without_files_there(tmp_path: Path, content: str | None) -> None:
    directory = tmp_path / "hadoop"
    if content:
        directory.mkdir()
        (directory / "core-site.xml").write_text(content)
    settings = {"hadoop_conf_dir": str(directory)}
    options: dict[str, str | tuple[str, ...]] = {"driver_socket": str(tmp_path / "socket"), "conf": ()}
    job = JobSpec({"worker": Role("true", 4)}, engines={"spark": options})
    staged, launches = staged_job(tmp_path, job, settings=settings), LaunchOffers(b"k" * 32, (), ())
    context = MasterContext("spark-1", staged, tmp_path.as_uri(), "127.0.0.1", 1, launches=launches)
    assert SparkAllocator(context)._names_user is ("</" in str(content))


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Container killed by YARN for exceeding physical memory limits. 903 MB of 896 MB", "memory"),
        ("The API gave the following container statuses:\n\t container state: terminated\n\t OOMKilled", "memory"),
        ("Container from a bad node: c on host: n. Exit status: 137.\n[2026] Killed by external signal\n.", "lost"),
    ],
)
def test_a_lost_executor_is_told_in_one_line(allocator: SparkAllocator, reason: str, cause: str) -> None:
    container = Container("spark-1.1.1+7", "node1", "worker", Resources())
    allocator._tasks[container.id] = SparkTask(container, "spark-1.1.1", "0", "3")
    allocator._hear({"lost": "3", "reason": reason})
    ended = [event for event in allocator._queue._events if isinstance(event, ContainerEnded)]
    assert [each.exit.cause for each in ended] == [cause]
    assert "\n" not in str(ended[0].exit.detail)


def test_slots_that_come_later_take_back_that_there_are_too_few(allocator: SparkAllocator) -> None:
    allocator._asks["a"] = Ask("a", "worker", 4, 1024)
    allocator._hear({"slots": 2, "ask": "a"})
    waiting = allocator._control / "waiting.json"
    assert "room for 2" in json.loads(waiting.read_text())["worker"]
    allocator._hear({"slots": 4, "ask": "a"})
    assert json.loads(waiting.read_text()) == {}


def test_slots_are_told_when_executors_have_come(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On YARN and Kubernetes the first executors need longer than their number stays the same afterwards."""
    pyspark_stand_in.install(monkeypatch)
    from howdah.engines.spark import driver

    monkeypatch.setattr(driver, "POLL_S", 0.01)
    monkeypatch.setattr(driver, "SLOTS_WAIT_S", 0.05)
    monkeypatch.setattr(driver, "FIRST_SLOTS_WAIT_S", 30.0)
    told: list[int] = []
    slots = [0] * 20 + [2] * 20 + [3] * 20 + [4]

    class Server(driver.DriverServer):
        def _slots(self, profile: Any) -> int:
            return slots.pop(0) if len(slots) > 1 else slots[0]

        def _tell(self, **event: Any) -> None:
            told.append(event["slots"])

    server = Server(SimpleNamespace(), tmp_path / "socket")
    server._running["a"] = {}
    watching = threading.Thread(target=server._tell_slots, args=("a", None, 4), daemon=True)
    watching.start()
    watching.join(30)
    assert told == [2, 3, 4]


def test_a_cluster_finds_its_job_by_the_master_of_its_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The configuration may name no master, as in a driver that YARN has started, or another one."""
    pyspark_stand_in.install(monkeypatch)
    from howdah.spark.cluster import Cluster
    from howdah.spark.feeding_task import Programs

    engine = SparkEngine({"spark.master": "local-cluster[2,1,1024]", "spark.home": str(tmp_path / "jobs")})
    cluster = Cluster(SimpleNamespace(), "spark-1", engine, Programs("name", b"key"), [])
    with pytest.raises(JobNotFound):  # because there is none in this home, and not because no home is known
        cluster.cancel()
    assert cluster._jobs._engine("spark-1") is engine


def test_a_context_that_a_program_has_stopped_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It printed a traceback of howdah's among what the program says."""
    pyspark_stand_in.install(monkeypatch)
    from howdah.engines.spark.driver import DriverServer

    def cancel(_group: str) -> None:
        raise RuntimeError("Cannot call methods on a stopped SparkContext.")

    context: Any = SimpleNamespace(cancelJobGroup=cancel)
    DriverServer(context, tmp_path / "socket")._obey({"cancel": "spark-1.1.1"})


@pytest.mark.parametrize("dynamic", ["true", "false"])
def test_a_program_keeps_its_slot_where_spark_takes_idle_executors_away(
    monkeypatch: pytest.MonkeyPatch, dynamic: str
) -> None:
    pyspark_stand_in.install(monkeypatch)
    from howdah.spark.application_job import for_spark

    conf = {"spark.dynamicAllocation.enabled": dynamic}
    context: Any = SimpleNamespace(getConf=lambda: conf, uiWebUrl="", applicationId="a")
    job = for_spark(context, JobSpec({"worker": Role("true", 2)}), ["worker"], (), Path("/socket"))
    assert job.engines["spark"]["feeding"] == (() if dynamic == "true" else ("worker",))
    assert job.roles["worker"].ports, "it is fed all the same"


@pytest.mark.parametrize(
    ("mode", "home", "keeps"),
    [
        ("cluster", "/home/", True),
        ("cluster", "/", True),
        ("cluster", "/nonexistent", True),
        ("cluster", "", True),
        ("cluster", "own", False),
        ("client", "/home/", False),
    ],
)
def test_a_driver_in_a_container_keeps_state_beside_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str, home: str, keeps: bool
) -> None:
    """YARN sets HOME to /home/, which is nobody's; an image has a home and settings of its own."""
    pyspark_stand_in.install(monkeypatch)
    from howdah.spark.application_job import keep_state_in_container

    monkeypatch.chdir(tmp_path)
    context: Any = SimpleNamespace(getConf=lambda: {"spark.submit.deployMode": mode})
    own = tmp_path / "own"
    own.mkdir()
    environment = {"HOME": str(own) if home == "own" else home, "XDG_CONFIG_HOME": str(own)}
    keep_state_in_container(context, environment)
    places = (state_directory(environment), cache_directory(environment)) if keeps else ()
    assert all(place.is_relative_to(tmp_path / "howdah-home") for place in places)
    assert ("XDG_STATE_HOME" in environment) is ("XDG_CACHE_HOME" in environment) is keeps
    assert user_file(environment) == own / "howdah" / "config.yaml"
    given = {"HOME": "/home/", "HOWDAH_HOME": "/given"}
    keep_state_in_container(context, given)
    assert given == {"HOME": "/home/", "HOWDAH_HOME": "/given"}
