"""Tests a Hadoop with Kerberos and a real KDC: GSSAPI logins, and the tokens that clients get for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hdfs_native
import kdc
import pytest
from commandline import CommandLine
from secured import RENEWED_S, Secured, cluster, principal

from howdah.engines.yarn.conf import Configuration, load
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import PROTOCOL, ResourceManagerClient
from howdah.engines.yarn.tokens import delegation_tokens
from howdah.errors import EngineRejected
from howdah.hadoop import conf as hadoop_conf
from howdah.hadoop.rpc import Kerberos, Login, RpcConnection, RpcError, SimpleLogin
from howdah.spec import uris
from howdah.storage.content_cache import local_directory
from howdah.wire.credentials import Credentials, Token

pytestmark = pytest.mark.skipif(bool(kdc.missing()), reason=f"no {', '.join(kdc.missing())} on this machine")
PRINCIPAL = principal("rm")
JARS = local_directory()  # as it is before another module's fixture moves HOWDAH_HOME


@dataclass(frozen=True)
class Secure(Secured):
    configuration: Configuration


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    with cluster(tmp_path_factory.mktemp("kdc"), JARS) as running:
        yield Secure(running.realm, running.sandbox, load(str(running.sandbox.conf_dir)))


@pytest.fixture(scope="module")
def howdah(secure: Secure, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """As alice."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOWDAH_HOME", str(tmp_path_factory.mktemp("home")))
        command_line = CommandLine(secure.sandbox, tmp_path_factory.mktemp("jobs"))
        yield command_line
        command_line.end_all()


@pytest.fixture(scope="module")
def conf(secure: Secure) -> dict[str, str]:
    return dict(hadoop_conf.load(str(secure.sandbox.conf_dir)))


def call(configuration: Configuration, login: Login) -> pb.NewApplication:
    async def once() -> pb.NewApplication:
        connection = RpcConnection(configuration.resourcemanagers()[0], PROTOCOL, login)
        try:
            return await connection.call("getNewApplication", pb.Empty(), pb.NewApplication)
        finally:
            await connection.close()

    return asyncio.run(once())


def test_a_ticket_logs_in(secure: Secure) -> None:
    assert secure.configuration.login() == Kerberos(PRINCIPAL)
    assert call(secure.configuration, secure.configuration.login()).id.id > 0


def test_a_name_alone_does_not(secure: Secure) -> None:
    with pytest.raises(RpcError, match="SIMPLE authentication is not enabled"):
        call(secure.configuration, SimpleLogin("alice"))


def test_a_ticket_becomes_a_token_that_logs_in(secure: Secure) -> None:
    async def exchange() -> Token:
        async with ResourceManagerClient(secure.configuration) as rm:
            token = await rm.delegation_token("rm")
            return Token(token.identifier, token.password, token.kind, token.service)

    token = asyncio.run(exchange())
    assert token.kind == "RM_DELEGATION_TOKEN"
    assert call(secure.configuration, token).id.id > 0


@pytest.mark.parametrize("other", [f"nm/localhost@{kdc.REALM}", f"rm/other@{kdc.REALM}"])
def test_a_server_that_is_not_the_one_configured_is_refused(secure: Secure, other: str) -> None:
    with pytest.raises(EngineRejected, match=rf"says it is rm/localhost, the configuration says {other}"):
        call(secure.configuration, Kerberos(other))


def test_no_ticket_is_said(secure: Secure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    with pytest.raises(EngineRejected, match=r"Kerberos login to rm@localhost failed: .*kinit"):
        call(secure.configuration, Kerberos(PRINCIPAL))


def test_containers_log_in_to_hdfs_with_a_token_that_is_prolonged(secure: Secure, howdah: CommandLine) -> None:
    assert secure.configuration.user == "alice"
    source, target = f"{howdah.root}/tmp/in", f"{howdah.root}/tmp/out"
    howdah.files.mkdirs(source)
    for number in range(3):
        howdah.files.write_bytes(f"{source}/{number}", b"%d\n" % number)
    data = {"inputs": [{"path": "/tmp/in", "to": "in"}], "outputs": [{"from": "out", "path": "/tmp/out"}]}
    program = f"ls /tmp/krb5cc_* 2>&-; env | grep -c KRB5; sleep {RENEWED_S + 4}; mkdir out; cp in/* out"
    done = howdah.run(program, replicas=2, **data).done()
    assert done.code == 0, done.text
    names = sorted(entry.uri.rpartition("/")[2] for entry in howdah.files.walk(target))
    assert names == ["0", "1", "2", "_SUCCESS"]
    assert {entry.owner for entry in howdah.files.walk(target)} == {"alice"}
    audit = [line for line in secure.log("nn").splitlines() if "INFO audit:" in line and done.job in line]
    committed = [line for line in audit if "cmd=rename" in line and f"dst={target.partition(howdah.root)[2]}" in line]
    assert committed
    assert all("ugi=alice@HOWDAH.TEST (auth:TOKEN)" in line for line in committed)
    prolonged = [
        line for line in secure.log("rm").splitlines() if "Renewed delegation-token" in line and done.job in line
    ]
    assert len(prolonged) >= 2
    assert f"/user/alice/.howdah/jobs/{done.job}" in howdah.status(done.job)["directory"]


def test_a_job_that_waits_says_what_it_is_left(howdah: CommandLine) -> None:
    """A master may ask nothing with Kerberos; the page has what its heartbeats say, the command all."""
    greedy = howdah.run("exec sleep 600", memory="3GiB")
    greedy.says("worker:0 runs")
    running = howdah.run("true", memory="6GiB")
    running.says("GiB memory, 1 vcores); the ResourceManager leaves this job")
    for command in ("status", "explain"):
        assert "(6 GiB memory, 1 vcores); occupied: 127.0.0.1" in howdah(command, running.job).text
    for each in (running, greedy):
        assert howdah("cancel", each.job).code == 0
        each.done()


@pytest.mark.parametrize("login", ["ticket", "token"])
def test_what_a_writer_has_flushed_is_read(
    login: str, secure: Secure, howdah: CommandLine, conf: dict[str, str], tmp_path: Path
) -> None:
    """Only the DataNodes know of it, and only those who log in to them."""
    uri, written = f"{howdah.root}/tmp/held-{login}", b""
    tokens = asyncio.run(delegation_tokens(uris.split(howdah.root)[1], conf, "rm"))
    (tmp_path / "tokens").write_bytes(Credentials(tokens).to_bytes())
    given = {"KRB5CCNAME": f"FILE:{tmp_path}/none", "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens")}
    options = hdfs_native.WriteOptions(block_size=1 << 20)
    writer = hdfs_native.Client(howdah.root, conf).create(uris.path(uri), options)
    for length in (10, (1 << 20) + 700):
        writer.write(data := os.urandom(length))
        written += data
        writer.hsync()
        got = tmp_path / str(length)
        done = howdah("data", "get", uri, str(got), **(given if login == "token" else {}))
        assert done.code == 0, done.text
        assert got.read_bytes() == written
    writer.close()


def test_no_ticket_is_said_before_anything_is_submitted(howdah: CommandLine, tmp_path: Path) -> None:
    none = {"KRB5CCNAME": f"FILE:{tmp_path}/none"}
    done = howdah("run", "--on", "yarn", howdah.job_file("true", inputs=[{"path": "/tmp/in", "to": "in"}]), **none)
    assert done.code == 77
    assert len(done.text.splitlines()) == 1
    assert "the login to the NameNode of hdfs://" in done.text
    assert "Do you have a Kerberos ticket (klist, kinit)?" in done.text


def test_a_client_that_does_not_know_of_kerberos_is_told(secure: Secure, howdah: CommandLine, tmp_path: Path) -> None:
    done = howdah("data", "ls", f"{howdah.root}/tmp", HADOOP_CONF_DIR=str(tmp_path))
    assert done.code == 69
    assert "does it demand Kerberos (hadoop.security.authentication)?" in done.text
