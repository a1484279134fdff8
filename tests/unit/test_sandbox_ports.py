"""Tests that sandboxes which start at the same time take different ports."""

from __future__ import annotations

import subprocess
import sys

from howdah.sandbox.addresses import free_port, reserve

RESERVE = """
import sys
from howdah.sandbox.addresses import free_port
print(free_port(), flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_process_was_given_is_not_given_again_while_it_lives() -> None:
    command = [sys.executable, "-c", RESERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        assert not reserve(port)
    assert reserve(port)


def test_a_port_is_not_given_twice() -> None:
    assert len({free_port() for _ in range(50)}) == 50
