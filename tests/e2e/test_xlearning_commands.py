"""Tests `xl-submit` and `hbox-submit` on a real cluster: jobs end as they did under XLearning and HBox.

The programs are theirs, too: a hand-written TensorFlow cluster from XLearning's own variables, and torch with the
process group that HBox's small letters describe.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import eventually
from xlearning_client import LIMIT_S, XLearningClient, xlearning_client_in

from howdah.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TENSORFLOW = EXAMPLES / "digits-tensorflow" / "requirements.lock"
TORCH = EXAMPLES / "digits-pytorch" / "requirements.lock"
pytestmark = pytest.mark.timeout(LIMIT_S)


@pytest.fixture(scope="module")
def client(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[XLearningClient]:
    with xlearning_client_in(sandbox, tmp_path_factory.mktemp("client")) as client:
        yield client


@pytest.fixture(scope="module")
def digits(client: XLearningClient) -> None:
    """The training data on the cluster, the test data beside the scripts."""
    for part in sorted((EXAMPLES / "data" / "digits" / "train").iterdir()):
        client.put(f"/xl/digits/{part.name}", part.read_text())
    shutil.copy(EXAMPLES / "data" / "digits" / "test" / "part-00000.csv", client.directory / "test.csv")


@pytest.mark.usefixtures("digits")
def test_tensorflow_with_a_parameter_server(client: XLearningClient) -> None:
    for name in ("demo.py", "dataDeal.py"):
        shutil.copy(EXAMPLES / "digits-tensorflow-v1" / name, client.directory)
    done = client(
        "xl-submit",
        "--app-type tensorflow --app-name tf-demo --input /xl/digits#data --output /xl/tf-model#model "
        "--files demo.py,dataDeal.py --worker-memory 1536M --worker-num 2 --ps-memory 1536M --ps-num 1 "
        "--board-enable false --queue default --launch-cmd",
        "python demo.py --data_path=./data --save_path=./model --log_dir=./eventLog --training_epochs=2",
        HOWDAH_ENVIRONMENT=str(TENSORFLOW),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(name.startswith("worker-0/") for name in client.names("/xl/tf-model"))


DDP = """
import gc, os, torch, torch.distributed as dist
address, port = os.environ["master_addr"], os.environ["master_port"]
assert os.environ["INIT_METHOD"] == f"tcp://{address}:{port}"
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["INIT_METHOD"], rank=rank, world_size=size)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
torch.nn.init.zeros_(model.module.weight)
model(torch.full((1, 2), float(rank + 1))).sum().backward()
print("gradient", model.module.weight.grad.tolist(), flush=True)
del model
gc.collect()
dist.destroy_process_group()
"""


def test_torch(client: XLearningClient) -> None:
    (client.directory / "ddp.py").write_text(DDP)
    done = client(
        "hbox-submit",
        "--app-type distTorch --worker-num 2 --worker-memory 1G --files ddp.py --queue default",
        *("python", "ddp.py"),
        HOWDAH_ENVIRONMENT=str(TORCH),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gradient [[1.5, 1.5]]" in done.stdout


@pytest.mark.parametrize(("failing", "code"), [(1, 0), (2, 2)])
def test_fewer_than_half_may_fail(client: XLearningClient, failing: int, code: int) -> None:
    """The others go on to their end; half of them are too many."""
    command = ("sh", "-c", f"[ $INDEX -ge {failing} ] && echo $INDEX > out/index", "$0 'kept'")
    done = client(
        "hbox-submit",
        f"--app-type fake-app-type --worker-num 4 --worker-memory 64M --output /xl/rate-{failing}#out --queue default",
        *command,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert not client.howdah.files.exists(f"{client.howdah.root}/xl/rate-{failing}.saved")
    if code:
        assert "2 of 4 tasks failed" in done.stdout
        assert not client.howdah.files.exists(f"{client.howdah.root}/xl/rate-{failing}")
    else:
        assert client.names(f"/xl/rate-{failing}") == [f"worker-{n}/index" for n in (1, 2, 3)]


def test_placeholder_files_variables_and_where_things_are(client: XLearningClient) -> None:
    for name in ("a", "b", "c"):
        client.put(f"/xl/list/{name}.txt", name)
    client.put("/xl/cached.txt", "cached")
    (client.directory / "job.sh").write_text(
        'cat "$PWD/alias.txt" > model/report; echo " $A $INPUT_FILE_LIST $INDEX" >> model/report\n'
        'echo "$LD_LIBRARY_PATH $PATH" >> model/report\n'
        "touch $XLEARNING_CONTAINER_LOG_DIR/own.log && echo logged >> model/report\n"
    )
    site = client.directory / "site"
    site.mkdir(exist_ok=True)
    values = {"xlearning.worker.memory": "64M", "xlearning.worker.num": "1", "xlearning.output.local.dir": "model"}
    text = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
    (site / "xlearning-site.xml").write_text(f"<configuration>{text}</configuration>")
    done = client(
        "xl-submit",
        "--worker-num 2 --input /xl/list#data --input-strategy PLACEHOLDER --output /xl/report --files job.sh "
        "--cacheFile /xl/cached.txt#alias.txt --user-path /opt/mine --conf xlearning.container.env.A=b=c "
        "--output-index 1 --queue default --launch-cmd",
        "sh job.sh",
        XLEARNING_CONF_DIR=str(site),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "xlearning-site.xml counts here" in done.stderr
    assert client.names("/xl/report") == ["model/report"]
    report = client.read("/xl/report/model/report")
    found = json.loads(re.findall(r"\{.*\}", report)[0])
    assert found == {"data": [f"{client.howdah.root}/xl/list/b.txt"]}
    assert report.startswith("cached b=c ")
    assert ":/opt/mine" in report
    assert report.endswith("\nlogged\n")
    assert " 1\n./" in report


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(
            "mxnet",
            "--ps-num 1 --ps-memory 1G --am-memory 1G --conf xlearning.container.env.OMP_NUM_THREADS=1",
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="MXNet needs NumPy < 1.24: Python <= 3.11"),
        ),
        ("xgboost", ""),
    ],
)
def test_digits_with(client: XLearningClient, kind: str, options: str) -> None:
    """The scheduler, or the tracker, that ran in the master there is started beside the workers."""
    shutil.copy(EXAMPLES / f"digits-{kind}" / "train.py", client.directory / f"digits_{kind}.py")
    done = client(
        "xl-submit",
        f"--app-type {'dist' * (kind == 'xgboost')}{kind} --worker-num 2 --worker-memory 1G {options} "
        f"--input /xl/digits#data --files digits_{kind}.py,test.csv --output /xl/{kind}#model --queue default "
        "--launch-cmd",
        f"python digits_{kind}.py --test .",
        HOWDAH_ENVIRONMENT=str(EXAMPLES / f"digits-{kind}" / "requirements.lock"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert client.names(f"/xl/{kind}")


LIGHTGBM = """
import os
from pathlib import Path
import lightgbm, numpy as np
rows = np.concatenate([np.loadtxt(path, delimiter=",", ndmin=2) for path in sorted(Path("data").glob("*.csv"))])
machines = ",".join(":".join(line.split()) for line in Path("lightGBMlist.txt").read_text().splitlines())
told = {"num_machines": int(os.environ["LIGHTGBM_NUM_MACHINE"]), "machines": machines, "pre_partition": True,
        "local_listen_port": int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"]), "tree_learner": "data", "num_threads": 1}
told.update(objective="multiclass", num_class=10)
model = lightgbm.train(told, lightgbm.Dataset(rows[:, 1:], rows[:, 0]), 2)
print(model.num_trees(), "trees", flush=True)
"""


@pytest.mark.usefixtures("digits")
def test_lightgbm_by_its_list_of_machines(client: XLearningClient) -> None:
    (client.directory / "lightgbm_list.py").write_text(LIGHTGBM)
    done = client(
        "hbox-submit",
        "--app-type distLightGBM --worker-num 2 --worker-memory 1G --input /xl/digits#data --files lightgbm_list.py "
        "--queue default",
        *("python", "lightgbm_list.py"),
        HOWDAH_ENVIRONMENT=str(EXAMPLES / "digits-xgboost" / "requirements.lock"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "total number of machines: 2" in done.stdout
    assert "20 trees" in done.stdout


TOLD = """
import json, os, sys, time
from pathlib import Path
directory, everybody = Path(sys.argv[1]), int(sys.argv[2])
files = {path.as_posix(): path.read_text() for path in (*Path().glob("*.txt"), *Path().glob("data/*"))}
me = directory / os.environ["HOWDAH_TASK"]
me.with_suffix(".new").write_text(json.dumps({**os.environ, "argv": sys.argv, "files": files}))
me.with_suffix(".new").rename(me)
for _ in range(900):  # servers and evaluators are stopped when the workers have ended
    if len([path for path in directory.iterdir() if not path.suffix]) == everybody:
        sys.exit(0)
    time.sleep(0.1)
sys.exit("not everybody has come")
"""


def told(client: XLearningClient, kind: str, options: str, everybody: int) -> dict[str, dict[str, Any]]:
    """What the tasks of a job found: their variables, and texts of the files they had."""
    (client.directory / "told.py").write_text(TOLD)
    directory = client.directory / f"told-{kind}"
    directory.mkdir()
    line = f"--app-type {kind} --worker-memory 64M {options} --files told.py --queue default"
    done = client("hbox-submit", line, "python3", "told.py", str(directory), str(everybody))
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: json.loads(path.read_text()) for path in directory.iterdir()}


def test_tensor2tensor_with_an_evaluator(client: XLearningClient) -> None:
    for name in ("a", "b"):
        client.put(f"/xl/dealt/{name}", name)
    options = "--worker-num 3 --ps-num 1 --ps-memory 64M --tf-evaluator true --input /xl/dealt#data"
    found = told(client, "tensor2tensor", options, 4)
    configs = {task: json.loads(variables["TF_CONFIG"]) for task, variables in found.items()}
    masters = configs["worker:0"]["cluster"]["master"]
    assert masters[1] == found["worker:1"]["LOCAL_ADDRESS"]
    assert configs["ps:0"]["cluster"]["ps"] == [found["ps:0"]["LOCAL_ADDRESS"]]
    assert (configs["worker:1"]["task"], configs["worker:1"]["environment"]) == (
        {"type": "master", "index": 1},
        "cloud",
    )
    roles = {task: (variables["TF_ROLE"], variables["TF_INDEX"]) for task, variables in found.items()}
    assert roles["evaluator:0"] == ("evaluator", "0")
    assert roles["worker:1"] == ("worker", "1")
    dealt = {task: list(variables["files"].values()) for task, variables in found.items()}
    assert dealt == {"worker:0": ["a"], "worker:1": ["b"], "ps:0": [], "evaluator:0": []}


def test_xflow(client: XLearningClient) -> None:
    found = told(client, "xflow", "--worker-num 2 --ps-num 1 --ps-memory 64M --driver-memory 64M", 4)
    assert {variables["DMLC_PS_ROOT_PORT"] for variables in found.values()} == {found["scheduler:0"]["HOWDAH_PORT"]}
    assert {task: variables["DMLC_ROLE"] for task, variables in found.items()} == {
        **{"worker:0": "worker", "worker:1": "worker", "ps:0": "server", "scheduler:0": "scheduler"}
    }
    last = found["worker:1"]
    assert (last["DMLC_WORKER_ID"], last["HEAPPROFILE"], found["ps:0"]["HEAPPROFILE"]) == ("1", "./W1", "./S0")
    assert (last["DMLC_NUM_WORKER"], last["DMLC_NUM_SERVER"]) == ("2", "1")


def test_lightlda(client: XLearningClient) -> None:
    found = told(client, "distlightlda", "--worker-num 2 --ps-num 1 --ps-memory 64M", 3)
    server, worker = found["ps:0"], found["worker:1"]
    assert worker["files"]["lightLdaEndPoints.txt"] == f"0 {server['LIGHTLDA_SERVER_ENDPOINT']}\n"
    assert (worker["LIGHTLDA_RANK"], worker["LIGHTLDA_ROLE"], server["LIGHTLDA_ROLE"]) == ("1", "worker", "ps")
    assert (worker["LIGHTLDA_WORKER_NUM"], worker["LIGHTLDA_SERVER_NUM"]) == ("2", "1")


def test_digits_serves_at_its_tasks_port_for_a_while(client: XLearningClient) -> None:
    program = (
        "import os, sys, time; print(sys.argv[1:] == ['-p', os.environ['HOWDAH_PORT']], flush=True); time.sleep(60)"
    )
    (client.directory / "digits.py").write_text(program)
    line = "--app-type digits --worker-memory 64M --duration 2s --files digits.py --queue default"
    done = client("hbox-submit", line, HOWDAH_ENVIRONMENT=sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "True" in done.stdout


def test_records_in_and_out(client: XLearningClient) -> None:
    for name in ("a", "b", "c"):
        client.put(f"/xl/lines/{name}.txt", f"{name} one\n{name} two\n")
    done = client(
        "hbox-submit",
        "--worker-num 2 --worker-memory 192M --input /xl/lines#in --input-strategy STREAM --stream-epoch 2 "
        "--output /xl/streamed#out --output-strategy STREAM --queue default",
        *("tr", "a-z", "A-Z"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for name in client.names("/xl/streamed") for line in client.read(f"/xl/streamed/{name}").splitlines()]
    assert sorted(lines) == sorted(f"{name} {number}" for name in "ABC" for number in ("ONE", "TWO") for _ in range(2))


@pytest.mark.usefixtures("digits")
def test_workers_that_mirror_each_other(client: XLearningClient) -> None:
    """Without servers HBox's TensorFlow is one cluster of workers."""
    shutil.copy(EXAMPLES / "digits-tensorflow-mwms" / "train.py", client.directory / "mirrored.py")
    done = client(
        "hbox-submit",
        "--app-type tensorflow --worker-num 2 --worker-memory 1536M --input /xl/digits#data --output-index 0 "
        "--output /xl/mirrored#model --files mirrored.py,test.csv --queue default",
        *("python", "mirrored.py", "--test", ".", "--epochs", "1"),
        HOWDAH_ENVIRONMENT=str(TENSORFLOW),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch 1: loss" in done.stdout
    assert client.names("/xl/mirrored")


def asked(page: str, path: str, method: str = "GET", token: str = "", accept: str = "") -> tuple[int, str]:
    """Through YARN's proxy, as a browser."""
    body = json.dumps({"token": token}).encode() if token else None
    # What looks like a form, the proxy takes apart itself.
    headers = {"Accept": accept or "*/*", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{page}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_looked_at_by_their_calls_saved_and_killed(client: XLearningClient) -> None:
    line = "--app-type caffe --worker-num 1 --worker-memory 64M --output /xl/ws#out --queue default"
    running = client.start("hbox-submit", line, "sh", "-c", "echo 7 > out/model; echo printed; sleep 600")
    try:
        page = re.findall(r"http://\S+", first_line(running, "page: "))[0]
        first_line(running, "printed")
        status, text = asked(page, "ws/app")
        app = json.loads(text)
        assert (status, app["appType"], app["workerNum"], app["workerMem"]) == (200, "CAFFE", 1, "0.0625 GB")
        assert f"<appId>{app['appId']}</appId>" in asked(page, "ws/app", accept="application/xml")[1]
        (container,) = json.loads(asked(page, "ws/containers")[1])["containerInfos"]
        assert container["status"] == "RUNNING"
        assert asked(page, f"ws/containers/{container['cid']}/stdout") == (200, "printed\n")
        _changed_by_their_calls(client, page, app["appId"])
        assert running.wait(90) == 2
        logs = client("hbox-logs", f"-applicationId {app['appId']}")
        assert logs.returncode == 0, logs.stderr
    finally:
        running.kill()
        running.communicate()


def _changed_by_their_calls(client: XLearningClient, page: str, job: str) -> None:
    refused, instead = asked(page, "ws/app/savemodel")
    assert refused == 405
    assert f"howdah save {job}" in instead
    token = re.findall(r"&act=(\S+)", client.howdah("page", job).text)[0]
    assert asked(page, "ws/app/savemodel", "PUT", token[:-1])[0] == 403
    status, text = asked(page, "ws/app/savemodel", "PUT", token)
    assert status == 200, text
    (copy,) = json.loads(text)["outputInfos"]
    assert "/xl/ws.saved/interResult/interResult_" in copy
    eventually(lambda: client.howdah.files.exists(f"{copy}/worker-0/model"), "the copy is there")
    assert client("hbox-kill", job).returncode == 0


def first_line(running: subprocess.Popen[str], words: str) -> str:
    """The next line it prints that has these words."""
    assert running.stdout
    said = []
    for line in running.stdout:
        said.append(line)
        if words in line:
            return line
    raise AssertionError("".join(said))


def test_the_last_hosts_are_preferred(client: XLearningClient) -> None:
    line = "--app-name near --worker-memory 64M --host-local-enable true --queue default"
    jobs = []
    for _ in range(2):
        done = client("xl-submit", line, "true")
        assert done.returncode == 0, done.stdout + done.stderr
        jobs.append(re.findall(r"application_\d+_\d+", done.stdout)[0])
        eventually(functools.partial(ended_well, client, jobs[-1]), "YARN knows that it is over")
    before, after = (client.howdah.status(job) for job in jobs)
    assert after["spec"]["roles"]["worker"]["placement"]["prefer"] == [before["tasks"][0]["node"]]


def ended_well(client: XLearningClient, job: str) -> bool:
    return bool(client.howdah.status(job)["state"] == "SUCCEEDED")
