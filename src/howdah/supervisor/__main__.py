"""`python -I -S __main__.py DIRECTORY` runs the supervisor of one user's jobs on this machine."""

from __future__ import annotations

import os
import resource
import sys

if __name__ == "__main__":
    # The directory that holds the package `howdah`; with -I and -S nothing but the standard library is on the path.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from howdah.supervisor.state import MachineState
from howdah.supervisor.supervisor import Supervisor


def main(directory: str) -> int:
    """Run the supervisor of the jobs of `directory`."""
    maximum = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (maximum, maximum)
    )  # the limit of the first submitter is not for all jobs
    state = MachineState(directory)
    state.make()
    return Supervisor(state).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
