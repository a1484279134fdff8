"""Finds conda environments of this machine, and packs them with conda-pack for machines that do not have them. An
environment is packed once for each set of packages that conda and pip have installed in it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.spec.message import message
from howdah.spec.validation import nearest
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.virtual_environments import installed_packages, locked, run_installer
from howdah.storage.content_cache import local_directory
from howdah.storage.progress import Notice

PLACE = "environment.conda"
_META = "conda-meta"
_BASE = "base"
_RECORD = re.compile(r"(.+)-([^-]+)-[^-]+\.json")


def find_prefix(name: str, base_directory: Path) -> Path:
    """Return the directory of a conda environment: `name` is its name, or a path with `/`.

    Raises:
        FilesWrong: there is none.
    """
    if "/" in name:
        prefix = base_directory / name
        if not (prefix / _META).is_dir():
            raise FilesWrong.at(PLACE, f"{name!r}: no conda environment, which has a directory {_META}")
        return prefix
    known = dict(reversed([*_known_prefixes()]))  # of one name the first counts
    if name in known:
        return known[name]
    names = f"known are {', '.join(sorted(known))}" if known else "none is known here, write its directory"
    raise FilesWrong.at(PLACE, f"is {name!r}, must be a conda environment: {names}", nearest(name, known))


def _known_prefixes() -> Iterator[tuple[str, Path]]:
    """Yield names and directories: those in conda's own list of a user's environments, and those in the directories in
    which conda, mamba and micromamba put them."""
    roots = [Path(executable).parent.parent for executable in filter(None, [os.environ.get("CONDA_EXE")])]
    roots += [Path(root) for root in filter(None, [os.environ.get("MAMBA_ROOT_PREFIX")])]
    places = [place for name in ("CONDA_ENVS_DIRS", "CONDA_ENVS_PATH") for place in os.environ.get(name, "").split(":")]
    directories = [root / "envs" for root in roots] + [Path(place) for place in places if place]
    found = [each for directory in directories if directory.is_dir() for each in sorted(directory.iterdir())]
    try:
        listed = regular_file.read(Path.home() / ".conda" / "environments.txt", 1 << 20).decode("utf-8", "replace")
        found += [Path(line.strip()) for line in listed.splitlines() if line.strip()]
    except (OSError, RuntimeError):  # conda makes the file with its first environment
        pass
    for prefix in (*roots, *found):
        if (prefix / _META).is_dir():
            # The environment that has conda itself is called base, whatever its directory.
            yield (_BASE if prefix in roots or (prefix / "condabin").is_dir() else prefix.name), prefix


def environment_key(prefix: Path) -> str:
    """Return 64 hexadecimal digits that change when conda or pip installs something else."""
    records = [prefix / _META / "history", *(prefix / _META).glob("*.json")]
    records += prefix.glob("lib/python3.*/site-packages/*.dist-info")
    digest = hashlib.sha256()
    for path in sorted(records):
        if path.exists():
            digest.update(f"{path.relative_to(prefix)} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()


def pack(prefix: Path, notice: Notice) -> Path:
    """Return an archive of an environment, which is made once.

    Raises:
        FilesWrong: there is no conda-pack.
        StagingError: conda-pack refuses, or there is no room.
    """
    archive = local_directory() / "environments" / f"conda-{environment_key(prefix)[:16]}.tar.gz"
    if archive.is_file():
        return archive
    # conda-pack writes into a directory for temporary files first: that is gone with us, and where there is room.
    scratch = archive.with_name(f".{archive.name}.{os.getpid()}")
    partial = scratch / "packed.tar.gz"
    with locked(archive, notice):
        try:
            if not archive.is_file():
                notice(
                    message(
                        "packing the conda environment {name}: once, into {archive}",
                        name=str(prefix),
                        archive=str(archive),
                    )
                )
                scratch.mkdir(mode=0o700)
                variables = {**os.environ, "TMPDIR": str(scratch)}
                options = ["--quiet", "--compress-level", "1", "--format", "tar.gz", "-p", str(prefix.absolute())]
                run_installer(
                    [*conda_pack(prefix), *options, "-o", str(partial)],
                    prefix,
                    notice,
                    verb="pack",
                    variables=variables,
                )
                partial.replace(archive)
        except OSError as error:
            raise explain(error, error.filename or str(archive)) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return archive


def conda_pack(prefix: Path) -> list[str]:
    """Return the command of conda-pack: of this Python, on PATH, in the environment, or beside conda.

    Raises:
        FilesWrong: there is none.
    """
    if importlib.util.find_spec("conda_pack"):
        return [sys.executable, "-m", "conda_pack.cli"]
    beside = [prefix / "bin", *(Path(conda).parent for conda in filter(None, [os.environ.get("CONDA_EXE")]))]
    found = shutil.which("conda-pack") or next(
        (str(each / "conda-pack") for each in beside if (each / "conda-pack").is_file()), ""
    )
    if not found:
        advice = "install it (`pip install conda-pack`), or write `requirements`"
        raise FilesWrong.at(
            PLACE, f"{prefix} is not on the nodes, and conda-pack, which packs it, is not here: {advice}"
        )
    return [found]


def packages(prefix: Path) -> Mapping[str, str]:
    """Return the versions of the packages that conda and pip have installed, by name."""
    records = filter(None, (_RECORD.fullmatch(path.name) for path in (prefix / _META).glob("*.json")))
    return {**installed_packages(prefix), **{record[1]: record[2] for record in records}}
