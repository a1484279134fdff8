"""A helper process (`howdah.wire.helper_main`) brings a container image to this node by podman, docker or apptainer."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import tarfile
import tempfile
from typing import Iterator, Sequence

from howdah.errors import HowdahError
from howdah.executor.process.image_program import own_variables
from howdah.wire.helper_main import run_helper_main
from howdah.wire.helper_messages import ImageFetchReply, ImageFetchRequest

_REPOSITORY = "localhost/howdah"
_LOADED = re.compile(r"^Loaded image(?:\(s\)| ID)?: *(\S.*?) *$", re.MULTILINE)
_HASH_BELOW = 1 << 30
_DOCKER, _OCI, _ROOT = "docker-archive", "oci-archive", "root"
# Names at the top of an archive that `save` has made; any other name belongs to a root directory.
_OF_SAVED = re.compile(r"[0-9a-f]{64}(\.json|\.tar)?|blobs|oci-layout|index\.json|manifest\.json|repositories")


class ImageNotFetched(HowdahError):
    """The image cannot be brought to this node."""


def fetch_image(request: ImageFetchRequest) -> ImageFetchReply:
    """Bring the image here if the tool does not have it, and return the words that name it to `run` or `exec`.

    Raises:
        ImageNotFetched: the tool cannot fetch or load it, or takes no image of this kind.
    """
    tool = _Tool(request.tool)
    if not request.path:
        image: Sequence[str] = (request.image,)
        if not tool.has(request.image):
            tool("pull", "-q", request.image)
    elif os.path.isdir(request.path):
        image = tool.words_of_directory(request.path)
    elif tool.kind == "apptainer":
        image = (_for_apptainer(request.path),)
    else:
        image = (_load_once(tool, request.path),)
    return ImageFetchReply(tuple(image), tool.kind == "docker" and "name=rootless" in tool.security_options())


class _Tool:
    def __init__(self, path: str) -> None:
        self.path, self.kind = path, os.path.basename(path)

    def __call__(self, *words: str) -> str:
        done = self._run(*words)
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise ImageNotFetched(lines[-1] if lines else f"{self.kind} {words[0]} ended with status {done.returncode}")
        return done.stdout

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (self.path, *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=own_variables(os.environ),
            encoding="utf-8",
            errors="replace",
            check=False,
        )

    def has(self, image: str) -> bool:
        return self._run("image", "inspect", image).returncode == 0

    def security_options(self) -> str:
        return self._run("info", "--format", "{{json .SecurityOptions}}").stdout

    def words_of_directory(self, path: str) -> Sequence[str]:
        if self.kind == "docker":
            raise ImageNotFetched("docker runs no directory: name an archive of it, or set container_tool: podman")
        return ("--rootfs", f"{path}:O") if self.kind == "podman" else (path,)


def _for_apptainer(path: str) -> str:
    kind = archive_kind(path)
    if kind == _ROOT:
        raise ImageNotFetched("apptainer runs no archive of a root directory: unpack it, and name the directory")
    return f"{kind}:{path}" if kind else path


def _load_once(tool: _Tool, path: str) -> str:
    """Load an archive, unless it was loaded before; return the name that howdah has given to its image."""
    name = f"{_REPOSITORY}:{_identity(path)[:32]}"
    if not tool.has(name):
        with _locked():
            if not tool.has(name):
                _load(tool, path, name)
    return name


def _load(tool: _Tool, path: str, name: str) -> None:
    kind = archive_kind(path)
    if kind == _ROOT:
        tool("import", path, name)
        return
    try:
        said = tool("load", "-q", "-i", path)
    except ImageNotFetched as error:
        if kind == _OCI and tool.kind == "docker":
            advice = "only Docker 25 and later load an OCI archive; `podman save` and `docker save` make another kind"
            raise ImageNotFetched(f"{error}: {advice}") from None
        raise
    names = [one for line in _LOADED.findall(said) for one in line.split(",")]
    ids = {tool("image", "inspect", "--format", "{{.Id}}", one).strip() for one in names}
    if len(ids) != 1:
        raise ImageNotFetched(f"the archive has {len(ids)} images: save one alone")
    tool("tag", names[0], name)


def archive_kind(path: str) -> str:
    """Return `docker-archive`, `oci-archive`, or `root` for an archive of a root directory; "" for any other file."""
    names, problem = set(), ""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = os.path.normpath(member.name).lstrip("/").partition("/")[0]
                if not _OF_SAVED.fullmatch(name) and name != ".":
                    return _ROOT
                names.add(name)
    except (tarfile.TarError, EOFError, OSError) as error:
        if not names:
            return ""
        problem = f": {error}"
    kind = _DOCKER if "manifest.json" in names else _OCI if "oci-layout" in names else ""
    if problem or not kind:
        raise ImageNotFetched(f"the archive is damaged{problem or ' or empty'}")
    return kind


def _identity(path: str) -> str:
    """Return a hash of the content; of a large file a hash of its path, size and time, because howdah copies no large
    file."""
    status = os.stat(path)
    if status.st_size >= _HASH_BELOW:
        return hashlib.sha256(os.fsencode(f"{path} {status.st_size} {status.st_mtime_ns}")).hexdigest()
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Let one process of this user load images at a time. If another user owns the lock's file, nothing is locked."""
    path = os.path.join(tempfile.gettempdir(), f"howdah-images-{os.getuid()}.lock")
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        if os.fstat(file).st_uid == os.getuid():
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


if __name__ == "__main__":
    run_helper_main({"fetch": fetch_image})
