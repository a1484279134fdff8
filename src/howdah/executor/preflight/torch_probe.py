"""Runs the checks that need the job's own torch, in the job's Python with the program's variables."""

from __future__ import annotations

import json
import pkgutil
import subprocess
from typing import Any, Dict, Mapping

_OF_A_GROUP = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def run_torch_check(
    python: str, variables: Mapping[str, str], request: Mapping[str, Any], limit_s: float
) -> Dict[str, Any]:
    """Return the answer of `howdah.executor.preflight.torch_check_script`: `found`, `left_out` or `error`."""
    if not python:
        return {"left_out": "the job has no Python"}
    text = pkgutil.get_data("howdah.executor.preflight", "torch_check_script.py")
    assert text is not None
    command = [python, "-c", text.decode(), json.dumps(request)]
    kept = {name: value for name, value in variables.items() if name not in _OF_A_GROUP}
    try:
        done = subprocess.run(
            command, env=kept, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=max(0.1, limit_s)
        )
    except subprocess.TimeoutExpired:
        return {"error": f"torch was not done within {limit_s:.0f} s"}
    except OSError as error:
        return {"left_out": f"the job's Python does not run: {error}"}
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            return answer
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return {"error": f"torch ended with {how}{': ' + last[0][:200] if last else ''}"}
