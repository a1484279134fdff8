"""Tests DIGEST-MD5 with RFC 2831's own example, and howdah's client with the tests' server."""

from __future__ import annotations

import pytest
from digest_server import DigestServer

from howdah.errors import EngineRejected
from howdah.hadoop.sasl import (
    DigestClient,
    Layer,
    _Rc4,
    parse_fields,
    response_digest,
    session_key,
)

# RFC 2831, section 4.
RFC = ("chris", "elwood.innosoft.com", "secret", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_rfc_2831_example() -> None:
    digest = (session_key(*RFC[:5]), *RFC[3:])
    assert response_digest(*digest) == "d388dad90d4bbd760a152321f2143af7"
    assert response_digest(*digest, verb="") == "ea40f60335c427b5527b84dbabcdfffd"


def server(password: bytes | None) -> DigestServer:
    return DigestServer(lambda identifier: password if identifier == b"who" else None)


def test_client_and_server_agree_on_a_digest_login() -> None:
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


@pytest.mark.parametrize(
    ("offered", "plain", "chosen"),
    [
        ('qop="auth"', False, "qop=auth"),
        ('qop="auth,auth-int"', False, "qop=auth-int,maxbuf=65536"),
        ('qop="auth-conf, auth-int,auth",cipher="3des,rc4,des"', False, 'qop=auth-conf,maxbuf=65536,cipher="rc4"'),
        ('qop="auth-conf,auth-int",cipher="3des"', False, "qop=auth-int,maxbuf=65536"),
        ('qop="auth-conf,auth",cipher="rc4"', True, "qop=auth"),
        ("charset=utf-8", False, "qop=auth"),
    ],
)
def test_the_strongest_that_is_offered(offered: str, plain: bool, chosen: str) -> None:
    client = DigestClient(b"who", b"secret", "/default", plain=plain)
    answer = client.step(f'realm="default",nonce="n",{offered}'.encode())
    assert answer.decode().endswith(f",{chosen}")
    assert client.layered == ("auth-" in chosen)


@pytest.mark.parametrize(
    ("offered", "plain", "problem"),
    [
        ('qop="auth-conf",cipher="3des,des"', False, r"demands auth-conf \(3des, des\), howdah has auth, .* with rc4"),
        ('qop="auth-int"', True, r"demands auth-int \(\), howdah has auth$"),
    ],
)
def test_what_is_not_known_here_is_refused_by_name(offered: str, plain: bool, problem: str) -> None:
    with pytest.raises(EngineRejected, match=problem):
        DigestClient(b"who", b"secret", "/default", plain=plain).step(f'realm="r",nonce="n",{offered}'.encode())


def test_rc4_gives_the_known_bytes() -> None:
    assert _Rc4(b"Key").apply(b"Plaintext").hex() == "bbf316e8d940af0ad3"
    cipher = _Rc4(b"Wiki")
    assert (cipher.apply(b"pe") + cipher.apply(b"dia")).hex() == "1021bf0420"


def layers(sealing: bool) -> tuple[Layer, Layer]:
    ours, theirs = (Layer(b"0123456789abcdef", "client-to-server", sealing) for _ in range(2))
    return ours, theirs


@pytest.mark.parametrize("sealing", [False, True])
def test_what_one_side_wraps_the_other_takes(sealing: bool) -> None:
    ours, theirs = layers(sealing)
    for data in (b"", b"a", b"secret words" * 5000, bytes(300)):
        wrapped = ours.wrap(data)
        assert (data in wrapped) == (not sealing or not data)
        assert theirs.unwrap(wrapped) == data


@pytest.mark.parametrize("sealing", [False, True])
@pytest.mark.parametrize("place", [0, 5, 14, 20, -6, -1])
def test_a_changed_byte_is_noticed(sealing: bool, place: int) -> None:
    ours, theirs = layers(sealing)
    wrapped = bytearray(ours.wrap(b"twelve bytes"))
    wrapped[place] ^= 1
    with pytest.raises(EngineRejected, match="not made by the server"):
        theirs.unwrap(bytes(wrapped))


@pytest.mark.parametrize("sealing", [False, True])
def test_a_message_is_good_once_and_in_its_turn(sealing: bool) -> None:
    ours, theirs = layers(sealing)
    first, second = ours.wrap(b"first"), ours.wrap(b"second")
    assert theirs.unwrap(first) == b"first"
    with pytest.raises(EngineRejected):
        theirs.unwrap(first)
    ours, theirs = layers(sealing)
    with pytest.raises(EngineRejected):
        theirs.unwrap(second)
    for cut in (b"", b"\0\x01\0\0\0\0"):
        with pytest.raises(EngineRejected):
            layers(sealing)[1].unwrap(cut)


def test_fields_are_parsed() -> None:
    assert parse_fields(b'a="1, \\"x\\"", b=2 ,c=""') == {"a": '1, "x"', "b": "2", "c": ""}
