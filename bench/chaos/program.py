"""Runs as a worker of a chaos job: counts to COUNT, saves its count as a checkpoint, and resumes from it."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

STEP_S = 0.15
shared, COUNT, index = Path(sys.argv[1]), int(sys.argv[2]), os.environ["HOWDAH_INDEX"]
alone = (shared / f"alone-{index}").open("w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody else may be this task
except OSError:
    (shared / "double").write_text(f"worker:{index} runs twice\n")
    sys.exit(9)
kept = Path("kept") / f"count-{index}"
kept.parent.mkdir(exist_ok=True)
begun = int(kept.read_text()) if kept.exists() else 0
with (shared / f"starts-{index}").open("a") as starts:
    starts.write(f"{time.time():.3f} {begun} {os.environ['HOWDAH_EPOCH']}\n")
out = Path("output")
out.mkdir(exist_ok=True)
(out / f"counted-{index}").write_text("\n".join(map(str, range(begun))))
for number in range(begun, COUNT):
    time.sleep(STEP_S)
    try:
        (out / f"counted-{index}").write_text("\n".join(map(str, range(number + 1))))
        part = kept.with_suffix(".part")
        part.write_text(str(number + 1))
        part.replace(kept)
    except OSError as error:
        print(f"No space: {error}", file=sys.stderr)
        sys.exit(75)
    print(f"step {number + 1}", flush=True)
