"""The allocator that runs in the master's pod: it creates a pod for each container, and watches the pods.

A pod is a granted container as soon as it is on a node. It runs the bootstrap, which asks this master what to run
(docs/adr/0017). One task creates and deletes pods, in the order of the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import http.client
import itertools
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from howdah.engines import GONE, NO_PREFERENCES, ContainerPreferences, MasterContext, PendingReason
from howdah.engines.event_queue import EventQueue
from howdah.engines.kubernetes import kubeconfig, manifests
from howdah.engines.kubernetes.api import ApiRefused, KubernetesApi, Object
from howdah.engines.kubernetes.key_secrets import KEYS_IN_SECRET, KeySecrets
from howdah.engines.kubernetes.pod_status import condition, end_of, name_of, node_of, taken_away, waits_for
from howdah.engines.kubernetes.pod_watch import PodWatch
from howdah.engines.options import engine_options
from howdah.engines.pull_launch import PullAllocator
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError
from howdah.spec import Container, Exit, JobSpec, Outcome, State, uris
from howdah.spec.events import Allocated, AllocationLost, CancelRequested, ContainerEnded, Event, LossAnnounced, Noted
from howdah.spec.message import message
from howdah.storage.factory import filesystem
from howdah.wire.clock import since_boot

CALLS_AT_ONCE, POLL_S, RELEASE_GRACE_S = 16, 1.0, 1
AGAIN_S, NOTED_EVERY_S = 1.0, 60.0
SILENCE_LIMIT_S = 900.0
"""Seconds for which the API server may not answer, or may refuse what it allowed before, as a starting server does; the
programs run on meanwhile."""
IMAGE_LIMIT_S = 90.0
"""Seconds for which a node tries to get an image, or to create a container, before the container counts as ended."""
REPLACED_AFTER_S, JOB_ANSWER_S, CREATES_LIMIT_S = 30.0, 0.5, 15.0
MESSAGE_LIMIT = 4096
"""The most bytes of a container's last message that a node keeps."""
WATCH, CALLS = "watch", "calls"
"""The two parts that use the API: the watch of the pods, and the calls that create and delete them."""
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull")
_ANNOUNCED = {"preempted": "preemption", "lost": "unhealthy"}
_NOT_ALLOWED = (http.client.UNAUTHORIZED, http.client.FORBIDDEN)


@dataclasses.dataclass(eq=False)
class HeldPod:
    """A pod that this master has asked for, or taken over."""

    name: str
    """The name by which the API server knows the pod."""
    role: str
    """The role that the container was asked for."""
    preferences: ContainerPreferences
    """The preferences for the container, beyond the spec."""
    container: Container | None = None
    """The granted container; None while the pod has no node."""
    is_wanted: bool = True
    """Whether the master still waits for it, or uses it."""
    is_announced: bool = False
    """Whether the master knows that the pod will be taken away."""
    troubled_since: float = 0.0
    """When the node first reported that it cannot start the container; 0.0 if it has not."""


class KubernetesAllocator(PullAllocator):
    """Uses the API with the rights of the master's service account (docs/engines.md)."""

    restarts = True
    runs_images = needs_images = True  # a pod never starts without its image
    termination_log = Path("/dev/termination-log")
    """The content of this file becomes the last message of the master's container."""
    refused_again_s = 5.0
    """Seconds after which the API server is asked again for a call that it has refused."""

    def __init__(self, context: MasterContext, api: KubernetesApi) -> None:
        super().__init__(context)
        self._api, self._staged, self._job_id = api, context.staged, context.job_id
        self._options = engine_options(self._staged.job, self._staged.settings, manifests.ENGINE)
        self._owner = manifests.owner_of(self._job_id, os.environ.get("HOWDAH_JOB_UID", ""))
        self._suffix = secrets.token_hex(3)  # so that names differ from those of an earlier master
        self._numbers = itertools.count(1)
        self._loop, self._pool = asyncio.get_running_loop(), ThreadPoolExecutor(CALLS_AT_ONCE, "kubernetes")
        self._queue = EventQueue()
        self._seen: dict[str, Object] = {}
        self._held: dict[str, HeldPod] = {}
        self._counts: dict[str, int] = {}
        self._preferences: dict[str, ContainerPreferences] = {}
        self._to_delete: dict[str, int] = {}
        self._keys = KeySecrets()
        self._unused: dict[str, list[str]] = {}
        self._calls: set[Future[Any]] = set()
        self._changed = asyncio.Event()
        self._noted: dict[str, float] = {}
        self._troubles: dict[str, tuple[float, HowdahError]] = {}
        self._has_created = False
        self._failure: Exception | None = None
        self._own_pod, self._jobs = os.environ.get("HOSTNAME", ""), list[Object]()
        self._job_asked: threading.Thread | None = None
        self._worker: asyncio.Task[None] | None = None
        self._watch = PodWatch(
            api,
            f"{manifests.JOB}={self._job_id}",
            changed=self._pod_changed,
            gone=self._pod_gone,
            heard=lambda: self._heard(WATCH),
            lost=lambda error: self._lost(WATCH, error),
        )

    @classmethod
    async def open(cls, context: MasterContext) -> KubernetesAllocator:
        """Use this pod's own service account; outside of a cluster, use the kubeconfig of the job's settings."""
        if kubeconfig.in_pod():
            cluster = kubeconfig.own_cluster()
            allocator = cls(context, KubernetesApi(cluster, cluster.namespace))
        else:
            allocator = cls(context, KubernetesApi.of_settings(context.staged.settings))
        try:
            await allocator._watch.start()
            allocator.attempt = await asyncio.to_thread(allocator._count_masters)
        except HowdahError as error:
            reason: HowdahError = error
            if isinstance(error, ApiRefused):
                hint = f"`howdah doctor --on {manifests.ENGINE}` says which rights a master needs"
                reason = EngineRejected(f"{error}; {hint}")
            failure = message("the master failed: {reason}", reason=str(reason))
            allocator._leave_outcome(Outcome(State.FAILED, failure))
            raise reason from error
        allocator._worker = asyncio.create_task(allocator._work())
        return allocator

    def _count_masters(self) -> int:
        """Return the number of this master. The pods of earlier masters may be gone, but the files that they have
        written are not."""
        selector = f"{manifests.JOB}={self._job_id},{manifests.ROLE}={manifests.MASTER}"
        pods = self._api.get(self._api.path("pods", labelSelector=selector))["items"]
        names = [uris.name(each.uri) for each in filesystem(self._context.directory).children(self._context.directory)]
        return max(len(pods), 2 if any(name.startswith("events") for name in names) else 1)

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        ends: dict[str, Exit] = {}
        known = {container.id: container for container in containers}
        for id_, container in known.items():
            pod = self._seen.get(id_)
            exit = end_of(pod, container.resources.memory_mib) if pod is not None else Exit("withdrawn", detail=GONE)
            if exit is not None:
                ends[id_] = exit
            else:
                self._held[id_] = HeldPod(id_, container.role, NO_PREFERENCES, container)
        for name, pod in self._seen.items():
            if not _is_master(pod):
                self._keys.add_pod(pod, is_needed=name in self._held)
                if name not in known and end_of(pod, 0) is None:
                    self._to_delete[name] = RELEASE_GRACE_S
        self._has_created = bool(self._held)
        self._changed.set()
        return ends

    def may_be_replaced(self) -> bool:
        return self.silent_s() > REPLACED_AFTER_S

    def silent_s(self) -> float:
        return max((since_boot() - since for since, _ in self._troubles.values()), default=0.0)

    def signalled(self, signal: str) -> Event:
        """Return the event that the master's pod is taken away and another one follows, unless somebody ends the
        Job."""
        now = time.time()
        self._ask_for_job().join(JOB_ANSWER_S)
        answers = self._jobs[:1]
        job = answers[0] if answers else {"metadata": {}}
        if not job or job["metadata"].get("deletionTimestamp"):
            return CancelRequested(now, "whoever deleted its Job")
        if cancelled := (job["metadata"].get("annotations") or {}).get(manifests.CANCELLED):
            return CancelRequested(now, str(cancelled))
        own = self._seen.get(self._own_pod)
        taken = taken_away(own) if own is not None else None
        cause = taken[1] if taken is not None else message("signal {name}", name=signal)
        status = job.get("status") or {}
        ended = any(each["type"] == "FailureTarget" for each in status.get("conditions") or ())
        attempts_left = not answers or int(status.get("failed") or 0) < int(job["spec"].get("backoffLimit") or 0)
        is_disrupted = own is not None and condition(own, "DisruptionTarget") is not None
        comes_back = not ended and (is_disrupted or attempts_left)
        return AllocationLost(now, cause, comes_back, manifests.MASTER_GRACE_S - JOB_ANSWER_S)

    def _ask_for_job(self) -> threading.Thread:
        """Ask once for the state of the Job, in a thread: the answer is needed when the master's pod is taken away."""

        def ask() -> None:
            with contextlib.suppress(HowdahError):
                self._jobs.append(self._api.find(self._api.path("jobs", self._job_id)) or {})

        if self._job_asked is None:
            self._job_asked = threading.Thread(target=ask, daemon=True)
            self._job_asked.start()
        return self._job_asked

    # What the master asks for

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        self._counts[role], self._preferences[role] = count, preferences
        self._changed.set()

    def release(self, container_id: str, cause: str = "") -> None:
        self.launches.withdraw(container_id)
        held = self._held.get(container_id)
        if held is not None and held.is_wanted:
            held.is_wanted = False
            self._to_delete[held.name] = RELEASE_GRACE_S
            self._changed.set()

    async def _work(self) -> None:
        """Create and delete pods until the end."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                wait_s = await self._work_once()
                self._heard(CALLS)
            except HowdahError as error:
                self._lost(CALLS, error)
                wait_s = AGAIN_S if isinstance(error, EngineUnavailable) else self.refused_again_s
            except Exception as error:  # otherwise nobody would notice that no pods are created any more
                self._failure = error
            if self._failure is not None:
                self._queue.wake()
                return
            if wait_s:
                self._loop.call_later(wait_s, self._changed.set)

    async def _work_once(self) -> float:
        """Create and delete the requested pods; return the seconds after which to try again, 0.0 for not at all."""
        for role, count in self._counts.items():
            waiting = self._waiting(role)
            kept = [held for held in waiting if held.preferences == self._preferences[role]][:count]
            for held in waiting:
                if held not in kept:
                    held.is_wanted = False
                    self._to_delete[held.name] = 0  # nothing runs in it
        doomed, unneeded = dict(self._to_delete), set(self._keys.unneeded)
        deletes = [self._call(self._api.delete, "pods", name, grace) for name, grace in doomed.items()]
        deletes += [self._call(self._api.delete, "secrets", name, 0) for name in unneeded]
        await asyncio.gather(*deletes)
        for name in doomed:
            del self._to_delete[name]
        self._keys.unneeded -= unneeded
        missing = {role: count - len(self._waiting(role)) for role, count in self._counts.items()}
        return max([await self._create(role, count) for role, count in missing.items() if count > 0], default=0.0)

    def _waiting(self, role: str) -> list[HeldPod]:
        """Return the pods that have no node yet."""
        return [held for held in self._held.values() if held.role == role and held.is_wanted and not held.container]

    async def _create(self, role: str, count: int) -> float:
        """Create pods; if a quota prevents that, return the seconds after which to try again, else 0.0."""
        preferences, unused = self._preferences[role], self._unused.setdefault(role, [])
        try:
            while count:
                if not unused:
                    unused += await self._new_names(role, min(count, KEYS_IN_SECRET))
                names = unused[:count]
                del unused[:count]
                count -= len(names)
                self._held |= {name: HeldPod(name, role, preferences) for name in names}
                calls = (self._create_pod(self._held[name]) for name in names)
                errors = [each for each in await asyncio.gather(*calls, return_exceptions=True) if each]
                if errors:  # other errors come first, since a quota only means waiting
                    raise min(errors, key=lambda each: isinstance(each, ApiRefused) and each.is_quota)
        except ApiRefused as error:
            if not error.is_quota:
                raise
            self._note_wait(role, str(error))
            return self.refused_again_s
        return 0.0

    async def _new_names(self, role: str, count: int) -> list[str]:
        """Return names for pods, whose keys are in a Secret."""
        base = manifests.base_name(self._job_id, role, f"{self._suffix}-{next(self._numbers)}")
        names = [f"{base}-{each}" for each in range(count)]
        keys = {name: self.launches.key_of(name).hex().encode() for name in names}
        self._keys.add(base, names)
        try:
            await self._call(self._api.ensure, "secrets", manifests.secret(base, self._job_id, keys, self._owner))
        except HowdahError:
            for name in names:
                self._keys.drop(name)
            raise
        return names

    async def _create_pod(self, held: HeldPod) -> None:
        secret, variables = self._keys.secret_of(held.name), self.bootstrap_environment(held.name)
        body = manifests.task_pod(
            self._job_id, self._staged, self._options, held.role, held.name, held.preferences, secret, variables
        )
        body["metadata"]["ownerReferences"] = self._owner
        try:
            await self._call(self._api.ensure, "pods", body)
            self._has_created = True
        except ApiRefused:
            if self._held.pop(held.name, None):  # the next try has the same name, and needs no other Secret
                self._unused[held.role].append(held.name)
            raise
        except HowdahError:
            self._forget(held)
            self._to_delete[held.name] = 0  # it may have been created
            raise

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        call = self._pool.submit(function, *arguments)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return await asyncio.wrap_future(call)

    def _forget(self, held: HeldPod) -> None:
        """Stop holding a pod, and drop its key."""
        self._held.pop(held.name, None)
        self._keys.drop(held.name)
        if self._keys.unneeded:
            self._changed.set()

    # What becomes of pods

    async def poll(self) -> list[Event]:
        return await self._queue.next_events(self._check, POLL_S)

    async def _check(self) -> float:
        if self._failure is not None:
            raise self._failure
        for since, error in self._troubles.values():
            if since_boot() - since > SILENCE_LIMIT_S:
                silence = EngineUnavailable(f"no answer of {self._api.cluster.server} for {self.silent_s():.0f} s")
                raise error if isinstance(error, ApiRefused) else silence
        self._end_troubled()
        return POLL_S

    def _heard(self, part: str) -> None:
        """Note that the API server has answered the watch, or the calls."""
        since, _ = self._troubles.pop(part, (0.0, None))
        if since and not self._troubles:
            seconds, template = since_boot() - since, "{manager} answers again after {seconds} s"
            self._queue.put(Noted(time.time(), message(template, manager="Kubernetes", seconds=f"{seconds:.0f}")))
        if since:
            self._changed.set()

    def _lost(self, part: str, error: HowdahError) -> None:
        """Note that the API server has not answered, or has refused. A refusal may end if the same was allowed before:
        a starting server refuses everything until it has read the rights of all users."""
        allowed_before = self._watch.has_followed if part == WATCH else self._has_created
        is_passing = isinstance(error, ApiRefused) and error.status in _NOT_ALLOWED and allowed_before
        if not isinstance(error, EngineUnavailable) and not is_passing:
            self._failure = error
            return
        if not self._troubles:
            template = "{reason}; containers run on, trying again for {minutes} min"
            text = message(template, reason=str(error), minutes=f"{SILENCE_LIMIT_S / 60:g}")
            self._queue.put(Noted(time.time(), text))
        since, _ = self._troubles.get(part, (since_boot(), None))
        self._troubles[part] = (since, error)

    def _pod_changed(self, pod: Object) -> None:
        name = name_of(pod)
        self._seen[name] = pod
        if name == self._own_pod and pod["metadata"].get("deletionTimestamp"):
            self._ask_for_job()
        held = self._held.get(name)
        if held is None:
            return
        if held.container is None and held.is_wanted and node_of(pod):
            self._grant(held, node_of(pod))
        if held.container is None:
            self._await_room(held, pod)
            return
        exit = end_of(pod, held.container.resources.memory_mib)
        if exit is not None:
            self._end(held, exit)
            return
        taken = taken_away(pod)
        if taken is not None and held.is_wanted and not held.is_announced:
            held.is_announced = True
            notice = manifests.notice_s(self._staged.job, held.role)
            within = float(min(pod["metadata"].get("deletionGracePeriodSeconds") or notice, notice))
            cause = _ANNOUNCED.get(taken[0], "decommission")
            self._queue.put(LossAnnounced(time.time(), name, cause, within, taken[1]))
        kind, text = waits_for(pod)
        if kind in ("image", "start"):
            held.troubled_since = held.troubled_since or time.monotonic()
            self._note_wait(held.role, text)
        else:
            held.troubled_since = 0.0

    def _grant(self, held: HeldPod, node: str) -> None:
        resources = manifests.resources_of(self._staged.job, held.role, held.preferences)
        held.container = Container(held.name, node, held.role, resources)
        self._counts[held.role] = max(0, self._counts.get(held.role, 0) - 1)
        self._queue.put(Allocated(time.time(), held.container))

    def _await_room(self, held: HeldPod, pod: Object) -> None:
        if end_of(pod, 0) is not None:  # the scheduler or the node refused the pod
            self._forget(held)
            self._changed.set()
        elif held.is_wanted and waits_for(pod)[1]:
            self._note_wait(held.role, waits_for(pod)[1])

    def _pod_gone(self, name: str) -> None:
        self._seen.pop(name, None)
        held = self._held.get(name)
        if held is not None and held.container is not None:
            self._end(held, Exit("withdrawn", detail=message("its pod was deleted")))
        elif held is not None:
            self._forget(held)
            self._changed.set()

    def _end(self, held: HeldPod, exit: Exit) -> None:
        self._forget(held)
        if not held.is_wanted:
            exit = Exit("stopped", detail=message("its container was given back"))
        self.launches.withdraw(held.name)
        self._queue.put(ContainerEnded(time.time(), held.name, exit))

    def _end_troubled(self) -> None:
        """End containers that their nodes cannot start."""
        now = time.monotonic()
        for held in [held for held in self._held.values() if held.troubled_since and held.is_wanted]:
            kind, text = waits_for(self._seen[held.name])
            if now - held.troubled_since > IMAGE_LIMIT_S or text.startswith(_HOPELESS):
                template = "its container could not be started: {reason}"
                if kind == "image":
                    template = "its image cannot be used: {reason}"
                self._to_delete[held.name] = 0
                self._changed.set()
                self._end(held, Exit(kind, detail=message(template, reason=text)))

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        waiting = [held for held in self._held.values() if held.is_wanted and held.container is None]
        said = ((held.role, waits_for(self._seen[held.name])[1]) for held in waiting if held.name in self._seen)
        return [PendingReason("said", {"text": f"{role}: {text}"}) for role, text in dict.fromkeys(said) if text]

    def _note_wait(self, role: str, reason: str) -> None:
        """Report why a role waits, at most once a minute."""
        now = time.monotonic()
        if now - self._noted.get(role, -NOTED_EVERY_S) >= NOTED_EVERY_S:
            self._noted[role] = now
            template = "waiting for a container of {role}: {reason}"
            self._queue.put(Noted(time.time(), message(template, role=role, reason=" ".join(reason.split()))))

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        """Delete the pods that run and all secrets, and leave the outcome with this pod, where clients find it."""
        self._leave_outcome(outcome)
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        self._watch.stop()
        # A delete that overtakes the create of its pod finds nothing, and the pod stays.
        await asyncio.to_thread(wait, list(self._calls), CREATES_LIMIT_S)
        living = {name for name, pod in self._seen.items() if not _is_master(pod) and end_of(pod, 0) is None}
        doomed = [("pods", name, RELEASE_GRACE_S) for name in living | self._held.keys() | self._to_delete.keys()]
        doomed += [("secrets", name, 0) for name in (*self._keys.all, self._job_id)]
        try:
            await asyncio.gather(*(self._call(self._api.delete, *each) for each in doomed))
        finally:
            self._pool.shutdown(wait=False)
            self._api.close()

    def _leave_outcome(self, outcome: Outcome) -> None:
        """Leave the outcome with this pod, before anything that may fail."""
        if self._owner and self.termination_log.exists():
            try:
                self.termination_log.write_bytes(outcome_message(outcome))
            except OSError as error:
                print(f"the outcome could not be left with the pod: {error}", file=sys.stderr, flush=True)


def outcome_message(outcome: Outcome) -> bytes:
    """Return the message that a master that has completed its job leaves for clients; a node keeps no more than
    MESSAGE_LIMIT bytes."""
    reason, finished = str(outcome.diagnostics), time.time()
    while True:
        said = {"state": outcome.state.value, "diagnostics": reason, "finished": finished}
        text = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
        excess = len(text) - MESSAGE_LIMIT
        if excess <= 0:
            return text
        reason = reason[: -max(1, excess // 6)]  # a character has six bytes at most


def _is_master(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get(manifests.ROLE) == manifests.MASTER)
