"""Configures how all tests run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

# A frozen value of howdah is frozen in all processes of the tests; in production only the type checker says so. The
# variable is read when `howdah.spec.values` is imported.
os.environ["HOWDAH_ENFORCE_FROZEN"] = "1"
# The tests start a thousand processes of howdah. Without what Python has compiled before, each compiles its modules
# anew, which is half of the processor time of a short job.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is, not whether the code is right. The same examples are tried
# each time; HOWDAH_EXPLORE=1 looks for others.
settings.register_profile(
    "here",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="HOWDAH_EXPLORE" not in os.environ,
    database=None,
)
settings.load_profile("here")

# What runs in the background (`nohup make test &`) was started with signals ignored, and so would be all that tests
# start. A handler that does nothing ignores them here, too, but no program inherits it. Python itself ignores the rest.
for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

pytest_plugins = ("leftovers", "outcomes")  # of tests/plugins

GENERATOR = Path(__file__).parents[1] / "tools" / "generate.py"


def pytest_configure(config: pytest.Config) -> None:
    """Generate the files that are made from the sources (the compiled translations), unless they are up to date."""
    if not hasattr(config, "workerinput"):  # xdist's workers find it made
        made = subprocess.run(
            [sys.executable, str(GENERATOR), "catalogue"], stderr=subprocess.PIPE, text=True, check=False
        )
        if made.returncode:
            raise pytest.UsageError(made.stderr)


@pytest.fixture(scope="session", autouse=True)
def _leave_users_things_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep jobs and settings of the user out of the tests, and those of the tests out of the user's home. The cache is
    the user's, because environments and Hadoop's jars take minutes to make."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        os.environ[name] = str(tmp_path_factory.mktemp(name.lower()))
