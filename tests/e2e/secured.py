"""Runs a whole Hadoop with Kerberos: daemons have their own keys, users have tickets, containers have tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kdc
import pytest

from howdah.sandbox import Sandbox

DAEMONS = ("nn", "dn", "rm", "nm", "HTTP")
RENEWED_S = 40
"""Lifetime in seconds of a delegation token before it is renewed, which happens when a tenth of it is left."""


@dataclass(frozen=True)
class Secured:
    realm: kdc.Kdc
    sandbox: Sandbox

    def log(self, daemon: str) -> str:
        return (self.sandbox.run_dir / "log" / f"{daemon}.log").read_text(errors="replace")


def principal(daemon: str) -> str:
    return f"{daemon}/localhost@{kdc.REALM}"


def properties(realm: kdc.Kdc, protection: str) -> dict[str, dict[str, str]]:
    """Return the properties that secure the sandbox's Hadoop; blocks travel over authenticated connections too."""
    keys = {daemon: str(realm.keytab(f"{daemon}/localhost")) for daemon in DAEMONS}
    hdfs = {
        "dfs.block.access.token.enable": "true",
        "dfs.namenode.kerberos.principal": principal("nn"),
        "dfs.namenode.keytab.file": keys["nn"],
        "dfs.namenode.kerberos.internal.spnego.principal": principal("HTTP"),
        "dfs.namenode.delegation.token.renew-interval": str(RENEWED_S * 1000),
        "dfs.datanode.kerberos.principal": principal("dn"),
        "dfs.datanode.keytab.file": keys["dn"],
        "dfs.web.authentication.kerberos.principal": principal("HTTP"),
        "dfs.web.authentication.kerberos.keytab": keys["HTTP"],
        "dfs.data.transfer.protection": "authentication",
        # Else a DataNode wants a certificate for its pages, or ports below 1024.
        "ignore.secure.ports.for.testing": "true",
    }
    yarn = {
        "yarn.resourcemanager.principal": principal("rm"),
        "yarn.resourcemanager.keytab": keys["rm"],
        "yarn.nodemanager.principal": principal("nm"),
        "yarn.nodemanager.keytab": keys["nm"],
        # A NodeManager reads users' logs by native code then, which these jars do not have: it would end with the first
        # application that does.
        "yarn.log-aggregation-enable": "false",
    }
    core = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": protection,
    }
    return {"core-site": core, "hdfs-site": hdfs, "yarn-site": yarn}


@contextmanager
def cluster(directory: Path, cache: Path, protection: str = "authentication") -> Iterator[Secured]:
    """Run the cluster while entered, with a ticket of alice; the environment is that of her commands. `protection` is
    the protection of calls (`hadoop.rpc.protection`)."""
    with kdc.Kdc(directory) as realm, pytest.MonkeyPatch.context() as environment:
        for name, value in realm.env.items():
            environment.setenv(name, value)
        environment.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.env['KRB5_CONFIG']}")
        environment.delenv("HADOOP_USER_NAME", raising=False)
        with Sandbox(directory / "run", nodes=1, properties=properties(realm, protection), cache=cache) as sandbox:
            environment.setenv("HADOOP_CONF_DIR", str(sandbox.conf_dir))
            _open_to_everyone(realm)
            realm.log_in("alice")
            yield Secured(realm, sandbox)


_OPEN = """
from howdah.storage.factory import filesystem
from howdah.hadoop.conf import default_filesystem, directory, load
root = default_filesystem(load(directory()))
for path in ("/tmp", "/logs", "/user"):
    filesystem(root).mkdirs(root + path)
    filesystem(root).chmod(root + path, 0o1777)
"""


def _open_to_everyone(realm: kdc.Kdc) -> None:
    """Open directories to all users; this runs as the NameNode's own user, who may do everything."""
    tickets = f"FILE:{realm.directory}/superuser"
    environment = {**os.environ, "KRB5CCNAME": tickets}
    kinit = [kdc.program("kinit") or "kinit", "-k", "-t", f"{realm.directory}/nn-localhost.keytab", "nn/localhost"]
    subprocess.run(kinit, env=environment, check=True, capture_output=True)
    subprocess.run([sys.executable, "-c", _OPEN], env=environment, check=True, capture_output=True, timeout=60)
