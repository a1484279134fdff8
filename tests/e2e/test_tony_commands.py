"""Tests TonY's commands with programs written for TonY on a real cluster: they train, and end as under TonY."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import CommandLine, Done, eventually
from planned_environment import install_environment

from howdah.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("tony_programs")
DIGITS = ROOT / "examples" / "data" / "digits" / "test" / "part-00000.csv"
LONGEST_S = 900  # on a fresh machine, where the environments are made first

pytestmark = pytest.mark.timeout(LONGEST_S)


@pytest.fixture
def tony(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    """A directory with the sources of all programs, `src`, and a shell for TonY's command in it."""
    shutil.copytree(PROGRAMS, tmp_path / "src")
    shutil.copy(DIGITS, tmp_path / "src" / "digits.csv")
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def python_with(example: str) -> str:
    """The interpreter of an example's environment, which is in the user's own cache."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")}
    return install_environment(ROOT / "examples" / example / "job.yaml", kept, LONGEST_S)


def configuration(directory: Path, **values: str) -> str:
    """A tony.xml; `__` stands for a dot, `_` for a dash."""
    names = {name.replace("__", ".").replace("_", "-"): value for name, value in values.items()}
    properties = (
        f"<property><name>tony.{name}</name><value>{value}</value></property>" for name, value in names.items()
    )
    path = directory / f"tony-{len(list(directory.glob('tony-*.xml')))}.xml"
    path.write_text(f"<configuration>{''.join(properties)}</configuration>")
    return str(path)


def submit(tony: CommandLine, conf: str, program: str, *options: str, python: str = sys.executable) -> Done:
    arguments = (f"--src_dir={tony.directory / 'src'}", f"--executes={program}", f"--conf_file={conf}", *options)
    return tony.start("tony", *arguments, f"--python_binary_path={python}").done(240)


def test_tensorflow_from_a_zip(tony: CommandLine) -> None:
    with zipfile.ZipFile(tony.directory / "src.zip", "w") as archive:
        for path in (tony.directory / "src").iterdir():
            archive.write(path, path.name)
    conf = configuration(
        tony.directory,
        worker__instances="2",
        worker__memory="1g",
        ps__instances="1",
        ps__memory="1g",
        worker__vcores="1",
    )
    arguments = ("--executes", "digits_tf.py", "--task_params", "--steps 200", "-conf_file", conf)
    where = ("--src_dir", str(tony.directory / "src.zip"), "--shell_env", "TF_CPP_MIN_LOG_LEVEL=2")
    python = python_with("digits-tensorflow")
    submitter = "com.linkedin.tony.cli.ClusterSubmitter"
    done = tony.start("tony", submitter, *arguments, *where, "--python_binary_path", python).done(240)
    assert done.code == 0, done.text[-3000:]
    assert "worker:0 accuracy 0.9" in done.text or "worker:0 accuracy 1.0" in done.text
    assert "TB_PORT None" not in done.text
    assert not tony.left(done.job)


def test_pytorch(tony: CommandLine) -> None:
    conf = configuration(
        tony.directory, application__framework="pytorch", worker__instances="2", worker__memory="1g", ps__instances="0"
    )
    done = submit(tony, conf, "digits_torch.py", python=python_with("digits-pytorch"))
    assert done.code == 0, done.text[-3000:]
    assert "rank 0 of 2: accuracy 0.9" in done.text or "rank 0 of 2: accuracy 1.0" in done.text


def test_keras(tony: CommandLine) -> None:
    """The documented command, but for the sizes; the chief is worker:0."""
    conf = configuration(tony.directory, worker__instances="2", worker__memory="1g")
    params = f"--task_params=--working-dir {tony.directory / 'model'}"
    done = submit(tony, conf, "digits_keras.py", params, python=python_with("digits-tensorflow"))
    assert done.code == 0, done.text[-3000:]
    assert "2 replicas, loss 0." in done.text
    assert (tony.directory / "model" / "weights.npy").exists()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="MXNet needs NumPy < 1.24: Python <= 3.11")
def test_mxnet(tony: CommandLine) -> None:
    """The roles and the variable of the documented command."""
    sizes = {"scheduler": "1", "server": "2", "worker": "2", "ps": "0"}
    memory = {f"{role}__memory": "1g" for role in sizes}
    counts = {f"{role}__instances": count for role, count in sizes.items()}
    conf = configuration(
        tony.directory,
        application__framework="mxnet",
        application__untracked__jobtypes="scheduler,server",
        **counts,
        **memory,
    )
    python = python_with("digits-mxnet")
    done = submit(tony, conf, "digits_mxnet.py", "--shell_env=PS_VERBOSE=1,OMP_NUM_THREADS=1", python=python)
    assert done.code == 0, done.text[-3000:]
    assert "worker 0 of 2: sum 3" in done.text


def test_what_is_no_archive_stays_whole_and_yarn_knows_of_the_end(tony: CommandLine) -> None:
    """A resource is unpacked with #archive alone, wherever it is; two variables stand in one --shell_env."""
    with zipfile.ZipFile(tony.directory / "data.zip", "w") as archive:
        archive.writestr("inside.txt", "unpacked")
    there = f"{tony.root}/tmp/tony-data.zip"
    tony.files.write_bytes(there, (tony.directory / "data.zip").read_bytes())
    here = tony.directory / "data.zip"
    names = [f"{here}::a.zip", f"{here}::b.zip#archive", f"{there}::c.zip", f"{there}::d.zip#archive"]
    looks = '[ -f a.zip ] && [ -f c.zip ] && cat b.zip/inside.txt d.zip/inside.txt && echo " $A$B"'
    options = ("--shell_env", "A=1,B=2", "--conf", f"tony.containers.resources={','.join(names)}")
    done = tony("tony", "--executes", looks, "--conf", "tony.am.memory=128m", *options)
    assert done.code == 0, done.text[-3000:]
    assert "unpackedunpacked 12" in done.text
    assert "its page is served by `howdah history` from now on" in done.text
    assert tony.status(done.job)["state"] == "SUCCEEDED"


@pytest.mark.parametrize(("other", "code"), [("4", 0), ("60", 255)])
def test_whom_the_job_waits_for_no_more(tony: CommandLine, other: str, code: int) -> None:
    """A late evaluator runs on when its time is over: it is ended with the job, unless it has failed before."""
    types = dict.fromkeys(("worker", "evaluator", "other"), "1")
    keys = {
        **{f"{name}__instances": one for name, one in types.items()},
        **{f"{name}__memory": "128m" for name in types},
        "application__group__A": "worker",
        "application__dependency__evaluator__timeout__after__A": "1",
        "application__dependency__evaluator__timeout__after__A__ignored": "true",
        "evaluator__command": "sleep 8; exit 3",
        "other__command": f"sleep {other}",
    }
    conf = configuration(tony.directory, **keys)
    done = tony("tony", "--executes", "true", "--conf_file", conf)
    assert done.code == code, done.text[-3000:]
    assert "evaluator:0 still runs 1 s after worker ended: the job waits for it no more" in done.text
    assert ("FAILED: evaluator:0" in done.text) == bool(code)


def test_preprocessing_and_who_may_fail(tony: CommandLine) -> None:
    conf = configuration(
        tony.directory,
        worker__instances="2",
        worker__memory="128m",
        am__memory="128m",
        application__enable_preprocess="true",
    )
    done = submit(tony, conf, "steps.py", "--shell_env=FAIL_worker1=3")
    assert done.code == 0, done.text[-3000:]
    assert f"worker0 of 2 with --rate 0.5 --layers 3 in {done.job}" in done.text
    assert tony.status(done.job)["tasks"][2]["exit"] == "exit code 3"
    there = f"{tony.root}/tmp/tony.xml"
    tony.files.write_bytes(there, Path(conf).read_bytes())
    done = submit(tony, there, "steps.py", "--shell_env=FAIL_worker0=3", f"--hdfs_classpath={there},/none")
    assert done.code == 255
    assert "FAILED: worker:0" in done.text
    assert f"--hdfs_classpath: {tony.root}/none isn't there" in done.text


def test_a_notebook_is_reached_and_ends_with_its_command(tony: CommandLine) -> None:
    page = tony.directory / "src" / "hello.txt"
    page.write_text("from the notebook")
    serve = f'{sys.executable} -m http.server "$TB_PORT"'
    arguments = ("--src_dir", str(tony.directory / "src"), "--executes", serve, "--conf", "tony.am.memory=128m")
    running = tony.start("tony", "notebook", *arguments)
    link = running.says("the notebook is at ").partition("the notebook is at ")[2].split()[0]

    def content() -> bytes:
        try:
            with urllib.request.urlopen(f"{link}/hello.txt", timeout=5) as answer:
                return bytes(answer.read())
        except OSError:
            return b""

    assert eventually(content, "the notebook's page") == b"from the notebook"
    job = running.job
    running.process.send_signal(signal.SIGTERM)
    assert running.done().code == 255
    assert tony.status(job)["state"] == "CANCELLED"


def told(line: CommandLine, task: str) -> list[dict[str, str]]:
    """What the runs of `told.py` were told in this task, `worker0`."""
    return [json.loads(text) for text in (line.directory / f"{task}.jsonl").read_text().splitlines()]


def test_azkabans_job_in_stages_with_files_of_their_own(tony: CommandLine) -> None:
    for name in ("prepare", "worker"):
        (tony.directory / f"{name}.json").write_text(f"{name}'s own")
    job = {
        "executes": "told.py",
        "python_binary_path": sys.executable,
        "worker_env.GREETING": "hello there",
        "worker_env.TOLD": str(tony.directory),
        "tony.worker.instances": "2",
        "tony.prepare.instances": "1",
        "tony.application.prepare-stage": "prepare",
        **{f"tony.{name}.memory": "128m" for name in ("prepare", "worker")},
        **{f"tony.{name}.resources": f"{tony.directory}/{name}.json::own.json" for name in ("prepare", "worker")},
    }
    path = tony.directory / "job.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in job.items()))
    done = tony("azkaban-job", str(path))
    assert done.code == 0, done.text[-3000:]
    for role, index in (("prepare", "0"), ("worker", "0"), ("worker", "1")):
        (found,) = told(tony, role + index)
        assert (found["JOB_NAME"], found["TASK_INDEX"], found["TASK_NUM"]) == (role, index, "3")
        assert (found["OWN"], found["GREETING"], found["JOB_ID"]) == (f"{role}'s own", "hello there", done.job)
        assert (found["SESSION_ID"], found["ATTEMPT_NUMBER"], found.get("NUM_AM_RETRIES")) == ("0", "0", None)
        assert ("IS_CHIEF" in found) == (role + index == "worker0")


def test_independent_tasks_run_on_this_machine(tony: CommandLine) -> None:
    conf = configuration(
        tony.directory,
        application__distributed_mode="FCFS",
        application__fail_on_worker_failure_enabled="true",
        worker__instances="2",
        worker__memory="128m",
        am__retry_count="1",
    )
    source = ("--src_dir", str(tony.directory / "src"), "--shell_env", f"TOLD={tony.directory}")
    python = ("--python_binary_path", sys.executable)
    done = tony(
        "tony", "local", "--executes", "told.py", "--conf_file", conf, *source, *python, "--shell_env=FAIL_ONCE=worker1"
    )
    assert done.code == 0, done.text[-3000:]
    first, second = told(tony, "worker0"), told(tony, "worker1")
    counts = ("SESSION_ID", "ATTEMPT_NUMBER", "NUM_AM_RETRIES")
    assert [[run.get(name) for name in counts] for run in first] == [["0", "0", None]]
    assert [[run.get(name) for name in counts] for run in second] == [["0", "0", None], ["1", "1", "1"]]
    assert {run["DISTRIBUTED_MODE"] for run in (*first, *second)} == {"FCFS"}
    assert not any("CLUSTER_SPEC" in run or "TF_CONFIG" in run for run in (*first, *second))


def test_bad_commands_end_with_255(tony: CommandLine) -> None:
    done = tony("tony", "--executes", "a", "--conf", "tony.worker.instances=x")
    assert done.code == 255
    assert "tony.worker.instances: is 'x', must be a whole number" in done.text


def test_a_virtual_environment_keeps_its_modes(tony: CommandLine) -> None:
    with zipfile.ZipFile(tony.directory / "venv.zip", "w") as archive:
        entry = zipfile.ZipInfo("env/bin/python")
        entry.external_attr = 0o100755 << 16
        archive.writestr(entry, f'#!/bin/sh\nFAIL_driver0=7 exec {sys.executable} "$@"\n')
    options = ("--src_dir", str(tony.directory / "src"), "--executes=steps.py", "--conf=tony.am.memory=128m")
    done = tony("tony", *options, f"--python_venv={tony.directory / 'venv.zip'}", "--python_binary_path=env/bin/python")
    assert done.code == 255
    assert "driver:0 on " in done.text
    assert "exit code 7" in done.text, done.text[-3000:]


def test_history_on_hdfs(tony: CommandLine) -> None:
    data = base64.b64decode((ROOT / "tests" / "golden" / "tony" / "history.base64").read_text())
    name = "application_1541469337545_0031-1542325695566-1542325733766-user1-SUCCEEDED.jhist"
    tony.files.mkdirs(f"{tony.root}/tmp/tony-history/finished")
    tony.files.write_bytes(f"{tony.root}/tmp/tony-history/finished/{name}", data)
    done = tony("import-history", "hdfs:///tmp/tony-history")
    assert (done.code, "local-application_1541469337545_0031: SUCCEEDED, 3 tasks" in done.text) == (0, True), done.text
    assert tony.status("local-application_1541469337545_0031")["tasks"][1]["exit"] == "exit code 3"
    done = tony("import-history", f"{tony.root}/tmp/tony-history", "--to", f"{tony.root}/tmp/.howdah")
    assert done.code == 0, done.text
    assert tony.files.exists(f"{tony.root}/tmp/.howdah/jobs/application_1541469337545_0031/events.jsonl")
