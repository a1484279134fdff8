"""Tests reading logs of ended jobs on a cluster whose nodes aggregate them in the indexed format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from commandline import CommandLine

from howdah.sandbox import Sandbox
from howdah.storage.content_cache import local_directory

JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME
NAME = "yarn.log-aggregation.file-controller.IFile.class"
CONTROLLER = "org.apache.hadoop.yarn.logaggregation.filecontroller.ifile.LogAggregationIndexedFileController"
FORMAT = {"yarn.log-aggregation.file-formats": "IFile", NAME: CONTROLLER}
LONG = "import os; [print(f'{n} of {os.environ[\"HOWDAH_TASK\"]}') for n in range(300000)]"


@pytest.fixture(scope="module")
def howdah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    directory = tmp_path_factory.mktemp("indexed")
    yarn = {**FORMAT, "yarn.nodemanager.log-aggregation.compression-type": "gz"}
    with (
        pytest.MonkeyPatch.context() as environment,
        Sandbox(directory / "run", nodes=2, properties={"yarn-site": yarn}, cache=JARS) as sandbox,
    ):
        environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
        environment.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("home")))
        command_line = CommandLine(sandbox, directory)
        yield command_line
        command_line.end_all()


def test_what_tasks_printed(howdah: CommandLine) -> None:
    done = howdah.run(["python3", "-c", LONG], replicas=3).done()
    assert done.code == 0, done.text
    for task in ("worker:0", "worker:2"):
        kept = howdah("logs", done.job, task)
        assert kept.code == 0, kept.text
        _, heading, printed = kept.out.partition(f"==> {task} attempt 1 stdout <==\n".encode())
        assert heading, kept.out[:300]
        whole = "".join(f"{n} of {task}\n" for n in range(300000)).encode()
        assert hashlib.sha256(printed[: len(whole)]).digest() == hashlib.sha256(whole).digest()
    assert b"==> worker:1 attempt 1 stderr <==" in howdah("logs", done.job).out
    found = howdah("logs", done.job, "--grep", "^299999 of")
    assert sorted(found.out.splitlines()) == [b"worker:%d | 299999 of worker:%d" % (n, n) for n in range(3)]
