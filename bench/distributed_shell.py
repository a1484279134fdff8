"""Runs Hadoop's distributed shell for comparison: it runs a shell command in containers and nothing more.

Its jar is on Maven Central for some versions only; 3.4.2's runs against the sandbox's Hadoop 3.5.0.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.temp_home import Done, run
from howdah.sandbox import Sandbox
from howdah.sandbox.install import Java, require_java

VERSION = "3.4.2"
PACKAGE = "org.apache.hadoop.yarn.applications.distributedshell"
FETCH_LIMIT_S = 600
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>howdah.bench</groupId><artifactId>distributedshell</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-yarn-applications-distributedshell</artifactId>
<version>{version}</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>
<dependency><groupId>commons-cli</groupId><artifactId>commons-cli</artifactId><version>1.9.0</version></dependency>
<dependency><groupId>com.sun.jersey</groupId><artifactId>jersey-client</artifactId><version>1.19.4</version></dependency>
</dependencies></project>
"""


@dataclass(frozen=True)
class DistributedShell:
    """Runs the distributed shell's client, whose command line is made once for a sandbox."""

    command: list[str]

    @classmethod
    def of(cls, sandbox: Sandbox, home: Path) -> DistributedShell:
        """Build one with a client configuration below `home` that names its application master's class path."""
        java, fetched = require_java(sandbox.shape.hadoop, print), _jars(sandbox.cache)
        hadoop = sandbox.cache / f"hadoop-{sandbox.shape.hadoop}"
        jars = [*sorted(fetched.glob("*.jar")), *sorted(hadoop.glob("*.jar"))]
        conf = home / "distributed-shell-conf"
        conf.mkdir()
        for file in sandbox.conf_dir.iterdir():
            (conf / file.name).write_text(file.read_text())
        class_path = ",".join(["$HADOOP_CONF_DIR", *map(str, jars)])
        _add_property(conf / "yarn-site.xml", "yarn.application.classpath", class_path)
        return cls(_client(java, sandbox, conf, jars))

    def run(self, shell_command: str, containers: int) -> tuple[str, Done]:
        """Run an application; return its id and the ended client."""
        arguments = ["-shell_command", shell_command, "-num_containers", str(containers)]
        done = run([*self.command, *arguments, "-container_memory", "256", "-master_memory", "512"])
        return done.find(r"application_\d+_\d+"), done


def _jars(cache: Path) -> Path:
    target = cache / "bench" / f"distributedshell-{VERSION}"
    if not target.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            pom = Path(work, "pom.xml")
            pom.write_text(_POM.format(version=VERSION))
            command = [
                "mvn",
                "-B",
                "-q",
                "-f",
                str(pom),
                "dependency:copy-dependencies",
                f"-DoutputDirectory={work}/lib",
            ]
            subprocess.run(command, check=True, timeout=FETCH_LIMIT_S, stdout=subprocess.DEVNULL)
            target.parent.mkdir(exist_ok=True)
            Path(work, "lib").rename(target)
    return target


def _add_property(file: Path, name: str, value: str) -> None:
    line = f"<property><name>{name}</name><value>{value}</value></property>"
    file.write_text(file.read_text().replace("</configuration>", f"{line}</configuration>"))


def _client(java: Java, sandbox: Sandbox, conf: Path, jars: list[Path]) -> list[str]:
    """Return the command as `bin/yarn jar` starts it, with the quick flags of the sandbox's daemons."""
    own = next(str(jar) for jar in jars if "distributedshell" in jar.name)
    return [
        str(java.program),
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true"),
        f"-Djdk.net.hosts.file={sandbox.run_dir}/hosts",
        f"-Dlog4j.configuration=file:{conf}/log4j.properties",
        *("-cp", ":".join([str(conf), *map(str, jars)])),
        f"{PACKAGE}.Client",
        *("-jar", own, "-appname", "DistributedShell"),
    ]
