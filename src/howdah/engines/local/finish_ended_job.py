"""`python -m howdah.engines.local.finish_ended_job DIRECTORY JOB` completes a job whose master cannot do that any more.

The supervisor of DIRECTORY (howdah.supervisor) starts this program when a job has ended without its master, or was
cancelled before it began. The program may be killed and started again at any point.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.container import kill_leftovers, remove_program_key
from howdah.errors import HowdahError
from howdah.outputs.commit import abandon
from howdah.spec import Outcome, State
from howdah.spec.containers import has_images
from howdah.spec.events import JobFinished, JobStarted
from howdah.supervisor.masters import lock_job
from howdah.supervisor.state import MachineState
from howdah.wire.stderr import ignore_full_disk


def main(directory: str, job_id: str) -> int:
    """Finish the ended job; return 0 if everything is done."""
    state = MachineState(directory)
    job = JobDirectory(Path(state.jobs_directory) / job_id)
    entry = state.entries().get(job_id)
    if entry is None or "end" not in entry:
        return 1
    lock = lock_job(str(job.path))  # two that finish it must not both write the end
    if lock < 0:
        return 1
    staged = job.staged()
    has_image = staged is not None and has_images(staged.job)
    groups = [held["group"] for held in entry["held"].values()]
    kill_leftovers(job_id, groups, has_image=has_image)  # or they go on writing
    for _, _, attempt in job.attempts():
        remove_program_key(attempt)
    end = entry["end"]
    view = job.view()
    if end["state"] and not view.state.ended:
        if not view.id and staged is not None:  # it never began: readers of its log want to know the job
            started = JobStarted(end["time"], job_id, "local", staged.user, staged.job, submission=staged.submission)
            job.append(started)
        job.append(JobFinished(end["time"], Outcome(State(end["state"]), end["diagnostics"])))
    if staged is not None:
        try:
            abandon(staged.job, job_id, staged.settings.get("hadoop_conf_dir", ""))
        except HowdahError as error:
            print(f"what the job has left cannot be removed: {error}", file=sys.stderr, flush=True)
            return 1
    os.close(lock)
    return 0


if __name__ == "__main__":
    ignore_full_disk()
    sys.exit(main(*sys.argv[1:]))
