"""Writes its variables below TOLD, as a JSON line in a file for each task; the task in FAIL_ONCE fails once."""

import json
import os
import sys
from pathlib import Path

ROLE = f"{os.environ['JOB_NAME']}{os.environ['TASK_INDEX']}"
NAMES = ("JOB_NAME", "TASK_INDEX", "TASK_NUM", "DISTRIBUTED_MODE", "SESSION_ID", "ATTEMPT_NUMBER", "NUM_AM_RETRIES")
NAMES += ("JOB_ID", "IS_CHIEF", "CLUSTER_SPEC", "TF_CONFIG", "GREETING")
OWN, FILE = Path("own.json"), Path(os.environ["TOLD"], f"{ROLE}.jsonl")
first = not FILE.exists()
told = {name: os.environ[name] for name in NAMES if name in os.environ}
with FILE.open("a") as file:
    file.write(json.dumps({**told, "OWN": OWN.read_text() if OWN.exists() else None}) + "\n")
sys.exit(3 if first and os.environ.get("FAIL_ONCE") == ROLE else 0)
