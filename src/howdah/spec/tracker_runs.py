"""Runs of experiment trackers (MLflow, Weights & Biases, Trackio and others): their ids and addresses."""

from __future__ import annotations

import re
import urllib.parse
from typing import Dict, Mapping

from howdah.spec import redaction
from howdah.spec.values import dataclass

_MLFLOW = re.compile(r"/experiments/[^/?#]+/runs/([^/?#]+)")
_WANDB = re.compile(r"https?://[^/?#]+/[^/?#]+/[^/?#]+/runs/([^/?#]+)")
_HOST = re.compile(r"https?://([^/?#]+)")
_SPACE = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
"""A Space with its owner. Without an owner the Space belongs to the user who is logged in at Hugging Face, whom nobody
else knows."""
_ADDRESS = re.compile(
    r"(?P<path>https?://(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?:/[^?#;]*)?)(?:;[^?#@]*)?"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_WORKSPACE = re.compile(r"(?:^|&)(o=\d+)(?=&|$)")
"""The parameter that names a workspace of Databricks; without it a run is not found."""


@dataclass(frozen=True)
class TrackerRun:
    """A run of an experiment tracker."""

    tracker: str
    """MLflow, W&B, or the host of another tracker."""
    run: str
    """The run's id; "" if the address does not contain it."""
    url: str
    """The address at which people see the run."""


def tracker_run(url: str) -> TrackerRun:
    """Return the run that a tracker shows at an address."""
    for tracker, pattern in (("MLflow", _MLFLOW), ("W&B", _WANDB)):
        if found := pattern.search(url):
            return TrackerRun(tracker, found[1], url)
    host = _HOST.match(url)
    return TrackerRun(host[1] if host else "", "", url)


def public_address(url: str) -> str:
    """Return the form of an address that everybody may see, "" if there is none. Parameters are cut, in the query and
    in the fragment, because a parameter of any name may open the tracker to everyone who sees it. An address with a
    user has no such form."""
    found = _ADDRESS.fullmatch(url)
    if found is None or not (url.isascii() and url.isprintable()) or " " in url:
        return ""
    workspace = _WORKSPACE.search(found["query"] or "")
    place = (found["fragment"] or "").partition("?")[0]  # a page of MLflow: /experiments/1/runs/0af3
    public = found["path"] + (f"?{workspace[1]}" if workspace else "")
    if place and not set(place) & set("=&;"):
        public += f"#{place}"
    return public if redaction.text(public) == public else ""


def tracker_pages(env: Mapping[str, str], job_id: str) -> Dict[str, str]:
    """Return the pages of a job's runs by tracker, as far as the job's variables determine them: for MLflow its server,
    for W&B the group of the job's runs, for Trackio its Space or, without one, its server. A page is left out if a
    variable has more in it than `public_address` permits."""
    found: Dict[str, str] = {}
    server = env.get("MLFLOW_TRACKING_URI", "")
    if server and public_address(server) == server:
        found["MLflow"] = server
    site = env.get("WANDB_BASE_URL", "") or "https://wandb.ai"
    entity, project = env.get("WANDB_ENTITY", ""), env.get("WANDB_PROJECT", "")
    is_online = env.get("WANDB_MODE", "online") in ("online", "shared")
    if entity and project and is_online and public_address(site) == site:
        path = "/".join(urllib.parse.quote(part, safe="") for part in (entity, project))
        group = urllib.parse.quote(env.get("WANDB_RUN_GROUP", "") or job_id, safe="")
        found["W&B"] = f"{site.rstrip('/')}/{path}/groups/{group}"
    space, server = env.get("TRACKIO_SPACE_ID", ""), env.get("TRACKIO_SERVER_URL", "")
    if _SPACE.fullmatch(space):
        found["Trackio"] = f"https://huggingface.co/spaces/{space}"
    elif not space and server and public_address(server) == server:
        found["Trackio"] = server
    return found
