"""Runs an S3 server for a sandbox: moto's, which keeps everything in memory and accepts every key."""

from __future__ import annotations

import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.storage.progress import Notice

_REQUIREMENTS = ("moto[s3]>=5,<6", "flask", "flask-cors")
"""The packages for S3 only: moto[server] brings those of all of Amazon's services, 290 MB instead of 110."""
_PIP_LIMIT_S = 600
_CALL_LIMIT_S = 10


def packages(cache: Path, progress: Notice) -> str:
    """Return the directory with the server's Python packages, fetched at the first call; "" if this Python has them."""
    if all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors")):
        return ""
    target = cache / f"moto-{sys.version_info[0]}.{sys.version_info[1]}"
    if not target.is_dir():
        progress(f"fetching the S3 server, once: pip install {_REQUIREMENTS[0]} (110 MB)")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="moto-", dir=cache) as work:
            _install(Path(work, "packages"))
            if not target.is_dir():  # no other `up` was faster
                Path(work, "packages").rename(target)
    return str(target)


def _install(target: Path) -> None:
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [shutil.which("uv") or "", "pip"]
    if not pip[0]:
        raise EngineUnavailable(
            f"the S3 server needs {_REQUIREMENTS[0]}, and this Python has neither pip nor uv to fetch it"
        )
    python = ["--python", sys.executable] if pip[1] == "pip" else []
    command = [*pip, "install", "--quiet", *python, "--target", str(target), *_REQUIREMENTS]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"pip did not fetch {_REQUIREMENTS[0]} within {_PIP_LIMIT_S} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise EngineUnavailable(f"pip cannot fetch {_REQUIREMENTS[0]}: {lines[-1] if lines else '(no output)'}")


def command(host: str, port: int) -> list[str]:
    return [sys.executable, "-m", "moto.server", "-H", host, "-p", str(port)]


def environment(packages_directory: str) -> dict[str, str]:
    found = {"PYTHONPATH": packages_directory} if packages_directory else {}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home()), **found}


def make_bucket(url: str, name: str) -> bool:
    """Make a bucket unless it exists; return whether the server has answered."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"{url}/{name}", method="PUT")  # noqa: S310 - always http
    try:
        opener.open(request, timeout=_CALL_LIMIT_S).close()
    except urllib.error.HTTPError as error:
        return error.code == http.client.CONFLICT
    except (OSError, http.client.HTTPException):
        return False
    return True
