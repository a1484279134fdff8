"""Follows the pods of a job in a thread: lists them, then receives every change, and lists them again when
necessary."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from howdah.engines.kubernetes.api import ApiRefused, KubernetesApi, Object, WatchExpired
from howdah.engines.kubernetes.pod_status import name_of
from howdah.errors import EngineUnavailable, HowdahError

AGAIN_S, MAX_AGAIN_S = 0.5, 10.0


class PodWatch:
    """Calls `changed(pod)` and `gone(name)` for pods, `heard()` when the server has answered, and `lost(error)` when it
    has not answered, or has refused. All calls are made in the event loop that runs where the watch is created."""

    def __init__(
        self,
        api: KubernetesApi,
        selector: str,
        *,
        changed: Callable[[Object], None],
        gone: Callable[[str], None],
        heard: Callable[[], None],
        lost: Callable[[HowdahError], None],
    ) -> None:
        self._api, self._path, self._loop = api, api.path("pods", labelSelector=selector), asyncio.get_running_loop()
        self._changed, self._gone, self._heard, self._lost = changed, gone, heard, lost
        self._ended = threading.Event()
        self._names: set[str] = set()
        self._version = ""
        self.has_followed = False
        """Whether the server has ever let this master follow pods."""

    async def start(self) -> None:
        """List all pods, then follow them from a thread.

        Raises:
            ApiRefused, EngineUnavailable: they cannot be listed.
        """
        await asyncio.to_thread(self._list)
        threading.Thread(target=self._follow, name="pods", daemon=True).start()

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def stop(self) -> None:
        """End the watch: no function is called after that."""
        self._ended.set()

    def _follow(self) -> None:
        pause = AGAIN_S
        while not self._ended.is_set():
            begun = time.monotonic()
            try:
                if not self._version:
                    self._list()
                for event in self._api.watch(self._path, self._version):
                    if self._ended.is_set():
                        return
                    self._apply(event)
                    self.has_followed, pause = True, AGAIN_S
                self.has_followed = True
            except WatchExpired:
                self._version = ""
            except (ApiRefused, EngineUnavailable) as error:
                self._version = ""
                self._tell(self._lost, error)
                self._ended.wait(pause)
                pause = min(2 * pause, MAX_AGAIN_S)
            except Exception as error:
                print(f"while pods were watched: {error!r}", file=sys.stderr, flush=True)
                self._version = ""
                self._ended.wait(pause)
            if time.monotonic() - begun < AGAIN_S:  # a server may end every watch at once
                self._ended.wait(AGAIN_S)

    def _list(self) -> None:
        found = self._api.get(self._path)
        self._version = str(found["metadata"]["resourceVersion"])
        pods = {name_of(pod): pod for pod in found["items"]}
        self._tell(self._heard)
        for name in self._names - pods.keys():
            self._tell(self._gone, name)
        self._names = set(pods)
        for pod in pods.values():
            self._tell(self._changed, pod)

    def _apply(self, event: Object) -> None:
        pod = event["object"]
        self._version = str(pod["metadata"]["resourceVersion"])
        self._tell(self._heard)
        if event["type"] == "BOOKMARK":
            return
        self._tell(self._changed, pod)  # a deleted pod comes with its last status
        if event["type"] == "DELETED":
            self._names.discard(name_of(pod))
            self._tell(self._gone, name_of(pod))
        else:
            self._names.add(name_of(pod))
