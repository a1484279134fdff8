"""Runs a Kerberos KDC on loopback for one realm, with MIT's programs, which it finds on PATH and in HOWDAH_KRB5."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from howdah.sandbox.addresses import free_port

REALM = "HOWDAH.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


def program(name: str) -> str | None:
    """Return a program's path. HOWDAH_KRB5 is a directory into which Debian's krb5 packages were unpacked."""
    root = os.environ.get("HOWDAH_KRB5", "/nonexistent")
    places = [os.environ.get("PATH", ""), "/usr/sbin", f"{root}/usr/sbin", f"{root}/usr/bin"]
    return shutil.which(name, path=os.pathsep.join(places))


def missing() -> list[str]:
    """Return the programs that are not on this machine."""
    return [name for name in _PROGRAMS if program(name) is None]


class Kdc:
    """Runs a KDC while entered; all its files are below `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._port = free_port()
        libraries = f"{os.environ.get('HOWDAH_KRB5', '/nonexistent')}/usr/lib/x86_64-linux-gnu"
        self.env = {"KRB5_CONFIG": f"{directory}/krb5.conf", "KRB5CCNAME": f"FILE:{directory}/tickets"}
        self._env = {
            **os.environ,
            **self.env,
            "KRB5_KDC_PROFILE": f"{directory}/kdc.conf",
            "LD_LIBRARY_PATH": libraries,
        }

    def __enter__(self) -> Kdc:
        self._write()
        self._run("kdb5_util", "create", "-s", "-P", "master")
        command = [program("krb5kdc") or "", "-n"]
        self._process = subprocess.Popen(command, env=self._env, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not self._listens():
            assert time.monotonic() < deadline, "the KDC does not listen"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _write(self) -> None:
        here = self.directory
        (here / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_canonicalize_hostname = false\n"
            f" rdns = false\n udp_preference_limit = 1\n[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        plugins = f"{os.environ.get('HOWDAH_KRB5', '')}/usr/lib/x86_64-linux-gnu/krb5/plugins"
        (here / "kdc.conf").write_text(
            f'[kdcdefaults]\n kdc_ports = ""\n kdc_tcp_listen = 127.0.0.1:{self._port}\n[realms]\n {REALM} = {{\n'
            f"  database_name = {here}/principal\n  key_stash_file = {here}/stash\n  max_life = 1h\n }}\n"
            f"[dbmodules]\n db_module_dir = {plugins}/kdb\n"
        )

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run([program(name) or name, *arguments], env=self._env, check=True, capture_output=True)

    def keytab(self, principal: str) -> Path:
        """Add a principal and return its keytab."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def log_in(self, principal: str) -> None:
        """Fill the ticket cache that `env` names."""
        self._run("kinit", "-k", "-t", str(self.keytab(principal)), principal)
