"""Tests the data exchange between two tasks while other processes occupy their ports."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys

from howdah.executor.preflight.requests import PairExchangeRequest
from howdah.spec.codec import encode
from howdah.wire.messages import PairOrder, Partner

LIMIT_S = 30.0
ROUNDS, LARGE = 20, 4096


def task(index: int, listener: socket.socket, partner_port: int) -> subprocess.Popen[str]:
    """`worker:0` is called by `worker:1`."""
    partner = Partner(f"worker:{1 - index}", "127.0.0.1", partner_port, index == 1)
    order = PairOrder(1, (partner,), LIMIT_S)
    request = PairExchangeRequest(order, f"worker:{index}", listener.fileno(), 0, "", {})
    command = [sys.executable, "-m", "howdah.executor.preflight.pair_exchange"]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, pass_fds=[listener.fileno()])
    assert process.stdin is not None
    process.stdin.write(json.dumps(encode(request)))
    process.stdin.close()
    return process


def said(process: subprocess.Popen[str]) -> list[dict[str, str]]:
    assert process.stdout is not None
    with process.stdout as stream:
        found = [json.loads(line) for line in stream]
    assert process.wait(60) == 0
    return found


def test_silent_or_lying_callers_delay_no_other_caller() -> None:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [one.getsockname()[1] for one in listeners]
        called = stack.enter_context(task(0, listeners[0], ports[1]))
        stack.callback(called.kill)
        forged = json.dumps({"epoch": 1, "round": 7, "task": "worker:9"}).encode() + b"\n"
        for sent in (b"", b'{"epoch": 1', b"\n", b"null\n", forged, b"x" * LARGE) * ROUNDS:
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", ports[0]), 60))
            caller.sendall(sent)
        calling = stack.enter_context(task(1, listeners[1], ports[0]))
        stack.callback(calling.kill)
        for process in (called, calling):
            assert [message["passed"] for message in said(process) if "passed" in message]
