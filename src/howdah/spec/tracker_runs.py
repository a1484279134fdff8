"""Runs of experiment trackers (MLflow, Weights & Biases and others): their ids and addresses."""

from __future__ import annotations

import re
import urllib.parse
from typing import Dict, Mapping

from howdah.spec.values import dataclass

_MLFLOW = re.compile(r"/experiments/[^/?#]+/runs/([^/?#]+)")
_WANDB = re.compile(r"https?://[^/?#]+/[^/?#]+/[^/?#]+/runs/([^/?#]+)")
_HOST = re.compile(r"https?://(?:[^/?#@]*@)?([^/?#]+)")


@dataclass(frozen=True)
class TrackerRun:
    """A run of an experiment tracker."""

    tracker: str
    """MLflow, W&B, or the host of another tracker."""
    run: str
    """The run's id; "" where the address does not tell it."""
    url: str
    """Where people see the run."""


def tracker_run(url: str) -> TrackerRun:
    """Return the run that a tracker shows at an address."""
    for tracker, pattern in (("MLflow", _MLFLOW), ("W&B", _WANDB)):
        if found := pattern.search(url):
            return TrackerRun(tracker, found[1], url)
    host = _HOST.match(url)
    return TrackerRun(host[1] if host else "", "", url)


def tracker_pages(env: Mapping[str, str], job_id: str) -> Dict[str, str]:
    """Return the pages of a job's runs by tracker, as far as the job's variables tell where they are: of MLflow its
    server, of W&B the group of the job's runs."""
    found: Dict[str, str] = {}
    server = env.get("MLFLOW_TRACKING_URI", "")
    if _HOST.match(server) and "@" not in server:  # it may hold a password
        found["MLflow"] = server
    entity, project = env.get("WANDB_ENTITY", ""), env.get("WANDB_PROJECT", "")
    if entity and project and env.get("WANDB_MODE", "online") in ("online", "shared"):
        path = "/".join(urllib.parse.quote(part, safe="") for part in (entity, project))
        group = urllib.parse.quote(env.get("WANDB_RUN_GROUP", "") or job_id, safe="")
        found["W&B"] = f"{env.get('WANDB_BASE_URL', '').rstrip('/') or 'https://wandb.ai'}/{path}/groups/{group}"
    return found
