"""Tests that sandboxes which start at the same time take different ports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.sandbox import addresses

SRC = Path(addresses.__file__).parents[2]
TAKE_ALL = """
import json, sys
from howdah.sandbox import addresses
addresses._LOWEST, addresses._HIGHEST = 31000, 31004
print(json.dumps(addresses.free_ports(2)), flush=True)
sys.stdin.read()
"""


def test_two_processes_get_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", TAKE_ALL]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(SRC)}
    ) as other:
        assert other.stdout
        theirs = set(json.loads(other.stdout.readline()))
        monkeypatch.setattr(addresses, "_LOWEST", 31000)
        monkeypatch.setattr(addresses, "_HIGHEST", 31004)
        assert set(addresses.free_ports(2)) == {31000, 31001, 31002, 31003} - theirs
        assert other.stdin
        other.stdin.close()
