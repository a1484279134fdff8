"""`python -m howdah.master`: every engine starts this program to run one job."""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Imports leave no garbage, and looking for it takes a sixteenth of the start.
    gc.disable()

import asyncio
import getopt
import json
import os
import signal
import sys
import traceback
import zlib
from pathlib import Path

from howdah.engines import Allocator, AttemptOver
from howdah.engines.info import find
from howdah.errors import HowdahError, SpecError
from howdah.master.app import JobMaster, MasterIdentity
from howdah.master.owned_file import LogOwnerChanged
from howdah.spec import Outcome, StagedJob, State, plugins
from howdah.spec.codec import decode
from howdah.storage import object_stores
from howdah.wire import credentials
from howdah.wire.credentials import JOB, JOB_KEY, SECRET_PREFIX
from howdah.wire.stderr import ignore_full_disk

ATTEMPT_OVER = 143
"""The exit status of a master that left its job to the next one, equal to that of a process that SIGTERM ended."""


def main() -> int:
    """Run the job; return 0 when the job has reached an outcome, whatever it is."""
    ignore_full_disk()
    options = _arguments(sys.argv[1:])
    held = credentials.load(os.environ["HOWDAH_CREDENTIALS"]).secrets
    text = Path(options["job"]).read_bytes() if "job" in options else zlib.decompress(held[JOB])
    staged = decode(StagedJob, json.loads(text))
    secrets = {name[len(SECRET_PREFIX) :]: value for name, value in held.items() if name.startswith(SECRET_PREFIX)}
    known = {name: os.fsdecode(value) for name, value in secrets.items() if name in staged.job.secrets}
    os.environ.update(object_stores.variables(staged.job.env, known))
    identity = MasterIdentity(
        job_id=options["id"],
        engine=options["engine"],
        directory=options["directory"],
        host=os.environ.get("HOWDAH_HOST") or "127.0.0.1",
        staged=staged,
        key=held[JOB_KEY],
        secrets=secrets,
        listen=os.environ.get("HOWDAH_LISTEN", ""),
    )
    outcome = asyncio.run(_run(identity))
    print(f"{outcome.state.value}: {outcome.diagnostics or identity.job_id}", file=sys.stderr, flush=True)
    return 0 if outcome.state is not State.FAILED or outcome.first or outcome.diagnostics else 1


def _arguments(argv: list[str]) -> dict[str, str]:
    """Parse the command line: the `engine` whose allocator is used, the job's `id`, the URI of its `directory`, and
    `job`, the path of job.json (a StagedJob), unless it comes with the credentials."""
    pairs, _ = getopt.getopt(argv, "", [f"{name}=" for name in ("engine", "id", "directory", "job")])
    return {name[2:]: value for name, value in pairs}


async def _run(identity: MasterIdentity) -> Outcome:
    master = JobMaster(identity, find_allocator(identity.engine))
    gc.enable()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _on_signal, master, number)
    try:
        return await master.run()
    except AttemptOver as error:
        print(f"this attempt of the master is over: {error}", file=sys.stderr, flush=True)
        os._exit(ATTEMPT_OVER)  # do not wait for calls to a file system that does not answer
    except LogOwnerChanged as error:  # another master runs the job: touch nothing of it
        await master.close()
        return Outcome(State.CANCELLED, str(error))
    except Exception as error:
        if not isinstance(error, HowdahError):
            traceback.print_exc()
        outcome = master.fail(error)
        await master.log.flush(limit_s=0.0)
        if master.allocator is not None:
            await master.allocator.unregister(outcome)
        return outcome


def _on_signal(master: JobMaster, number: signal.Signals) -> None:
    if master.registered:
        master.api.open_pages.dismiss()
        master.signalled(number.name)
    else:  # nothing is written yet: end as if killed
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def find_allocator(engine: str) -> type[Allocator]:
    """Return the engine's Allocator class.

    Raises:
        SpecError: no package offers this engine.
    """
    info = find(engine)
    if info is None:
        raise SpecError.at("engine", f"is {engine!r}, but no installed package has an engine of this name")
    found: type[Allocator] = plugins.load(info.allocator)
    return found


if __name__ == "__main__":
    sys.exit(main())
