"""Finds the mount points that this process sees."""

from __future__ import annotations

import os
import re
from typing import Set

from howdah.executor.process import process_tree


def mount_points() -> Set[str]:
    """Return field 5 of each line of proc(5) mountinfo, where blanks and the like are written in octal."""
    lines = process_tree.read("/proc/self/mountinfo").splitlines()
    points = (line.split(b" ")[4] for line in lines if line.count(b" ") > 4)
    return {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), point)) for point in points}
