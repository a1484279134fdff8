"""Finds the environment of a planned job on this machine, for programs that check what the job has made."""

from __future__ import annotations

import json

from howdah.client.submit import ENVIRONMENT_ARCHIVE
from howdah.spec import uris


def planned_python(plan: str | bytes) -> str:
    """Return the Python of the environment that `howdah plan --json` names, if all nodes see this machine's files."""
    (uri,) = (file["uri"] for file in json.loads(plan)["job"]["files"] if file["name"] == ENVIRONMENT_ARCHIVE)
    return f"{uris.path(uri)}/bin/python"
