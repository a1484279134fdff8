"""A helper process (`howdah.wire.helper_main`) exchanges data with other tasks: over TCP, then by the job's torch.

Of a pair one task listens, on a socket that the executor reserved, and the other connects. They identify themselves,
send each other the same bytes, then, where both have torch, make an all-reduce. Each sends the other its result, so
that both report the same to the master. Each round ends at its own time, whatever a partner does.
"""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import subprocess
import time
import zlib
from typing import Any, BinaryIO, Callable, Dict, Tuple

from howdah.executor.preflight.requests import PairExchangeRequest
from howdah.executor.preflight.torch_probe import run_torch_check
from howdah.wire.helper_main import run_helper_main, write_line
from howdah.wire.messages import Partner

_MIB = 1 << 20
_SEND_MIB = 16
_PIECE = random.Random(1).randbytes(_MIB)  # noqa: S311 - a pattern, no secret
_SUM = zlib.crc32(_PIECE * _SEND_MIB)
_RETRY_S, _HELLO_S, _RESULT_S, _FIND_TORCH_S = 0.2, 5.0, 2.0, 20.0
_MAX_UNIDENTIFIED, _MAX_HELLO, _CHECK_AGAIN_S = 64, 4096, 0.02
"""The most callers that have not identified themselves, the most bytes of a hello, and seconds until an incomplete
hello is read again."""

Hello = Tuple[int, int, str]
"""Epoch, round, task."""
Clock = Callable[[], float]
"""Returns seconds, as `time.monotonic` does."""


class ExchangeFailed(Exception):
    """The exchange failed, or the received data was wrong."""


class PeerConnection:
    """A connection to the partner: JSON lines, and bytes. `torch` is the partner's kind of torch."""

    def __init__(self, connection: socket.socket, deadline: float, clock: Clock) -> None:
        self.connection, self.deadline, self.clock, self.torch = connection, deadline, clock, ""
        self.address, self.peer = str(connection.getsockname()[0]), str(connection.getpeername()[0])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file: BinaryIO = connection.makefile("rb")

    def send_message(self, **message: Any) -> None:
        self._wait()
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive_message(self) -> Dict[str, Any]:
        self._wait()
        answer = json.loads(self._file.readline(65536) or b"null")
        if not isinstance(answer, dict):
            raise ExchangeFailed("it hung up")
        return answer

    def send(self, piece: bytes) -> None:
        """Send `piece` many times."""
        for _ in range(_SEND_MIB):
            self._wait()
            self.connection.sendall(piece)

    def receive(self) -> int:
        """Return the checksum of the received bytes."""
        found = 0
        for _ in range(_SEND_MIB):
            self._wait()
            found = zlib.crc32(self._file.read(_MIB), found)
        return found

    def close(self) -> None:
        self._file.close()
        self.connection.close()

    def _wait(self) -> None:
        self.connection.settimeout(max(0.01, self.deadline - self.clock()))


class PairExchange:
    """Makes all rounds of one task."""

    def __init__(self, request: PairExchangeRequest, clock: Clock = time.monotonic) -> None:
        self.request, self.order, self._clock = request, request.order, clock
        self.listener = socket.socket(fileno=request.listener)
        self.listener.listen(128)
        self.listener.settimeout(1.0)
        self._early: Dict[Hello, PeerConnection] = {}
        """Connections of partners whose round has not begun."""
        self._unidentified: Dict[socket.socket, float] = {}
        """Callers that have sent no hello yet, and the time until which they may send it."""
        rounds = enumerate(self.order.rounds)
        self._expected = {(self.order.epoch, number, partner.task) for number, partner in rounds if partner is not None}
        self._torch = _torch_device(request)

    def run(self) -> None:
        """Exchange data with each partner, and report the results."""
        began, round_s = self._clock(), self.order.limit_s / max(1, len(self.order.rounds))
        for number, partner in enumerate(self.order.rounds):
            if partner is not None:
                self._round(number, partner, began + round_s * (number + 1))

    def _round(self, number: int, partner: Partner, deadline: float) -> None:
        began = self._clock()
        write_line({"begun": f"all-reduce with {partner.task}"})
        try:
            line = self._connect(number, partner, deadline)
            try:
                found, left_out = self._exchange(line, partner.listens)
            finally:
                line.close()
        except socket.timeout:  # noqa: UP041 - until CPython 3.10 they are two
            why = f"nothing of {partner.task} after {self._clock() - began:.0f} s"
            write_line({"failed": partner.task, "why": why})
        except (ExchangeFailed, OSError, ValueError, KeyError) as error:
            write_line({"failed": partner.task, "why": str(error) or type(error).__name__})
        else:
            write_line({"passed": partner.task})
            write_line({"found": f"all-reduce with {partner.task}: {found}"})
            if left_out:
                write_line({"left_out": f"all-reduce by torch: {left_out}"})

    # Connecting

    def _connect(self, number: int, partner: Partner, deadline: float) -> PeerConnection:
        if not partner.listens:
            return self._accept_partner((self.order.epoch, number, partner.task), deadline)
        address, problem = (partner.host, partner.port), "no time was left"
        while self._clock() < deadline:
            try:
                left = max(0.01, deadline - self._clock())
                line = PeerConnection(socket.create_connection(address, left), deadline, self._clock)
                line.send_message(epoch=self.order.epoch, round=number, task=self.request.task, torch=self._torch)
                return line
            except OSError as error:  # the partner's executor may not listen yet
                problem = str(error)
                time.sleep(min(_RETRY_S, max(0.0, deadline - self._clock())))
        raise ExchangeFailed(f"{partner.host}:{partner.port} can't be reached: {problem}")

    def _accept_partner(self, wanted: Hello, deadline: float) -> PeerConnection:
        """Return the connection of the expected partner; connections of other partners wait for their round.

        A caller that does not identify itself does not delay the others, because any process may connect.
        """
        while wanted not in self._early:
            left = deadline - self._clock()
            if left <= 0:
                raise socket.timeout  # noqa: UP041 - until CPython 3.10 they are two
            self._accept_callers(min(left, _HELLO_S))
        line = self._early.pop(wanted)
        line.deadline = deadline
        return line

    def _accept_callers(self, limit: float) -> None:
        """Accept callers once, and read the hello of those that have sent it."""
        ready, _, _ = select.select([self.listener, *self._unidentified], [], [], limit)
        for caller in ready:
            if caller is self.listener:
                with contextlib.suppress(OSError):  # the caller has left
                    self._unidentified[self.listener.accept()[0]] = self._clock() + _HELLO_S
            else:
                self._read_hello(caller)
        now = self._clock()
        for caller, until in list(self._unidentified.items()):
            if now > until or len(self._unidentified) > _MAX_UNIDENTIFIED:  # of too many the oldest goes
                self._unidentified.pop(caller)
                caller.close()
        if ready and self.listener not in ready:
            time.sleep(_CHECK_AGAIN_S)  # half a line stays ready to be read

    def _read_hello(self, caller: socket.socket) -> None:
        try:
            received = caller.recv(_MAX_HELLO, socket.MSG_PEEK)
        except OSError:
            received = b""
        if b"\n" not in received and 0 < len(received) < _MAX_HELLO:
            return
        self._unidentified.pop(caller)
        if b"\n" in received:
            self._identify(PeerConnection(caller, self._clock() + _HELLO_S, self._clock))
        else:
            caller.close()

    def _identify(self, line: PeerConnection) -> None:
        try:
            hello = line.receive_message()
            key = (int(hello["epoch"]), int(hello["round"]), str(hello["task"]))
        except (ExchangeFailed, OSError, ValueError, KeyError, TypeError):
            key = (0, -1, "")
        if key not in self._expected:
            line.close()  # a stranger
            return
        if key in self._early:
            self._early.pop(key).close()
        self._early[key] = line
        line.torch = str(hello.get("torch", ""))

    # Exchanging

    def _exchange(self, line: PeerConnection, listens: bool) -> Tuple[str, str]:
        """Return what was found, and why torch was left out, if it was. `listens` says that the partner listens."""
        if listens:
            port = int(line.receive_message()["port"])
        else:
            port = _free_port(line.address) if self._torch and self._torch == line.torch else 0
            line.send_message(port=port)
        began = time.monotonic()
        if listens:
            line.send(_PIECE)
        checksum = line.receive()
        if not listens:
            line.send(_PIECE)
        rate = 2 * _SEND_MIB / (time.monotonic() - began)
        self._exchange_results(
            line, "" if checksum == _SUM else f"{_SEND_MIB} MiB came over TCP with other content than was sent"
        )
        found = f"TCP {rate:.0f} MiB/s"
        if not port:
            return found, "not both tasks have torch in the job's Python"
        answer = self._all_reduce(line, listens, port)
        self._exchange_results(line, str(answer.get("error", "")))
        return found + (f", {answer['found']}" if "found" in answer else ""), str(answer.get("left_out", ""))

    def _all_reduce(self, line: PeerConnection, listens: bool, port: int) -> Dict[str, Any]:
        left = line.deadline - self._clock() - _RESULT_S
        host = line.peer if listens else line.address
        check = {"check": "all-reduce", "host": host, "port": port, "rank": int(listens), "limit_s": left}
        question = {**check, "gpu": self._torch == "gpu"}
        return run_torch_check(self.request.python, self.request.variables, question, left)

    def _exchange_results(self, line: PeerConnection, problem: str) -> None:
        """Exchange results, so that both tasks know what either has found."""
        line.send_message(problem=problem)
        problem = problem or str(line.receive_message()["problem"])
        if problem:
            raise ExchangeFailed(problem)


def _torch_device(request: PairExchangeRequest) -> str:
    """Return where the job's torch would compute: `gpu`, `cpu`, or "" without torch."""
    if not request.python:
        return ""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        done = subprocess.run(
            [request.python, "-c", code], env=request.variables, cwd="/", capture_output=True, timeout=_FIND_TORCH_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else "gpu" if request.gpus else "cpu"


def _free_port(address: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def exchange_data(request: PairExchangeRequest) -> None:
    """Make all rounds; a failed round is reported, and is no failure of this process."""
    PairExchange(request).run()


if __name__ == "__main__":
    run_helper_main({"exchange": exchange_data})
