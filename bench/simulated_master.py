"""`python -m bench.simulated_master TASKS DIRECTORY`: the real master, whose containers are granted and never started.

The job key comes on standard input; the address of its API is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from howdah.master.loop import Identity, Master
from howdah.spec import JobSpec, Resources, Role, StagedJob
from howdah.testing import FakeAllocator

ID = "job-simulated"


async def main(tasks: int, directory: str, key: bytes) -> None:
    """Until it is killed."""
    job = JobSpec(name="simulated", roles={"worker": Role("true", replicas=tasks, resources=Resources(1024, 1))})
    staged = StagedJob(job, home=directory, user="bench")
    master = Master(Identity(ID, "fake", directory, "127.0.0.1", staged, key, {}), FakeAllocator)
    run = asyncio.ensure_future(master.run())
    while not master.api.hosts:
        await asyncio.sleep(0.01)
    assert master.context is not None
    print(master.context.url, flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await run


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]).as_uri(), bytes.fromhex(sys.stdin.readline())))
