"""Finds or installs the software for the sandbox: a Java, and Hadoop's jars, which Maven fetches once into howdah's
cache.

`java` itself is asked for its home directory and version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.spec.values import dataclass
from howdah.storage.progress import Notice

DEFAULT_HADOOP = "3.5.0"
TRIED = ("3.5.0", "3.4.2", "3.3.6")
"""Versions whose shaded jars were tried, newest first. The mini-cluster jar of 3.4.3 is not on Maven Central."""

HADOOP_PACKAGES = ("openjdk-17-jre-headless", "maven")
MAVEN_LIMIT_S = 900
APT_LIMIT_S = 600

# Part of Java until 10; the pages and WebHDFS of Hadoop before 3.5 still need it. The jars have its implementation.
_JAXB = ("javax.xml.bind", "jaxb-api", "2.3.1")

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>howdah.sandbox</groupId><artifactId>hadoop-{version}</artifactId><version>1</version>
<dependencies>
{dependencies}
</dependencies></project>
"""
STARTS_FAST = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)
"""Options of Java with which daemons start fast and stay small, which matters more here than their speed. Without
verification of the classes, which are Hadoop's and Spark's own, they start in three quarters of the CPU time."""


@dataclass(frozen=True)
class Java:
    home: Path
    release: int

    @property
    def program(self) -> Path:
        """Return the path of the program `java`."""
        return self.home / "bin" / "java"


def resolve_version(asked: str) -> str:
    """Return the exact version for `3.4.2`, `3.4`, `3.4.x`.

    Raises:
        SpecError: it is no version of Hadoop 3.3 to 3.5.
    """
    line = re.fullmatch(r"(3\.[345])(?:\.x)?", asked)
    if line:
        return next(version for version in TRIED if version.startswith(line[1] + "."))
    if re.fullmatch(r"3\.[345]\.\d+", asked):
        return asked
    raise SpecError.at("hadoop", f"{asked!r} is not a version the sandbox knows; tried ones are {', '.join(TRIED)}")


def find_java(hadoop: str) -> Java | None:
    """Return the first of $JAVA_HOME and the `java` on PATH on which this Hadoop runs, or None."""
    oldest = 17 if hadoop.startswith("3.5") else 11
    home = os.environ.get("JAVA_HOME")
    candidates = (str(Path(home, "bin", "java")) if home else None, shutil.which("java"))
    for program in filter(None, candidates):
        java = _ask(program)
        # From Java 24 on, Subject.getSubject throws, and Hadoop 3 calls it.
        if java and oldest <= java.release < 24:
            return java
    return None


def _ask(program: str) -> Java | None:
    command = [program, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    release = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    return Java(Path(home[1]), int(release[1])) if home and release else None


def require_java(hadoop: str, progress: Notice, program: str = "") -> Java:
    """Return a Java that suits this Hadoop; as root, install one by apt. `program` names what else needs the same Java.

    Raises:
        EngineUnavailable: there is none; it says which command installs one.
    """
    java = find_java(hadoop)
    if java is None:
        wanted = "Java 17 (up to 23)" if hadoop.startswith("3.5") else "Java 11 or 17 (up to 23)"
        packages = HADOOP_PACKAGES[:1] if program else HADOOP_PACKAGES
        apt_install(f"{program or f'Hadoop {hadoop}'} needs {wanted}", packages, progress)
        java = find_java(hadoop)
    if java is None:
        raise EngineUnavailable("apt has installed Java, but no `java` that suits is on PATH: set JAVA_HOME")
    return java


def apt_install(reason: str, packages: Sequence[str], progress: Notice) -> None:
    """Install Debian packages, as root.

    Raises:
        EngineUnavailable: they cannot be installed; the message has the command to run.
    """
    line = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise EngineUnavailable(f"{reason}, and none was found. Run: {'' if os.geteuid() == 0 else 'sudo '}{line}")
    progress(f"{reason}: {line}")
    for command in ([apt, "update", "-q"], [apt, "-o", "DPkg::Lock::Timeout=120", *line.split()[1:]]):
        try:
            done = _run(command, APT_LIMIT_S, DEBIAN_FRONTEND="noninteractive")
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"`{' '.join(command)}` did not end within {APT_LIMIT_S} s") from None
        if done.returncode:
            raise EngineUnavailable(f"`{' '.join(command)}` failed: {_last_line(done.stderr)}")


def _run(command: list[str], limit_s: float, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s)


def jars(hadoop: str, java: Java, cache: Path, progress: Notice) -> Path:
    """Return the directory below `cache` with this version's jars, fetched from Maven Central at the first call."""
    target = cache / f"hadoop-{hadoop}"
    if not target.is_dir():
        if not shutil.which("mvn"):
            apt_install("Hadoop's jars are fetched by Maven (`mvn`)", HADOOP_PACKAGES, progress)
        progress(f"fetching Hadoop {hadoop} from Maven Central (about 110 MB, once)")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"hadoop-{hadoop}-", dir=cache) as work:
            _fetch(hadoop, java, Path(work))
            try:
                Path(work, "lib").rename(target)
            except OSError as error:
                if not target.is_dir():  # no other `up` was faster
                    raise StagingError(f"cannot keep Hadoop's jars in {target}: {error.strerror}") from error
    return target


def _fetch(hadoop: str, java: Java, work: Path) -> None:
    (work / "pom.xml").write_text(pom(hadoop))
    command = ["mvn", "-B", "-q", "-f", str(work / "pom.xml"), "dependency:copy-dependencies"]
    command.append(f"-DoutputDirectory={work / 'lib'}")
    try:
        done = _run(command, MAVEN_LIMIT_S, JAVA_HOME=str(java.home))
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"Maven did not deliver Hadoop {hadoop} within {MAVEN_LIMIT_S} s") from None
    if done.returncode:
        cause = next((line for line in done.stdout.splitlines() if "ERROR" in line), _last_line(done.stderr))
        raise EngineUnavailable(f"Maven could not fetch Hadoop {hadoop}: {cause}")


def pom(hadoop: str) -> str:
    """Return the Maven project whose dependencies are the daemons' class path."""
    artifacts = [
        *(("org.apache.hadoop", f"hadoop-client-{part}", hadoop) for part in ("api", "runtime", "minicluster")),
        ("org.slf4j", "slf4j-reload4j", "1.7.36"),
        # The ResourceManager's proxy makes certificates when it starts, and fails without BouncyCastle.
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
