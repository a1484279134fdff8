"""Runs the real server and prints its address: `python attacked_server.py master|history DIRECTORY`.

The job's key, or the history server's, is KEY in hexadecimal on standard input. The master's one container is granted
and never started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from howdah.engines.local.engine import LocalEngine
from howdah.history.options import KEY_VARIABLE, HistoryOptions, ShownCluster, root_of
from howdah.history.server import HistoryServer
from howdah.master.app import JobMaster, MasterIdentity
from howdah.spec import JobSpec, Role, StagedJob
from howdah.testing import FakeAllocator


async def master(directory: Path, key: bytes) -> None:
    staged = StagedJob(JobSpec(roles={"worker": Role("train")}, name="attacked"), home=directory.as_uri())
    running = JobMaster(
        MasterIdentity("job-1", "fake", directory.as_uri(), "127.0.0.1", staged, key, {}), FakeAllocator
    )
    run = asyncio.ensure_future(running.run())
    while running.allocator is None or not running.allocator.launched:  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
    assert running.context is not None
    print(running.context.url, flush=True)
    await run


async def history(directory: Path, key: bytes) -> None:
    os.environ[KEY_VARIABLE] = key.hex()
    engine = LocalEngine({"local_home": str(directory / "home")})
    options = HistoryOptions((ShownCluster(engine, root_of(engine, "me")),), directory / "state", port=0)
    await HistoryServer(options, lambda link: print(link.partition("/#")[0], flush=True)).run()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        kind = {"master": master, "history": history}[sys.argv[1]]
        asyncio.run(kind(Path(sys.argv[2]), bytes.fromhex(sys.stdin.readline())))
