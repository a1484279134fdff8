"""Fetches Spark, once, into howdah's cache: its Python package contains all of it, including the jars.

The package exists only as a source archive. pip would build a wheel from it and install that, which packs and unpacks
480 MB once more. Measured on a machine of 2 cores: 27 s to fetch the archive and 16 s to unpack it; 88 s and 32 s when
ten other programs also used the cores.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from howdah.errors import EngineUnavailable, StagingError
from howdah.storage.progress import Notice

VERSION = "4.3.0"
_SHA256 = "e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6"
_FETCH_LIMIT_S = 1800
_PIP_LIMIT_S = 300
_PLACES = {
    "deps/bin": "bin",
    "deps/jars": "jars",
    "deps/licenses": "licenses",
    "deps/examples": "examples/src/main/python",
    "lib": "python/lib",
    "pyspark": "python/pyspark",
}
"""The places in a SPARK_HOME of the directories of the archive."""


def spark_home(cache: Path, progress: Notice) -> Path:
    """Return the directory with Spark, fetched at the first call.

    Raises:
        EngineUnavailable: the package index did not deliver it.
        StagingError: there is no room for it.
    """
    target = cache / f"spark-{VERSION}"
    if target.is_dir():
        return target
    begun = time.monotonic()
    progress(f"fetching Spark {VERSION}, once: 456 MB from the package index, 1 or 2 minutes")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="spark-", dir=cache) as work:
            _fetch(Path(work))
            progress(f"unpacking Spark {VERSION}: 480 MB, after {time.monotonic() - begun:.0f} s")
            _unpack(Path(work, f"pyspark-{VERSION}.tar.gz"), Path(work, "home"))
            if not target.is_dir():  # no other `up` was faster
                Path(work, "home").rename(target)
    except (OSError, tarfile.TarError) as error:
        raise StagingError(f"cannot keep Spark in {target}: {error}") from error
    progress(f"fetched Spark {VERSION} in {time.monotonic() - begun:.0f} s")
    return target


def _fetch(work: Path) -> None:
    """Fetch the source archive; its hash is checked."""
    python = sys.executable
    if importlib.util.find_spec("pip") is None:  # as in an environment that uv has made
        _run([sys.executable, "-m", "venv", str(work / "pip")], "make an environment with pip", _PIP_LIMIT_S)
        python = str(work / "pip" / "bin" / "python")
    wanted = work / "requirements.txt"
    wanted.write_text(f"pyspark=={VERSION} --hash=sha256:{_SHA256}\n")
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pyspark", "--no-cache-dir"]
    _run([*command, "--dest", str(work), "--requirement", str(wanted)], f"fetch Spark {VERSION}", _FETCH_LIMIT_S)


def _run(command: list[str], purpose: str, limit_s: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"`{' '.join(command)}` did not {purpose} within {limit_s:.0f} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise EngineUnavailable(f"pip cannot {purpose}: {(errors or lines or ['(no output)'])[-1]}")


def _unpack(archive: Path, home: Path) -> None:
    """Unpack the files of `_PLACES`; links and everything else in the archive are left out."""
    with tarfile.open(archive) as members:
        for member in members:
            _, _, name = member.name.partition("/")
            source = next((each for each in _PLACES if name.startswith(f"{each}/")), "")
            parts = Path(name.removeprefix(source).lstrip("/")).parts
            if not source or not member.isfile() or ".." in parts:
                continue
            path = home.joinpath(_PLACES[source], *parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            content = members.extractfile(member)
            if content is not None:
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
            path.chmod(0o755 if source == "deps/bin" else 0o644)
