"""What the sandbox runs on: a Java, and Hadoop's jars fetched once by Maven into howdah's cache.

Nothing is assumed about where Java lives: `java` itself is asked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError, StagingError

DEFAULT_HADOOP = "3.5.0"
TRIED = ("3.5.0", "3.4.2", "3.3.6")
"""Versions whose shaded jars were started for real, newest first. 3.4.3's mini-cluster jar is not on Central."""

APT_LINE = "apt-get install -y --no-install-recommends openjdk-17-jre-headless maven"
MAVEN_LIMIT_S = 900
APT_LIMIT_S = 600

Progress = Callable[[str], None]

# Part of Java until 10; the pages and WebHDFS of Hadoop before 3.5 still ask for it. What implements it is in the jars.
_JAXB = ("javax.xml.bind", "jaxb-api", "2.3.1")

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>howdah.sandbox</groupId><artifactId>hadoop-{version}</artifactId><version>1</version>
<dependencies>
{dependencies}
</dependencies></project>
"""


@dataclass(frozen=True)
class Java:
    home: Path
    release: int

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def resolve_version(asked: str) -> str:
    """The exact version for `3.4.2`, `3.4`, `3.4.x`; raises SpecError for what is no Hadoop 3.3 to 3.5."""
    line = re.fullmatch(r"(3\.[345])(?:\.x)?", asked)
    if line:
        return next(version for version in TRIED if version.startswith(line[1] + "."))
    if re.fullmatch(r"3\.[345]\.\d+", asked):
        return asked
    raise SpecError.at("hadoop", f"{asked!r} is not a version the sandbox knows; tried ones are {', '.join(TRIED)}")


def find_java(hadoop: str) -> Java | None:
    """The first of $JAVA_HOME and the `java` on PATH that this Hadoop runs on, or None."""
    oldest = 17 if hadoop.startswith("3.5") else 11
    for program in _java_candidates():
        java = _ask(program)
        # From Java 24 on, Subject.getSubject throws, and Hadoop 3 calls it.
        if java and oldest <= java.release < 24:
            return java
    return None


def _java_candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    named = [str(Path(home, "bin", "java"))] if home else []
    found = shutil.which("java")
    return [*filter(os.path.exists, named), *([found] if found else [])]


def _ask(program: str) -> Java | None:
    command = [program, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    release = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    return Java(Path(home[1]), int(release[1])) if home and release else None


def require_java(hadoop: str, progress: Progress) -> Java:
    """A suitable Java, installed by apt when this is root; raises EngineUnavailable with the line to run otherwise."""
    java = find_java(hadoop)
    if java is None:
        wanted = "Java 17 (up to 23)" if hadoop.startswith("3.5") else "Java 11 or 17 (up to 23)"
        _apt_install(f"Hadoop {hadoop} needs {wanted}", progress)
        java = find_java(hadoop)
    if java is None:
        raise EngineUnavailable("apt has installed Java, but no `java` that suits is on PATH: set JAVA_HOME")
    return java


def _apt_install(reason: str, progress: Progress) -> None:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise EngineUnavailable(f"{reason}, and none was found. Run: {'' if os.geteuid() == 0 else 'sudo '}{APT_LINE}")
    progress(f"{reason}: {APT_LINE}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([apt, "update", "-q"], [apt, *APT_LINE.split()[1:]]):
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=APT_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"`{' '.join(command)}` did not end within {APT_LIMIT_S} s") from None
        if done.returncode:
            raise EngineUnavailable(f"`{' '.join(command)}` failed: {_last_line(done.stderr)}")


def jars(hadoop: str, java: Java, cache: Path, progress: Progress) -> Path:
    """The folder with this version's jars under `cache`, fetched from Maven Central at the first call."""
    target = cache / f"hadoop-{hadoop}"
    if not target.is_dir():
        _require_maven(progress)
        progress(f"fetching Hadoop {hadoop} from Maven Central (about 110 MB, once)")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"hadoop-{hadoop}-", dir=cache) as work:
            _fetch(hadoop, java, Path(work))
            _publish(Path(work) / "lib", target)
    return target


def _require_maven(progress: Progress) -> None:
    if not shutil.which("mvn"):
        _apt_install("Hadoop's jars are fetched by Maven (`mvn`)", progress)


def _fetch(hadoop: str, java: Java, work: Path) -> None:
    (work / "pom.xml").write_text(pom(hadoop))
    command = ["mvn", "-B", "-q", "-f", str(work / "pom.xml"), "dependency:copy-dependencies"]
    command.append(f"-DoutputDirectory={work / 'lib'}")
    environment = {**os.environ, "JAVA_HOME": str(java.home)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MAVEN_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"Maven did not deliver Hadoop {hadoop} within {MAVEN_LIMIT_S} s") from None
    if done.returncode:
        cause = next((line for line in done.stdout.splitlines() if "ERROR" in line), _last_line(done.stderr))
        raise EngineUnavailable(f"Maven could not fetch Hadoop {hadoop}: {cause}")


def _publish(fetched: Path, target: Path) -> None:
    try:
        fetched.rename(target)
    except OSError as error:  # another `up` was quicker
        if not target.is_dir():
            raise StagingError(f"cannot keep Hadoop's jars in {target}: {error.strerror}") from error


def pom(hadoop: str) -> str:
    """The Maven project whose dependencies are the daemons' class path."""
    artifacts = [
        *(("org.apache.hadoop", f"hadoop-client-{part}", hadoop) for part in ("api", "runtime", "minicluster")),
        ("org.slf4j", "slf4j-reload4j", "1.7.36"),
        # The ResourceManager's proxy makes certificates at start and dies without BouncyCastle.
        ("org.bouncycastle", "bcpkix-jdk18on", "1.82"),
        *([] if hadoop.startswith("3.5") else [_JAXB]),
    ]
    rows = (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in artifacts
    )
    return _POM.format(version=hadoop, dependencies="\n".join(rows))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "(no output)"
