"""Tests Submarine's commands and programs on a real cluster, and its keytab with a real KDC."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import kdc
import pytest
from commandline import HOWDAH, CommandLine, eventually
from test_tensorboard_jobs import Browser, its_environment  # noqa: F401 - a fixture
from test_tony_commands import DIGITS, LONGEST_S, python_with, told
from test_tony_commands import PROGRAMS as TONY_PROGRAMS

from howdah.compat.submarine.job_run import Submarine
from howdah.sandbox import Sandbox
from howdah.sandbox.addresses import free_port
from howdah.spec import uris

PROGRAMS = Path(__file__).with_name("submarine_programs")
GOLDEN = Path(__file__).parents[1] / "golden" / "submarine"
JOB = """
spec:
  name: digits-tf
configs:
  inputPath: digits/part-00000.csv
  waitJobFinish: true
  envs: {{TF_CPP_MIN_LOG_LEVEL: "2"}}
  localizations:
    - {programs}/digits_tf.py:.
    - {root}/tmp/submarine-digits:./digits:rw
roles:
  worker:
    replicas: 2
    resources: memory=1G,vcores=1
    launchCmd: {python} digits_tf.py %input_path% %checkpoint_path%
  ps:
    replicas: 1
    resources: memory=1024,vcores=1
    launchCmd: {python} digits_tf.py %input_path% %checkpoint_path%
"""

pytestmark = pytest.mark.timeout(LONGEST_S)


@pytest.fixture
def submarine(sandbox: Sandbox, tmp_path: Path) -> Iterator[CommandLine]:
    line = CommandLine(sandbox, tmp_path)
    yield line
    line.end_all()


def test_tensorflow_from_yaml(submarine: CommandLine) -> None:
    submarine.files.mkdirs(f"{submarine.root}/tmp/submarine-digits")
    submarine.files.write_bytes(f"{submarine.root}/tmp/submarine-digits/part-00000.csv", DIGITS.read_bytes())
    job = submarine.directory / "job.yaml"
    python = python_with("digits-tensorflow")
    job.write_text(JOB.format(programs=PROGRAMS, root=submarine.root, python=python))
    done = submarine.start("submarine", "job", "run", "-f", str(job)).done(240)
    assert done.code == 0, done.text[-3000:]
    assert "master:0 accuracy 0.9" in done.text or "master:0 accuracy 1.0" in done.text
    assert f"checkpoints in {submarine.root}/user/" in done.text
    assert "memory=1024 is taken as 1024M" in done.text
    assert not submarine.left(done.job)


def test_pytorch_and_its_meta_information(submarine: CommandLine) -> None:
    shutil.copy(DIGITS, submarine.directory / "digits.csv")
    size = ("--num_workers", "2", "--worker_resources", "memory=1G,vcores=1", "-worker_launch_cmd")
    command = f"{python_with('digits-pytorch')} digits_torch.py"
    files = [f"--localization={path}:." for path in (PROGRAMS / "digits_torch.py", submarine.directory / "digits.csv")]
    run = ("job", "run", "--name", "digits-torch", "--framework=pytorch", *size, command, *files)
    done = submarine.start("submarine", "x.jar", *run, "--input_path", "digits.csv", "--wait_job_finish").done(240)
    assert done.code == 0, done.text[-3000:]
    assert "PRIMARY_WORKER of 2: accuracy 0.9" in done.text or "PRIMARY_WORKER of 2: accuracy 1.0" in done.text
    made = f"{submarine.root}/user/{getpass.getuser()}/submarine/jobs/digits-torch/staging/checkpoint_path"
    paths = f"\tInput Path: digits.csv\n\tSaved Model Path: {made}\n\tCheckpoint Path: {made}\n"
    typed = "\tRun Parameters: --name digits-torch --framework=pytorch "
    expected = f"Job Meta Info:\n\tApplication Id: {done.job}\n{paths}{typed}"

    def shown() -> bool:
        """The ResourceManager hears of the end a little later than the client."""
        text = submarine("submarine", "job", "show", "--name", "digits-torch").text
        return text.startswith(expected) and "\n\tState: SUCCEEDED\n" in text

    assert eventually(shown, expected)
    assert done.job in submarine("submarine", "job", "list").text


def test_the_runtime_of_tony(submarine: CommandLine) -> None:
    run = ("--name", "told", "--insecure", "--num_workers", "2", "--num_ps", "1", "--wait_job_finish")
    size, command = "memory=2G,vcores=1", f"{sys.executable} told.py"
    tasks = [
        f"--{role}_{what}={value}"
        for role in ("worker", "ps")
        for what, value in (("resources", size), ("launch_cmd", command))
    ]
    over = (
        "--conf",
        "tony.worker.memory=128m",
        "--conf",
        "tony.ps.memory=128m",
        "--env",
        "GREETING=hello",
        f"--env=TOLD={submarine.directory}",
    )
    file = f"--localization={TONY_PROGRAMS / 'told.py'}:."
    done = submarine("submarine", "job", "run", *run, *tasks, *over, file)
    assert done.code == 0, done.text[-3000:]
    for index in range(2):
        (found,) = told(submarine, f"worker{index}")
        assert (found["JOB_NAME"], found["TASK_INDEX"], found["TASK_NUM"]) == ("worker", str(index), "2")
        assert (found["DISTRIBUTED_MODE"], found["GREETING"], found["SESSION_ID"]) == ("GANG", "hello", "0")
        spec, config = json.loads(found["CLUSTER_SPEC"]), json.loads(found["TF_CONFIG"])
        assert {role: len(those) for role, those in spec.items()} == {"worker": 2, "ps": 1}
        assert config == {"cluster": spec, "task": {"type": "worker", "index": index}}


@pytest.mark.usefixtures("its_environment")
def test_tensorboard_alone_shows_all_jobs(submarine: CommandLine) -> None:
    done = submarine("submarine", "job", "run", "--name", "curves", "--num_workers", "0", "--tensorboard")
    assert done.code == 0, done.text

    def page() -> str:
        shown = submarine("submarine", "job", "show", done.job).text
        assert "State: FAILED" not in shown, shown
        link = shown.partition("\tTensorboard: ")[2].partition("\n")[0]
        try:
            return Browser(link).first if link else ""
        except OSError:  # it runs, and doesn't listen yet
            return ""

    assert "TensorBoard" in eventually(page, "TensorBoard's page")
    assert f"{done.job} CANCELLED" in submarine("submarine", "job", "kill", done.job).text


def test_a_notebook_is_shown_and_killed(submarine: CommandLine) -> None:
    port = free_port()
    (submarine.directory / "hello.txt").write_text("from the notebook")
    serve = f"{sys.executable} -m http.server {port}"
    run = ("--name", "notes", "--worker_resources", "memory=128M", "--worker_launch_cmd", serve)
    beside = ("--quicklink", f"Notebook=http://master-0:{port}", f"--localization={submarine.directory}/hello.txt:.")
    done = submarine("submarine", "job", "run", "--num_workers", "1", *run, *beside)
    assert (done.code, done.text.splitlines()[-1]) == (0, f"submitted {done.job} to yarn")

    def page() -> bytes:
        shown = submarine("submarine", "job", "show", "--name", "notes").text
        link = shown.partition("\tNotebook: ")[2].partition("\n")[0]
        try:
            return bytes(urllib.request.urlopen(f"{link}/hello.txt", timeout=5).read()) if link else b""
        except OSError:
            return b""

    assert eventually(page, "the notebook's page") == b"from the notebook"
    killed = submarine("submarine", "job", "kill", "--name=notes").text
    assert f"{done.job} CANCELLED" in killed
    assert "State: CANCELLED" in submarine("submarine", "job", "show", done.job).text
    assert not submarine.left(done.job)


def documented(name: str) -> list[str]:
    """A command of Submarine's guides, as the golden file of that name has it."""
    words: list[str] = json.loads((GOLDEN / f"documented-{name}.json").read_text())["argv"]
    return words


def with_its_venv(submarine: CommandLine, example: str) -> str:
    """A directory with what the guides have packed and downloaded before: `myvenv.zip`, and the data."""
    directory = submarine.directory / "packed"
    directory.mkdir()
    with zipfile.ZipFile(directory / "myvenv.zip", "w") as archive:
        python = zipfile.ZipInfo("venv/bin/python")
        python.external_attr = 0o100755 << 16
        archive.writestr(python, f'#!/bin/sh\nexec {python_with(example)} "$@"\n')
    shutil.copy(DIGITS, directory / "digits.csv")
    return str(directory)


def of_tony(directory: str, program: Path, name: str) -> str:
    """The value of `tony.containers.resources`, as the guides write it."""
    shutil.copy(program, Path(directory, name))
    return f"tony.containers.resources={directory}/myvenv.zip#archive,{directory}/{name},{directory}/digits.csv"


def test_the_documented_tensorflow_command(submarine: CommandLine) -> None:
    directory = with_its_venv(submarine, "digits-tensorflow")
    resources = of_tony(directory, TONY_PROGRAMS / "digits_tf.py", "mnist_distributed.py")
    words = [resources if "tony.containers" in word else word for word in documented("tony-tensorflow")]
    done = submarine.start("submarine", *words, "--wait_job_finish").done(LONGEST_S)
    assert done.code == 0, done.text[-3000:]
    assert re.search(r"worker:0 accuracy [01]\.", done.text), done.text[-3000:]  # after the two steps it asks for


def test_the_documented_script_for_pytorch(submarine: CommandLine) -> None:
    directory = with_its_venv(submarine, "digits-pytorch")
    resources = of_tony(directory, TONY_PROGRAMS / "digits_torch.py", "pytorch_mnist_distributed.py")
    words = [resources if "tony.containers" in word else word for word in documented("script-of-java")]
    done = submarine.start("submarine", *words, "--wait_job_finish").done(LONGEST_S)
    assert done.code == 0, done.text[-3000:]
    assert "rank 0 of 2: accuracy 0.9" in done.text or "rank 0 of 2: accuracy 1.0" in done.text


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="MXNet needs NumPy < 1.24: Python <= 3.11")
def test_the_documented_mxnet_command(submarine: CommandLine) -> None:
    directory = with_its_venv(submarine, "digits-mxnet")
    resources = of_tony(directory, PROGRAMS / "image_classification.py", "image_classification.py")
    words = [resources if "tony.containers" in word else word for word in documented("mxnet")]
    done = submarine.start("submarine", *words, "--env", "OMP_NUM_THREADS=1", "--wait_job_finish").done(LONGEST_S)
    assert done.code == 0, done.text[-3000:]
    assert re.search(r"of 2: accuracy (0\.[89]|1\.0)", done.text), done.text[-3000:]


@pytest.mark.parametrize("name", ["pytorch-single", "kaldi"])
def test_a_documented_image_is_never_passed_over(name: str, submarine: CommandLine) -> None:
    """The sandbox's nodes are not set up for containers, and were those of who tried it first."""
    small = {"memory=64G,vcores=32,gpu=1": "memory=1G", "memory=5G": "memory=1G"}
    words = [small.get(word, word) for word in documented(name)]
    done = submarine("submarine", *words, *(() if "--wait_job_finish" in words else ("--wait_job_finish",)))
    assert done.code == 1, done.text[-3000:]
    image = words[words.index("--docker_image") + 1]
    assert f"image '{image}' is not used: the NodeManager of 127.0.0.1" in done.text
    assert "yarn.nodemanager.runtime.linux.allowed-runtimes" in done.text


ROLES = """
spec: {{name: roles, framework: tensorflow}}
configs:
  wait_job_finish: true
  localizations: ["{root}/tmp/of-all:./all"]
roles:
  worker:
    replicas: 2
    resources: memory=128M
    launch_cmd: cat all/__init__.py data/own && test ! -e ps.txt && until [ -s {told} ]; do sleep 0.1; done
    localizations: ["{root}/tmp/of-worker:./data"]
  ps:
    replicas: 1
    resources: memory=128M
    launch_cmd: cat all/__init__.py data/own ps.txt > {told}.new && mv {told}.new {told} && sleep 600
    localizations: ["{root}/tmp/of-ps:./data", "{root}/tmp/of-all/ps.txt:."]
"""


def test_what_a_role_localises_is_its_own_and_the_checkpoint_path_is_made(submarine: CommandLine) -> None:
    for name, text in (("of-all/__init__.py", "everyone's "), ("of-all/ps.txt", "a file"), ("of-all/_/.hidden", "")):
        submarine.files.mkdirs(uris.parent(f"{submarine.root}/tmp/{name}"))
        submarine.files.write_bytes(f"{submarine.root}/tmp/{name}", text.encode())
    for role in ("worker", "ps"):
        submarine.files.mkdirs(f"{submarine.root}/tmp/of-{role}")
        submarine.files.write_bytes(f"{submarine.root}/tmp/of-{role}/own", f"{role}'s ".encode())
    job, told = submarine.directory / "job.yaml", submarine.directory / "told"
    job.write_text(ROLES.format(root=submarine.root, told=told))
    done = submarine("submarine", "job", "run", "-f", str(job))
    assert done.code == 0, done.text[-3000:]
    assert "master:0 | everyone's worker's " in done.text
    assert told.read_text() == "everyone's ps's a file"
    path = f"{submarine.root}/user/{getpass.getuser()}/submarine/jobs/roles/staging/checkpoint_path"
    there = submarine.files.stat(path)
    assert there is not None
    assert there.is_dir
    shown = submarine("submarine", "job", "show", "--name", "roles").text
    assert f"\tSaved Model Path: {path}\n\tCheckpoint Path: {path}\n" in shown


@pytest.mark.parametrize(("legacy", "code"), [((), 2), (("--legacy",), 0)])
def test_a_job_that_is_stopped(legacy: tuple[str, ...], code: int, submarine: CommandLine) -> None:
    run = ("--name", "stopped", "--worker_resources", "memory=128M", "--worker_launch_cmd", "echo runs; sleep 600")
    running = submarine.start("submarine", "job", "run", *run, "--wait_job_finish", *legacy)
    running.says("master:0 | runs")
    assert "CANCELLED" in submarine("submarine", "job", "kill", running.job).text
    assert running.done().code == code


def test_help_says_what_each_option_means(submarine: CommandLine) -> None:
    for words in (("--help",), ("job", "run", "--help"), ("help",), ()):
        done = submarine("submarine", *words)
        assert done.code == 0
        assert "--quicklink …               LABEL=http://INSTANCE:PORT" in done.text
    assert "用 --keytab 登录的身份" in submarine("submarine", "-h", HOWDAH_LANGUAGE="zh").text
    for words in (("experiment", "list"), ("list", "notebook"), ("sandbox", "start")):
        assert "is of Submarine 0.5 and later" in submarine("submarine", *words).text


def test_what_cannot_be_says_so(submarine: CommandLine) -> None:
    assert submarine("submarine", "job", "run", "--num_worker", "1").code == 64
    assert "no job is called 'no'" in submarine("submarine", "job", "kill", "--name", "no").text
    assert "--name: is missing" in submarine("submarine", "job", "show").text
    assert "is of Submarine 0.5 and later" in submarine("submarine", "get", "experiment").text
    assert "job run, job show" in submarine("submarine", "model", "serve").text


@pytest.mark.skipif(bool(kdc.missing()), reason=f"no {', '.join(kdc.missing())} on this machine")
def test_a_keytab_logs_in(tmp_path: Path) -> None:
    with kdc.Kdc(tmp_path) as realm:
        keytab = realm.keytab("alice")
        options = ("--keytab", str(keytab), "--principal", f"alice@{kdc.REALM}", "--num_workers", "1")
        more = ("--name", "k", "--worker_resources", "memory=1G", "--worker_launch_cmd", "x")
        parsed = Submarine(tmp_path, {}, str(tmp_path)).parse(["job", "run", *options, *more])
        program = "from howdah.hadoop.gss import ticket_holder; print(ticket_holder())"
        environment = {**os.environ, **realm.env, **parsed.variables}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=60)
        assert done.stdout.decode().strip() == f"alice@{kdc.REALM}"
        secured = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>"
        (tmp_path / "core-site.xml").write_text(f"<configuration>{secured}</configuration>")
        command = [HOWDAH, "submarine", "job", "run", *options[:2], "--principal", "bob", *options[4:], *more]
        environment = {**os.environ, **realm.env, "HADOOP_CONF_DIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=60)
    wrong = f"--principal: is 'bob', but the keytab's first key is that of 'alice@{kdc.REALM}'"
    assert (done.returncode, wrong in done.stderr.decode()) == (64, True), done.stderr
