"""Tests the command lines of XLearning's and HBox's own examples on a real cluster; sizes and paths differ.

What they run is theirs where it can be had (LightGBM, MPI); for Caffe, LightLDA and XFlow, of which nobody builds any
more what these scripts call, programs stand in that need the same files, directories and variables.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from xlearning_client import LIMIT_S, XLearningClient, xlearning_client_in

from howdah.sandbox import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.timeout(LIMIT_S)


@pytest.fixture(scope="module")
def client(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[XLearningClient]:
    with xlearning_client_in(sandbox, tmp_path_factory.mktemp("examples")) as client:
        yield client


def put_archive(client: XLearningClient, path: str, programs: Mapping[str, str]) -> None:
    """An archive on the cluster whose members may be executed."""
    content = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(content, "w") as archive:
            for name, text in programs.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = 0o100755 << 16
                archive.writestr(entry, text)
    else:
        with tarfile.open(fileobj=content, mode="w:gz") as packed:
            for name, text in programs.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(text.encode()), 0o755
                packed.addfile(member, io.BytesIO(text.encode()))
    uri = f"{client.howdah.root}{path}"
    client.howdah.files.mkdirs(uri.rpartition("/")[0])
    with client.howdah.files.writing(uri) as sink:
        sink.write(content.getvalue())


# LightGBM's program takes a configuration file; so does this one, around the library.
LIGHTGBM = """#!/usr/bin/env python
import sys
import lightgbm, numpy
lines = (line.partition("#")[0] for line in open(sys.argv[1].partition("=")[2]))
given = dict(map(str.strip, line.split("=", 1)) for line in lines if "=" in line)
files, output = given.pop("data"), given.pop("output_model")
machines = given.pop("machine_list_file")
given.update({name: int(value) for name, value in given.items() if value.isdigit()})
given["machines"] = ",".join(":".join(line.split()) for line in open(machines))
rows = numpy.loadtxt(files, delimiter=",", ndmin=2)
model = lightgbm.train(given, lightgbm.Dataset(rows[:, 1:], rows[:, 0]), 2)
model.save_model(output)
"""
TRAIN_CONF = """objective = multiclass
num_class = 10
tree_learner = data
pre_partition = true
num_threads = 1
machine_list_file = lightGBMlist.txt
data = data/part.csv
output_model = output/model.txt
"""
DEMO = """cp train.conf train_real.conf
echo "num_machines = $LIGHTGBM_NUM_MACHINE" >> train_real.conf
echo "local_listen_port = $LIGHTGBM_LOCAL_LISTEN_PORT" >> train_real.conf
./LightGBM/lightgbm config=train_real.conf
"""


def test_lightgbm(client: XLearningClient) -> None:
    """Its data is a directory of the cluster, and it makes no directory for its model."""
    put_archive(client, "/tmp/data/distLightGBM/LightGBM.tgz", {"lightgbm": LIGHTGBM})
    digits = EXAMPLES / "data" / "digits" / "train" / "part-00000.csv"
    client.put("/tmp/data/distLightGBM/data/part.csv", digits.read_text())
    (client.directory / "train.conf").write_text(TRAIN_CONF)
    (client.directory / "demo.sh").write_text(DEMO)
    done = client(
        "hbox-submit",
        "--app-type distlightgbm --app-name distLightGBM-demo --files train.conf,demo.sh --worker-num 2 "
        "--worker-memory 1G --cacheArchive /tmp/data/distLightGBM/LightGBM.tgz#LightGBM "
        "--cacheFile /tmp/data/distLightGBM/data#data --output /tmp/lightGBM_output#output --queue default",
        *("sh", "demo.sh"),
        HOWDAH_ENVIRONMENT=str(EXAMPLES / "digits-xgboost" / "requirements.lock"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert client.names("/tmp/lightGBM_output") == ["worker-0/model.txt", "worker-1/model.txt"]
    assert "num_machines: 2" in client.read("/tmp/lightGBM_output/worker-1/model.txt")


CAFFE = """#!/bin/sh
set -e
[ "$*" = "train --solver=./lenet_solver.prototxt" ] && [ -f lenet_train_test.prototxt ]
cat mnist_train_lmdb/data.mdb mnist_test_lmdb/data.mdb > model/lenet.caffemodel
"""


def test_caffe(client: XLearningClient) -> None:
    """Its script ends behind a backslash, in no newline."""
    put_archive(client, "/tmp/data/caffe/caffe.zip", {"caffe/build/tools/caffe": CAFFE})
    for part in ("train", "test"):
        client.put(f"/tmp/data/caffe/mnist_{part}_lmdb/data.mdb", part)
        (client.directory / f"lenet_{part}_test.prototxt").touch()
    (client.directory / "lenet_solver.prototxt").touch()
    done = client(
        "xl-submit",
        "--app-type caffe --app-name caffe_demo --input /tmp/data/caffe/mnist_train_lmdb#mnist_train_lmdb "
        "--input /tmp/data/caffe/mnist_test_lmdb#mnist_test_lmdb --output /tmp/caffe_output#model "
        "--files lenet_train_test.prototxt,lenet_solver.prototxt --cacheArchive /tmp/data/caffe/caffe.zip#. "
        "--launch-cmd",
        *("./caffe/build/tools/caffe train --solver=./lenet_solver.prototxt", "--worker-memory", "128M", "\\"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert client.read("/tmp/caffe_output/worker-0/lenet.caffemodel") == "traintest"


LIGHTLDA = {
    "multiverso/bin/multiverso_server": '#!/bin/sh\necho "$*" > server0.model\n',
    "bin/dump_binary": "#!/bin/sh\nmkdir -p seen && cat $1 $2 > seen/block.0\n",
    "bin/lightlda": "#!/bin/sh\ncp $2 doc_topic.0 && cp seen/block.0 LightLDA.0.log\n",
}
LDA_DEMO = """if [ "$LIGHTLDA_ROLE" = "ps" ]; then
  lightLDA/multiverso/bin/multiverso_server -serverid $LIGHTLDA_RANK -workers $LIGHTLDA_WORKER_NUM
  mv server*.model output
else
  mv data/nytimes.libsvm.* data/nytimes.libsvm
  lightLDA/bin/dump_binary data/nytimes.libsvm dict/nytimes.word_id.dict data 0
  lightLDA/bin/lightlda -server_file lightLDAEndPoints.txt
  mv doc_topic.* output
  mv LightLDA.*.log output
fi
"""


def test_lightlda(client: XLearningClient) -> None:
    """A worker's part of the data and a directory of the cluster; its command follows --conf."""
    put_archive(client, "/tmp/data/lightLDA/lightLDA.tgz", LIGHTLDA)
    for number in (0, 1):
        client.put(f"/tmp/data/lightLDA/data/nytimes.libsvm.{number}", f"part {number} ")
    client.put("/tmp/data/lightLDA/dict/nytimes.word_id.dict", "dict")
    (client.directory / "lda.sh").write_text(LDA_DEMO)
    done = client(
        "hbox-submit",
        "--app-type lightlda --files lda.sh#demo.sh --worker-memory 64M --worker-num 2 --ps-memory 64M --ps-num 1 "
        "--cacheArchive /tmp/data/lightLDA/lightLDA.tgz#lightLDA --cacheFile /tmp/data/lightLDA/dict#dict "
        "--input /tmp/data/lightLDA/data#data --output /tmp/lightLDA_output#output --app-name lightLDA_demo "
        "--queue default --conf hbox.container.env.LD_LIBRARY_PATH=lightLDA/multiverso/third_party/lib sh demo.sh",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert client.names("/tmp/lightLDA_output") == [
        "ps-0/server0.model",
        *(f"worker-{n}/{name}" for n in (0, 1) for name in ("LightLDA.0.log", "doc_topic.0")),
    ]
    assert client.read("/tmp/lightLDA_output/worker-1/LightLDA.0.log") == "part 1 dict"


def test_xflow(client: XLearningClient) -> None:
    """A program of this machine, and one in a directory of the cluster, which may be executed as YARN would have it."""
    for name in ("small_train", "small_test"):
        client.put(f"/tmp/data/xflow/{name}", name)
    client.put("/tmp/data/xflow/bin/count", "#!/bin/sh\nwc -c < $1\n")
    program = client.directory / "xflow_lr"
    program.write_text('#!/bin/sh\n[ $DMLC_ROLE != worker ] || data/bin/count "$1"\n[ -f "$2" ]\n')
    program.chmod(0o755)
    script = "echo $HEAPPROFILE\n./xflow_lr ./data/small_train ./data/small_test 1 2000\n"
    (client.directory / "xflow.sh").write_text(script)
    done = client(
        "hbox-submit",
        "--app-type xflow --worker-memory 64M --worker-num 2 --ps-memory 64M --ps-num 2 --driver-memory 64M "
        f"--files xflow_lr,xflow.sh#demo.sh --cacheFile {client.howdah.root}/tmp/data/xflow#data --app-name xflow "
        "--queue default sh demo.sh",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "./W0" in done.stdout
    assert " | 11" in done.stdout


MPI = """#!/usr/bin/env python
from mpi4py import MPI
world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size}", flush=True)
"""


@pytest.mark.skipif(not shutil.which("mpirun"), reason="Open MPI is not installed (openmpi-bin)")
def test_mpi(client: XLearningClient) -> None:
    (client.directory / "requirements.txt").write_text("mpi4py==4.1.2\n")
    (client.directory / "demo").write_text(MPI)
    (client.directory / "demo").chmod(0o755)
    done = client(
        "hbox-submit",
        "--app-type mpi --app-name mpi_demo --files demo --worker-memory 128M --worker-cores 2 --worker-num 3 "
        "--queue default ./demo",
        HOWDAH_ENVIRONMENT=str(client.directory / "requirements.txt"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 3" in done.stdout


def test_partitions_lie_flat_and_no_worker_is_without_a_file(client: XLearningClient) -> None:
    """As Hive writes them; a program that reads `data/*` finds files alone."""
    for number in (1, 2):
        client.put(f"/tmp/data/parts/dt={number}/part-0", f"{number}")
    line = "--worker-num 3 --worker-memory 64M --input /tmp/data/parts#data --queue default --launch-cmd"
    done = client(
        "xl-submit",
        f"{line} --output /tmp/parts#out".replace("--launch-cmd ", ""),
        "--launch-cmd",
        "cat data/* > out/all",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "/tmp/data/parts has 2 files: worker starts 2 of 3 tasks" in done.stderr
    assert client.names("/tmp/parts") == ["worker-0/all", "worker-1/all"]
    assert {client.read(f"/tmp/parts/worker-{n}/all") for n in (0, 1)} == {"1", "2"}
    done = client(
        "hbox-submit", "--worker-num 3 --worker-memory 64M --input /tmp/data/parts#data --queue default", "true"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "/tmp/data/parts has 2 files: 1 tasks get none, the first is worker:2" in done.stderr


def test_how_they_end_and_what_is_there_from_the_start(client: XLearningClient) -> None:
    """Directories, and no GPUs where the cluster deals them out to those who ask."""
    line = "--worker-memory 64M --output /tmp/from-the-start#a/b --queue default --launch-cmd"
    looks = 'echo "[$CUDA_VISIBLE_DEVICES]"; [ -d a/b ] && [ -d eventLog ] && exit 3'
    done = client("xl-submit", line, looks)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "exit code 3" in done.stdout
    assert "| []" in done.stdout
    done = client("xl-submit", f"--input /no/such/file {line}", looks)
    assert (done.returncode, "no such file" in done.stderr) == (1, True)
