"""Prepares data, then trains with it; fails where its arguments say so."""

import os
import sys

ROLE = f"{os.environ['JOB_NAME']}{os.environ['TASK_INDEX']}"
if os.environ.get("PREPROCESSING_JOB"):
    print("2019-01-01 INFO Model parameters: --rate 0.5 --layers 3")
    sys.exit(0)
print(f"{ROLE} of {os.environ['TASK_NUM']} with {os.environ.get('MODEL_PARAMS')} in {os.environ['JOB_ID']}")
sys.exit(int(os.environ.get(f"FAIL_{ROLE}", "0")))
