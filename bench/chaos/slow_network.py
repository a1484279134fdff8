"""Delays or drops network packets by routing them through a TUN device.

Not every kernel has netem. Rules of routing lead packets to a TUN device instead of loopback; this process reads them
there, and gives them back as if they had just arrived. Only in a network of our own: nobody else's packets come by.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Packet = bytes
TUN = Path("/dev/net/tun")
_DEVICE, _TABLE, _LARGEST = "detour", "77", 65000
_TUNSETIFF, _TUN_NO_PI = 0x400454CA, 0x1001
_BACK, _AWAY, _AFTER = "5", "10", "100"


class SlowNetwork:
    """Delays packets by `delay_s` while entered, and drops those for which `lost(packet)` is true.

    `which` selects packets by words of `ip rule`, joined by " or "; "" selects all, TCP or not.
    """

    def __init__(self, which: str = "", delay_s: float = 0.0, lost: Callable[[Packet], bool] = lambda _: False) -> None:
        self.which, self.delay_s, self.lost = which.split(" or "), delay_s, lost
        self.passed = self.dropped = 0
        self._over = False

    def __enter__(self) -> SlowNetwork:
        self._file = os.open(TUN, os.O_RDWR)
        fcntl.ioctl(self._file, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _TUN_NO_PI))
        ip(f"link set {_DEVICE} mtu {_LARGEST + 500} up")
        for name, value in {"accept_local": 1, "route_localnet": 1, "rp_filter": 0}.items():
            Path(f"/proc/sys/net/ipv4/conf/{_DEVICE}/{name}").write_text(str(value))
        Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("0")
        ip(f"route add default dev {_DEVICE} src 127.0.0.1 table {_TABLE}")
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()
        ip(f"rule add pref {_BACK} iif {_DEVICE} lookup local")
        for one in self.which:
            ip(f"rule add pref {_AWAY} iif lo {one} lookup {_TABLE}")
        self._local = local_table_consulted_last()
        self._local.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._local.__exit__(None, None, None)
        for _one in self.which:
            ip(f"rule del pref {_AWAY}")
        time.sleep(self.delay_s + 0.1)  # what is on its way arrives
        self._over = True
        self._thread.join()
        ip(f"rule del pref {_BACK}")
        os.close(self._file)

    def _carry(self) -> None:
        """Pass packets on after their delay; one that cannot be written is lost, as on any network."""
        under_way: collections.deque[tuple[float, Packet]] = collections.deque()
        while not self._over:
            wait = under_way[0][0] - time.monotonic() if under_way else 0.1
            readable, _, _ = select.select([self._file], [], [], min(0.1, max(0.0, wait)))
            if readable:
                packet = os.read(self._file, 1 << 17)
                if self.lost(packet):
                    self.dropped += 1
                else:
                    under_way.append((time.monotonic() + self.delay_s, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                with contextlib.suppress(OSError):
                    os.write(self._file, under_way.popleft()[1])
                    self.passed += 1


@contextlib.contextmanager
def local_table_consulted_last() -> Iterator[None]:
    """Let rules of lower numbers come before the kernel's table of its own addresses while entered."""
    ip(f"rule add pref {_AFTER} lookup local")
    ip("rule del pref 0")
    try:
        yield
    finally:
        ip("rule add pref 0 lookup local")
        ip(f"rule del pref {_AFTER}")


class PortsOfProcess:
    """Tells whether a packet belongs to a port that process `pid` has, or had when the connection was first seen.

    Who else takes its port soon after is taken for it: 40 s are short.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._its: dict[tuple[int, int], bool] = {}

    def __call__(self, packet: Packet) -> bool:
        start = (packet[0] & 15) * 4
        source, target = struct.unpack_from("!HH", packet, start)
        ends = (min(source, target), max(source, target))
        if ends not in self._its:
            self._its[ends] = not self._ports().isdisjoint(ends)
        return self._its[ends]

    def _ports(self) -> set[int]:
        inodes = set()
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{self.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", str(entry.readlink())))
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[9] in inodes}


def prepare_loopback() -> None:
    """Limit loopback's packets to what fits through the TUN device; call this before anything listens."""
    ip(f"link set lo mtu {_LARGEST}")


def ip(arguments: str) -> None:
    """Run the command `ip` with these arguments."""
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True)
