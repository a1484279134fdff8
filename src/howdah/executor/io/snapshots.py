"""Copies of what the program writes, made beside it: a helper process for each, never in the heartbeat's way."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Tuple

from howdah.executor.event_loop import EventLoop, Timer
from howdah.executor.helper_process import HelperProcess
from howdah.executor.process.process_tree import Reaper
from howdah.wire.messages import SaveOrder, SaveReport

_STOP_S = 2.0


class SnapshotProcesses:
    """Makes the copies that are wanted; `changed()` is called when one is done."""

    def __init__(self, loop: EventLoop, reaper: Reaper, directory: str, changed: Callable[[], None]) -> None:
        self.loop, self.reaper, self.directory, self.changed = loop, reaper, directory, changed
        self._saves: Dict[int, _Save] = {}

    @property
    def reports(self) -> Tuple[SaveReport, ...]:
        """How far the wanted ones are."""
        return tuple(save.report for save in self._saves.values())

    def want(self, orders: Tuple[SaveOrder, ...]) -> None:
        """From now on these are wanted, and no others."""
        numbers = {order.number for order in orders}
        for number in [number for number in self._saves if number not in numbers]:
            self._saves.pop(number).stop()
        fresh = [order for order in orders if order.number not in self._saves]
        for order in fresh:
            self._saves[order.number] = save = _Save(self.loop, order, self.changed)
            save.start(self.reaper, self.directory)


class _Save:
    def __init__(self, loop: EventLoop, order: SaveOrder, changed: Callable[[], None]) -> None:
        self.loop, self.order, self.changed = loop, order, changed
        self.report = SaveReport(order.number)
        self._helpers: List[HelperProcess] = []
        self._timers: List[Timer] = []

    def start(self, reaper: Reaper, directory: str) -> None:
        order, path = self.order, os.path.join(directory, self.order.source)
        if not os.path.isdir(path):
            self.report = replace(self.report, done=True)
            self.loop.call_later(0.0, self.changed)
            return
        places = {"path": path, "root": directory, "uri": order.uri}
        request = {**places, "final": order.final, "previous": order.previous}
        try:
            argv = ("howdah.outputs.snapshots.snapshot", "take")
            self._helpers.append(HelperProcess(self.loop, reaper, argv, request, self._told, self._ended))
        except OSError as error:
            self.report = replace(self.report, done=True, problem=str(error))
            self.loop.call_later(0.0, self.changed)
            return
        self._timers.append(self.loop.call_later(order.limit_s, self._too_late))

    def stop(self) -> None:
        """Nobody wants it any more."""
        for helper in self._helpers:
            helper.stop(_STOP_S)

    def _too_late(self) -> None:
        report = self.report
        far = f"{report.files} files, {report.bytes} bytes copied"
        self.report = replace(report, problem=f"it took longer than {self.order.limit_s:.0f} s ({far})")
        self.stop()

    def _told(self, message: Mapping[str, Any]) -> None:
        for prefix in ("done_", ""):
            files = int(message.get(prefix + "files", self.report.files))
            size = int(message.get(prefix + "bytes", self.report.bytes))
            self.report = replace(self.report, files=files, bytes=size)
        if "skipped" in message:
            skipped = tuple(str(line) for line in message["skipped"])
            self.report = replace(self.report, skipped=skipped, total=int(message.get("kept", 0)))

    def _ended(self, problem: str) -> None:
        for timer in self._timers:
            timer.cancel()
        self.report = replace(self.report, done=True, problem=self.report.problem or problem)
        self.changed()
