"""Horovod in TonY's way: the role `driver`, which the job itself has, holds the rendezvous."""

from __future__ import annotations

from howdah.compat.tony.frameworks import TENSORBOARD, TonyFramework
from howdah.frameworks import with_failure_defaults
from howdah.frameworks.horovod import RENDEZVOUS, Horovod, by_host, rendezvous_variables
from howdah.spec import JobSpec, TaskId, World

DRIVER = "driver"
_BESIDE = (DRIVER, TENSORBOARD)
_GLOO_TIMEOUT_S = "2000"
RELAY = """\
import contextlib, glob, os, shutil, socket, subprocess, sys, threading, time
directory = os.environ["DRIVER_OUTPUT_PATH"] = os.path.abspath("horovod_driver")
shutil.rmtree(directory, ignore_errors=True)
os.makedirs(directory)
server = socket.create_server(("", int(os.environ["HOWDAH_PORT"])), backlog=1024)
def copy(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
def connect(caller):
    while not (found := glob.glob(directory + "/*____HOROVOD_RENDEZVOUS_SERVER____")):
        time.sleep(0.1)
    try:
        target = socket.create_connection(("127.0.0.1", int(os.path.basename(found[0]).split("_")[0])))
    except OSError:
        return caller.close()
    threading.Thread(target=copy, args=(target, caller), daemon=True).start()
    copy(caller, target)
def serve():
    while True:
        threading.Thread(target=connect, args=(server.accept()[0],), daemon=True).start()
driver = subprocess.Popen(["bash", "-c", sys.argv[1]])
threading.Thread(target=serve, daemon=True).start()
code = driver.wait()
sys.exit(code if code >= 0 else 128 - code)
"""
"""Runs the user's own driver, which listens at a port of its choice and writes a file in DRIVER_OUTPUT_PATH whose name
holds the port. Workers connect to the task's main port, which is known before; this program passes their bytes on."""

__all__ = ["DRIVER", "RELAY", "RENDEZVOUS", "TonyHorovod"]


class TonyHorovod(TonyFramework):
    """Workers find each other through the driver, which starts with them."""

    hold_ports = Horovod.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        return with_failure_defaults(job, untracked=_BESIDE)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        variables = super().environment(world, task)
        workers = [member for member in world.members if member.task.role not in _BESIDE]
        driver = next(iter(world.members_of(DRIVER)), None)
        slots = ",".join(f"{host}:{len(tasks)}" for host, tasks in by_host(workers).items())
        if task.role == DRIVER:
            return {**variables, "CLUSTER_WORKER_LIST": slots}
        if driver is None or task.role in _BESIDE:
            return variables
        return {
            **variables,
            "CLUSTER_SPEC": slots,
            "HOROVOD_GLOO_TIMEOUT_SECONDS": _GLOO_TIMEOUT_S,
            **rendezvous_variables(driver, workers, task),
        }
