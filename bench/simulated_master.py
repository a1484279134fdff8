"""Runs the real master with containers that never start: `python -m bench.simulated_master TASKS DIRECTORY`.

The job key comes on standard input; the address of its API is printed. At each SIGUSR1 it prints how late its loop has
been since the last one: median and 99th percentile, in ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from howdah.master.app import JobMaster, MasterIdentity
from howdah.spec import JobSpec, Resources, Role, StagedJob
from howdah.testing import FakeAllocator

ID, LOOK_S = "job-simulated", 0.02


async def main(tasks: int, directory: str, key: bytes) -> None:
    """Run the master until it is killed."""
    job = JobSpec(name="simulated", roles={"worker": Role("true", replicas=tasks, resources=Resources(1024, 1))})
    staged = StagedJob(job, home=directory, user="bench")
    master = JobMaster(MasterIdentity(ID, "fake", directory, "127.0.0.1", staged, key, {}), FakeAllocator)
    run = asyncio.ensure_future(master.run())
    while not master.api.hosts:
        await asyncio.sleep(0.01)
    while any(task.container is None for task in master.state.tasks.values()):  # executors without one are refused
        await asyncio.sleep(0.01)
    assert master.context is not None
    print(master.context.url, flush=True)
    watch = asyncio.ensure_future(_watch())
    with contextlib.suppress(asyncio.CancelledError):
        await run
    watch.cancel()


async def _watch() -> None:
    loop, late = asyncio.get_running_loop(), [0.0]

    def tell() -> None:
        ordered = sorted(late)
        print(*(f"{1e3 * ordered[int(share * (len(ordered) - 1))]:.2f}" for share in (0.5, 0.99)), flush=True)
        late[:] = [0.0]

    loop.add_signal_handler(signal.SIGUSR1, tell)
    while True:
        due = loop.time() + LOOK_S
        await asyncio.sleep(LOOK_S)
        late.append(loop.time() - due)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]).as_uri(), bytes.fromhex(sys.stdin.readline())))
