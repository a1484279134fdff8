"""Variables by which experiment trackers (Weights & Biases, MLflow) keep the runs of one job together.

They are set for a tracker that the user has set up, by variables that begin with its name, and never replace the
user's.
"""

from __future__ import annotations

import json
from typing import Dict, Mapping


def tracker_variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that are missing in `environment`, which has the task's own HOWDAH_ variables."""
    names = ("JOB_ID", "JOB_NAME", "TASK", "ROLE", "WORLD_SIZE", "REPLICAS")
    job, name, task, role, *sizes = (environment.get(f"HOWDAH_{name}", "") for name in names)
    if not job:
        return {}
    if sizes != ["1", "1"]:
        name = f"{name} {task}"
    tags = {"mlflow.runName": name, "howdah_job_id": job, "howdah_task": task}
    found: Dict[str, str] = {}
    if _is_set_up(environment, "WANDB_"):
        found.update(WANDB_RUN_GROUP=job, WANDB_JOB_TYPE=role, WANDB_NAME=name)
    if _is_set_up(environment, "MLFLOW_"):
        found["MLFLOW_RUN_CONTEXT"] = json.dumps(tags)
    return {name: value for name, value in found.items() if name not in environment}


def _is_set_up(environment: Mapping[str, str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in environment)
