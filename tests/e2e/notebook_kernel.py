"""A real kernel of a notebook, and the output of its cells."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

LIMIT_S = 300.0
Message = dict[str, Any]


class NotebookKernel:
    """A kernel, which runs one cell at a time."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager, self._client = manager, client

    def run(self, code: str, on_message: Callable[[Message], None] = lambda _message: None) -> CellResult:
        """Run a cell to its end."""
        self._client.execute(code)
        messages: list[Message] = []
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            try:
                message = self._client.get_iopub_msg(timeout=1.0)
            except Empty:
                assert self._manager.is_alive()
                continue
            on_message(message)
            messages.append(message)
            of_a_cell = message["parent_header"].get("msg_type") == "execute_request"
            if of_a_cell and message["content"].get("execution_state") == "idle":
                return CellResult(messages)
        raise AssertionError(f"the cell does not end: {[text_of(message) for message in messages]}")

    def restart(self, limit_s: float) -> None:
        """Press the button that starts the kernel again."""
        self._client.stop_channels()
        self._manager.restart_kernel(now=True)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(limit_s)

    def interrupt(self) -> None:
        """Press the stop button."""
        self._manager.interrupt_kernel()


class CellResult:
    """The output of a cell."""

    def __init__(self, messages: list[Message]) -> None:
        errors = [message["content"] for message in messages if message["msg_type"] == "error"]
        self.error = str(errors[0]["ename"]) if errors else ""
        """The name of the exception that has ended it; "" for none."""
        self.traceback = "\n".join(errors[0]["traceback"]) if errors else ""
        self.printed = "".join(text_of(message) for message in messages if message["msg_type"] == "stream")
        self.result = "".join(text_of(message) for message in messages if message["msg_type"] == "execute_result")
        kinds = ("display_data", "update_display_data")
        self.displayed = [text_of(message) for message in messages if message["msg_type"] in kinds]
        """The texts of what was displayed, and displayed again."""


def text_of(message: Message) -> str:
    content = message["content"]
    return str(content.get("data", {}).get("text/plain", "") or content.get("text", ""))


@contextlib.contextmanager
def started(environment: Mapping[str, str], directory: Path) -> Iterator[NotebookKernel]:
    """Give a kernel with these variables in this directory."""
    manager, client = start_new_kernel(startup_timeout=LIMIT_S, env=dict(environment), cwd=str(directory))
    try:
        yield NotebookKernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
