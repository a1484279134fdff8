"""Finds the environment of a job on this machine, for programs that check files of the job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from howdah.client.submit import ENVIRONMENT_ARCHIVE, prepare
from howdah.config.job_file import load
from howdah.spec import uris


def planned_python(plan: str | bytes) -> str:
    """Return the Python of the environment that `howdah plan --json` names, if all nodes see this machine's files."""
    (uri,) = (file["uri"] for file in json.loads(plan)["job"]["files"] if file["name"] == ENVIRONMENT_ARCHIVE)
    return f"{uris.path(uri)}/bin/python"


def install_environment(job_file: Path, variables: Mapping[str, str], limit_s: float) -> str:
    """Install the environment of a job, as its submission would, and return its Python. A plan alone installs nothing.
    `variables` name the cache."""
    command = [sys.executable, __file__, str(job_file)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=limit_s, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    prepared = prepare(load(path).spec, path.parent, {"engine": "local"}, lambda _: None, file=path)
    files = prepared.plan.job.files
    print(f"{uris.path(next(file.uri for file in files if file.name == ENVIRONMENT_ARCHIVE))}/bin/python")
