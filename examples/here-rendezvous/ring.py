"""Data-parallel training without any framework: gradients go round a ring of plain sockets.

How a framework that howdah has never heard of finds its peers: each task says where it listens (`here.put`), asks for
its neighbour's address (`here.get`), and begins when all are there (`here.barrier`).
"""

import json
import random
import socket
import struct
from operator import add
from pathlib import Path

from howdah import program

STEPS = 200
RATE = 0.2


class Ring:
    """Sends to the neighbour on the right, receives from the one on the left."""

    def __init__(self) -> None:
        me, size = program.rank, program.size
        host = program.world().members[me].host
        listener = socket.create_server((host, 0))
        program.put(f"ring/{me}", f"{host}:{listener.getsockname()[1]}")  # gone when this task is started again
        address = str(program.get(f"ring/{(me + 1) % size}", wait=120))
        host, _, port = address.rpartition(":")
        self.right = socket.create_connection((host, int(port)), timeout=120)
        self.left, _ = listener.accept()
        self.left.settimeout(120)
        program.barrier("ring is closed", timeout=120)

    def sum(self, values: list[float]) -> list[float]:
        """Of everybody's values: what came last from the left goes on to the right, until all have seen all."""
        total, passing = list(values), list(values)
        layout = struct.Struct(f"<{len(values)}d")
        for _ in range(program.size - 1):
            self.right.sendall(layout.pack(*passing))
            passing = list(layout.unpack(self._receive(layout.size)))
            total = list(map(add, total, passing))
        return total

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.left.recv(size - len(data))
            if not piece:
                raise ConnectionError("the neighbour on the left is gone")
            data += piece
        return data


def main() -> None:
    chance = random.Random(program.rank)  # noqa: S311 - everybody has a part of the data of its own
    points = [(x, 2.0 * x + 1.0 + chance.gauss(0.0, 0.01)) for x in (chance.random() for _ in range(100))]
    ring, slope, offset = Ring(), 0.0, 0.0
    for step in range(STEPS):
        errors = [(slope * x + offset - y, x) for x, y in points]
        mine = [sum(e * x for e, x in errors), sum(e for e, _ in errors), sum(e * e for e, _ in errors)]
        towards_slope, towards_offset, loss = (value / (100 * program.size) for value in ring.sum(mine))
        slope, offset = slope - 2 * RATE * towards_slope, offset - 2 * RATE * towards_offset
        program.progress((step + 1) / STEPS)
        if program.rank == 0:
            program.metric("loss", loss, step)
    print(f"{program.task}: y = {slope:.2f} x + {offset:.2f}, loss {loss:.6f}")
    program.put(f"result/{program.rank}", json.dumps([slope, offset]))
    program.barrier("trained")
    if program.rank == 0:
        results = {program.get(key) for key in program.keys("result/")}
        print(f"{program.size} tasks, {len(results)} result")
        Path("model").mkdir()
        Path("model/line.json").write_text(json.dumps({"slope": slope, "offset": offset}) + "\n")


if __name__ == "__main__":
    main()
