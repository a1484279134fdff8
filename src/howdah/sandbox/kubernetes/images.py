"""Makes container images from files of this machine, because no registry may be reachable: archives in the form of
`docker save`, which containerd imports.

The image with Python contains this machine's own Python (the interpreter and its standard library, no installed
packages) at its own path, with the shared libraries and the small programs that jobs expect. So packages that were
compiled for this machine's Python, in an environment or on a shared directory, run in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from howdah.errors import EngineUnavailable
from howdah.spec.values import dataclass

PYTHON_IMAGE = "sandbox.local/python:3"
PAUSE_IMAGE = "sandbox.local/pause:1"

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIMIT_S = 60
_PROGRAMS = (
    *(
        "sh",
        "bash",
        "env",
        "cat",
        "chmod",
        "chown",
        "cp",
        "cut",
        "date",
        "dd",
        "df",
        "dirname",
        "basename",
        "du",
        "echo",
    ),
    *("expr", "false", "find", "grep", "gunzip", "gzip", "head", "hostname", "id", "kill", "ln", "ls", "mkdir"),
    *("mkfifo", "mktemp", "mv", "nproc", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq", "setsid"),
    *("sleep", "sort", "stat", "stty", "sync", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "uname"),
    *("uniq", "wc", "which", "whoami", "xargs", "ip"),
)
_MORE_LIBRARIES = (
    *("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libz.so.1", "libnss_files.so.2", "librt.so.1", "libm.so.6"),
    *("libpthread.so.0", "libdl.so.2", "libutil.so.1"),
)
"""Libraries that compiled Python packages expect of a machine."""
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo", "ensurepip"}
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass
class _Tree:
    """The files of an image: the source of each, by its path in the image."""

    sources: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)

    def add(self, path: str | Path) -> None:
        """Add a file of this machine at its own path, with each symbolic link on the way to it."""
        target = Path(os.path.realpath(path))
        self.sources[str(target)] = target
        if Path(path) != target:
            self.links[str(path)] = str(target)


def write_pause(archive: Path, program: Path) -> None:
    """Write the image of a pod's first process, which holds the pod's namespaces."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(program, arcname="pause", filter=_anonymous)
    _write_image(archive, PAUSE_IMAGE, layer.getvalue(), {"Entrypoint": ["/pause"]})


def python_image(cache: Path) -> Path:
    """Return the archive of the image with this machine's Python, made at the first call for this Python."""
    program = _base_python()
    changed = program.stat().st_mtime_ns, Path(__file__).stat().st_mtime_ns
    name = hashlib.sha256(f"{program} {sys.version} {changed}".encode()).hexdigest()[:16]
    archive = cache / f"python-image-{name}.tar"
    if not archive.exists():
        fresh = archive.with_suffix(f".{os.getpid()}")
        configuration = {"Cmd": ["python3"], "Env": [f"PATH={_PATH}", "LANG=C.UTF-8"], "WorkingDir": "/"}
        _write_image(fresh, PYTHON_IMAGE, _layer(_python_tree(program)), configuration)
        fresh.replace(archive)
    return archive


def _base_python() -> Path:
    """Return the interpreter itself, if this process runs in a virtual environment."""
    names = (f"python{sys.version_info[0]}.{sys.version_info[1]}", "python3")
    found = next((path for name in names if (path := Path(sys.base_prefix, "bin", name)).exists()), None)
    return Path(os.path.realpath(found or sys.executable))


def _python_tree(program: Path) -> _Tree:
    tree = _Tree(contents=_FILES)
    tree.add(program)
    for name in ("python3", "python", program.name):
        tree.links.setdefault(f"/usr/bin/{name}", str(program))
        tree.links.setdefault(str(program.with_name(name)), program.name)
    tree.links = {link: target for link, target in tree.links.items() if link != str(program)}
    base = {"base": sys.base_prefix, "installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    base["installed_platbase"] = sys.base_exec_prefix
    for key in ("stdlib", "platstdlib"):
        for path in _standard_library(Path(sysconfig.get_path(key, vars=base))):
            tree.sources[str(path)] = path
    for name in filter(None, map(shutil.which, _PROGRAMS)):
        tree.add(name)
        tree.links.setdefault(f"/bin/{Path(name).name}", os.path.realpath(name))
    if Path(_CERTIFICATES).exists():
        tree.add(_CERTIFICATES)
    binaries = [path for path in tree.sources.values() if _is_binary(path)]
    for library in _libraries([*binaries, *_installed_libraries(_MORE_LIBRARIES)]):
        tree.add(library)
    return tree


def _standard_library(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        directories[:] = sorted(
            name for name in directories if name not in _LEFT_OUT and not name.startswith("config-")
        )
        if parent.endswith("__pycache__"):  # without what this Python compiled, each start would compile it again
            files = [name for name in files if name.endswith(f".{sys.implementation.cache_tag}.pyc")]
        yield from (Path(parent, name) for name in sorted(files) if not name.endswith(".a"))


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _installed_libraries(names: Iterable[str]) -> list[Path]:
    ldconfig = shutil.which("ldconfig") or shutil.which("/sbin/ldconfig")
    if not ldconfig:
        return []
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=_LIMIT_S).stdout
    found = dict(re.findall(r"^\s(\S+) \([^)]*x86-64[^)]*\) => (\S+)$", listed, re.MULTILINE)[::-1])
    found = found or dict(re.findall(r"^\s(\S+) \([^)]*\) => (\S+)$", listed, re.MULTILINE)[::-1])
    return [Path(found[name]) for name in names if name in found]


def _libraries(binaries: Iterable[Path]) -> set[str]:
    """Return these libraries and all libraries to which these files are linked, including the dynamic linker."""
    files = list(map(str, binaries))
    # ldd ends with 1 if one of the files is not dynamic, and says so for that one.
    output = subprocess.run(["ldd", *files], capture_output=True, text=True, timeout=_LIMIT_S).stdout
    linked = re.findall(r"(?:=> |^\t)(/\S+) \(0x", output, re.MULTILINE)
    return {*linked, *(name for name in files if ".so" in name)}


def _layer(tree: _Tree) -> bytes:
    """Return the tree as a tar archive. This machine's links, such as that from /lib to /usr/lib, are kept, so that
    each file is at the path under which others know it."""
    merged = [name for name in ("bin", "sbin", "lib", "lib64", "lib32") if Path("/", name).is_symlink()]
    links = {f"/{name}": str(Path("/", name).readlink()) for name in merged}

    def place(path: str) -> str:
        top, _, rest = path.lstrip("/").partition("/")
        return f"{links[f'/{top}']}/{rest}".lstrip("/") if f"/{top}" in links and rest else path.lstrip("/")

    files = {place(path): source for path, source in tree.sources.items()}
    symlinks = {place(path): target for path, target in tree.links.items()}
    symlinks = {path: target for path, target in symlinks.items() if path not in files and f"/{path}" != target}
    symlinks |= {path.lstrip("/"): target for path, target in links.items()}
    directories = {"tmp", "root", "proc", "sys", "dev", "run", "var/tmp", *(target for target in links.values())}
    for path in (*files, *symlinks, *tree.contents, *directories.copy()):
        directories.update(str(parent) for parent in Path(path).parents if str(parent) != ".")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(directories - set(symlinks)):
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if path.endswith("tmp") else 0o755
            tar.addfile(entry)
        for path, target in sorted(symlinks.items()):
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for path, source in sorted(files.items()):
            tar.add(source, arcname=path, recursive=False, filter=_anonymous)
        for path, text in tree.contents.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o444 | (0o111 if entry.mode & 0o100 else 0)
    return entry


def _write_image(archive: Path, name: str, layer: bytes, configuration: Mapping[str, object]) -> None:
    """Write an image of one layer."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
    if machine is None:
        raise EngineUnavailable(f"no container image is made for a machine of type {os.uname().machine}")
    digest = hashlib.sha256(layer).hexdigest()
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    image = {"architecture": machine, "os": "linux", "config": configuration, "rootfs": rootfs}
    encoded = json.dumps(image).encode()
    config = f"{hashlib.sha256(encoded).hexdigest()}.json"
    manifest = [{"Config": config, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    contents = {f"{digest}/layer.tar": layer, config: encoded, "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(archive, "w") as tar:
        for path, content in contents.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
