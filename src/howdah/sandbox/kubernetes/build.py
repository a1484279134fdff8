"""Builds Kubernetes' daemons and etcd, once per version, from their published Go modules into howdah's cache.

No registry that every machine reaches has these daemons as files, but Go's module proxy has their source. `source/`
holds the program that calls each daemon's own main function, with every module's hash. All daemons are one file,
because they share most of their code: 130 MB instead of 400 MB, and a third of the time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.errors import EngineUnavailable, StagingError
from howdah.sandbox.install import apt_install
from howdah.storage.progress import Notice

VERSION = "1.34.4"
DAEMONS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
PAUSE = "pause"

_SOURCE = Path(__file__).with_name("source")
_OLDEST_GO = (1, 24)
_TOOLCHAIN = "go1.24.13"
"""The Go that Go's module proxy delivers if there is none, or one that is too old."""
_TOOLCHAIN_LIMIT_S = 600
_BUILD_LIMIT_S = 3600
_LINE_EVERY_S = 20.0


def binaries(cache: Path, progress: Notice) -> Path:
    """Return the directory with the daemons of `DAEMONS` and `pause`, built at the first call.

    Raises:
        EngineUnavailable: there is no Go and no way to get one, or the build failed; what it has is kept, so that the
            next call goes on from there.
    """
    target = cache / f"kubernetes-{VERSION}"
    work = cache / f"kubernetes-{VERSION}.build"
    if target.is_dir():
        return target
    try:
        work.mkdir(parents=True, exist_ok=True)
        with _locked(work, progress):
            if not target.is_dir():
                _copy_source(work)
                _build(_require_go(work, progress), work, progress)
                (work / "bin").rename(target)
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise StagingError(f"cannot build Kubernetes in {work}: {error.strerror}") from error
    return target


@contextlib.contextmanager
def _locked(work: Path, progress: Notice) -> Iterator[None]:
    """Wait until no other process builds there."""
    deadline = time.monotonic() + _BUILD_LIMIT_S
    with (work.with_suffix(".lock")).open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    problem = f"another process was still building Kubernetes after {_BUILD_LIMIT_S} s"
                    raise EngineUnavailable(f"{problem} in {work}") from None
                progress(f"building Kubernetes: another process does, in {work}")
                time.sleep(_LINE_EVERY_S)
        yield


def _copy_source(work: Path) -> None:
    shutil.rmtree(work / "bin", ignore_errors=True)
    shutil.copytree(_SOURCE, work / "source", dirs_exist_ok=True)
    (work / "bin").mkdir()


def _build(go: Path, work: Path, progress: Notice) -> None:
    begun = time.monotonic()
    source, environment = work / "source", _environment(work)
    progress(
        f"building Kubernetes {VERSION} from its Go modules, once: about 10 minutes on 2 cores, 200 MB of downloads, "
        f"3 GB in {work} until it is done"
    )
    listed = _run_go([str(go), "list", "-deps", "."], source, environment, "fetch Kubernetes' modules")
    total = len(listed.splitlines())
    program = f"{work}/bin/{DAEMONS[0]}"
    # Go names each package that it has compiled on the standard error.
    command = ["nice", "-n", "10", str(go), "build", "-v", "-trimpath", "-ldflags", _linker_flags(), "-o", program, "."]
    log = work / "build.log"
    with log.open("w") as output, subprocess.Popen(command, cwd=source, env=environment, stderr=output) as build:
        try:
            while (code := _wait(build, _LINE_EVERY_S)) is None:
                minutes, compiled = (time.monotonic() - begun) / 60, len(log.read_text(errors="replace").splitlines())
                progress(f"building Kubernetes: {min(compiled, total)} of {total} packages after {minutes:.1f} minutes")
                if minutes * 60 > _BUILD_LIMIT_S:
                    raise EngineUnavailable(f"Kubernetes was not built within {_BUILD_LIMIT_S} s; see {log}")
        except BaseException:
            build.kill()
            raise
    if code:
        raise EngineUnavailable(f"Go cannot build Kubernetes {VERSION}: {_cause(log.read_text(errors='replace'))}")
    for name in DAEMONS[1:]:
        Path(work, "bin", name).hardlink_to(program)
    pause = [str(go), "build", "-trimpath", "-ldflags", "-s -w", "-o", f"{work}/bin/{PAUSE}", "./pause"]
    _run_go(pause, source, environment, "build the process that holds namespaces")
    progress(f"built Kubernetes {VERSION} in {(time.monotonic() - begun) / 60:.1f} minutes")


def _linker_flags() -> str:
    minor = VERSION.split(".")[1]
    values = {
        "k8s.io/component-base/version.gitVersion": f"v{VERSION}",
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": f"v{VERSION}",
    }
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())])


def _environment(work: Path) -> dict[str, str]:
    """Return the environment of Go: everything that it fetches and compiles stays below `work`. The user's settings for
    fetching modules (GOPROXY, GOSUMDB and the like) are kept."""
    own = {
        "GOPATH": f"{work}/path",
        "GOCACHE": f"{work}/cache",
        "GOFLAGS": "-modcacherw -buildvcs=false -mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    return {**os.environ, **own}


def _run_go(command: list[str], cwd: Path, environment: Mapping[str, str], purpose: str) -> str:
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=_TOOLCHAIN_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"Go did not {purpose} within {_TOOLCHAIN_LIMIT_S} s") from None
    if done.returncode:
        raise EngineUnavailable(f"Go cannot {purpose}: {_cause(done.stderr)}")
    return done.stdout


def _cause(output: str) -> str:
    """Return the first line of Go's output that names an error, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("#")]
    errors = [line for line in lines if re.search(r"\berror\b|\.go:\d+|no such host|cannot|refused|not found", line)]
    return (errors or lines[-1:] or ["(no output)"])[0][:300]


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None


def find_go() -> Path | None:
    """Return a Go that can build Kubernetes: the one on PATH or the one in Go's usual place; None if there is none."""
    for found in filter(None, (shutil.which("go"), shutil.which("/usr/local/go/bin/go"))):
        if _release(Path(found)) >= _OLDEST_GO:
            return Path(found)
    return None


def _release(go: Path) -> tuple[int, ...]:
    # Without GOTOOLCHAIN a Go may answer for another one, which it would have to fetch first.
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}
    try:
        answer = subprocess.run(
            [str(go), "env", "GOVERSION"], cwd="/", env=environment, capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else ()


def _require_go(work: Path, progress: Notice) -> Path:
    """Return a Go that is new enough: this machine's, Debian's, or one that Debian's fetches as a Go module."""
    found = find_go()
    if found:
        return found
    if not shutil.which("go"):
        apt_install(f"Kubernetes is built by Go {'.'.join(map(str, _OLDEST_GO))} or newer", ["golang-go"], progress)
    return find_go() or _fetch_toolchain(work, progress)


def _fetch_toolchain(work: Path, progress: Notice) -> Path:
    """Fetch Go itself as the module golang.org/toolchain, whose hash Go checks like any module's."""
    old = shutil.which("go") or "go"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    module = f"golang.org/toolchain@v0.0.1-{_TOOLCHAIN}.linux-{machine}"
    root = work / "path" / "pkg" / "mod" / module
    if not (root / "bin" / "go").exists():
        progress(f"fetching {_TOOLCHAIN}, because this machine's Go is too old (70 MB)")
        elsewhere = work / "toolchain"  # outside any module: an old Go cannot read the go.mod of a newer one
        elsewhere.mkdir(exist_ok=True)
        environment = {**_environment(work), "GOFLAGS": "-modcacherw"}
        _run_go([old, "mod", "download", module], elsewhere, environment, "fetch Go")
    for program in (*(root / "bin").iterdir(), *(root / "pkg" / "tool").rglob("*")):  # modules have no executable files
        program.chmod(0o755)
    return root / "bin" / "go"
