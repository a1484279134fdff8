"""How often a master that is killed is started again on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.engines.local import warden

DIES_THREE_TIMES = "echo $HOWDAH_MASTER_ATTEMPT >> {0}; [ $(wc -l < {0}) -lt 4 ] || exit 5; sleep 0.3; kill -KILL $$"


@pytest.mark.parametrize(("within_s", "attempts", "code"), [(0.1, 4, 5), (60.0, 2, warden.KILLED_TOO_OFTEN)])
def test_only_those_killed_lately_count(within_s: float, attempts: int, code: int, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = ["/bin/sh", "-c", DIES_THREE_TIMES.format(begun)]
    done = subprocess.run([sys.executable, warden.__file__, "2", str(within_s), *command], timeout=60)
    assert begun.read_text().split() == [str(number + 1) for number in range(attempts)]
    assert done.returncode == code
