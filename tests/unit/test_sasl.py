"""DIGEST-MD5: RFC 2831's own example, and our two sides against each other."""

from __future__ import annotations

import pytest

from howdah.errors import EngineRejected
from howdah.hadoop.sasl import DigestClient, DigestServer, parse_fields, response_digest

# RFC 2831, section 4.
RFC = ("chris", "elwood.innosoft.com", "secret", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_rfc_2831_example() -> None:
    assert response_digest(*RFC) == "d388dad90d4bbd760a152321f2143af7"
    assert response_digest(*RFC, verb="") == "ea40f60335c427b5527b84dbabcdfffd"


def server(password: bytes | None) -> DigestServer:
    return DigestServer(lambda identifier: password if identifier == b"who" else None)


def test_both_sides_agree() -> None:
    client, ours = DigestClient(b"who", b"secret", "/default"), server(b"secret")
    proof = ours.verify(client.step(ours.challenge()))
    assert not client.finished
    assert client.step(proof) == b""
    assert client.finished
    assert ours.identifier == b"who"


@pytest.mark.parametrize("password", [b"other", b"", None])
def test_a_server_notices_a_wrong_password(password: bytes | None) -> None:
    client, ours = DigestClient(b"who", b"secret", "/default"), server(password)
    with pytest.raises(PermissionError):
        ours.verify(client.step(ours.challenge()))


def test_a_server_refuses_another_service_and_garbage() -> None:
    ours = server(b"secret")
    with pytest.raises(PermissionError):
        ours.verify(DigestClient(b"who", b"secret", "hdfs/nn").step(ours.challenge()))
    for garbage in (b"", b"username=\xff", b'username="a",realm="b"'):
        with pytest.raises(PermissionError):
            ours.verify(garbage)


def test_a_client_notices_a_server_that_does_not_know_the_password() -> None:
    client, ours = DigestClient(b"who", b"secret", "/default"), server(b"secret")
    ours.verify(client.step(ours.challenge()))
    with pytest.raises(EngineRejected, match="could not prove"):
        client.step(b"rspauth=00000000000000000000000000000000")
    assert not client.finished


def test_a_proof_before_the_challenge_is_refused() -> None:
    with pytest.raises(EngineRejected, match="could not prove"):
        DigestClient(b"who", b"secret", "/default").step(b"rspauth=")


def test_encryption_is_refused_by_name() -> None:
    with pytest.raises(EngineRejected, match=r"hadoop.rpc.protection auth-conf"):
        DigestClient(b"who", b"secret", "/default").step(b'realm="default",nonce="n",qop="auth-conf"')


def test_fields() -> None:
    assert parse_fields(b'a="1, \\"x\\"", b=2 ,c=""') == {"a": '1, "x"', "b": "2", "c": ""}
