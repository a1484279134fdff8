"""The runtime archive: howdah and the libraries it needs inside a container, as one zip to put on PYTHONPATH.

Only pure Python and abi3 wheels travel, so the same archive runs under every CPython from 3.10 on; the executor, which
needs none of the libraries, from 3.9. It is built when one of its files has changed, and named by its content.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import py_compile
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import howdah
from howdah.data.cache import local_directory, location, sha256_of
from howdah.data.fs import explain
from howdah.errors import StagingError
from howdah.spec.staged import RUNTIME, StagedFile

LIBRARIES = ("protobuf", "hdfs-native", "typing-extensions")
# Programs of the submitting machine.
_LEFT_OUT = {"cli", "client", "dialects", "sandbox", "testing.py"}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can tell


def runtime(home: str, cache: Path | None = None) -> StagedFile:
    """The archive as a file to stage below engine home `home`; it is built below `cache` when it is not there.

    Raises:
        StagingError: a library is not installed here, or there is no room.
    """
    folder = (cache or local_directory()) / "runtime"
    sources = dict(_sources())
    note = folder / f"{_fingerprint(sources)}.json"
    try:
        known = json.loads(note.read_text()) if note.exists() else {}
        archive = Path(known.get("path", ""))
        if not known or not archive.is_file():
            archive = _build(sources, folder)
            known = {"path": str(archive), "sha256": sha256_of(archive)}
            _note(note, known)
    except OSError as error:
        raise explain(error, error.filename or str(folder)) from error
    uri = location(home, known["sha256"], archive.name)
    return StagedFile(RUNTIME, uri, "archive", str(archive), known["sha256"], archive.stat().st_size)


def _sources() -> Iterator[tuple[str, Path]]:
    """Pairs of a name in the archive and the file; howdah's own entry points come with it, they find the engines."""
    yield from _package(Path(howdah.__file__).parent)
    for name in ("howdah", *LIBRARIES):
        yield from _distribution(name)


def _package(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        left_out = relative.parts[0] in _LEFT_OUT or "__pycache__" in relative.parts
        if path.is_file() and not left_out and path.suffix not in (".pyi", ".proto"):
            yield f"howdah/{relative.as_posix()}", path


def _distribution(name: str) -> Iterator[tuple[str, Path]]:
    try:
        files = importlib.metadata.distribution(name).files or []
    except importlib.metadata.PackageNotFoundError:
        raise StagingError(
            f"{name} is not installed here, but jobs on a cluster need it: install howdah[yarn]"
        ) from None
    for file in files:
        if _travels(file, of_howdah=name == "howdah"):
            yield file.as_posix(), Path(str(file.locate()))


def _travels(file: importlib.metadata.PackagePath, of_howdah: bool) -> bool:
    in_metadata = file.parts[0].endswith(".dist-info")
    if of_howdah:
        return in_metadata and file.name in ("METADATA", "entry_points.txt")
    return file.suffix in (".py", ".so") and not in_metadata and ".." not in file.parts


def _fingerprint(sources: Mapping[str, Path]) -> str:
    """Changes when a file does, without reading any."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {_version()}\n".encode())
    for name, path in sources.items():
        status = path.stat()
        digest.update(f"{name} {path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _version() -> str:
    return importlib.metadata.version("howdah")


def _build(sources: Mapping[str, Path], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
        fresh = Path(work, "new.zip")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name, content in sorted(_contents(sources, Path(work)).items()):
                archive.writestr(_info(name), content)
        target = folder / f"howdah-{_version()}-{sha256_of(fresh)[:12]}.zip"
        fresh.replace(target)
    return target


def _contents(sources: Mapping[str, Path], work: Path) -> dict[str, bytes]:
    """The files, and each module's byte code for this Python: half of a start's time where nodes have the same."""
    found = {"VERSION": f"howdah {_version()}\n".encode()}
    for name, path in sources.items():
        found[name] = path.read_bytes()
        if name.endswith(".py"):
            found[_cached(name)] = _byte_code(path, name, work / "module.pyc")
    return found


def _cached(name: str) -> str:
    module = PurePosixPath(name)
    return str(module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc")


def _byte_code(path: Path, name: str, into: Path) -> bytes:
    # Unpacking sets times, so the byte code must not depend on them; nobody edits an unpacked archive.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), str(into), name, doraise=True, invalidation_mode=mode)
    return into.read_bytes()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    return info


def _note(path: Path, known: Mapping[str, str]) -> None:
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(known))
    fresh.replace(path)
