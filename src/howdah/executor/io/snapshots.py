"""Makes snapshots of what the program writes: a helper process for each, beside the program and the heartbeat."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess
from howdah.executor.io.transfer import why_not_upload
from howdah.spec.codec import decode
from howdah.spec.message import message
from howdah.spec.values import dataclass
from howdah.wire.helper_messages import CopyPartReply, CopyPartRequest
from howdah.wire.messages import SnapshotOrder, SnapshotReport

_GRACE_S = 2.0


@dataclass
class _Snapshot:
    report: SnapshotReport
    helper: Optional[HelperProcess] = None


class SnapshotProcesses:
    """Makes the snapshots that the master orders; `on_change()` is called when one is done."""

    def __init__(self, loop: EventLoop, directory: str, on_change: Callable[[], None]) -> None:
        self.loop, self.directory, self.on_change = loop, directory, on_change
        self._snapshots: Dict[int, _Snapshot] = {}

    @property
    def reports(self) -> Tuple[SnapshotReport, ...]:
        """Return how far each ordered snapshot is."""
        return tuple(snapshot.report for snapshot in self._snapshots.values())

    def obey(self, orders: Tuple[SnapshotOrder, ...]) -> None:
        """Make the snapshots of `orders`, and give up all others."""
        numbers = {order.number for order in orders}
        for number in [number for number in self._snapshots if number not in numbers]:
            helper = self._snapshots.pop(number).helper
            if helper is not None:
                helper.stop(_GRACE_S)
        for order in orders:
            if order.number not in self._snapshots:
                self._snapshots[order.number] = self._start(order)

    def _start(self, order: SnapshotOrder) -> _Snapshot:
        snapshot, path = _Snapshot(SnapshotReport(number=order.number)), os.path.join(self.directory, order.source)
        problem = why_not_upload(path, self.directory)
        if os.path.normpath(path) == self.directory:
            problem = message("no snapshot is made of the whole working directory: name a directory in it")
        if problem or not os.path.exists(path):
            snapshot.report = replace(snapshot.report, done=True, problem=problem)
            self.loop.call_later(0.0, self.on_change)
            return snapshot

        def on_message(message: Mapping[str, Any]) -> None:
            report = snapshot.report
            for prefix in ("done_", ""):
                files = int(message.get(prefix + "files", report.files))
                report = replace(report, files=files, bytes=int(message.get(prefix + "bytes", report.bytes)))
            if message.get("ok"):
                reply = decode(CopyPartReply, message)
                report = replace(report, skipped=tuple(reply.skipped), total=reply.kept)
            snapshot.report = report

        def on_end(problem: str) -> None:
            snapshot.report = replace(snapshot.report, done=True, problem=problem)
            self.on_change()

        def late() -> str:
            copied = f"{snapshot.report.files} files, {snapshot.report.bytes} bytes copied"
            return f"it took longer than {order.limit_s:.0f} s ({copied})"

        snapshot.helper = HelperProcess(
            self.loop,
            ("howdah.outputs.snapshot", "take"),
            CopyPartRequest(path, order.uri, order.final, root=self.directory, previous=order.previous),
            on_end,
            on_message,
            limit_s=order.limit_s,
            late=late,
            grace_s=_GRACE_S,
        )
        return snapshot
