"""Builds the runtime archive: howdah and the libraries that it needs inside a container, as one zip for PYTHONPATH.

It holds only pure Python and abi3 wheels, so that the same archive runs under every CPython from 3.10 on; the executor,
which needs no library, runs from 3.9 on. It is built when one of its files has changed, and named by its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import py_compile
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import howdah
from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec.staged import MODULES, PAGE, PY_SPY, RUNTIME, StagedFile
from howdah.storage.content_cache import local_directory, location, sha256_of

HDFS_LIBRARIES = ("protobuf", "hdfs-native", "typing-extensions")
# These are packed if they are installed here. Streams use the first three: compiled modules serve nodes with the same
# Python version, the C library in google-crc32c serves every node; otherwise streams use what the node has.
# nvidia-ml-py reads the figures of GPUs, resvg-py (1.3 MiB packed, abi3) draws the master's charts as PNG.
OPTIONAL = ("cramjam", "google-crc32c", "isal", "nvidia-ml-py", "resvg-py")
# The services that are packed of botocore's 400.
_SERVICES = {"", "s3", "sts", "sso", "sso-oidc"}
_NAME = re.compile(r"[^A-Za-z0-9._-]")
# The page is an archive of its own, because executors do not need it.
_PAGE = "api/static"
# The others are programs of the submitting machine.
_LEFT_OUT = {"cli", "client", "functions", "sandbox", "testing", _PAGE}
_NOT_PACKED = (".pyi", ".proto", ".md", ".po", ".pyc")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can tell


def stage_runtime(
    home: str,
    cache: Path | None = None,
    clients: Iterable[str] = (),
    libraries: Iterable[str] = HDFS_LIBRARIES,
    plugins: Iterable[str] = (),
) -> StagedFile:
    """Return the archive as a file to stage below the engine's home `home`; it is built below `cache` if it does not
    exist.

    `libraries` are distributions that are packed without their dependencies. `clients` are packed with all of their
    dependencies. `plugins` provide an engine, a framework or a format for howdah, and may be installed in editable
    form.

    Raises:
        StagingError: a library is not installed here, or there is no room.
    """
    plugins = sorted(plugins)
    packed = {**dict(_sources(libraries)), **dict(_clients(clients, plugins))}
    for name in plugins:
        packed.update(_plugin(name))
    return _archive(RUNTIME, packed, home, cache)


def page(home: str, cache: Path | None = None) -> tuple[StagedFile, ...]:
    """Return the files of the page, in the compressed form in which they are sent; nothing if the page has not been
    built.

    Raises:
        StagingError: there is no room.
    """
    directory = Path(howdah.__file__).parent / _PAGE
    found = {path.relative_to(directory).as_posix(): path for path in sorted(directory.rglob("*")) if path.is_file()}
    plain = {name: path for name, path in found.items() if f"{name}.gz" not in found}
    return (_archive(PAGE, plain, home, cache),) if plain else ()


def _archive(name: str, sources: Mapping[str, Path], home: str, cache: Path | None) -> StagedFile:
    """Return the archive of these files as a file of this name; it is built if it does not exist."""
    directory = (cache or local_directory()) / "runtime"
    note = directory / f"{_fingerprint(sources)}.json"
    try:
        known = json.loads(note.read_text()) if note.exists() else {}
        archive = Path(known.get("path", ""))
        if not known or not archive.is_file():
            archive = _build(name, sources, directory)
            known = {"path": str(archive), "sha256": sha256_of(archive)}
            fresh = note.with_suffix(f".{os.getpid()}.tmp")
            fresh.write_text(json.dumps(known))
            fresh.replace(note)
    except OSError as error:
        raise explain(error, error.filename or str(directory)) from error
    uri = location(home, known["sha256"], archive.name)
    return StagedFile(name, uri, "archive", str(archive), known["sha256"], archive.stat().st_size)


def py_spy(home: str) -> StagedFile | None:
    """Return py-spy, which dumps stacks, for nodes like this machine; None if it is not installed here."""
    try:
        files = importlib.metadata.distribution("py-spy").files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    path = next((Path(str(file.locate())) for file in files if file.name == "py-spy"), None)
    if path is None or not path.is_file():
        return None
    digest = sha256_of(path)
    uri = location(home, digest, "py-spy")
    return StagedFile(PY_SPY, uri, "file", str(path.resolve()), digest, path.stat().st_size)


def _sources(libraries: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield pairs of a name in the archive and a file; among them are howdah's entry points, which find the engines."""
    yield from _package(Path(howdah.__file__).parent)
    for name in ("howdah", *sorted(libraries)):
        yield from _distribution(name)
    for name in OPTIONAL:
        with contextlib.suppress(StagingError):
            yield from _distribution(name)


def _clients(names: Iterable[str], plugins: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of distributions with all of their dependencies, and of all dependencies of `plugins` except
    howdah. Compiled modules work on nodes with the same Python version; elsewhere a distribution works without them if
    it can."""
    needed = with_dependencies(["fsspec", *names]) if names else set()
    for name in sorted((needed | with_dependencies(plugins)) - {"howdah", *plugins}):
        for file in _distribution_of(name).files or []:
            parts = file.parts
            wanted = file.suffix in (".py", ".so", ".pem", ".json", ".gz") or file.name == "METADATA"
            service = parts[2] if parts[:2] == ("botocore", "data") and len(parts) > 3 else ""
            if wanted and ".." not in parts and "tests" not in parts and service in _SERVICES:
                yield file.as_posix(), Path(str(file.locate()))


def _plugin(name: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules of a distribution, wherever they are imported from, and its entry points, through which howdah
    finds them."""
    distribution = _distribution_of(name)
    for file in distribution.files or []:
        if file.parts[0].endswith(".dist-info") and file.name in ("METADATA", "entry_points.txt"):
            yield file.as_posix(), Path(str(file.locate()))
    for module in sorted({entry.value.partition(":")[0].partition(".")[0] for entry in distribution.entry_points}):
        spec = importlib.util.find_spec(module)
        for directory in (spec.submodule_search_locations or []) if spec is not None else []:
            for path in sorted(Path(directory).rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    yield f"{module}/{path.relative_to(directory).as_posix()}", path
        if spec is not None and spec.origin and not spec.submodule_search_locations:
            yield Path(spec.origin).name, Path(spec.origin)


def with_dependencies(names: Iterable[str]) -> set[str]:
    """Return these distributions and what they require without any extra, as far as it is installed.

    Raises:
        StagingError: one of `names` is not installed.
    """
    found: set[str] = set()
    waiting = [(name, True) for name in names]
    while waiting:
        name, demanded = waiting.pop()
        if name in found:
            continue
        try:
            needs = _distribution_of(name).requires or []
        except StagingError:  # perhaps it is for another system or Python
            if demanded:
                raise
            continue
        found.add(name)
        plain = (need for need in needs if "extra ==" not in need)
        waiting += [(_NAME.split(need, maxsplit=1)[0].lower().replace("_", "-"), False) for need in plain]
    return found


def _package(directory: Path) -> Iterator[tuple[str, Path]]:
    # Each submission walks here, and Path.rglob takes four times as long.
    for where, directories, files in os.walk(directory):
        inside = f"{where}/"[len(str(directory)) + 1 :]
        directories[:] = sorted(
            name for name in directories if name != "__pycache__" and inside + name not in _LEFT_OUT
        )
        for name in sorted(files):
            path = Path(where, name)
            if not name.endswith(_NOT_PACKED) and inside + name not in _LEFT_OUT and path.is_file():
                yield f"howdah/{inside}{name}", path


def _distribution(name: str) -> Iterator[tuple[str, Path]]:
    for file in _distribution_of(name).files or []:
        if _is_packed(file, of_howdah=name == "howdah"):
            yield file.as_posix(), Path(str(file.locate()))


def _distribution_of(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        missing = "howdah[yarn]" if name in HDFS_LIBRARIES else name
        raise StagingError(f"{name} is not installed here, but jobs on a cluster need it: install {missing}") from None


def _is_packed(file: importlib.metadata.PackagePath, of_howdah: bool) -> bool:
    in_metadata = file.parts[0].endswith(".dist-info")
    if of_howdah:
        return in_metadata and file.name in ("METADATA", "entry_points.txt")
    is_library = file.suffix in (".py", ".so") or ".libs/" in file.as_posix()
    return is_library and not in_metadata and ".." not in file.parts


def _fingerprint(sources: Mapping[str, Path]) -> str:
    """Return a text that changes when a file changes; no file is read."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {_version()}\n".encode())
    for name, path in sources.items():
        status = path.stat()
        digest.update(f"{name} {path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _version() -> str:
    return importlib.metadata.version("howdah")


def _build(kind: str, sources: Mapping[str, Path], directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as work:
        fresh = Path(work, "new.zip")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            contents = _gzip_files(sources) if kind == PAGE else _contents(sources, Path(work))
            for name, content in sorted(contents.items()):
                archive.writestr(_info(name), content)
        target = directory / f"{'howdah' if kind == RUNTIME else kind}-{_version()}-{sha256_of(fresh)[:12]}.zip"
        fresh.replace(target)
    return target


def _gzip_files(sources: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the files gzipped, as the master serves them."""
    import gzip

    found = {}
    for name, path in sources.items():
        content = path.read_bytes()
        packed = content if name.endswith(".gz") else gzip.compress(content, 9, mtime=0)
        found[name.removesuffix(".gz") + ".gz"] = packed
    return found


def _contents(sources: Mapping[str, Path], work: Path) -> dict[str, bytes]:
    """Return the files, and each module's byte code for this Python, which halves the time of a start on nodes with the
    same Python."""
    found = {"VERSION": f"howdah {_version()}\n".encode()}
    for name, path in sources.items():
        module, into = PurePosixPath(MODULES, name), work / "module.pyc"
        found[str(module)] = path.read_bytes()
        if name.endswith(".py"):
            # Unpacking sets times, so the byte code must not depend on them; no process edits an unpacked archive.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(path), str(into), name, doraise=True, invalidation_mode=mode)
            cached = module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
            found[str(cached)] = into.read_bytes()
    return found


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    return info
