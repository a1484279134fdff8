"""Horovod over gloo: a rendezvous in a role of its own, and each worker's slot in its variables.

The rendezvous is the small store over HTTP that Horovod's gloo context reads and writes (`GET`, `PUT` and `DELETE` of
`/scope/key`, horovod/common/gloo/http_store.cc); it needs nothing but Python. Slots are assigned as `horovodrun` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from howdah.frameworks.group import group, grouped, with_helper
from howdah.spec import JobSpec, Member, TaskId, World
from howdah.spec.task import SIDE_ROLES

RENDEZVOUS_ROLE = "rendezvous"
_RENDEZVOUS_MIB = 256

RENDEZVOUS = """\
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
store = {}
class Server(ThreadingHTTPServer):
    request_queue_size = 1024
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        body = store.get(self.path)
        self.answer(404) if body is None else self.answer(200, body)
    def do_PUT(self):
        length = int(self.headers["Content-Length"] or -1)
        if not 0 <= length <= 1 << 20:
            self.close_connection = True
            return self.answer(413)
        store[self.path] = self.rfile.read(length)
        self.answer(200)
    def do_DELETE(self):
        self.answer(200)
    def log_message(self, *_):
        pass
server = Server(("", int(os.environ["HOWDAH_PORT"])), Handler)
print("rendezvous at port", os.environ["HOWDAH_PORT"], flush=True)
server.serve_forever()
"""


class Horovod:
    """Makes `horovod.init()` find the other workers, for PyTorch, TensorFlow and MXNet."""

    # The rendezvous sets SO_REUSEADDR; workers listen on ports of gloo's own choice.
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Add the rendezvous, unless each task is alone anyway."""
        if job.gang:
            job = with_helper(job, RENDEZVOUS_ROLE, ("python3", "-c", RENDEZVOUS), _RENDEZVOUS_MIB)
        return grouped(job, helpers=(RENDEZVOUS_ROLE,))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the variables of a worker. No other task gets them, because Horovod would treat it as a worker."""
        server = next(iter(world.members_of(RENDEZVOUS_ROLE)), None)
        if server is None or task.role in (RENDEZVOUS_ROLE, *SIDE_ROLES):
            return {}
        return rendezvous_variables(server, group(world, helpers=(RENDEZVOUS_ROLE,)), task)


def rendezvous_variables(server: Member, workers: Sequence[Member], task: TaskId) -> dict[str, str]:
    """Return the variables that gloo's controller reads in a worker: the rendezvous' address, and the worker's slot.

    Ranks go host by host; a local rank's cross rank counts the hosts that have that local rank.
    """
    hosts = by_host(workers)
    host = next(host for host, tasks in hosts.items() if task in tasks)
    local_rank = hosts[host].index(task)
    crossing = [host for host, tasks in hosts.items() if len(tasks) > local_rank]
    ranked = [each for tasks in hosts.values() for each in tasks]
    numbers = {
        "RANK": ranked.index(task),
        "SIZE": len(ranked),
        "LOCAL_RANK": local_rank,
        "LOCAL_SIZE": len(hosts[host]),
        "CROSS_RANK": crossing.index(host),
        "CROSS_SIZE": len(crossing),
    }
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": server.host,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(server.ports["main"]),
        "HOROVOD_HOSTNAME": host,
        **{f"HOROVOD_{name}": str(number) for name, number in numbers.items()},
    }


def by_host(workers: Sequence[Member]) -> dict[str, list[TaskId]]:
    """Group tasks by host, in the order of each host's first task."""
    hosts: dict[str, list[TaskId]] = {}
    for member in workers:
        hosts.setdefault(member.host, []).append(member.task)
    return hosts
