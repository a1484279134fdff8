"""A ResourceManager that wants Kerberos, with a real KDC: GSSAPI logins, and the token they are exchanged for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kdc
import pytest

from howdah.engines.yarn.conf import Configuration, load
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.resourcemanager import PROTOCOL, ResourceManagerClient
from howdah.engines.yarn.rpc import Connection, Kerberos, Login, RpcError, User
from howdah.errors import EngineRejected
from howdah.sandbox import Sandbox
from howdah.wire.credentials import Token

pytestmark = pytest.mark.skipif(bool(kdc.missing()), reason=f"no {', '.join(kdc.missing())} on this machine")
PRINCIPAL = f"rm/localhost@{kdc.REALM}"


@dataclass(frozen=True)
class Secure:
    kdc: kdc.Kdc
    configuration: Configuration


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    directory = tmp_path_factory.mktemp("kdc")
    with kdc.Kdc(directory) as realm, pytest.MonkeyPatch.context() as environment:
        keytab = realm.keytab("rm/localhost")
        realm.log_in("alice")
        for name, value in realm.env.items():
            environment.setenv(name, value)
        environment.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.env['KRB5_CONFIG']}")
        properties = {
            "core-site": {"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true"},
            "yarn-site": {
                "yarn.resourcemanager.principal": PRINCIPAL,
                "yarn.resourcemanager.keytab": str(keytab),
                "yarn.nodemanager.principal": PRINCIPAL,
            },
        }
        with Sandbox(directory / "run", nodes=0, hdfs=False, properties=properties) as sandbox:
            yield Secure(realm, load(str(sandbox.conf_dir)))


def call(configuration: Configuration, login: Login) -> pb.NewApplication:
    async def once() -> pb.NewApplication:
        connection = Connection(configuration.resourcemanagers()[0], PROTOCOL, login)
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
        call(secure.configuration, User("alice"))


def test_a_ticket_becomes_a_token_that_logs_in(secure: Secure) -> None:
    async def exchange() -> Token:
        async with ResourceManagerClient(secure.configuration) as rm:
            token = await rm.delegation_token("rm")
            return Token(token.identifier, token.password, token.kind, token.service)

    token = asyncio.run(exchange())
    assert token.kind == "RM_DELEGATION_TOKEN"
    assert call(secure.configuration, token).id.id > 0


@pytest.mark.parametrize("principal", [f"nm/localhost@{kdc.REALM}", f"rm/other@{kdc.REALM}"])
def test_a_server_that_is_not_the_one_configured_is_refused(secure: Secure, principal: str) -> None:
    with pytest.raises(EngineRejected, match=rf"says it is rm/localhost, the configuration says {principal}"):
        call(secure.configuration, Kerberos(principal))


def test_no_ticket_is_said(secure: Secure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    with pytest.raises(EngineRejected, match=r"Kerberos login to rm@localhost failed: .*kinit"):
        call(secure.configuration, Kerberos(PRINCIPAL))
