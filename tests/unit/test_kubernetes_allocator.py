"""Tests what the allocator of Kubernetes does when the API server refuses, answers late or starts anew, against a small
server that keeps pods and Secrets, and answers otherwise where a test wants that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from howdah.engines import MasterContext
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.allocator import MESSAGE_LIMIT, KubernetesAllocator, outcome_message
from howdah.engines.kubernetes.api import ApiRefused
from howdah.engines.pull_launch import LaunchOffers
from howdah.spec import Container, JobSpec, Outcome, Resources, Role, StagedJob, State
from howdah.spec.events import Allocated, AllocationLost, CancelRequested, Event, LossAnnounced, Noted

JOB, LIMIT_S = "kubernetes-job", 30.0
Refusal = tuple[int, str]
QUOTA: Refusal = (403, "is forbidden: exceeded quota: team")
FORBIDDEN: Refusal = (403, "is forbidden: User cannot do it")


class ApiServer(ThreadingHTTPServer):
    """Keeps the pods and Secrets of a namespace. `refuse` is asked first; it may wait, too."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refuse: Callable[[str, str, str], Refusal | bytes | None] = lambda _method, _kind, _name: None
        self.kept: dict[str, dict[str, Any]] = {"pods": {}, "secrets": {}, "jobs": {JOB: {"metadata": {}, "spec": {}}}}
        self.changed, self.version, self.changes = threading.Condition(), 1, list[dict[str, Any]]()
        self.calls: list[tuple[str, str, str]] = []
        self.found_nothing = threading.Event()
        self.watches, self.ends_watches, self.is_over = 0, False, False

    def keep(self, kind: str, body: dict[str, Any]) -> None:
        """Create or change an object."""
        with self.changed:
            name, known = body["metadata"]["name"], self.kept[kind]
            event = "MODIFIED" if name in known else "ADDED"
            known[name] = {"status": {"phase": "Pending"}, **body}
            self._tell(kind, event, known[name])

    def remove(self, kind: str, name: str) -> None:
        with self.changed:
            if found := self.kept[kind].pop(name, None):
                self._tell(kind, "DELETED", found)

    def change_pod(self, name: str, **more: Any) -> None:
        """Change `metadata`, `spec` or `status` of a pod."""
        pod = self.kept["pods"][name]
        self.keep("pods", {**pod, **{part: {**pod[part], **values} for part, values in more.items()}})

    def end_watches(self) -> None:
        with self.changed:
            self.ends_watches = True
            self.changed.notify_all()

    def _tell(self, kind: str, event: str, body: dict[str, Any]) -> None:
        self.version += 1
        body["metadata"] = {**body["metadata"], "resourceVersion": str(self.version)}
        if kind == "pods":
            self.changes.append({"type": event, "object": json.loads(json.dumps(body))})
        self.changed.notify_all()

    def count(self, method: str, kind: str) -> int:
        return sum(call[:2] == (method, kind) for call in self.calls)


def version_of(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


class Handler(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the content waits 40 ms for the client to have acknowledged the header

    def _answer(self, method: str) -> None:
        address = urllib.parse.urlsplit(self.path)
        kind, _, name = address.path.partition("/namespaces/team/")[2].partition("/")
        query, length = dict(urllib.parse.parse_qsl(address.query)), int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        name = name or str(body.get("metadata", {}).get("name", ""))
        self.server.calls.append((method, kind, name))
        refused = self.server.refuse(method, kind, name)
        if isinstance(refused, bytes):
            self._send(200, refused)
        elif refused is not None:
            said = {"message": f"{kind} {name!r} {refused[1]}", "reason": "Forbidden"}
            self._send(refused[0], json.dumps(said).encode())
        elif "watch" in query:
            self._watch(int(query["resourceVersion"]))
        else:
            self._send(*self._do(method, kind, name, body))

    def _do(self, method: str, kind: str, name: str, body: dict[str, Any]) -> tuple[int, bytes]:
        known = self.server.kept[kind]
        if method == "POST":
            self.server.keep(kind, body)
        elif method == "GET" and not name:
            with self.server.changed:
                listed = {"metadata": {"resourceVersion": str(self.server.version)}, "items": list(known.values())}
            return 200, json.dumps(listed).encode()
        elif name not in known:
            self.server.found_nothing.set()
            return 404, b'{"reason": "NotFound"}'
        elif method == "GET":
            return 200, json.dumps(known[name]).encode()
        else:
            self.server.remove(kind, name)
        return 200, b"{}"

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, version: int) -> None:
        server, self.close_connection = self.server, True
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        server.watches += 1
        with contextlib.suppress(OSError):
            while not server.ends_watches and not server.is_over:
                with server.changed:
                    new = [each for each in server.changes if version_of(each) > version]
                    if not new:
                        server.changed.wait(LIMIT_S)
                for each in new:
                    version = version_of(each)
                    self.wfile.write(json.dumps(each).encode() + b"\n")

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    found = ApiServer()
    thread = threading.Thread(target=found.serve_forever, args=(0.05,))
    thread.start()
    yield found
    found.shutdown()
    with found.changed:
        found.is_over = True
        found.changed.notify_all()
    found.server_close()
    thread.join()


@pytest.fixture
def context(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MasterContext:
    for name in ("KUBERNETES_SERVICE_HOST", "HOWDAH_JOB_UID", "HOSTNAME"):
        monkeypatch.delenv(name, raising=False)
    config = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    settings = {"kubernetes.kubeconfig": str(tmp_path / "config"), "kubernetes.image": "python:3"}
    staged = StagedJob(
        JobSpec({"worker": Role("x", 3, Resources(256))}), tmp_path.as_uri(), settings=settings, user="alice"
    )
    return MasterContext(JOB, staged, tmp_path.as_uri(), "127.0.0.1", 1, LaunchOffers(b"key", (), ()))


class Master:
    """Uses an allocator as a master does."""

    def __init__(self, allocator: KubernetesAllocator) -> None:
        self.allocator, self.events = allocator, list[Event]()
        self._polling: asyncio.Task[list[Event]] | None = None

    async def until(self, enough: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not enough():
            assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s; events were {self.events}"
            self._polling = self._polling or asyncio.create_task(self.allocator.poll())
            done, _ = await asyncio.wait([self._polling], timeout=0.02)
            if done:
                polling, self._polling = self._polling, None
                self.events += polling.result()

    def notes(self) -> str:
        return "\n".join(str(event.text) for event in self.events if isinstance(event, Noted))

    async def granted(self, server: ApiServer, count: int = 1) -> list[Container]:
        """Return containers on a node, of pods that were just created."""
        self.allocator.request("worker", count)
        before = [event for event in self.events if isinstance(event, Allocated)]
        await self.until(lambda: len(server.kept["pods"]) >= count + len(before), "the pods")
        for name, pod in list(server.kept["pods"].items()):
            if not pod["spec"].get("nodeName"):
                server.change_pod(name, spec={"nodeName": "node1"}, status={"phase": "Running"})
        found = [event.container for event in self.events if isinstance(event, Allocated)]
        await self.until(lambda: len(found) == count + len(before) or found.extend(self._new(found)), "the grants")
        return found[len(before) :]

    def _new(self, found: list[Container]) -> list[Container]:
        return [each.container for each in self.events if isinstance(each, Allocated) and each.container not in found]


class QuickAllocator(KubernetesAllocator):
    """Is not put off for long."""

    refused_again_s = 0.1


@contextlib.asynccontextmanager
async def mastered(
    context: MasterContext, implementation: type[KubernetesAllocator] = KubernetesAllocator
) -> AsyncIterator[Master]:
    allocator = await implementation.open(context)
    try:
        yield Master(allocator)
    finally:
        await allocator.unregister(Outcome(State.SUCCEEDED))


def test_waiting_behind_a_quota_needs_one_secret(server: ApiServer, context: MasterContext) -> None:
    def refuse(method: str, kind: str, _: str) -> Refusal | None:
        return QUOTA if (method, kind) == ("POST", "pods") and len(server.kept["pods"]) else None

    async def play() -> None:
        async with mastered(context) as master:
            server.refuse = refuse
            for tries in range(1, 5):
                master.allocator.request("worker", 3)  # which tries again at once
                await master.until(lambda tries=tries: server.count("POST", "pods") >= 1 + 2 * tries, "the tries")
            assert "waiting for a container of worker: " in master.notes()
            assert len(server.kept["secrets"]) == 1
            server.refuse = lambda *_: None
            master.allocator.request("worker", 3)
            await master.until(lambda: len(server.kept["pods"]) == 3, "all pods")
            assert {secret_of(pod) for pod in server.kept["pods"].values()} == set(server.kept["secrets"])
        assert server.kept["secrets"] == server.kept["pods"] == {}

    asyncio.run(play())


def secret_of(pod: dict[str, Any]) -> str:
    (found,) = (each["secret"]["secretName"] for each in pod["spec"]["volumes"] if each["name"] == "key")
    return str(found)


def test_a_quota_on_secrets_is_a_wait(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            server.refuse = lambda method, kind, _: QUOTA if (method, kind) == ("POST", "secrets") else None
            master.allocator.request("worker", 2)
            await master.until(lambda: "exceeded quota: team" in master.notes(), "a note")
            server.refuse = lambda *_: None
            master.allocator.request("worker", 2)
            await master.until(lambda: len(server.kept["pods"]) == 2, "the pods")
            await master.until(lambda: len(server.kept["secrets"]) == 1, "one Secret")

    asyncio.run(play())


def test_a_secret_goes_with_the_last_pod_that_needs_it(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            first, second = await master.granted(server, 2)
            server.remove("pods", first.id)
            await master.until(lambda: len(master.events) > 2, "the end of the first")
            assert len(server.kept["secrets"]) == 1
            server.remove("pods", second.id)
            await master.until(lambda: not server.kept["secrets"], "the end of the Secret")

    asyncio.run(play())


def test_a_secret_has_the_keys_of_a_thousand_pods_at_most(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            master.allocator.request("worker", 1001)
            await master.until(lambda: len(server.kept["pods"]) == 1001, "the pods")
            rest, most = sorted(len(each["data"]) for each in server.kept["secrets"].values())
            assert most == 1000
            assert rest >= 1, "a pod of which a busy server did not tell that it was created has a key too"
            mounted = {secret_of(pod) for pod in server.kept["pods"].values()}
            assert mounted == set(server.kept["secrets"])

    asyncio.run(play())


def pod_of_earlier_master(name: str, secret: str, phase: str) -> dict[str, Any]:
    volumes = [{"name": "work"}, {"name": "key", "secret": {"secretName": secret}}]
    labels = {manifests.JOB: JOB, manifests.ROLE: "worker"}
    spec = {"nodeName": "node1", "volumes": volumes}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}


def test_secrets_of_earlier_masters_go_too(server: ApiServer, context: MasterContext) -> None:
    for name, secret, phase in (("a", "used", "Running"), ("b", "used", "Failed"), ("c", "over", "Succeeded")):
        server.keep("pods", pod_of_earlier_master(name, secret, phase))
        server.keep("secrets", {"metadata": {"name": secret}})

    async def play() -> None:
        async with mastered(context) as master:
            await master.allocator.adopt([Container("a", "node1", "worker", Resources(256))])
            await master.until(lambda: list(server.kept["secrets"]) == ["used"], "the end of one Secret")
        assert server.kept["secrets"] == {}

    asyncio.run(play())


def test_a_refusal_after_a_success_is_waited_out(server: ApiServer, context: MasterContext) -> None:
    """As an API server answers that has started and not read everybody's rights yet."""

    async def play() -> None:
        async with mastered(context, QuickAllocator) as master:
            await master.granted(server)
            server.refuse = lambda *_: FORBIDDEN
            server.end_watches()
            master.allocator.request("worker", 1)
            tried = server.count("POST", "secrets")
            await master.until(lambda: server.count("POST", "secrets") > tried, "a try")
            await master.until(lambda: "containers run on, trying again for 15 min" in master.notes(), "a note")
            assert master.allocator.silent_s() > 0
            server.refuse, server.ends_watches = lambda *_: None, False
            await master.until(lambda: "Kubernetes answers again after" in master.notes(), "a note")
            await master.until(lambda: len(server.kept["pods"]) == 2, "the pod")
            assert master.allocator.silent_s() == 0
            assert master.notes().count("trying again") == 1

    asyncio.run(play())


def test_a_refusal_of_the_first_pod_ends_the_job(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            server.refuse = lambda method, kind, _: FORBIDDEN if (method, kind) == ("POST", "pods") else None
            master.allocator.request("worker", 1)
            with pytest.raises(ApiRefused, match="cannot do it"):
                await master.until(lambda: False, "a failure")
            server.refuse = lambda *_: None

    asyncio.run(play())


def test_an_error_that_nobody_foresaw_is_seen(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            (container,) = await master.granted(server)
            server.refuse = lambda method, *_: b"<html>" if method == "DELETE" else None
            master.allocator.release(container.id)
            with pytest.raises(ValueError, match="Expecting value"):
                await master.until(lambda: False, "a failure")
            server.refuse = lambda *_: None

    asyncio.run(play())


def test_no_delete_overtakes_the_create_of_its_pod(server: ApiServer, context: MasterContext) -> None:
    def refuse(method: str, kind: str, _: str) -> None:
        if (method, kind) == ("POST", "pods"):
            server.found_nothing.wait(0.5)

    async def play() -> None:
        async with mastered(context) as master:
            server.refuse = refuse
            master.allocator.request("worker", 3)
            await master.until(lambda: server.count("POST", "pods") == 3, "three creates")
        with server.changed:
            assert server.changed.wait_for(
                lambda: [each["type"] for each in server.changes].count("ADDED") == 3, LIMIT_S
            )
            assert server.kept["pods"] == {}

    asyncio.run(play())


def test_a_signal_does_not_wait_for_a_server_that_is_silent(server: ApiServer, context: MasterContext) -> None:
    answered = threading.Event()
    server.refuse = lambda _method, kind, _name: answered.wait(LIMIT_S) and None if kind == "jobs" else None

    async def play() -> None:
        async with mastered(context) as master:
            begun = time.monotonic()
            event = master.allocator.signalled("SIGTERM")
            assert time.monotonic() - begun < 2.0
            assert isinstance(event, AllocationLost)
            assert event.comes_back
            answered.set()

    asyncio.run(play())


def test_a_master_knows_its_job_before_the_signal(
    server: ApiServer, context: MasterContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTNAME", "own")
    own = pod_of_earlier_master("own", "", "Running")
    own["metadata"]["labels"][manifests.ROLE] = manifests.MASTER
    server.keep("pods", own)

    async def play() -> None:
        async with mastered(context) as master:
            server.keep("jobs", {"metadata": {"name": JOB, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})
            server.change_pod("own", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
            await master.until(lambda: server.count("GET", "jobs"), "a question for the Job")
            assert isinstance(master.allocator.signalled("SIGTERM"), CancelRequested)
            assert server.count("GET", "jobs") == 1

    asyncio.run(play())


def test_a_watch_that_ends_at_once_is_not_asked_for_without_a_pause(server: ApiServer, context: MasterContext) -> None:
    async def play() -> None:
        async with mastered(context) as master:
            server.end_watches()
            for _ in range(2):
                await master.allocator.poll()
            assert server.watches < 10

    asyncio.run(play())


def test_a_taint_is_announced_on_a_node_that_answers(server: ApiServer, context: MasterContext) -> None:
    taint = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "NoExecute"}

    async def play() -> None:
        async with mastered(context) as master:
            (container,) = await master.granted(server)
            ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
            leaves = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 40}
            server.change_pod(container.id, metadata=leaves, status={"conditions": [taint, *ready]})
            await master.until(lambda: isinstance(master.events[-1], LossAnnounced), "a notice")
            assert master.events[-1].cause == "decommission"
            assert master.events[-1].within_s == 15.0, "then its executor gets TERM, and the program its time to stop"

    asyncio.run(play())


def test_the_outcome_is_left_whatever_fails_after_it(
    server: ApiServer, context: MasterContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Allocator(KubernetesAllocator):
        termination_log = tmp_path / "termination-log"

    monkeypatch.setenv("HOWDAH_JOB_UID", "uid")
    Allocator.termination_log.touch()

    async def play() -> None:
        allocator = await Allocator.open(context)
        server.refuse = lambda method, *_: FORBIDDEN if method == "DELETE" else None
        with pytest.raises(ApiRefused):
            await allocator.unregister(Outcome(State.FAILED, "no luck"))

    asyncio.run(play())
    assert json.loads(Allocator.termination_log.read_text())["diagnostics"] == "no luck"


@pytest.mark.parametrize("text", ["工作节点内存不足" * 500, 'said "no"\n' * 900, "plain", "\udcff" * 3000])
def test_an_outcome_fits_the_message_that_a_node_keeps(text: str) -> None:
    written = outcome_message(Outcome(State.FAILED, text))
    read, readable = json.loads(written), text.encode("utf-8", "replace").decode()
    assert len(written) <= MESSAGE_LIMIT
    assert len(written) > MESSAGE_LIMIT - 20 or read["diagnostics"] == readable
    assert read["state"] == "FAILED"
    assert readable.startswith(read["diagnostics"])
